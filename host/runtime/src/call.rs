//! What a run needs to know of a call. All of it is durable with a task, so that the call can run again.

use crate::contract::{ClientFeatures, LogLevel};
use crate::limits::Limits;
use serde::{Deserialize, Serialize};

/// The replay ABI: how a record relates to what a guest sees. It changes with the meaning of a record's entries, with what is
/// recorded, and with anything a guest can observe that is not.
pub(crate) const REPLAY_ABI: u32 = 1;

/// One call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// The arguments: the text of a JSON object, as the caller wrote it.
    pub arguments: String,
    /// What is known of the caller.
    pub context: Context,
    /// From this all random numbers of the call are drawn.
    pub seed: [u8; 32],
    /// When the call began: milliseconds since 1970-01-01T00:00:00Z. The guest's clocks count from here.
    pub started_ms: u64,
    /// The limits that hold for each of its runs.
    pub limits: Limits,
    /// The guest's own id for it.
    pub external_id: Option<String>,
    /// The replay ABI of the host that began it.
    pub abi: u32,
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
        tool: String,
        arguments: String,
        context: Context,
        limits: Limits,
    ) -> Result<Self, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let started_ms = crate::clock::unix_ms();
        Ok(Self {
            tool,
            arguments,
            context,
            seed,
            started_ms,
            limits,
            external_id: None,
            abi: REPLAY_ABI,
        })
    }
}
