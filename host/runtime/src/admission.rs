//! Who may have a guest alive, and who waits for that.
//!
//! A plain call waits in a bounded queue, for its caller can try again. A call whose caller was promised an outcome waits as
//! long as it takes, but such calls never have all the slots: after a restart with many of them, plain ones are still served.
//! Nor does any one plugin: half of the slots is always for the others.

use crate::failure::Failure;
use parking_lot::Mutex;
use std::collections::HashMap;
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
    /// By plugin: versions of one share.
    plugins: Mutex<HashMap<String, Arc<Semaphore>>>,
    plugin_slots: usize,
    queued_max: u64,
}

/// A slot; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _slot: OwnedSemaphorePermit,
    _plugin: OwnedSemaphorePermit,
    _promised: Option<OwnedSemaphorePermit>,
}

impl Admission {
    pub(crate) fn new(slots: u32, queued_max: u32) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots as usize)),
            queue: Arc::new(Semaphore::new(queued_max as usize)),
            // A quarter of the slots is for those who can be refused.
            promised: Arc::new(Semaphore::new((slots - slots / 4) as usize)),
            plugins: Mutex::default(),
            plugin_slots: (slots.div_ceil(2)) as usize,
            queued_max: queued_max.into(),
        }
    }

    /// Wait for a slot for this plugin. Cancelling it gives up the place in the queue.
    pub(crate) async fn admit(&self, plugin: &str, patience: Patience) -> Result<Slot, Failure> {
        let plugin = self.of_plugin(plugin);
        if let (Ok(plugin), Ok(slot)) = (
            plugin.clone().try_acquire_owned(),
            self.slots.clone().try_acquire_owned(),
        ) && patience == Patience::Queue
        {
            return Ok(Slot {
                _slot: slot,
                _plugin: plugin,
                _promised: None,
            });
        }
        let _place = match patience {
            Patience::Queue => Some(self.place_in_queue()?),
            Patience::AsLongAsItTakes => None,
        };
        // First what is the plugin's own: who waits for that must not hold what others wait for.
        let plugin = acquire(&plugin).await?;
        let promised = match patience {
            Patience::Queue => None,
            Patience::AsLongAsItTakes => Some(acquire(&self.promised).await?),
        };
        Ok(Slot {
            _plugin: plugin,
            _slot: acquire(&self.slots).await?,
            _promised: promised,
        })
    }

    fn of_plugin(&self, plugin: &str) -> Arc<Semaphore> {
        let mut plugins = self.plugins.lock();
        if let Some(slots) = plugins.get(plugin) {
            return slots.clone();
        }
        // Those that nobody uses are made again when they are needed.
        plugins.retain(|_, slots| Arc::strong_count(slots) > 1);
        let slots = Arc::new(Semaphore::new(self.plugin_slots));
        plugins.insert(plugin.to_owned(), slots.clone());
        slots
    }

    fn place_in_queue(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let busy = |_| Failure::Busy {
            limit: "queued_calls",
            value: self.queued_max,
        };
        self.queue.clone().try_acquire_owned().map_err(busy)
    }
}

async fn acquire(semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Failure> {
    let gone = |_| Failure::Unavailable("the host is shutting down".to_owned());
    semaphore.clone().acquire_owned().await.map_err(gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;

    #[tokio::test]
    async fn plain_calls_are_refused_when_the_queue_is_full() {
        let admission = Admission::new(1, 1);
        let slot = admission
            .admit("a", Patience::Queue)
            .await
            .expect("a free slot");
        let mut waiting = Box::pin(admission.admit("a", Patience::Queue));
        assert!(poll!(&mut waiting).is_pending());
        let refused = admission.admit("a", Patience::Queue).await;
        assert!(matches!(refused, Err(Failure::Busy { value: 1, .. })));
        drop(slot);
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn promised_calls_wait_and_leave_slots_to_the_others() {
        let admission = Admission::new(4, 0);
        let mut held = Vec::new();
        for plugin in ["a", "b", "c"] {
            let slot = admission.admit(plugin, Patience::AsLongAsItTakes).await;
            held.push(slot.expect("a slot"));
        }
        let mut waiting = Box::pin(admission.admit("d", Patience::AsLongAsItTakes));
        assert!(poll!(&mut waiting).is_pending());
        assert!(admission.admit("d", Patience::Queue).await.is_ok());
        held.pop();
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn one_plugin_never_has_all_the_slots() {
        let admission = Admission::new(4, 8);
        let first = admission
            .admit("busy", Patience::Queue)
            .await
            .expect("a slot");
        let _second = admission
            .admit("busy", Patience::Queue)
            .await
            .expect("a slot");
        let mut third = Box::pin(admission.admit("busy", Patience::Queue));
        assert!(poll!(&mut third).is_pending());
        assert!(admission.admit("other", Patience::Queue).await.is_ok());
        drop(first);
        assert!(third.await.is_ok());
    }
}
