//! Waiting for a condition, with a bound. The only place of the tests that reads a clock.

use std::thread;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// How long anything may take that has no bound of its own: long enough for a loaded machine, short enough to end a hang.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until there is something, at most for `bound`.
///
/// # Panics
/// If the bound is over; the message says what was waited for.
pub fn wait_for<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let watch = Watch::start();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            watch.elapsed() < bound,
            "waited {bound:?} in vain for {what}"
        );
        thread::sleep(INTERVAL);
    }
}

/// Measures how long something takes.
#[derive(Clone, Copy, Debug)]
pub struct Watch(Instant);

impl Watch {
    /// Begins to measure.
    #[allow(clippy::disallowed_methods, reason = "the one clock of the tests")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
