//! Time as an input: what the hour is, and waiting for another.
//!
//! The one home of the real clocks in this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The system's clock, which never goes back: while the wall clock is behind what was shown, the
/// monotonic one carries on. So setting it back neither stretches a grace period nor shows in a
/// time stamp, and the hours a machine slept through are counted.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
    /// The time at `origin`, as late as the wall clock ever made it.
    origin_ms: AtomicU64,
}

impl SystemClock {
    /// Reads the wall clock.
    #[allow(clippy::disallowed_methods, reason = "the home of the real clocks")]
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
            origin_ms: AtomicU64::new(wall_ms()),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the home of the real clocks")]
fn wall_ms() -> u64 {
    millis(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
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
        let passed_ms = millis(self.origin.elapsed());
        let seen_ms = wall_ms().saturating_sub(passed_ms);
        // Relaxed: the number stands for itself.
        let before_ms = self.origin_ms.fetch_max(seen_ms, Ordering::Relaxed);
        before_ms.max(seen_ms).saturating_add(passed_ms)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_system_clock_goes_on_from_whichever_clock_is_later() {
        let clock = SystemClock::new();
        let start_ms = clock.now_ms();
        assert!(start_ms.abs_diff(wall_ms()) < 1_000);
        clock.sleep_until(start_ms + 20).await;
        assert!(clock.now_ms() >= start_ms + 20);
        // As if the wall clock had been set back by an hour since.
        clock.origin_ms.fetch_add(3_600_000, Ordering::Relaxed);
        assert!(clock.now_ms() >= start_ms + 3_600_000);
        // As if it had been set forward by one.
        clock
            .origin_ms
            .store(start_ms - 3_600_000, Ordering::Relaxed);
        assert!(clock.now_ms() >= start_ms + 20);
    }

    #[tokio::test]
    async fn the_manual_clock_wakes_who_is_due() {
        let clock = ManualClock::new(5);
        clock.sleep_until(5).await;
        let mut sleeper = Box::pin(clock.sleep_until(10));
        clock.advance_ms(4);
        assert!(futures::poll!(&mut sleeper).is_pending());
        clock.advance_ms(1);
        sleeper.await;
    }
}
