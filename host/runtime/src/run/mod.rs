//! One run: a guest on its threads, and the handle by which it is followed, answered and ended.
//!
//! Who talks to whom: the guest's task (`drive`) owns the store and sends [`Step`]s on a bounded channel; the holder of the
//! [`Run`] answers on another; what both must see at once (the wish to end, the time that is left) lies in `shared`. Dropping
//! the [`Run`] ends the guest, wherever it is: a computing one at its next look at the epoch, a waiting one with its future.
//! `exports` is what is called in the guest, `verdict` what its end means.

mod drive;
mod exports;
mod shared;
mod usage;
mod verdict;

pub(crate) use drive::{Rules, Seat, Terms, start, stillborn};
pub(crate) use exports::{Exports, Listing, list, list_resources};
pub(crate) use shared::Shared;
pub use usage::Usage;

use crate::contract::{
    CallResult, Completion, InputAnswer, InputKind, LogLevel, PromptResult, ReadOutcome,
};
use crate::engine::Host;
use crate::failure::Failure;
use crate::plugin::Plugin;
use crate::record::Record;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A question to the client, with the key that is its own for the whole call.
#[derive(Clone, Debug)]
pub struct Question {
    /// The key on the wire.
    pub key: String,
    /// What is asked.
    pub kind: InputKind,
}

/// How far the work has got.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Finite, and greater than the one before.
    pub progress: f64,
    /// The same unit; finite.
    pub total: Option<f64>,
    /// One line for a person.
    pub message: Option<String>,
}

/// A log message that the client wants.
#[derive(Clone, Debug)]
pub struct LogMessage {
    /// How severe.
    pub level: LogLevel,
    /// Which part of the plugin speaks.
    pub logger: Option<String>,
    /// JSON text.
    pub data: String,
}

/// What a run reports. After `Finished`, `Failed` and `Cancelled` there is nothing more.
#[derive(Clone, Debug)]
pub enum Step {
    /// How far the work has got.
    Progress(Progress),
    /// A message for the client.
    Log(LogMessage),
    /// The guest has an id of its own for the call, and waits for [`Run::proceed`]: what it does under that id may need it after a
    /// crash.
    ExternalId(String),
    /// The questions are settled; the guest waits for [`Run::proceed`].
    Begin,
    /// The guest is about to have its first effect, and waits for [`Run::permit`]. From here on the call is pinned to this run:
    /// no record leads to what comes after.
    Effect,
    /// The guest waits for [`Run::answer`]. With the record, another run arrives at the same questions; without, none can.
    NeedsInput {
        /// What it asks.
        questions: Vec<Question>,
        /// `None`: the call is pinned to this run.
        record: Option<Record>,
    },
    /// There is an answer.
    Finished {
        /// Of the kind of the call's work.
        answer: Box<Answer>,
        /// What the run used, if that is told ([`Settings::tells_usage`](crate::Settings::tells_usage)).
        usage: Option<Usage>,
    },
    /// There is no result, and why.
    Failed(Failure),
    /// The guest ended after the wish to end, without a result.
    Cancelled,
}

/// What a call gave: of the kind of its work.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of [`Work::Tool`](crate::Work::Tool).
    Tool(CallResult),
    /// Of [`Work::Prompt`](crate::Work::Prompt).
    Prompt(PromptResult),
    /// Of [`Work::Resource`](crate::Work::Resource).
    Resource(ReadOutcome),
    /// Of [`Work::Completion`](crate::Work::Completion).
    Completion(Completion),
    /// Of [`Work::Subscribe`](crate::Work::Subscribe) and [`Work::Unsubscribe`](crate::Work::Unsubscribe): there is nothing to say.
    Done,
}

pub(crate) enum Reply {
    Answers(Vec<InputAnswer>),
    Proceed,
}

/// Steps that may wait for a slow holder. Progress and log messages are dropped when it is full; the others wait.
const STEPS_MAX: usize = 64;

/// A run. Dropping it ends the guest, unless that has given its result: then it has the grace period for its clean-up.
#[derive(Debug)]
pub struct Run {
    steps: mpsc::Receiver<Step>,
    replies: mpsc::Sender<Reply>,
    shared: Arc<Shared>,
    host: Arc<Host>,
    guest: Option<(Arc<Plugin>, tokio::task::AbortHandle)>,
}

impl Run {
    /// The next step. Cancelling it loses nothing.
    pub async fn step(&mut self) -> Step {
        self.steps.recv().await.unwrap_or_else(|| {
            Step::Failed(Failure::Unavailable(
                "the run ended without a word".to_owned(),
            ))
        })
    }

    /// The plugin that runs; `None` if none could be had.
    pub fn plugin(&self) -> Option<&Arc<Plugin>> {
        self.guest.as_ref().map(|(plugin, _)| plugin)
    }

    /// How to name it later.
    pub fn naming(&self) -> Naming {
        Naming(self.shared.clone())
    }

    /// What the guest holds in memory while it waits for answers, at most, in bytes. Known from [`Step::NeedsInput`] on.
    pub fn held_bytes(&self) -> usize {
        self.shared.held_bytes()
    }

    /// Answer the questions of the last [`Step::NeedsInput`], in their order.
    pub fn answer(&self, answers: Vec<InputAnswer>) {
        self.reply(Reply::Answers(answers));
    }

    /// Let the guest go on after [`Step::Begin`] or [`Step::ExternalId`].
    pub fn proceed(&self) {
        self.reply(Reply::Proceed);
    }

    /// Let the effects happen that [`Step::Effect`] tells of.
    pub fn permit(&self) {
        self.shared.permit();
    }

    fn reply(&self, reply: Reply) {
        // One reply is waited for at a time, and the channel has room for one: it only fails if the guest is gone.
        if self.replies.try_send(reply).is_err() {
            tracing::debug!("a reply came to a guest that does not wait for one");
        }
    }

    /// Tell the guest that the caller wants the work to end: `cancelled()` turns true and a pending wait returns. It may
    /// still finish.
    pub fn cancel(&self) {
        self.shared.wish();
    }
}

/// Gives a run the name of what it became part of, wherever it is held by then.
#[derive(Clone, Debug)]
pub struct Naming(Arc<Shared>);

impl Naming {
    /// It is part of this from now on.
    pub fn task(&self, task: &str) {
        self.0.name_task(task);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.shared.is_completed() {
            return;
        }
        self.shared.kill();
        self.host.engine.increment_epoch();
        if let Some((_, guest)) = &self.guest {
            guest.abort();
        }
    }
}
