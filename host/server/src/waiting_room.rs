//! Room for guests of plain calls that wait for answers: what they take together has a bound, and what those of one plugin take:
//! half of the room is always for the others. The guests of tasks are the engine's.
//!
//! It must not know why a guest waits, nor what becomes of one that finds no room.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The room, counted in bytes, or in guests.
#[derive(Debug)]
pub(crate) struct WaitingRoom {
    max: u64,
    held: Arc<Mutex<Held>>,
}

/// What each plugin takes that takes something.
type Held = HashMap<String, u64>;

/// Room taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    held: Arc<Mutex<Held>>,
    plugin: String,
    amount: u64,
}

impl WaitingRoom {
    /// Room for so much.
    pub(crate) fn new(max: u64) -> Self {
        Self {
            max,
            held: Arc::default(),
        }
    }

    /// How much there is.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Room for so much of a plugin, if there is any.
    pub(crate) fn take(&self, plugin: &str, amount: u64) -> Option<Taken> {
        let mut held = self.held.lock();
        let share = held.get(plugin).copied();
        let share = share.unwrap_or_default().saturating_add(amount);
        let all = held.values().sum::<u64>().saturating_add(amount);
        if share > self.max.div_ceil(2) || all > self.max {
            return None;
        }
        held.insert(plugin.to_owned(), share);
        Some(Taken {
            held: self.held.clone(),
            plugin: plugin.to_owned(),
            amount,
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(share) = held.get_mut(&self.plugin) {
            *share -= self.amount;
            if *share == 0 {
                held.remove(&self.plugin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let room = WaitingRoom::new(10);
        let [a, b, c] = ["a", "b", "c"].map(|plugin| room.take(plugin, 3).unwrap());
        assert!(room.take("d", 2).is_none());
        let last = room.take("d", 1).unwrap();
        assert!(room.take("e", 1).is_none());
        drop((a, b, c, last));
        assert!(room.held.lock().is_empty());
    }

    #[test]
    fn half_is_always_for_other_plugins() {
        let room = WaitingRoom::new(10);
        let first = room.take("a", 5).unwrap();
        assert!(room.take("a", 1).is_none());
        let _other = room.take("b", 5).unwrap();
        drop(first);
        assert!(room.take("b", 1).is_none());
        assert!(room.take("a", 5).is_some());
        assert!(WaitingRoom::new(1).take("a", 1).is_some(), "of one, one");
    }
}
