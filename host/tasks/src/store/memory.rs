//! The in-memory twin of a durable store: for tests, and for servers that keep nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{Put, Revision, Store, StoreError, Stored};
use crate::id::TaskId;

/// Keeps tasks as long as it lives itself.
#[derive(Debug, Default)]
pub struct MemoryStore {
    shelf: Mutex<Shelf>,
    in_use: AtomicBool,
}

#[derive(Debug, Default)]
struct Shelf {
    tasks: BTreeMap<TaskId, (Stored, Option<u64>)>,
    unfinished: BTreeSet<TaskId>,
    due: BTreeSet<(u64, TaskId)>,
}

impl Shelf {
    fn expect(&self, id: &TaskId, expected: Option<Revision>) -> Result<(), StoreError> {
        let present = self.tasks.get(id).map(|(stored, _)| stored.revision);
        if present == expected {
            Ok(())
        } else {
            Err(StoreError::Conflict)
        }
    }

    fn remove(&mut self, id: &TaskId) {
        self.unfinished.remove(id);
        if let Some((_, Some(due_ms))) = self.tasks.remove(id) {
            self.due.remove(&(due_ms, *id));
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, id: &TaskId) -> Result<Option<Stored>, StoreError> {
        Ok(self
            .shelf
            .lock()
            .tasks
            .get(id)
            .map(|(stored, _)| stored.clone()))
    }

    async fn put(&self, put: Put) -> Result<Revision, StoreError> {
        let mut shelf = self.shelf.lock();
        shelf.expect(&put.id, put.expected)?;
        shelf.remove(&put.id);
        if put.unfinished {
            shelf.unfinished.insert(put.id);
        }
        if let Some(due_ms) = put.due_ms {
            shelf.due.insert((due_ms, put.id));
        }
        let revision = put.expected.unwrap_or(0) + 1;
        shelf.tasks.insert(
            put.id,
            (
                Stored {
                    revision,
                    bytes: put.bytes,
                },
                put.due_ms,
            ),
        );
        Ok(revision)
    }

    async fn delete(&self, id: &TaskId, expected: Revision) -> Result<(), StoreError> {
        let mut shelf = self.shelf.lock();
        shelf.expect(id, Some(expected))?;
        shelf.remove(id);
        Ok(())
    }

    async fn unfinished(
        &self,
        after: Option<TaskId>,
        max: usize,
    ) -> Result<Vec<TaskId>, StoreError> {
        let shelf = self.shelf.lock();
        let above = (
            after.map_or(Bound::Unbounded, Bound::Excluded),
            Bound::Unbounded,
        );
        Ok(shelf.unfinished.range(above).take(max).copied().collect())
    }

    async fn due(
        &self,
        until_ms: u64,
        after: Option<(u64, TaskId)>,
        max: usize,
    ) -> Result<Vec<(u64, TaskId)>, StoreError> {
        let shelf = self.shelf.lock();
        let above = (
            after.map_or(Bound::Unbounded, Bound::Excluded),
            Bound::Unbounded,
        );
        let wanted = shelf
            .due
            .range(above)
            .take_while(|(due_ms, _)| *due_ms <= until_ms);
        Ok(wanted.take(max).copied().collect())
    }

    async fn begin(&self) -> Result<bool, StoreError> {
        Ok(self.in_use.swap(true, Ordering::Relaxed))
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.in_use.store(false, Ordering::Relaxed);
        Ok(())
    }
}
