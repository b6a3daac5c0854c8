//! What is written but not durable yet, and must not be read.
//!
//! A database may show a write at once (sled does), the disk has it a little later; a status seen in
//! between could be taken back by a power cut. So readers of a task in that state wait. Here is also whether the
//! store works at all: it may fail and be mended, or stop for good.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use longshore_tasks::{StoreError, TaskId};
use tokio::sync::Notify;

/// Shared by the committer, which moves it, and the readers, which heed it.
#[derive(Debug, Default)]
pub(crate) struct Tide {
    afloat: Mutex<HashSet<TaskId>>,
    landed: Notify,
    condition: RwLock<Condition>,
}

/// Whether the store works.
#[derive(Debug, Default)]
enum Condition {
    #[default]
    Works,
    /// Not now, for this reason.
    Fails(StoreError),
    /// Never again in this process, for this reason.
    Stopped(StoreError),
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

    /// From now on every call fails with this reason, until the store is mended. A half-done write
    /// must not be built upon.
    pub(crate) fn fail(&self, reason: StoreError) {
        let mut condition = self
            .condition
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !matches!(*condition, Condition::Stopped(_)) {
            *condition = Condition::Fails(reason);
        }
    }

    /// It works again.
    pub(crate) fn mend(&self) {
        let mut condition = self
            .condition
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !matches!(*condition, Condition::Stopped(_)) {
            *condition = Condition::Works;
        }
    }

    /// From now on every call fails with this reason. The first reason stays, later ones follow from
    /// it.
    pub(crate) fn stop(&self, reason: StoreError) {
        let mut condition = self
            .condition
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !matches!(*condition, Condition::Stopped(_)) {
            *condition = Condition::Stopped(reason);
        }
    }

    /// Fails if the store fails or has stopped.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &*self
            .condition
            .read()
            .unwrap_or_else(PoisonError::into_inner)
        {
            Condition::Works => Ok(()),
            Condition::Fails(reason) | Condition::Stopped(reason) => Err(reason.clone()),
        }
    }

    /// The error of a store whose committer does not answer.
    pub(crate) fn stopped(&self) -> StoreError {
        let closed = || StoreError::Unavailable("it is closed".to_owned());
        self.check().err().unwrap_or_else(closed)
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
        let (wet, dry) = (
            TaskId::from_bytes([1; TaskId::BYTES]),
            TaskId::from_bytes([2; TaskId::BYTES]),
        );
        tide.launch([wet].into_iter());
        let mut reader = Box::pin(tide.durable(&wet));
        assert!(poll!(&mut reader).is_pending());
        assert_eq!(tide.durable(&dry).await, Ok(()));
        tide.land();
        assert_eq!(reader.await, Ok(()));
    }

    #[test]
    fn a_store_that_failed_can_be_mended() {
        let tide = Tide::default();
        let full = |why: &str| StoreError::Unavailable(why.to_owned());
        tide.fail(full("no room"));
        tide.fail(full("still no room"));
        assert_eq!(tide.check(), Err(full("still no room")));
        tide.mend();
        assert_eq!(tide.check(), Ok(()));
    }

    #[tokio::test]
    async fn a_store_that_has_stopped_says_why_to_all() {
        let tide = Tide::default();
        let id = TaskId::from_bytes([1; TaskId::BYTES]);
        tide.launch([id].into_iter());
        let mut reader = Box::pin(tide.durable(&id));
        assert!(poll!(&mut reader).is_pending());
        let lost = |why: &str| StoreError::Corrupt(why.to_owned());
        tide.stop(lost("its end"));
        tide.stop(lost("and more"));
        tide.fail(lost("and more"));
        tide.mend();
        tide.land();
        let why = Err(lost("its end"));
        assert_eq!(reader.await, why);
        assert_eq!(tide.check(), why);
        assert!(
            tide.is_durable(&TaskId::from_bytes([2; TaskId::BYTES]))
                .is_err()
        );
    }
}
