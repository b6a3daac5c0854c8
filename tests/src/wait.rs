//! Waiting for a condition, with a bound. The only place of the tests that reads a clock.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// How long anything may take that has no bound of its own: long enough for a loaded machine, short enough to end a hang.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until there is something, at most for `bound`. What the machine oversleeps does not count.
///
/// # Panics
/// If the bound is over; the message says what was waited for.
pub fn wait_for<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let watch = Watch::start();
    let mut overslept = Duration::ZERO;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            watch.elapsed() < bound + overslept,
            "waited {bound:?} in vain for {what}"
        );
        let sleep = Watch::start();
        thread::sleep(INTERVAL);
        overslept += sleep.elapsed().saturating_sub(INTERVAL);
    }
}

/// Does something that must not take longer than `bound`, a stall of the machine not counted.
///
/// # Panics
/// If it takes longer.
pub fn within<T>(what: &str, bound: Duration, act: impl FnOnce() -> T) -> T {
    let witness = Witness::start();
    let watch = Watch::start();
    let done = act();
    let taken = watch.elapsed();
    let stalled = witness.longest_stall();
    assert!(
        taken < bound + stalled,
        "{what} took {taken:?}; the machine stalled for {stalled:?} at most"
    );
    done
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

/// Watches the machine while something with a tight bound is measured: a thread that does nothing but wait for a moment and
/// make a few bytes durable, over and over. What that takes longer than it should is the machine's delay, not the server's.
#[derive(Debug)]
pub struct Witness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Witness {
    /// Begins to watch.
    pub fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut file = tempfile::tempfile().unwrap();
            let mut longest = Duration::ZERO;
            while !told.load(Ordering::Relaxed) {
                let watch = Watch::start();
                thread::sleep(INTERVAL);
                file.write_all(&[0; 512]).unwrap();
                file.sync_data().unwrap();
                longest = longest.max(watch.elapsed().saturating_sub(INTERVAL));
            }
            longest
        });
        Self { over, thread }
    }

    /// The longest delay since the start. It ends the watch.
    ///
    /// # Panics
    /// If the disk is full.
    pub fn longest_stall(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
