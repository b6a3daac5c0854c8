//! Judges what a client that nobody here wrote says and hears. It may speak both wires in turn.

use crate::legacy::{self, LATEST};
use crate::schema;
use serde_json::Value;

/// A message of a client: on which wire, and of what method. An answer to a question has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    is_modern: bool,
    pub(crate) method: String,
}

impl Said {
    /// Judges what a client sends.
    ///
    /// # Panics
    /// If the schemas find a fault.
    pub(crate) fn judge(message: &Value) -> Self {
        let version = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion");
        let is_modern = version.is_some();
        let verdict = if is_modern {
            schema::request(message)
        } else {
            legacy::said(message)
        };
        if let Err(fault) = verdict {
            panic!("the client's message: {fault}");
        }
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        Self { is_modern, method }
    }

    /// Judges what the server sends in reply.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn verdict(&self, reply: &Value) -> Result<(), String> {
        if self.is_modern {
            schema::reply(&self.method, reply)
        } else {
            legacy::verdict(LATEST, &self.method, reply)
        }
    }
}
