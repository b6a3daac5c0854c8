//! The state machine of a task: what it is, and the one function that changes it.
//!
//! Pure. An illegal transition is a typed error, a terminal state is final, and the five statuses
//! are derived, never stored. It must not know time's source, stores or runs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::model::{Birth, Call, Checkpoint, Payload, Question, Said, Status, TaskView};

/// A task, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// What was called.
    pub call: Call,
    /// When it was made, in milliseconds since the epoch.
    pub created_ms: u64,
    /// When its state last changed.
    pub updated_ms: u64,
    /// When its time is over; `None` is never.
    pub expires_ms: Option<u64>,
    /// How often a client should poll.
    pub poll_interval_ms: u64,
    /// The last progress message that was stored, or why it failed or was cancelled.
    pub status_message: Option<String>,
    /// The name its tool gave its job elsewhere.
    pub external_id: Option<String>,
    /// When its caller wished it cancelled.
    pub wished_ms: Option<u64>,
    /// Where its run last asked; gone once it has ended.
    pub checkpoint: Option<Checkpoint>,
    /// Every key it ever used for a question.
    pub keys: BTreeSet<String>,
    /// It did something that shows outside.
    #[serde(default)]
    pub pinned: bool,
    /// How often the end of the server cut its run short since it last got on.
    #[serde(default)]
    pub cut_short: u32,
    /// When the first of these was found.
    #[serde(default)]
    pub cut_short_since_ms: Option<u64>,
    /// How often it was started again though it was pinned. Its keys carry the number.
    #[serde(default)]
    pub reruns: u32,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// With a result.
    Completed(Payload),
    /// With an error.
    Failed(Payload),
    /// By its caller's wish.
    Cancelled,
}

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Its run asks.
    Asked {
        /// The questions and the record that leads to them.
        checkpoint: Checkpoint,
        /// The last progress message, if there was one since the last change.
        message: Option<String>,
    },
    /// Outstanding questions got their answers.
    Answered(Vec<(String, Payload)>),
    /// Its caller wishes it cancelled.
    Wished,
    /// Its tool named its job elsewhere.
    Named(String),
    /// Its run is about to do something that shows outside.
    Pinned,
    /// The end of the server cut its run short, and a new one is to be started.
    CutShort {
        /// It counts towards giving up.
        crashed: bool,
        /// Pinned as it was, it starts from the call alone.
        over: bool,
    },
    /// It ended.
    Closed {
        /// How.
        outcome: Outcome,
        /// The new status message; `None` keeps the last.
        message: Option<String>,
        /// It is kept at least until then.
        keep_until_ms: u64,
    },
}

/// An event that the state does not admit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Illegal {
    /// Nothing happens to a task that has ended.
    #[error("the task has ended")]
    Ended,
    /// It cannot ask while questions are open.
    #[error("the task already waits for answers")]
    AlreadyAsking,
    /// A checkpoint without a question leads nowhere.
    #[error("the task asks nothing")]
    AsksNothing,
    /// A key was used before in the life of the task.
    #[error("the question key {0:?} was used before")]
    KeyUsed(String),
    /// No outstanding question has this key.
    #[error("no outstanding question has the key {0:?}")]
    NotAsked(String),
    /// One wish is enough.
    #[error("the task is already being cancelled")]
    AlreadyWished,
}

