//! Plain calls that wait for input in memory, because no record of theirs can be given to the client.
//!
//! Each is known by a random name that is good for one request, and ends when its time is over. It must not know how a call
//! goes on.

use crate::failure::WaitingLimit;
use crate::seal::Binding;
use crate::waiting_room::{Taken, WaitingRoom};
use longshore_runtime::{Call, Plugin, Run};
use longshore_tasks::Checkpoint;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls that may be parked at once, half of them of one plugin; each holds a guest in memory.
const PARKED_MAX: u64 = 64;

/// What the name of a parked call begins with in `requestState`. A sealed state is base64url, which has no dot.
const PREFIX: &str = "parked.";

/// What is said of a name that is no call's any more.
const GONE: &str = "the call it names has ended; start again without it";

/// A call that waits for its next request.
#[derive(Debug)]
pub(crate) struct ParkedCall {
    pub(crate) binding: Binding,
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) call: Call,
    pub(crate) run: Run,
    pub(crate) checkpoint: Checkpoint,
}

/// Why a call was not parked. It is ended.
#[derive(Debug)]
pub(crate) enum NotParked {
    /// There is no room, by this limit.
    NoRoom(WaitingLimit),
    /// The system has no random numbers for a name.
    NoName(getrandom::Error),
}

/// A parked call and what it takes.
#[derive(Debug)]
struct Kept {
    parked: ParkedCall,
    _place: Taken,
    _room: Taken,
}

/// The calls that are parked.
#[derive(Debug)]
pub(crate) struct ParkedCalls {
    places: WaitingRoom,
    by_name: Mutex<HashMap<String, Kept>>,
}

impl Default for ParkedCalls {
    fn default() -> Self {
        Self {
            places: WaitingRoom::new(PARKED_MAX),
            by_name: Mutex::default(),
        }
    }
}

impl ParkedCalls {
    /// Park a call, with room for what its guest holds; its `requestState` comes back.
    ///
    /// # Errors
    /// If there is no room, or the system has no random numbers.
    pub(crate) fn park(
        &self,
        parked: ParkedCall,
        room: &WaitingRoom,
        now_ms: u64,
    ) -> Result<String, NotParked> {
        self.sweep(now_ms);
        let plugin = &parked.plugin.name;
        let place = self.places.take(plugin, 1);
        let place = place.ok_or(NotParked::NoRoom(WaitingLimit::Calls(PARKED_MAX)))?;
        let taken = room.take(plugin, parked.run.held_bytes() as u64);
        let taken = taken.ok_or(NotParked::NoRoom(WaitingLimit::Bytes(room.max())))?;
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(NotParked::NoName)?;
        let state = format!("{PREFIX}{}", hex::encode(name));
        let kept = Kept {
            parked,
            _place: place,
            _room: taken,
        };
        self.by_name.lock().insert(state.clone(), kept);
        Ok(state)
    }

    /// Whether this state names a parked call, now or ever.
    pub(crate) fn is_name(state: &str) -> bool {
        state.starts_with(PREFIX)
    }

    /// Whether this request may go on with the call of this name. The call stays parked, for the request may be refused yet.
    ///
    /// # Errors
    /// What is wrong with the name, for the client.
    pub(crate) fn check(
        &self,
        state: &str,
        request: &Binding,
        now_ms: u64,
    ) -> Result<(), &'static str> {
        let by_name = self.by_name.lock();
        let kept = by_name.get(state).ok_or(GONE)?;
        kept.parked.binding.admits(request, now_ms)
    }

    /// Take a call that was checked.
    ///
    /// # Errors
    /// If another request was quicker, or its time is over; for the client.
    pub(crate) fn take(&self, state: &str) -> Result<ParkedCall, &'static str> {
        let taken = self.by_name.lock().remove(state);
        taken.map(|kept| kept.parked).ok_or(GONE)
    }

    /// End the calls whose time is over.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.by_name
            .lock()
            .retain(|_, kept| kept.parked.binding.expires_ms >= now_ms);
    }
}
