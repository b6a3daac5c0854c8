//! What a run needs to know of a call. All of it is durable with a task, so that the call can run again.

use crate::contract::{ClientFeatures, CompletionTarget, LogLevel};
use crate::grants::GrantsPrint;
use crate::limits::Limits;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The replay ABI: how a record relates to what a guest sees. It changes with the meaning of a record's entries, with what is
/// recorded, and with anything a guest can observe that is not.
pub(crate) const REPLAY_ABI: u32 = 2;

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// What is to be done.
    pub work: Work,
    /// What is known of the caller.
    pub context: Context,
    /// From this all random numbers of the call are drawn.
    pub seed: [u8; 32],
    /// When the call began: milliseconds since 1970-01-01T00:00:00Z. The guest's clocks count from here.
    pub started_ms: u64,
    /// The limits that hold for each of its runs.
    pub limits: Limits,
    /// The grants that it began under. A record is good for the same ones only.
    #[serde(default)]
    pub grants: GrantsPrint,
    /// The guest's own id for it.
    pub external_id: Option<String>,
    /// The replay ABI of the host that began it.
    pub abi: u32,
    /// The names of this run of it.
    #[serde(skip)]
    pub names: Names,
}

/// By which names the holder of a run knows it. They stand in the operator's log, and mean nothing here.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// For whom it runs.
    pub principal: Option<Arc<str>>,
    /// What it is part of.
    pub task: Option<Arc<str>>,
}

/// What a call asks of a plugin. Each kind has its own kind of [`Answer`](crate::Answer).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Use a tool.
    Tool {
        /// Its name.
        name: String,
        /// The text of a JSON object, as the caller wrote it.
        arguments: String,
    },
    /// Fill in a prompt.
    Prompt {
        /// Its name.
        name: String,
        /// Name and value.
        arguments: Vec<(String, String)>,
    },
    /// Read a resource.
    Resource {
        /// Its URI.
        uri: String,
    },
    /// Suggest values for an argument.
    Completion {
        /// Whose argument it is.
        target: CompletionTarget,
        /// Its name.
        argument: String,
        /// What was typed.
        value: String,
        /// What the other arguments hold: name and value.
        known: Vec<(String, String)>,
    },
    /// A client wants to hear of changes of a resource.
    Subscribe {
        /// Its URI.
        uri: String,
    },
    /// No client wants to hear of it any more.
    Unsubscribe {
        /// Its URI.
        uri: String,
    },
}

impl Work {
    /// What it is about, for a person and for a log: the name of a tool or prompt, or a URI.
    pub fn subject(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => name,
            Self::Resource { uri } | Self::Subscribe { uri } | Self::Unsubscribe { uri } => uri,
            Self::Completion { target, .. } => match target {
                CompletionTarget::Prompt(name) => name,
                CompletionTarget::ResourceTemplate(template) => template,
            },
        }
    }
}

/// What is known of the caller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Context {
    /// What it declared.
    pub features: ClientFeatures,
    /// The least severe log message that it wants.
    pub log_level: Option<LogLevel>,
    /// Trace context: name and value.
    pub trace: Vec<(String, String)>,
}

impl Call {
    /// A call that begins now, with a fresh seed.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn begin(
        work: Work,
        context: Context,
        (limits, grants): (Limits, GrantsPrint),
    ) -> Result<Self, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let started_ms = crate::clock::unix_ms();
        Ok(Self {
            work,
            context,
            seed,
            started_ms,
            limits,
            grants,
            external_id: None,
            abi: REPLAY_ABI,
            names: Names::default(),
        })
    }
}
