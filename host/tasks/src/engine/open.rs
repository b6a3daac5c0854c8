//! How many unfinished tasks each principal has, and the limit to that.
//!
//! Counted in memory, from what the store says at the start. A write of which nobody knows whether
//! it was kept may leave a count one off until the next start.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use parking_lot::Mutex;

use crate::id::Principal;

/// The counts. Principals without unfinished tasks take no room.
#[derive(Debug)]
pub(super) struct Open {
    max: usize,
    counts: Mutex<HashMap<Principal, usize>>,
}

impl Open {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            counts: Mutex::default(),
        }
    }

    /// How many one principal may have.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// One more, if there may be one.
    pub(super) fn try_add(&self, principal: &Principal) -> bool {
        let mut counts = self.counts.lock();
        let count = counts.get(principal).copied().unwrap_or(0);
        if count < self.max {
            counts.insert(principal.clone(), count + 1);
        }
        count < self.max
    }

    /// One more that is there already.
    pub(super) fn add(&self, principal: &Principal) {
        *self.counts.lock().entry(principal.clone()).or_default() += 1;
    }

    /// One less.
    pub(super) fn remove(&self, principal: &Principal) {
        if let Entry::Occupied(mut count) = self.counts.lock().entry(principal.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_and_nothing_is_left() {
        let open = Open::new(2);
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        assert!(open.try_add(&alice) && open.try_add(&alice));
        assert!(!open.try_add(&alice));
        assert!(open.try_add(&bob));
        open.add(&alice);
        for _ in 0..4 {
            open.remove(&alice);
        }
        open.remove(&bob);
        assert!(open.counts.lock().is_empty());
    }
}
