//! Orders of those who run the server, over a socket in its data folder: `longshore plugin list`, `history`, `rollback` and
//! `approve`.
//!
//! One connection is one order: a line of JSON there, a line of JSON back. Who may open the socket may give orders; that is this
//! user alone. Clients of MCP never get here. It must not know how an order is carried out in the runtime.
//!
//! - `client`: the side of the command line.
//! - `socket`: the side of the server.
//! - `text`: answers, for people.

mod client;
mod socket;
mod text;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) use client::order;
pub(crate) use socket::{Socket, serve};
pub(crate) use text::{changes_text, history_text, list_text, plain_text};

/// The longest line of an order, in bytes: names of plugins are names of files.
const ORDER_BYTES_MAX: u64 = 4 << 10;

/// The longest line of an answer, in bytes: some thousands of definitions.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// What is ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order", deny_unknown_fields)]
pub(crate) enum Order {
    /// Say how the plugins stand.
    List,
    /// Say which versions of a plugin were served.
    History {
        /// Which.
        plugin: String,
    },
    /// Serve an earlier version.
    Rollback {
        /// Of which plugin.
        plugin: String,
        /// The beginning of the version; else the one before the present one.
        version: Option<String>,
    },
    /// Serve the version that is withheld.
    Approve {
        /// Of which plugin.
        plugin: String,
        /// The beginning of the version that was looked at.
        version: Option<String>,
    },
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// What was asked for, or what is served now.
    Done(Value),
    /// Why nothing has changed.
    Failed(String),
}

fn socket_path(data: &Path) -> PathBuf {
    data.join("admin.sock")
}
