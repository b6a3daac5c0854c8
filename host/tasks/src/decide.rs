//! What a command means for a task: an event and an effect, as data.
//!
//! Pure: nothing here sleeps, stores or spawns. A command that comes too late decides nothing; only
//! a run that breaks its contract makes an event the state refuses.

use std::collections::BTreeSet;

use crate::model::{Checkpoint, OnCrash, Payload};
use crate::run::Reason;
use crate::state::{Event, Outcome, Task};

/// What someone wants of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Its run asks.
    Ask {
        /// The questions and the record that leads to them.
        checkpoint: Checkpoint,
        /// The last progress message.
        message: Option<String>,
    },
    /// Its run named its job elsewhere.
    Name(String),
    /// Its run is about to do something that shows outside.
    Pin,
    /// A new run is to be started for the one that the end of the server cut short.
    StartAgain {
        /// The server did not end by itself.
        crashed: bool,
    },
    /// It ended, by its run or by the engine's word.
    Close {
        /// How.
        outcome: Outcome,
        /// The new status message; `None` keeps the last.
        message: Option<String>,
    },
    /// Its owner answers.
    Answer(Vec<(String, Payload)>),
    /// Its owner wishes it cancelled.
    Cancel {
        /// Whether a run is in memory, and has a grace period in which it may end by itself.
        held: bool,
    },
    /// Its time may be over.
    Expire {
        /// What it fails with if it has not ended.
        error: Payload,
        /// The status message of that.
        message: Option<String>,
    },
}

/// What to do once the events are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Rest,
    /// Let the run look at the task, if one is in memory.
    Wake,
    /// Let a run look at the task, started for it if none is in memory.
    Attend,
    /// Remove the task.
    Delete,
}

/// What to apply and write, then the effect. Without an event nothing is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens.
    pub event: Option<Event>,
    /// What follows.
    pub effect: Effect,
}

/// When it is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time, in milliseconds since the epoch.
    pub now_ms: u64,
    /// How long an ended task is kept at least, in milliseconds.
    pub keep_ms: u64,
}

/// What `command` means for `task` at this moment.
pub fn decide(task: &Task, command: Command, at: Moment) -> Decision {
    let expired = task.is_expired(at.now_ms);
    if task.outcome.is_some() {
        let delete = expired && matches!(command, Command::Expire { .. });
        return rest(if delete { Effect::Delete } else { Effect::Rest });
    }
    match command {
        // A guest that asks on after the wish gets no more answers: the grace period ends it. And
        // a repeated write, after an error that hid its success, finds its work done.
        Command::Ask { checkpoint, .. }
            if task.wished_ms.is_some() || task.checkpoint.as_ref() == Some(&checkpoint) =>
        {
            rest(Effect::Rest)
        }
        Command::Ask {
            checkpoint,
            message,
        } => one(
            Event::Asked {
                checkpoint,
                message,
            },
            Effect::Rest,
        ),
        Command::Name(external_id) if task.external_id.as_ref() == Some(&external_id) => {
            rest(Effect::Rest)
        }
        Command::Name(external_id) => one(Event::Named(external_id), Effect::Rest),
        Command::Pin if task.pinned => rest(Effect::Rest),
        Command::Pin => one(Event::Pinned, Effect::Rest),
        Command::StartAgain { crashed } => {
            let over = task.is_pinned();
            one(Event::CutShort { crashed, over }, Effect::Rest)
        }
        Command::Close { outcome, message } => close(outcome, message, at),
        Command::Answer(answers) => answer(task, answers),
        Command::Cancel { held: true } if task.wished_ms.is_some() => rest(Effect::Attend),
        Command::Cancel { held: true } => one(Event::Wished, Effect::Attend),
        Command::Cancel { held: false } => {
            close(Outcome::Cancelled, Some(CANCELLED.to_owned()), at)
        }
        Command::Expire { error, message } if expired => close(Outcome::Failed(error), message, at),
        Command::Expire { .. } => rest(Effect::Rest),
    }
}

