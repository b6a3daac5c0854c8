//! How often something may happen: how often a caller may call tools, how often the log tells of the same. The generic cell rate
//! algorithm (ITU-T I.371), one number for each that is counted.
//!
//! It must not know what is counted.

use longshore_tasks::Principal;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

/// Those that are remembered before they are forgotten who may have all again.
const COUNTED_MAX: usize = 10_000;

/// Microseconds of a minute.
const MINUTE_US: u64 = 60_000_000;

/// Whose calls are counted together: the principal's, else those of an address. Never what a client says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    /// It has a token.
    Principal(Principal),
    /// It has none.
    Peer(Option<IpAddr>),
}

impl Who {
    /// Who calls.
    pub(crate) fn of(principal: &Principal, peer: Option<IpAddr>) -> Self {
        if principal.is_anonymous() {
            Self::Peer(peer)
        } else {
            Self::Principal(principal.clone())
        }
    }
}

/// Counts what happens, by whose it is.
#[derive(Debug)]
pub(crate) struct Rate<K> {
    per_minute: u32,
    /// The time, in microseconds, at which each will have had all that it took.
    taken_until_us: Mutex<HashMap<K, u64>>,
}

impl<K: Clone + Eq + Hash> Rate<K> {
    /// So many a minute for each, a sixth of them at once; 0: as many as it likes.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            taken_until_us: Mutex::default(),
        }
    }

    /// Count one.
    ///
    /// # Errors
    /// If it is one too many: in how many milliseconds there will be room for it.
    pub(crate) fn admit(&self, whose: &K, now_ms: u64) -> Result<(), u64> {
        if self.per_minute == 0 {
            return Ok(());
        }
        let now_us = now_ms.saturating_mul(1_000);
        let each_us = MINUTE_US / u64::from(self.per_minute);
        let at_once_us = MINUTE_US / 6;
        let mut taken_until_us = self.taken_until_us.lock();
        if taken_until_us.len() >= COUNTED_MAX {
            taken_until_us.retain(|_, until_us| *until_us > now_us);
        }
        let until_us = taken_until_us.entry(whose.clone()).or_insert(now_us);
        let next_us = (*until_us).max(now_us) + each_us;
        // At least one is always admitted to who has had none.
        let allowed_us = now_us + at_once_us.max(each_us);
        if next_us > allowed_us {
            return Err((next_us - allowed_us).div_ceil(1_000));
        }
        *until_us = next_us;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(last: u8) -> Who {
        Who::Peer(Some(IpAddr::from([192, 0, 2, last])))
    }

    #[test]
    fn a_sixth_at_once_and_the_rest_in_time() {
        let rate = Rate::new(60);
        for _ in 0..10 {
            assert_eq!(rate.admit(&who(1), 5_000), Ok(()));
        }
        assert_eq!(rate.admit(&who(1), 5_000), Err(1_000));
        assert_eq!(rate.admit(&who(1), 5_999), Err(1));
        assert_eq!(rate.admit(&who(1), 6_000), Ok(()));
        assert_eq!(rate.admit(&who(1), 6_000), Err(1_000));
        assert_eq!(rate.admit(&who(2), 6_000), Ok(()));
    }

    #[test]
    fn few_calls_a_minute_are_still_some() {
        let rate = Rate::new(1);
        assert_eq!(rate.admit(&who(1), 0), Ok(()));
        assert_eq!(rate.admit(&who(1), 0), Err(60_000));
        assert_eq!(rate.admit(&who(1), 60_000), Ok(()));
    }

    #[test]
    fn zero_is_no_limit() {
        let rate = Rate::new(0);
        assert!((0..1_000).all(|_| rate.admit(&who(1), 0).is_ok()));
    }

    #[test]
    fn callers_are_forgotten_when_they_have_all_again() {
        let rate = Rate::new(600);
        for at in 0..20_000_u32 {
            let peer = Some(IpAddr::from(at.to_be_bytes()));
            rate.admit(&Who::Peer(peer), u64::from(at)).unwrap();
        }
        assert!(rate.taken_until_us.lock().len() <= COUNTED_MAX);
    }
}
