//! Which runs wait in memory for their answers, what they hold there, and which has to leave for another.
//!
//! One budget of bytes for all of them. Runs that can be started again *linger*: the oldest leaves when a newer one needs its
//! room. Pinned ones *stay*; for one that finds no room among its like there is none. Nor may those of one plugin take it all: half
//! of the budget is always for the others.
//!
//! Knows nothing of runs or tasks: a place is a number of bytes and a wish to leave.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The places.
#[derive(Debug)]
pub(super) struct Waiting {
    lingering_max: usize,
    bytes_max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// By the order of their coming.
    lingering: BTreeMap<u64, Lingering>,
    lingering_bytes: usize,
    pinned_bytes: usize,
    /// Of each plugin that has some: versions of one share.
    pinned_by_plugin: HashMap<String, usize>,
    next: u64,
}

#[derive(Debug)]
struct Lingering {
    bytes: usize,
    leave: CancellationToken,
}

/// A place; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    waiting: Arc<Waiting>,
    kind: Kind,
    /// Cancelled when it has to be given back: another has it already. Never that of a pinned run.
    pub(super) leave: CancellationToken,
}

#[derive(Debug)]
enum Kind {
    Lingering { number: u64 },
    Pinned { plugin: String, bytes: usize },
}

impl Waiting {
    pub(super) fn new(lingering_max: usize, bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            lingering_max,
            bytes_max,
            held: Mutex::default(),
        })
    }

    /// A place for a run that can be started again. `None`: it is too large for what the pinned ones leave.
    pub(super) fn linger(self: &Arc<Self>, bytes: usize) -> Option<Place> {
        let mut held = self.held.lock();
        if self.lingering_max == 0 || !held.make_room(bytes, self.bytes_max) {
            return None;
        }
        while held.lingering.len() >= self.lingering_max {
            held.dismiss_oldest();
        }
        let number = held.next;
        held.next += 1;
        held.lingering_bytes += bytes;
        let leave = CancellationToken::new();
        let place = Lingering {
            bytes,
            leave: leave.clone(),
        };
        held.lingering.insert(number, place);
        Some(Place {
            waiting: Arc::clone(self),
            kind: Kind::Lingering { number },
            leave,
        })
    }

    /// A place for a run of this plugin that nothing can replace. `None`: its like take too much.
    pub(super) fn stay(self: &Arc<Self>, plugin: &str, bytes: usize) -> Option<Place> {
        let mut held = self.held.lock();
        let share = held.pinned_by_plugin.get(plugin).copied();
        let share = share.unwrap_or_default().saturating_add(bytes);
        if share > self.bytes_max.div_ceil(2) || !held.make_room(bytes, self.bytes_max) {
            return None;
        }
        held.pinned_bytes += bytes;
        held.pinned_by_plugin.insert(plugin.to_owned(), share);
        Some(Place {
            waiting: Arc::clone(self),
            kind: Kind::Pinned {
                plugin: plugin.to_owned(),
                bytes,
            },
            leave: CancellationToken::new(),
        })
    }
}

impl Held {
    /// Dismisses as many as it takes, the oldest first; nobody if that would not be enough. One that is dismissed holds its memory
    /// for the moment that its driver needs to hear of it.
    fn make_room(&mut self, bytes: usize, bytes_max: usize) -> bool {
        if self.pinned_bytes.saturating_add(bytes) > bytes_max {
            return false;
        }
        while self.pinned_bytes + self.lingering_bytes + bytes > bytes_max {
            self.dismiss_oldest();
        }
        true
    }

    fn dismiss_oldest(&mut self) {
        if let Some((_, oldest)) = self.lingering.pop_first() {
            self.lingering_bytes -= oldest.bytes;
            oldest.leave.cancel();
        }
    }

    fn give_back(&mut self, plugin: &str, bytes: usize) {
        self.pinned_bytes -= bytes;
        if let Some(share) = self.pinned_by_plugin.get_mut(plugin) {
            *share -= bytes;
            if *share == 0 {
                self.pinned_by_plugin.remove(plugin);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.waiting.held.lock();
        match &self.kind {
            Kind::Pinned { plugin, bytes } => held.give_back(plugin, *bytes),
            Kind::Lingering { number } => {
                if let Some(place) = held.lingering.remove(number) {
                    held.lingering_bytes -= place.bytes;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(places: &[&Place]) -> Vec<bool> {
        places
            .iter()
            .map(|place| place.leave.is_cancelled())
            .collect()
    }

    #[test]
    fn the_oldest_leave_for_what_a_newer_one_holds() {
        let waiting = Waiting::new(10, 100);
        let [a, b, c] = [40, 40, 20].map(|bytes| waiting.linger(bytes).unwrap());
        assert_eq!(told(&[&a, &b, &c]), [false; 3]);
        let d = waiting.linger(41).unwrap();
        assert_eq!(told(&[&a, &b, &c, &d]), [true, true, false, false]);
        assert!(waiting.linger(101).is_none(), "larger than all there is");
        assert_eq!(told(&[&c, &d]), [false; 2]);
        drop((a, b, c, d));
        let held = waiting.held.lock();
        assert_eq!((held.lingering_bytes, held.lingering.len()), (0, 0));
    }

    #[test]
    fn there_are_only_so_many() {
        let waiting = Waiting::new(2, 100);
        let [a, b, c] = [1, 1, 1].map(|bytes| waiting.linger(bytes).unwrap());
        assert_eq!(told(&[&a, &b, &c]), [true, false, false]);
        assert!(Waiting::new(0, 100).linger(1).is_none());
    }

    #[test]
    fn pinned_ones_stay_and_come_before_the_others() {
        let waiting = Waiting::new(10, 100);
        let lingering = waiting.linger(60).unwrap();
        let pinned = ["a", "b"].map(|plugin| waiting.stay(plugin, 30).unwrap());
        assert_eq!(told(&[&lingering, &pinned[0]]), [true, false]);
        let small = waiting.linger(40).unwrap();
        assert!(waiting.stay("c", 41).is_none());
        assert_eq!(told(&[&small]), [false], "nobody left in vain");
        assert!(waiting.linger(41).is_none());
        drop(pinned);
        let _half = waiting.stay("c", 50).unwrap();
        assert_eq!(told(&[&small]), [false]);
        let _most = waiting.stay("a", 11).unwrap();
        assert_eq!(told(&[&small]), [true]);
    }

    #[test]
    fn half_is_always_for_other_plugins() {
        let waiting = Waiting::new(10, 100);
        let first = waiting.stay("a", 30).unwrap();
        let second = waiting.stay("a", 20).unwrap();
        assert!(waiting.stay("a", 1).is_none());
        let other = waiting.stay("b", 50).unwrap();
        drop(first);
        assert!(waiting.stay("b", 1).is_none());
        let third = waiting.stay("a", 30).unwrap();
        drop((second, third, other));
        assert!(waiting.held.lock().pinned_by_plugin.is_empty());
        assert!(waiting.stay("a", 51).is_none(), "more than its share");
    }
}