impl Task {
    /// A new task at `now_ms`.
    pub fn born(id: TaskId, call: Call, birth: Birth, now_ms: u64) -> Self {
        Self {
            id,
            call,
            created_ms: now_ms,
            updated_ms: now_ms,
            expires_ms: birth.ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms)),
            poll_interval_ms: birth.poll_interval_ms,
            status_message: None,
            external_id: None,
            wished_ms: None,
            checkpoint: None,
            keys: BTreeSet::new(),
            pinned: birth.pinned,
            cut_short: 0,
            cut_short_since_ms: None,
            reruns: 0,
            outcome: None,
        }
    }

    /// The same task, born while its run already stands at (or beyond) `checkpoint`.
    #[must_use]
    pub fn asked_before(mut self, checkpoint: Option<Checkpoint>) -> Self {
        // Keys that were answered before it was a task were never keys of the task.
        self.keys = checkpoint
            .iter()
            .flat_map(Checkpoint::outstanding)
            .map(|q| q.key.clone())
            .collect();
        self.checkpoint = checkpoint;
        self
    }

    /// Its status.
    pub fn status(&self) -> Status {
        match &self.outcome {
            Some(Outcome::Completed(_)) => Status::Completed,
            Some(Outcome::Failed(_)) => Status::Failed,
            Some(Outcome::Cancelled) => Status::Cancelled,
            None if self.outstanding().next().is_some() => Status::InputRequired,
            None => Status::Working,
        }
    }

    /// Whether its time is over at `now_ms`, in milliseconds since the epoch.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms
            .is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// Whether only the run in memory can go on.
    pub fn is_pinned(&self) -> bool {
        self.pinned || self.checkpoint.as_ref().is_some_and(Checkpoint::is_pinned)
    }

    /// Its questions without an answer, in the order asked.
    pub fn outstanding(&self) -> impl Iterator<Item = &Question> {
        self.checkpoint.iter().flat_map(Checkpoint::outstanding)
    }

    /// What its owner sees; `said` is the progress that is not stored yet.
    pub fn view(&self, said: Option<Said>) -> TaskView {
        let (result, error) = match &self.outcome {
            Some(Outcome::Completed(result)) => (Some(result.clone()), None),
            Some(Outcome::Failed(error)) => (None, Some(error.clone())),
            Some(Outcome::Cancelled) | None => (None, None),
        };
        let said = said.filter(|_| self.outcome.is_none());
        let said_ms = said.as_ref().map_or(0, |said| said.at_ms);
        TaskView {
            id: self.id,
            status: self.status(),
            status_message: said
                .map(|said| said.message)
                .or_else(|| self.status_message.clone()),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms.max(said_ms),
            ttl_ms: self
                .expires_ms
                .map(|expires_ms| expires_ms - self.created_ms),
            poll_interval_ms: self.poll_interval_ms,
            questions: self.outstanding().cloned().collect(),
            result,
            error,
            plugin: self.call.plugin.clone(),
            version: self.call.version.clone(),
            tool: self.call.tool.clone(),
            external_id: self.external_id.clone(),
        }
    }
}

/// The task after `event` at `now_ms`, or why that cannot happen to it.
pub fn apply(mut task: Task, event: Event, now_ms: u64) -> Result<Task, Illegal> {
    if task.outcome.is_some() {
        return Err(Illegal::Ended);
    }
    match event {
        Event::Asked {
            checkpoint,
            message,
        } => ask(&mut task, checkpoint, message)?,
        Event::Answered(answers) => answer(&mut task, answers)?,
        Event::Wished if task.wished_ms.is_some() => return Err(Illegal::AlreadyWished),
        Event::Wished => task.wished_ms = Some(now_ms),
        Event::Named(external_id) => task.external_id = Some(external_id),
        Event::Pinned => task.pinned = true,
        Event::CutShort { crashed, over } => {
            if crashed {
                task.cut_short = task.cut_short.saturating_add(1);
                task.cut_short_since_ms.get_or_insert(now_ms);
            }
            if over {
                task.reruns += 1;
                task.pinned = false;
                task.checkpoint = None;
            }
        }
        Event::Closed {
            outcome,
            message,
            keep_until_ms,
        } => {
            task.outcome = Some(outcome);
            task.checkpoint = None;
            task.status_message = message.or(task.status_message);
            task.expires_ms = task
                .expires_ms
                .map(|expires_ms| expires_ms.max(keep_until_ms));
        }
    }
    // A clock set back between two lives of the server must not show.
    task.updated_ms = task.updated_ms.max(now_ms);
    Ok(task)
}

fn ask(task: &mut Task, checkpoint: Checkpoint, message: Option<String>) -> Result<(), Illegal> {
    if task.outstanding().next().is_some() {
        return Err(Illegal::AlreadyAsking);
    }
    if checkpoint.outstanding().next().is_none() {
        return Err(Illegal::AsksNothing);
    }
    for question in &checkpoint.questions {
        if !task.keys.insert(question.key.clone()) {
            return Err(Illegal::KeyUsed(question.key.clone()));
        }
    }
    task.checkpoint = Some(checkpoint);
    task.cut_short = 0;
    task.cut_short_since_ms = None;
    task.status_message = message.or(task.status_message.take());
    Ok(())
}

fn answer(task: &mut Task, answers: Vec<(String, Payload)>) -> Result<(), Illegal> {
    for (key, answer) in answers {
        let Some(checkpoint) = &mut task.checkpoint else {
            return Err(Illegal::NotAsked(key));
        };
        if !checkpoint.outstanding().any(|question| question.key == key) {
            return Err(Illegal::NotAsked(key));
        }
        checkpoint.answers.insert(key, answer);
    }
    Ok(())
}
