//! Which tasks have a run in memory, and how it is reached: a seat for each.
//!
//! Knows nothing of runs; a seat is only a bell and what the run said last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::id::TaskId;
use crate::model::{Call, Said};

/// What a task with a run takes beside its call, in bytes: its driver, its run's queue, its state.
const CALL_BYTES: usize = 4 << 10;

/// The seats taken. At most one driver sits on each, so at most one run of a task is in memory.
#[derive(Debug, Default)]
pub(super) struct Live {
    seats: Mutex<HashMap<TaskId, Arc<Seat>>>,
    /// What the calls of these tasks take in memory, in bytes.
    bytes: AtomicUsize,
}

/// Where the driver of a run is reached. The bell holds one ring: the driver looks at the durable
/// state when it hears it, so a second ring before that would add nothing.
#[derive(Debug, Default)]
pub(super) struct Seat {
    /// Rung when the durable state has changed.
    pub(super) bell: Notify,
    /// What the run said last of its progress.
    pub(super) said: Mutex<Option<Said>>,
}

/// A seat taken; given back when dropped, whatever happens to its driver.
#[derive(Debug)]
pub(super) struct Claim {
    live: Arc<Live>,
    bytes: usize,
    pub(super) id: TaskId,
    pub(super) seat: Arc<Seat>,
}

impl Live {
    /// Takes the seat of `id`; if it is taken, rings its bell and returns `None`.
    pub(super) fn claim(self: &Arc<Self>, id: TaskId) -> Option<Claim> {
        match self.seats.lock().entry(id) {
            Entry::Occupied(seat) => {
                seat.get().bell.notify_one();
                None
            }
            Entry::Vacant(place) => {
                let seat = Arc::clone(place.insert(Arc::default()));
                Some(Claim {
                    live: Arc::clone(self),
                    bytes: 0,
                    id,
                    seat,
                })
            }
        }
    }

    /// Rings the bell of `id`, if its seat is taken.
    pub(super) fn wake(&self, id: &TaskId) {
        if let Some(seat) = self.seats.lock().get(id) {
            seat.bell.notify_one();
        }
    }

    /// Whether the seat of `id` is taken.
    pub(super) fn holds(&self, id: &TaskId) -> bool {
        self.seats.lock().contains_key(id)
    }

    /// What the run of `id` that is in memory said last.
    pub(super) fn said(&self, id: &TaskId) -> Option<Said> {
        self.seats
            .lock()
            .get(id)
            .and_then(|seat| seat.said.lock().clone())
    }
}

impl Live {
    /// What the calls of the tasks with a run in memory take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Claim {
    /// Counts the call of this task as in memory, until the seat is given back.
    pub(super) fn weigh(&mut self, call: &Call) {
        if self.bytes > 0 {
            return;
        }
        let bytes = CALL_BYTES + call.body.len();
        self.live.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    /// Gives the seat back; whether its bell was rung and not heard.
    pub(super) fn leave(self) -> bool {
        let seat = Arc::clone(&self.seat);
        drop(self);
        // Nobody finds the seat any more, so this is the last word.
        seat.bell.notified().now_or_never().is_some()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.live.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.live.seats.lock().remove(&self.id);
    }
}
