//! Who may have a guest alive, and who waits for that.
//!
//! A plain call waits in a bounded queue, for its caller can try again. A call whose caller was promised an outcome waits as
//! long as it takes, but such calls never have all the slots: after a restart with many of them, plain ones are still served.

use crate::failure::Failure;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a call does if no slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It waits if the queue has room, and is refused as busy if not.
    Queue,
    /// It waits. Whoever starts it bounds how many such calls there are.
    AsLongAsItTakes,
}

/// Slots for guests, and a bound on who waits for one.
#[derive(Debug)]
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    promised: Arc<Semaphore>,
    queued_max: u64,
}

/// A slot; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _slot: OwnedSemaphorePermit,
    _promised: Option<OwnedSemaphorePermit>,
}

impl Admission {
    pub(crate) fn new(slots: u32, queued_max: u32) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots as usize)),
            queue: Arc::new(Semaphore::new(queued_max as usize)),
            // A quarter of the slots is for those who can be refused.
            promised: Arc::new(Semaphore::new((slots - slots / 4) as usize)),
            queued_max: queued_max.into(),
        }
    }

    /// Wait for a slot. Cancelling it gives up the place in the queue.
    pub(crate) async fn admit(&self, patience: Patience) -> Result<Slot, Failure> {
        let gone = |_| Failure::Unavailable("the host is shutting down".to_owned());
        match patience {
            Patience::Queue => Ok(Slot {
                _slot: self.queue_up().await?,
                _promised: None,
            }),
            Patience::AsLongAsItTakes => {
                let promised = self.promised.clone().acquire_owned().await.map_err(gone)?;
                Ok(Slot {
                    _slot: self.slots.clone().acquire_owned().await.map_err(gone)?,
                    _promised: Some(promised),
                })
            }
        }
    }

    async fn queue_up(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(slot) = self.slots.clone().try_acquire_owned() {
            return Ok(slot);
        }
        let busy = |_| Failure::Busy {
            queued_max: self.queued_max,
        };
        let _place = self.queue.clone().try_acquire_owned().map_err(busy)?;
        let gone = |_| Failure::Unavailable("the host is shutting down".to_owned());
        self.slots.clone().acquire_owned().await.map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;

    #[tokio::test]
    async fn plain_calls_are_refused_when_the_queue_is_full() {
        let admission = Admission::new(1, 1);
        let slot = admission.admit(Patience::Queue).await.expect("a free slot");
        let mut waiting = Box::pin(admission.admit(Patience::Queue));
        assert!(poll!(&mut waiting).is_pending());
        let refused = admission.admit(Patience::Queue).await;
        assert!(matches!(refused, Err(Failure::Busy { queued_max: 1 })));
        drop(slot);
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn promised_calls_wait_and_leave_slots_to_the_others() {
        let admission = Admission::new(4, 0);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(
                admission
                    .admit(Patience::AsLongAsItTakes)
                    .await
                    .expect("a slot"),
            );
        }
        let mut waiting = Box::pin(admission.admit(Patience::AsLongAsItTakes));
        assert!(poll!(&mut waiting).is_pending());
        assert!(admission.admit(Patience::Queue).await.is_ok());
        held.pop();
        assert!(waiting.await.is_ok());
    }
}
