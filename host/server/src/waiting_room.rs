//! Memory for guests of plain calls that wait for answers: what they hold together has a bound. Those of tasks are the engine's.
//!
//! It must not know why a guest waits, nor what becomes of one that finds no room.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The room, counted in KiB.
#[derive(Debug)]
pub(crate) struct WaitingRoom {
    free_kib: Arc<Semaphore>,
}

/// Room taken; given back when dropped.
pub(crate) type Taken = OwnedSemaphorePermit;

impl WaitingRoom {
    /// Room for so many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let kib = usize::try_from(bytes_max >> 10).unwrap_or(usize::MAX);
        Self {
            free_kib: Arc::new(Semaphore::new(kib.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Room for a guest that holds so many bytes, if there is any.
    pub(crate) fn take(&self, bytes: usize) -> Option<Taken> {
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).ok()?;
        self.free_kib.clone().try_acquire_many_owned(kib).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let room = WaitingRoom::new(10 << 10);
        let most = room.take((8 << 10) + 1).unwrap();
        assert!(room.take(1025).is_none());
        let last = room.take(1024).unwrap();
        assert!(room.take(1).is_none());
        drop((most, last));
        assert!(room.take(10 << 10).is_some());
    }
}
