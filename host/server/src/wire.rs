//! The wire: MCP as JSON text. What is said, not when. Results are made for 2026-07-28; `legacy` makes them fit older clients.
//!
//! - `check`: whether what guests give can be passed on.
//! - `content`: results of tools, content blocks, icons, `_meta`.
//! - `error`: JSON-RPC errors with their HTTP status.
//! - `given`: filled prompts, resources, suggestions.
//! - `legacy`: the shapes of 2025-11-25 and 2025-06-18.
//! - `notification`: progress and log messages of a request.
//! - `object`: writing JSON objects member by member, raw members unchanged.
//! - `question`, `response`: questions to the client, and its answers.
//! - `rpc`: the JSON-RPC envelope.
//! - `subscription`: what goes over a stream of notifications.
//!
//! It must not know of transports, nor how anything is run.

pub(crate) mod check;
pub(crate) mod content;
pub(crate) mod error;
pub(crate) mod given;
pub(crate) mod legacy;
pub(crate) mod notification;
pub(crate) mod object;
pub(crate) mod question;
pub(crate) mod response;
pub(crate) mod rpc;
pub(crate) mod subscription;

use serde_json::Value;

pub(crate) use error::WireError;

/// The protocol version whose requests stand for themselves.
pub(crate) const VERSION: &str = "2026-07-28";

/// All versions of that kind.
pub(crate) const VERSIONS: [&str; 1] = [VERSION];

/// All versions that are served, those that begin with a handshake too.
pub(crate) const ALL_VERSIONS: [&str; 3] = [VERSION, legacy::LATEST, legacy::EARLIER];

/// The name of the Tasks extension.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Who answers: goes into `_meta` of every result, under [`content::SERVER_INFO`].
pub(crate) fn server_info() -> Value {
    serde_json::json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
    })
}
