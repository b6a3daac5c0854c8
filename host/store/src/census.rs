//! What the store holds, counted, in a record that changes with every group.
//!
//! sled mends a damaged log by leaving out what it cannot read, and says nothing; and any file may
//! be replaced by an older one. So each group writes, in its own batch, how many groups there were, how many tasks there are and a sum over
//! their heads. At a start the groups are compared with the mark (see `mark`), and the tasks are
//! counted again.

use std::ops::ControlFlow;

use longshore_tasks::{StoreError, TaskId};

use crate::engine::{Database, Keys};
use crate::record::{self, Head};

/// How many tasks there are, and which, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Census {
    /// How many groups were written, ever.
    pub(crate) sequence: u64,
    /// Heads.
    pub(crate) tasks: u64,
    /// Heads of tasks that are unfinished.
    pub(crate) unfinished: u64,
    /// Heads of tasks that fall due.
    pub(crate) due: u64,
    /// Sum of a checksum of each id with its revision.
    pub(crate) sum: u64,
}

const BYTES: usize = 5 * 8;

impl Census {
    /// A head comes.
    pub(crate) fn add(&mut self, id: &TaskId, head: &Head) {
        self.tasks = self.tasks.wrapping_add(1);
        self.unfinished = self.unfinished.wrapping_add(u64::from(head.unfinished));
        self.due = self.due.wrapping_add(u64::from(head.due_ms.is_some()));
        self.sum = self.sum.wrapping_add(checksum(id, head.revision));
    }

    /// A head goes.
    pub(crate) fn remove(&mut self, id: &TaskId, head: &Head) {
        self.tasks = self.tasks.wrapping_sub(1);
        self.unfinished = self.unfinished.wrapping_sub(u64::from(head.unfinished));
        self.due = self.due.wrapping_sub(u64::from(head.due_ms.is_some()));
        self.sum = self.sum.wrapping_sub(checksum(id, head.revision));
    }

    /// Its sealed form.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let numbers = [
            self.sequence,
            self.tasks,
            self.unfinished,
            self.due,
            self.sum,
        ];
        let body: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        record::seal(record::CENSUS_KEY, &body)
    }

    /// The census as the database shows it; `None` if there is none.
    pub(crate) fn read(db: &dyn Database) -> Result<Option<Self>, StoreError> {
        let key = record::CENSUS_KEY;
        let Some(sealed) = db.get(key)? else {
            return Ok(None);
        };
        let body = record::unseal(key, &sealed)?;
        if body.len() != BYTES {
            return Err(StoreError::Corrupt("an odd census".to_owned()));
        }
        let mut numbers = body.chunks_exact(8).map(|bytes| {
            let bytes = bytes.try_into().unwrap_or_default();
            u64::from_be_bytes(bytes)
        });
        let mut next = || numbers.next().unwrap_or_default();
        Ok(Some(Self {
            sequence: next(),
            tasks: next(),
            unfinished: next(),
            due: next(),
            sum: next(),
        }))
    }

    /// Counts what is there, all heads and both indexes. Reads every head and the small values in
    /// them; memory does not grow with the store.
    pub(crate) fn count(db: &dyn Database) -> Result<Self, StoreError> {
        let mut census = Self::default();
        db.scan(&record::head_range(None), &mut |key, sealed| {
            let id = record::id_at(key, 1)?;
            census.add(&id, &Head::unseal(&id, sealed)?);
            Ok(ControlFlow::Continue(()))
        })?;
        let unfinished = count_keys(db, &record::unfinished_range(None))?;
        let due = count_keys(db, &record::due_range(None, u64::MAX))?;
        if (unfinished, due) != (census.unfinished, census.due) {
            return Err(StoreError::Corrupt(format!(
                "its indexes name {unfinished} unfinished and {due} due tasks, its tasks say {} and {}",
                census.unfinished, census.due
            )));
        }
        Ok(census)
    }

    /// Fails if what is there is not what this census says: all tasks, or the unfinished only.
    pub(crate) fn expect(&self, db: &dyn Database, all: bool) -> Result<(), StoreError> {
        let differs = |what: &str, found, expected| {
            StoreError::Corrupt(format!("it holds {found} {what}, {expected} were written"))
        };
        if !all {
            let unfinished = count_keys(db, &record::unfinished_range(None))?;
            return match unfinished == self.unfinished {
                true => Ok(()),
                false => Err(differs("unfinished tasks", unfinished, self.unfinished)),
            };
        }
        let found = Self {
            sequence: self.sequence,
            ..Self::count(db)?
        };
        if found.tasks != self.tasks {
            return Err(differs("tasks", found.tasks, self.tasks));
        }
        if found != *self {
            return Err(StoreError::Corrupt(
                "some of its tasks are older than what was written".to_owned(),
            ));
        }
        Ok(())
    }
}

fn count_keys(db: &dyn Database, keys: &Keys) -> Result<u64, StoreError> {
    let mut count = 0;
    db.scan(keys, &mut |_, _| {
        count += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(count)
}

fn checksum(id: &TaskId, revision: u64) -> u64 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(id.as_bytes());
    crc.update(&revision.to_be_bytes());
    u64::from(crc.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Batch, Scrutiny, StoreEngine};

    #[test]
    fn what_comes_and_goes_leaves_nothing() {
        let mut census = Census::default();
        let id = TaskId::from_bytes([9; TaskId::BYTES]);
        let head = Head {
            revision: 4,
            unfinished: true,
            due_ms: Some(1),
            len: 0,
            chunks: 0,
            inline: Vec::new(),
        };
        census.add(&id, &head);
        let newer = Head {
            revision: 5,
            unfinished: false,
            ..head.clone()
        };
        census.remove(&id, &head);
        census.add(&id, &newer);
        assert_eq!((census.tasks, census.unfinished, census.due), (1, 0, 1));
        census.remove(&id, &newer);
        assert_eq!(census, Census::default());
    }

    fn head(unfinished: bool) -> Head {
        Head {
            revision: 1,
            unfinished,
            due_ms: None,
            len: 0,
            chunks: 0,
            inline: Vec::new(),
        }
    }

    #[test]
    fn all_are_counted_or_the_unfinished_only() {
        let dir = tempfile::tempdir().unwrap();
        let db = StoreEngine::Redb.open(dir.path(), Scrutiny::None).unwrap();
        let (mut census, mut batch) = (Census::default(), Batch::default());
        for (byte, unfinished) in [(1, true), (2, false), (3, false)] {
            let id = TaskId::from_bytes([byte; TaskId::BYTES]);
            let head = head(unfinished);
            census.add(&id, &head);
            batch.insert(record::head_key(&id), head.seal(&id));
            if unfinished {
                batch.insert(record::unfinished_key(&id), Vec::new());
            }
        }
        db.write(batch).unwrap();
        let remove = |key: Vec<u8>| {
            let mut batch = Batch::default();
            batch.remove(key);
            db.write(batch).unwrap();
        };
        assert_eq!(census.expect(&*db, true), Ok(()));
        assert_eq!(census.expect(&*db, false), Ok(()));

        let ended = record::head_key(&TaskId::from_bytes([2; TaskId::BYTES]));
        remove(ended);
        let lost = census.expect(&*db, true);
        assert!(matches!(lost, Err(StoreError::Corrupt(_))), "{lost:?}");
        assert_eq!(census.expect(&*db, false), Ok(()));
        remove(record::unfinished_key(&TaskId::from_bytes(
            [1; TaskId::BYTES],
        )));
        assert!(census.expect(&*db, false).is_err());
    }
}
