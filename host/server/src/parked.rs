//! Plain calls that wait for input in memory, because no record of theirs can be given to the client.
//!
//! Each is known by a random name that is good for one request, and ends when its time is over. It must not know how a call
//! goes on.

use crate::seal::Binding;
use crate::waiting_room::{Taken, WaitingRoom};
use longshore_runtime::{Call, Plugin, Run};
use longshore_tasks::Checkpoint;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls that may be parked at once, half of them of one plugin; each holds a guest in memory.
pub(crate) const PARKED_MAX: u64 = 64;

/// What the name of a parked call begins with in `requestState`. A sealed state is base64url, which has no dot.
const PREFIX: &str = "parked.";

/// A call that waits for its next request.
#[derive(Debug)]
pub(crate) struct ParkedCall {
    pub(crate) binding: Binding,
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) call: Call,
    pub(crate) run: Run,
    pub(crate) checkpoint: Checkpoint,
    /// For what its guest holds.
    pub(crate) _room: Taken,
    /// Among the parked calls.
    pub(crate) _place: Taken,
}

/// The calls that are parked.
#[derive(Debug)]
pub(crate) struct ParkedCalls {
    places: WaitingRoom,
    by_name: Mutex<HashMap<String, ParkedCall>>,
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
    /// A place for one more call of a plugin, if there is any.
    pub(crate) fn place(&self, plugin: &str, now_ms: u64) -> Option<Taken> {
        self.sweep(now_ms);
        self.places.take(plugin, 1)
    }

    /// Park a call; its `requestState` comes back.
    ///
    /// # Errors
    /// If the system has no random numbers. The call is ended.
    pub(crate) fn park(&self, parked: ParkedCall) -> Result<String, getrandom::Error> {
        let mut name = [0; 16];
        getrandom::fill(&mut name)?;
        let state = format!("{PREFIX}{}", hex::encode(name));
        self.by_name.lock().insert(state.clone(), parked);
        Ok(state)
    }

    /// Whether this state names a parked call, now or ever.
    pub(crate) fn is_name(state: &str) -> bool {
        state.starts_with(PREFIX)
    }

    /// Take a call that this request may go on with.
    ///
    /// # Errors
    /// What is wrong with the name, for the client. The call stays parked.
    pub(crate) fn take(
        &self,
        state: &str,
        request: &Binding,
        now_ms: u64,
    ) -> Result<ParkedCall, &'static str> {
        let mut by_name = self.by_name.lock();
        let gone = "the call it names has ended; start again without it";
        by_name
            .get(state)
            .ok_or(gone)?
            .binding
            .admits(request, now_ms)?;
        by_name.remove(state).ok_or(gone)
    }

    /// End the calls whose time is over.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.by_name
            .lock()
            .retain(|_, parked| parked.binding.expires_ms >= now_ms);
    }
}
