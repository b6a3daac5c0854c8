//! The one home of real time in this crate: the time of day, and the clock that a guest sees.
//!
//! A guest's clocks count from the start of its call and go on while it waits, also while it is not in memory: after a
//! replay they stand where they would have stood had the guest never left.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[allow(clippy::disallowed_methods, reason = "the home of the wall clock")]
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The monotonic clock.
#[allow(clippy::disallowed_methods, reason = "the home of the monotonic clock")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Time of a processor that this thread has had.
pub(crate) fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Wait. Cancelling it has no effect beyond not waiting.
#[allow(clippy::disallowed_methods, reason = "the home of waiting")]
pub(crate) async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Time since the start of a call.
#[derive(Debug)]
pub(crate) struct Elapsed {
    started_ms: u64,
    anchor: Option<(Instant, u64)>,
}

impl Elapsed {
    pub(crate) fn since(started_ms: u64) -> Self {
        Self {
            started_ms,
            anchor: None,
        }
    }

    /// Microseconds since the start of the call, never less than `floor_us`, which is what the guest has seen last.
    ///
    /// The first reading takes the time of day, for the call may have begun in another process; the later ones count on
    /// from it, so that a step of the system's clock does not move a running guest's.
    pub(crate) fn now_us(&mut self, floor_us: u64) -> u64 {
        let (at, elapsed_us) = *self.anchor.get_or_insert_with(|| {
            let since_us = unix_ms()
                .saturating_sub(self.started_ms)
                .saturating_mul(1_000);
            (instant(), since_us.max(floor_us))
        });
        let passed = u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX);
        elapsed_us.saturating_add(passed).max(floor_us)
    }
}
