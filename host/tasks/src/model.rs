//! The words of the domain: what is called, asked, answered and shown.
//!
//! Plain values; how they change is [`crate::state`]'s business.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{Principal, TaskId};

/// Opaque text of the wire: a question, an answer, a result, an error.
pub type Payload = String;

/// What was called, with all that is needed to run it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Who called; the owner of the task.
    pub principal: Principal,
    /// Name of the plugin.
    pub plugin: String,
    /// Version of the plugin: the one that runs it, also after a replacement.
    pub version: String,
    /// Name of the tool.
    pub tool: String,
    /// What becomes of it when the server ends under its run.
    #[serde(default)]
    pub on_crash: OnCrash,
    /// What the runner needs to run it: arguments, seed, context, limits. Opaque here.
    #[serde(with = "serde_bytes")]
    pub body: Vec<u8>,
}

/// What becomes of a call whose run was cut short by the end of the server.
///
/// A call is *pinned* once it did something that shows outside, or when it asked and nothing leads
/// to its questions again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum OnCrash {
    /// It goes on from its record, or starts again from the call; pinned, it fails.
    #[default]
    Resume,
    /// Pinned, it starts again from the call: doing it twice does no harm.
    Rerun,
    /// It fails, pinned or not. While it waits for an answer it does not run, and so is not cut
    /// short.
    Fail,
}

/// One question of a run to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its key on the wire, unique in the life of the task.
    pub key: String,
    /// The request as the client sees it.
    pub request: Payload,
}

/// Where a run stopped to ask, and what has been answered since.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// A run started from this record arrives at the questions again. `None`: the call is pinned,
    /// only the run that asked can go on.
    #[serde(with = "serde_bytes")]
    pub record: Option<Vec<u8>>,
    /// The questions, in the order asked.
    pub questions: Vec<Question>,
    /// Answers taken so far, by key.
    pub answers: BTreeMap<String, Payload>,
}

impl Checkpoint {
    /// A checkpoint of which nothing is answered yet.
    pub fn new(questions: Vec<Question>, record: Option<Vec<u8>>) -> Self {
        Self {
            record,
            questions,
            answers: BTreeMap::new(),
        }
    }

    /// The questions without an answer, in the order asked.
    pub fn outstanding(&self) -> impl Iterator<Item = &Question> {
        self.questions
            .iter()
            .filter(|question| !self.answers.contains_key(&question.key))
    }

    /// Whether only the run that asked can go on.
    pub fn is_pinned(&self) -> bool {
        self.record.is_none()
    }
}

/// What a task is given at its birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    /// How often a client should poll, in milliseconds.
    pub poll_interval_ms: u64,
    /// How long it lives from its creation, in milliseconds; `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// The run it is made of did something that shows outside already.
    pub pinned: bool,
}

/// The five statuses of the wire, derived from the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Its run is going on, or will.
    Working,
    /// It has questions without an answer.
    InputRequired,
    /// It ended with a result (also a result that reports a tool's error). Final.
    Completed,
    /// It ended with an error. Final.
    Failed,
    /// It was cancelled. Final.
    Cancelled,
}

impl Status {
    /// Whether it never changes again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What a run said of its progress. It is not stored before the next change of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// To the user.
    pub message: String,
    /// When, in milliseconds since the epoch.
    pub at_ms: u64,
}

/// A task as its owner may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// Its name.
    pub id: TaskId,
    /// Its status.
    pub status: Status,
    /// The last progress message; the reason, once failed or cancelled.
    pub status_message: Option<String>,
    /// When it was made, in milliseconds since the epoch.
    pub created_ms: u64,
    /// When it last changed, its progress message included, in milliseconds since the epoch; never goes back.
    pub updated_ms: u64,
    /// Life from its creation, in milliseconds; grows when it ends. `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// How often a client should poll, in milliseconds.
    pub poll_interval_ms: u64,
    /// The questions without an answer, in the order asked.
    pub questions: Vec<Question>,
    /// The result, if completed.
    pub result: Option<Payload>,
    /// The error, if failed.
    pub error: Option<Payload>,
    /// The plugin called.
    pub plugin: String,
    /// The version of the plugin called.
    pub version: String,
    /// The tool called.
    pub tool: String,
    /// The name the tool gave its job elsewhere, if any.
    pub external_id: Option<String>,
}
