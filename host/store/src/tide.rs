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
