//! The seam to what runs calls: one run, its steps, and who starts it.
//!
//! Knows nothing of how a call is run, nor of how an error is worded.

use std::fmt;

use async_trait::async_trait;

use crate::id::TaskId;
use crate::model::{Call, Payload, Question};

/// What a run did next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It reported progress. Kept in memory until the next change of state.
    Progress {
        /// What it says to the user, if anything.
        message: Option<String>,
    },
    /// It named its job elsewhere; stored before `step` is called again.
    ExternalId(String),
    /// It is about to do something that shows outside, and must not be done twice unasked. Stored
    /// before `step` is called again, which is when it may do it.
    Pinned,
    /// It asks, and waits. It goes on by [`Run::answer`], here or in a run started from `record`.
    NeedsInput {
        /// The questions: at least one, each key never used before in this call.
        questions: Vec<Question>,
        /// What brings a new run to these questions again; `None` if nothing can (pinned).
        record: Option<Vec<u8>>,
    },
    /// It ended with a result. Final.
    Finished(Payload),
    /// It ended with an error. Final.
    Failed(Payload),
    /// It gave in to [`Run::cancel`]. Final.
    Cancelled,
}

/// One execution of a guest for a call. Dropping it ends the guest at once.
#[async_trait]
pub trait Run: Send {
    /// Waits for the next step. Cancel safe: a dropped wait loses nothing. Not called again after a
    /// final step, nor between `NeedsInput` and `answer` (but it is after `cancel`).
    async fn step(&mut self) -> Step;

    /// Answers all the questions of the last `NeedsInput`, in the order asked. Must not block.
    fn answer(&mut self, answers: Vec<(String, Payload)>);

    /// What it holds in memory while it waits, in bytes: an upper bound. Asked between `NeedsInput` and `answer`.
    fn held_bytes(&self) -> usize;

    /// Tells the guest that its caller wants it to stop. Called at most once; must not block.
    fn cancel(&mut self);
}

/// Starts runs.
pub trait Runner: Send + Sync + 'static {
    /// Starts a run of `call`; from a record, if given, it arrives at the same questions again. It
    /// must not block: a runner with too much to do queues, and a call it cannot start is a run
    /// whose first step is `Failed`.
    fn start(&self, id: &TaskId, call: &Call, past: Past<'_>) -> Box<dyn Run>;
}

/// What a new run is told of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Past<'a> {
    /// What brings it to the questions where the last one stopped; `None` if it starts from the call.
    pub record: Option<&'a [u8]>,
    /// The name the tool gave its job elsewhere.
    pub external_id: Option<&'a str>,
}

/// Why the engine, not the run, made a task fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Its time to live was over before it ended.
    Expired,
    /// The server ended under a run that is not to be run again (pinned, or by its call's rule).
    Interrupted,
    /// The server ended under its runs too often.
    CrashLoop,
    /// Replayed, it did not ask what its record says it asked.
    Diverged,
    /// It asked and cannot leave memory, where there is no room for it: its like, or those of its plugin, hold all they may.
    NoRoom,
    /// Its run panicked or broke the contract of [`Run`].
    Broken,
}

impl Reason {
    /// A stable name, fit for `data.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Interrupted => "interrupted",
            Self::CrashLoop => "crash_loop",
            Self::Diverged => "diverged",
            Self::NoRoom => "no_room",
            Self::Broken => "broken",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Words failures for the wire: the engine knows why, not how it is said.
pub trait Failures: Send + Sync + 'static {
    /// The error of a task of `call` that failed for `reason`.
    fn error(&self, reason: Reason, call: &Call) -> Payload;

    /// One line for the status message, from an error of this trait or of a run.
    fn message(&self, error: &str) -> Option<String>;
}
