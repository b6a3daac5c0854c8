//! Why a run ended without a result.

use crate::contract::{ClientFeatures, RpcError};
use crate::limits::Limit;

/// A limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Which one.
    pub limit: Limit,
    /// Its value, in the unit of the limit.
    pub value: u64,
}

/// Why a run ended without a result. [`Failure::reason`] is stable; the texts are for people.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The guest returned an error of its own.
    Raised {
        /// What it returned.
        error: RpcError,
        /// What the client would have had to declare for the guest's last question, if that was refused as unsupported.
        refused: ClientFeatures,
    },
    /// The guest trapped.
    Trap(String),
    /// The guest exceeded a limit.
    Limit(Exceeded),
    /// The guest asked something else than the record says.
    Diverged {
        /// How many entries of the record were used up before.
        step: u64,
        /// What was expected and what came.
        detail: String,
    },
    /// The guest returned without a result.
    NoResult {
        /// Why its last try to give one was refused, if there was one.
        refused: Option<String>,
    },
    /// All places to work in are taken, and those to wait for one too.
    Busy {
        /// The stable name of what bounds those that wait.
        limit: &'static str,
        /// How many may.
        value: u64,
    },
    /// The plugin version is not to be had any more, or cannot be instantiated.
    Unavailable(String),
}

impl Failure {
    /// The same failure, with what the guest was denied before: that may be why.
    pub(crate) fn after_denial(mut self, denied: &str) -> Self {
        match &mut self {
            Self::Raised { error, .. } => error.message = format!("{}. {denied}", error.message),
            Self::Trap(text) => *text = format!("{text}. {denied}"),
            Self::NoResult { refused } => *refused = Some(denied.to_owned()),
            Self::Limit(_) | Self::Diverged { .. } | Self::Busy { .. } | Self::Unavailable(_) => {}
        }
        self
    }

    /// The stable name of the reason, for `data.reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Raised { .. } => "raised",
            Self::Trap(_) => "trap",
            Self::Limit(_) => "limit",
            Self::Diverged { .. } => "diverged",
            Self::NoResult { .. } => "no_result",
            Self::Busy { .. } => "busy",
            Self::Unavailable(_) => "unavailable",
        }
    }
}