/// What a run started now is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// No run is needed.
    Rest,
    /// The wish stands and nothing runs: it is cancelled.
    Cancel,
    /// It was pinned to a run that is gone.
    Interrupted,
    /// It was pinned to a run that is gone, and may be done twice.
    Again,
    /// It starts from the call alone.
    Start,
    /// It starts from the record, arrives at the questions and gets their answers.
    Replay(Checkpoint),
}

/// What a task needs if no run of it is in memory: at start, and after its run was let go.
pub fn opening(task: &Task) -> Opening {
    match &task.checkpoint {
        _ if task.outcome.is_some() => Opening::Rest,
        _ if task.wished_ms.is_some() => Opening::Cancel,
        _ if task.is_pinned() && task.call.on_crash == OnCrash::Rerun => Opening::Again,
        _ if task.is_pinned() => Opening::Interrupted,
        None => Opening::Start,
        Some(checkpoint) if checkpoint.outstanding().next().is_some() => Opening::Rest,
        Some(checkpoint) => Opening::Replay(checkpoint.clone()),
    }
}

/// What a start of the server means for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revival {
    /// Nothing: it has ended, or waits for answers.
    Rest,
    /// The wish stands and nothing runs: it is cancelled.
    Cancel,
    /// It fails.
    Fail(Reason),
    /// A run is started for it, once that it was cut short is written down.
    CountAndStart,
    /// A run is started for it.
    Start,
}

/// When a task is given up under which the server crashes again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// After so many crashes at least,
    pub crashes_max: u32,
    /// and so long after the first of them, in milliseconds: who kills a server in a row must not
    /// lose what only needs longer than it lives.
    pub at_least_ms: u64,
}

impl Patience {
    fn is_over(self, task: &Task, now_ms: u64) -> bool {
        let since_ms = task.cut_short_since_ms.unwrap_or(now_ms);
        task.cut_short >= self.crashes_max && now_ms.saturating_sub(since_ms) >= self.at_least_ms
    }
}

/// What a start of the server at `now_ms` means for `task`, after the one before ended by itself or
/// `crashed`.
pub fn revival(task: &Task, crashed: bool, patience: Patience, now_ms: u64) -> Revival {
    match opening(task) {
        Opening::Rest => Revival::Rest,
        Opening::Cancel => Revival::Cancel,
        Opening::Interrupted => Revival::Fail(Reason::Interrupted),
        _ if task.call.on_crash == OnCrash::Fail => Revival::Fail(Reason::Interrupted),
        _ if crashed && patience.is_over(task, now_ms) => Revival::Fail(Reason::CrashLoop),
        Opening::Again => Revival::CountAndStart,
        Opening::Start | Opening::Replay(_) if crashed => Revival::CountAndStart,
        Opening::Start | Opening::Replay(_) => Revival::Start,
    }
}

/// The status message of a cancelled task.
const CANCELLED: &str = "Cancelled by its caller.";

/// The end of a task by its caller's wish.
pub fn cancellation() -> Command {
    Command::Close {
        outcome: Outcome::Cancelled,
        message: Some(CANCELLED.to_owned()),
    }
}

fn close(outcome: Outcome, message: Option<String>, at: Moment) -> Decision {
    let keep_until_ms = at.now_ms.saturating_add(at.keep_ms);
    one(
        Event::Closed {
            outcome,
            message,
            keep_until_ms,
        },
        Effect::Wake,
    )
}

/// Takes what fits an outstanding question; the first answer to a key wins.
fn answer(task: &Task, answers: Vec<(String, Payload)>) -> Decision {
    if task.wished_ms.is_some() {
        return rest(Effect::Rest);
    }
    let mut open: BTreeSet<&str> = task.outstanding().map(|q| q.key.as_str()).collect();
    let taken: Vec<_> = answers
        .into_iter()
        .filter(|(key, _)| open.remove(key.as_str()))
        .collect();
    if taken.is_empty() {
        return rest(Effect::Rest);
    }
    one(
        Event::Answered(taken),
        if open.is_empty() {
            Effect::Attend
        } else {
            Effect::Rest
        },
    )
}

fn one(event: Event, effect: Effect) -> Decision {
    Decision {
        event: Some(event),
        effect,
    }
}

fn rest(effect: Effect) -> Decision {
    Decision {
        event: None,
        effect,
    }
}
