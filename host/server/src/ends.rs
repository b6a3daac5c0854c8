//! What the operator is told of calls that came to no result by the host's word: a limit, a trap, no room; and of requests that
//! were not let in. What a plugin says itself, by an error or a result, is between it and its caller.
//!
//! A stranger's plugin, or a client, can make as many of them as it likes. So each plugin has its lines for each reason, some at
//! once and then one a second, and what was left out is counted. The line is made of the error that the caller gets, so it says
//! the same. It must not know how a call came to its end.

use crate::rate::Rate;
use crate::wire::WireError;
use longshore_tasks::{Clock, Principal, TaskId};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tracing::field::display;

/// Lines a minute for one plugin, reason and limit; a sixth of them at once.
const LINES_PER_MINUTE: u32 = 60;

/// What a line repeats of the error's text and of what was called is cut here.
const TEXT_CHARACTERS_MAX: usize = 400;

/// The code of all errors that are the host's own word on a call (JSON-RPC 2.0, "internal error").
const INTERNAL_ERROR: i32 = -32603;

/// Reasons of which there is no line here: what a plugin said itself, what the log has a line of already, and the end of the
/// server.
const UNTOLD: [&str; 3] = ["raised", "store", "shutting_down"];

/// Whose call it was, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whose<'a> {
    /// Of the plugin.
    pub(crate) version: Option<&'a str>,
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) task: Option<TaskId>,
}

/// What lines are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    plugin: Option<String>,
    reason: String,
    limit: Option<String>,
}

/// There is no line for it. It was counted.
struct OneTooMany;

/// Tells of ends.
pub(crate) struct Ends {
    clock: Arc<dyn Clock>,
    rate: Rate<Kind>,
    left_out: Mutex<HashMap<Kind, u64>>,
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}

impl Ends {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            rate: Rate::new(LINES_PER_MINUTE),
            left_out: Mutex::default(),
        }
    }

    /// Tell of an error, if it is one of those.
    pub(crate) fn tell(&self, error: &WireError, whose: Whose<'_>) {
        let data = error.data.as_ref().filter(|_| error.code == INTERNAL_ERROR);
        let data =
            data.and_then(|data| serde_json::from_str::<Map<String, Value>>(data.get()).ok());
        let Some(data) = data else { return };
        let text = |member: &str| data.get(member).and_then(Value::as_str).map(str::to_owned);
        let Some(reason) = text("reason").filter(|reason| !UNTOLD.contains(&reason.as_str()))
        else {
            return;
        };
        let kind = Kind {
            plugin: text("plugin"),
            reason,
            limit: text("limit"),
        };
        if let Ok(left_out) = self.admit(&kind) {
            write(error, whose, &data, (&kind, left_out));
        }
    }

    /// Tell of a request that was not let in, whatever it was about. `reason` is one of a few; `message` is what its sender gets.
    pub(crate) fn tell_refused(&self, reason: &'static str, message: &str, peer: Option<IpAddr>) {
        let kind = Kind {
            plugin: None,
            reason: reason.to_owned(),
            limit: None,
        };
        if let Ok(left_out) = self.admit(&kind) {
            let peer = peer.map(display);
            tracing::warn!(
                peer,
                %reason,
                left_out,
                "a request was refused: {}",
                cut(message)
            );
        }
    }

    /// Whether there is a line for one of this kind; with it, how many were left out before it, if any were.
    fn admit(&self, kind: &Kind) -> Result<Option<u64>, OneTooMany> {
        let is_one_too_many = self.rate.admit(kind, self.clock.now_ms()).is_err();
        let mut left_out = self.left_out.lock();
        if is_one_too_many {
            *left_out.entry(kind.clone()).or_default() += 1;
            return Err(OneTooMany);
        }
        Ok(left_out.remove(kind))
    }

    /// Tell how many were left out of which no later line has told.
    pub(crate) fn sweep(&self) {
        let all = std::mem::take(&mut *self.left_out.lock());
        for (kind, left_out) in all {
            let (plugin, limit) = (kind.plugin.map(display), kind.limit.map(display));
            tracing::warn!(
                plugin,
                reason = %kind.reason,
                limit,
                left_out,
                "more calls came to no result, or were refused"
            );
        }
    }
}

fn write(
    error: &WireError,
    whose: Whose<'_>,
    data: &Map<String, Value>,
    (kind, left_out): (&Kind, Option<u64>),
) {
    let called = ["tool", "prompt", "resource", "completion"];
    let called = called
        .iter()
        .find_map(|kind| Some((*kind, data.get(*kind)?.as_str()?)));
    let value = data.get("value").and_then(Value::as_u64);
    let principal = whose
        .principal
        .filter(|principal| !principal.is_anonymous());
    tracing::warn!(
        plugin = kind.plugin.as_ref().map(display),
        version = whose.version.map(display),
        kind = called.map(|(kind, _)| display(kind)),
        subject = called.map(|(_, subject)| display(cut(subject))),
        task = whose.task.map(display),
        principal = principal.map(|principal| display(principal.as_str())),
        reason = %kind.reason,
        limit = kind.limit.as_ref().map(display),
        value,
        left_out,
        "a call came to no result: {}",
        cut(&error.message)
    );
}

fn cut(text: &str) -> &str {
    let end = text.char_indices().nth(TEXT_CHARACTERS_MAX);
    end.map_or(text, |(end, _)| &text[..end])
}
