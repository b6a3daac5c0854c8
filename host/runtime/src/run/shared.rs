//! What the guest's task and the holder of a run both see: the wish to end, the result's being there, the time that is left, the
//! memory that is held, the names of the run.
//!
//! It must not know of guests or steps.

use crate::call::Names;
use crate::clock;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub(crate) struct Shared {
    wished: AtomicBool,
    delivered: AtomicBool,
    wish: Notify,
    dead: AtomicBool,
    completed: AtomicBool,
    complete: Notify,
    held_bytes: AtomicUsize,
    permitted: watch::Sender<bool>,
    budget: Mutex<Budget>,
    budget_changed: Notify,
    names: Mutex<Names>,
}

/// The wall time that is left. It stands still while the guest waits for input.
#[derive(Debug)]
struct Budget {
    left: Duration,
    running_since: Option<Instant>,
}

impl Shared {
    pub(crate) fn new(wall_time: Duration, names: Names) -> Self {
        Self {
            wished: AtomicBool::new(false),
            delivered: AtomicBool::new(false),
            wish: Notify::new(),
            dead: AtomicBool::new(false),
            completed: AtomicBool::new(false),
            complete: Notify::new(),
            held_bytes: AtomicUsize::new(0),
            permitted: watch::Sender::new(false),
            budget: Mutex::new(Budget {
                left: wall_time,
                running_since: None,
            }),
            budget_changed: Notify::new(),
            names: Mutex::new(names),
        }
    }

    /// The names of the run, as they are now.
    pub(crate) fn names(&self) -> Names {
        self.names.lock().clone()
    }

    pub(crate) fn name_task(&self, task: &str) {
        self.names.lock().task = Some(task.into());
    }

    pub(crate) fn wish(&self) {
        self.wished.store(true, Ordering::Release);
        self.wish.notify_waiters();
    }

    pub(crate) fn is_wished(&self) -> bool {
        self.wished.load(Ordering::Acquire)
    }

    /// Resolves once the end is wished for.
    pub(crate) async fn wish_made(&self) {
        let wish = self.wish.notified();
        tokio::pin!(wish);
        // Registered before the flag is read, so that a wish in between is not missed.
        wish.as_mut().enable();
        if !self.is_wished() {
            wish.await;
        }
    }

    /// Resolves once, for the first wait that is pending when the wish comes, or that begins after it: a signal, not a state.
    pub(crate) async fn interruption(&self) {
        let wish = self.wish.notified();
        tokio::pin!(wish);
        // Registered before the flag is read, so that a wish in between is not missed.
        wish.as_mut().enable();
        if !self.is_wished() || self.delivered.swap(true, Ordering::AcqRel) {
            wish.await;
            self.delivered.store(true, Ordering::Release);
        }
    }

    /// The guest is to end at its next look at the epoch.
    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub(crate) fn set_completed(&self) {
        self.completed.store(true, Ordering::Release);
        self.complete.notify_one();
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// Resolves once there is a result.
    pub(crate) async fn completion(&self) {
        self.complete.notified().await;
    }

    /// The guest holds so much while it waits.
    pub(crate) fn hold(&self, bytes: usize) {
        // Relaxed: who reads it has heard of the wait by a channel.
        self.held_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Effects may happen.
    pub(crate) fn permit(&self) {
        self.permitted.send_replace(true);
    }

    /// Resolves once effects may happen.
    pub(crate) async fn permission(&self) {
        // The sender lives as long as this does.
        let _ = self
            .permitted
            .subscribe()
            .wait_for(|permitted| *permitted)
            .await;
    }

    pub(crate) fn start_clock(&self) {
        self.budget.lock().running_since = Some(clock::instant());
        self.budget_changed.notify_one();
    }

    pub(crate) fn stop_clock(&self) {
        let mut budget = self.budget.lock();
        if let Some(since) = budget.running_since.take() {
            budget.left = budget.left.saturating_sub(since.elapsed());
        }
    }

    /// The wall time that is left now.
    pub(crate) fn time_left(&self) -> Duration {
        let budget = self.budget.lock();
        let used = budget
            .running_since
            .map_or(Duration::ZERO, |since| since.elapsed());
        budget.left.saturating_sub(used)
    }

    fn runs(&self) -> bool {
        self.budget.lock().running_since.is_some()
    }

    /// Resolves when the wall time is used up.
    pub(crate) async fn time_over(&self) {
        loop {
            let left = self.time_left();
            if !self.runs() {
                self.budget_changed.notified().await;
            } else if left.is_zero() {
                return;
            } else {
                clock::sleep(left).await;
            }
        }
    }
}
