//! Parts of large values whose head never came, because of a crash: found by their intent, removed
//! at the next start.

use std::ops::ControlFlow;

use longshore_tasks::store::Revision;
use longshore_tasks::{StoreError, TaskId};

use crate::engine::{Batch, Database};
use crate::record::{self, Head};

/// Adds to a batch what removes them, and says how many there are.
pub(crate) fn sweep(db: &dyn Database) -> Result<(usize, Batch), StoreError> {
    let mut intents = Vec::new();
    db.scan(&record::intent_range(), &mut |key, sealed| {
        intents.push((key.to_vec(), sealed.to_vec()));
        Ok(ControlFlow::Continue(()))
    })?;
    let (mut parts, mut batch) = (0, Batch::default());
    for (key, sealed) in intents {
        parts += sweep_intent(db, &key, &sealed, &mut batch)?;
        batch.remove(key);
    }
    Ok((parts, batch))
}

fn sweep_intent(
    db: &dyn Database,
    key: &[u8],
    sealed: &[u8],
    batch: &mut Batch,
) -> Result<usize, StoreError> {
    let id: TaskId = record::id_at(key, 1)?;
    let revision = record::unseal(key, sealed)?
        .try_into()
        .map(Revision::from_be_bytes);
    let revision = revision.map_err(|_| StoreError::Corrupt("an odd intent".to_owned()))?;
    if Head::read(db, &id)?.is_some_and(|head| head.revision == revision) {
        return Err(StoreError::Corrupt(format!(
            "task {id} is complete and is not"
        )));
    }
    let mut parts = 0;
    db.scan(&record::chunk_range(&id, revision), &mut |key, _| {
        batch.remove(key);
        parts += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(parts)
}
