//! What is written but not durable yet, and must not be read.
//!
//! sled shows a write at once, the disk has it a little later; a status seen in between could be
//! taken back by a power cut. So readers of a task in that state wait. Here is also whether the
//! store still works at all.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use longshore_tasks::{StoreError, TaskId};
use tokio::sync::Notify;

/// Shared by the committer, which moves it, and the readers, which heed it.
#[derive(Debug, Default)]
pub(crate) struct Tide {
    afloat: Mutex<HashSet<TaskId>>,
    landed: Notify,
    /// Why the store has stopped; set once.
    stopped: OnceLock<String>,
}

impl Tide {
    /// These tasks are about to be written.
    pub(crate) fn launch(&self, ids: impl Iterator<Item = TaskId>) {
        self.afloat().extend(ids);
    }

    /// What was launched is durable (or the store has stopped).
    pub(crate) fn land(&self) {
        self.afloat().clear();
        self.landed.notify_waiters();
    }

    /// From now on every call fails with this reason. A half-done write must not be built upon.
    pub(crate) fn stop(&self, reason: String) {
        // The first reason is the cause, later ones follow from it.
        let _ = self.stopped.set(reason);
    }

    /// Fails if the store has stopped.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.stopped.get().is_some() {
            Err(self.stopped())
        } else {
            Ok(())
        }
    }

    /// The error of a store that has stopped.
    pub(crate) fn stopped(&self) -> StoreError {
        let reason = self.stopped.get().map_or("it is closed", String::as_str);
        StoreError::Unavailable(reason.to_owned())
    }

    /// Waits until no write of the task is under way. Cancel safe.
    pub(crate) async fn durable(&self, id: &TaskId) -> Result<(), StoreError> {
        loop {
            // Made before the look, so that a landing right after it is not missed.
            let landed = self.landed.notified();
            if self.is_durable(id)? {
                return Ok(());
            }
            landed.await;
        }
    }

    /// Whether no write of the task is under way.
    pub(crate) fn is_durable(&self, id: &TaskId) -> Result<bool, StoreError> {
        let durable = !self.afloat().contains(id);
        self.check()?;
        Ok(durable)
    }

    fn afloat(&self) -> MutexGuard<'_, HashSet<TaskId>> {
        // The set is whole whatever panicked: it only ever grows or is cleared.
        self.afloat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_reader_waits_for_its_own_task_only() {
        let tide = Tide::default();
        let (wet, dry) = (TaskId::from_bytes([1; 16]), TaskId::from_bytes([2; 16]));
        tide.launch([wet].into_iter());
        let mut reader = Box::pin(tide.durable(&wet));
        assert!(poll!(&mut reader).is_pending());
        assert_eq!(tide.durable(&dry).await, Ok(()));
        tide.land();
        assert_eq!(reader.await, Ok(()));
    }

    #[tokio::test]
    async fn a_store_that_has_stopped_says_why_to_all() {
        let tide = Tide::default();
        let id = TaskId::from_bytes([1; 16]);
        tide.launch([id].into_iter());
        let mut reader = Box::pin(tide.durable(&id));
        assert!(poll!(&mut reader).is_pending());
        tide.stop("the disk is full".to_owned());
        tide.stop("and more".to_owned());
        tide.land();
        let why = Err(StoreError::Unavailable("the disk is full".to_owned()));
        assert_eq!(reader.await, why);
        assert_eq!(tide.check(), why);
        assert!(tide.is_durable(&TaskId::from_bytes([2; 16])).is_err());
    }
}
