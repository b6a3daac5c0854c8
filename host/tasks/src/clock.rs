//! Time as an input: what the hour is, and waiting for another.
//!
//! The one home of the real clocks in this crate.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::watch;

/// Where the engine has its time from. Milliseconds since the epoch; never goes back.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now_ms(&self) -> u64;

    /// Waits until `now_ms() >= at_ms`. Cancel safe.
    async fn sleep_until(&self, at_ms: u64);
}

/// A day: longer waits are cut, because timers overflow on absurd ones.
const NAP_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// The system's clock, read once and carried on by the monotonic one: setting the wall clock
/// neither stretches a grace period nor lets a time stamp go back.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    epoch_ms: u64,
    origin: Instant,
}

impl SystemClock {
    /// Reads the wall clock.
    #[allow(clippy::disallowed_methods, reason = "the home of the real clocks")]
    pub fn new() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            epoch_ms: millis(since_epoch),
            origin: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        self.epoch_ms.saturating_add(millis(self.origin.elapsed()))
    }

    #[allow(clippy::disallowed_methods, reason = "the home of the real waits")]
    async fn sleep_until(&self, at_ms: u64) {
        loop {
            let left_ms = at_ms.saturating_sub(self.now_ms());
            if left_ms == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left_ms.min(NAP_MS_MAX))).await;
        }
    }
}

/// A clock for tests: it stands still until it is moved.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now_ms: Arc<watch::Sender<u64>>,
}

impl ManualClock {
    /// A clock that says `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self {
            now_ms: Arc::new(watch::Sender::new(now_ms)),
        }
    }

    /// Moves it forward and wakes all whose time has come.
    pub fn advance_ms(&self, by_ms: u64) {
        self.now_ms.send_modify(|now_ms| *now_ms += by_ms);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        *self.now_ms.borrow()
    }

    async fn sleep_until(&self, at_ms: u64) {
        // It cannot fail: the sender lives as long as `self`.
        let _ = self
            .now_ms
            .subscribe()
            .wait_for(|now_ms| *now_ms >= at_ms)
            .await;
    }
}
