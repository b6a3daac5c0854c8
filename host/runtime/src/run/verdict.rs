//! What the end of a guest means.
//!
//! It must not know how guests are called.

use super::{Answer, Step};
use crate::contract::RpcError;
use crate::failure::{Exceeded, Failure};
use crate::guest::Guest;
use crate::limits::Limit;
use crate::plugin::{Plugin, PluginError};
use crate::record::Diverged;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap};

/// The code with which a guest passes on what it was refused (JSON-RPC 2.0, "internal error").
const INTERNAL_ERROR: i32 = -32603;

/// How a guest came to its end.
pub(super) enum End {
    Returned(wasmtime::Result<Result<Option<Answer>, RpcError>>),
    OutOfTime,
    CleanedUp,
}

/// The last step of a run; what it used is not known here. `None`: its result was reported already.
pub(super) fn judge(end: End, plugin: &Plugin, guest: &mut Guest) -> Option<Step> {
    if guest.shared().is_completed() {
        if let End::Returned(Err(error)) = end {
            tracing::debug!(plugin = %plugin.name, %error, "a guest failed after its result");
        }
        return guest.take_kept().map(finished);
    }
    let denied = guest.denied();
    let step = match end {
        End::Returned(Ok(Ok(None))) => returned_without_result(guest),
        End::Returned(Ok(Ok(Some(answer)))) => returned(answer, guest),
        End::Returned(Ok(Err(error))) if guest.shared().is_wished() => {
            tracing::debug!(plugin = %plugin.name, error = %error.message, "a guest that was to end ended with an error");
            ended_by_wish(guest)
        }
        // What the guest says of it is its own; the limit is the fact.
        End::Returned(Ok(Err(error))) if error.code == INTERNAL_ERROR && guest.was_refused() => {
            returned_without_result(guest)
        }
        End::Returned(Ok(Err(error))) => Step::Failed(Failure::Raised {
            error,
            refused: guest.refused_features(),
        }),
        End::Returned(Err(error)) => Step::Failed(classify(&error, guest)),
        End::OutOfTime | End::CleanedUp => Step::Failed(exceeded(Limit::WallTime, guest)),
    };
    Some(match (step, denied) {
        (Step::Failed(failure), Some(denied)) => Step::Failed(failure.after_denial(&denied)),
        (step, _) => step,
    })
}

/// The guest returned an answer; it is checked as a result of `complete` is.
fn returned(answer: Answer, guest: &mut Guest) -> Step {
    match guest.check_answer(&answer) {
        Ok(()) => finished(answer),
        Err(_) if guest.exceeded() == Some(Limit::ResultBytes) => {
            Step::Failed(exceeded(Limit::ResultBytes, guest))
        }
        Err(wrong) => Step::Failed(Failure::NoResult {
            refused: Some(wrong),
        }),
    }
}

fn finished(answer: Answer) -> Step {
    Step::Finished {
        answer: Box::new(answer),
        usage: None,
    }
}

/// The wish to end is the caller's, or the end of the time.
fn ended_by_wish(guest: &Guest) -> Step {
    if guest.shared().time_left().is_zero() {
        return Step::Failed(exceeded(Limit::WallTime, guest));
    }
    Step::Cancelled
}

fn returned_without_result(guest: &Guest) -> Step {
    if guest.shared().is_wished() {
        return ended_by_wish(guest);
    }
    Step::Failed(match guest.exceeded() {
        Some(limit) => exceeded(limit, guest),
        None => Failure::NoResult {
            refused: guest.refused_result(),
        },
    })
}

fn exceeded(limit: Limit, guest: &Guest) -> Failure {
    Failure::Limit(Exceeded {
        limit,
        value: guest.limits().value(limit),
    })
}

/// The text of wasmtime's error for exhausted host-call fuel, whose type is private. A test pins it.
const HOST_CALL_FUEL_TEXT: &str = "fuel allocated for hostcalls has been exhausted";

/// The text of wasmtime's error for too many handles; its type is private too.
const HANDLES_TEXT: &str = "handle table";

/// The text of wasmtime's error for too large HTTP fields; its type is private too.
const FIELDS_TEXT: &str = "total size of fields exceeds limit";

/// Give a trap its name.
fn classify(error: &wasmtime::Error, guest: &Guest) -> Failure {
    if let Some(diverged) = error.downcast_ref::<Diverged>() {
        return Failure::Diverged {
            step: diverged.step,
            detail: diverged.detail.clone(),
        };
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Failure::Unavailable("no instance slot of this size is free".to_owned());
    }
    if let Some(limit) = error.downcast_ref::<Trap>().and_then(limit_of_trap) {
        return exceeded(limit, guest);
    }
    if let Some(limit) = guest.exceeded() {
        return exceeded(limit, guest);
    }
    let text = format!("{error:#}");
    if text.contains(HOST_CALL_FUEL_TEXT) {
        return exceeded(Limit::HostCallBytes, guest);
    }
    if text.contains(HANDLES_TEXT) {
        return exceeded(Limit::Handles, guest);
    }
    if text.contains(FIELDS_TEXT) {
        return exceeded(Limit::HttpFieldBytes, guest);
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => Failure::Trap(trap.to_string()),
        None => Failure::Trap(error.root_cause().to_string()),
    }
}

fn limit_of_trap(trap: &Trap) -> Option<Limit> {
    match trap {
        Trap::OutOfFuel => Some(Limit::Fuel),
        Trap::StackOverflow => Some(Limit::Stack),
        _ => None,
    }
}

pub(super) fn list_error(error: &wasmtime::Error, store: &Store<Guest>) -> PluginError {
    PluginError::List(describe(&classify(error, store.data())))
}

fn describe(failure: &Failure) -> String {
    match failure {
        Failure::Limit(exceeded) => {
            format!(
                "it exceeded limits.{} = {}",
                exceeded.limit.name(),
                exceeded.value
            )
        }
        Failure::Trap(trap) => format!("it trapped: {trap}"),
        other => other.reason().to_owned(),
    }
}
