//! The lines of an export.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_tasks::state::Task;
use longshore_tasks::{Status, Stored, TaskId, codec};
use serde::{Deserialize, Serialize};

use super::Summary;
use crate::record::Head;

const NAME: &str = "longshore tasks";
const VERSION: u32 = 1;

/// Any line.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    Row(Row),
    End(End),
    Header(Header),
}

/// The first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    export: String,
    version: u32,
}

impl Header {
    pub(super) fn now() -> Self {
        Self {
            export: NAME.to_owned(),
            version: VERSION,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.export == NAME && self.version == VERSION
    }
}

/// The last.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct End {
    end: bool,
    pub(super) tasks: u64,
    damaged: u64,
}

impl End {
    pub(super) fn of(summary: &Summary) -> Self {
        Self {
            end: true,
            tasks: summary.tasks,
            damaged: summary.damaged,
        }
    }
}

/// A task.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    id: String,
    unfinished: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_ms: Option<u64>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    about: Option<About>,
    bytes: String,
    /// Where it stands, counted from 1.
    #[serde(skip)]
    pub(super) line: u64,
}

impl Row {
    pub(super) fn new(id: &TaskId, head: &Head, stored: &Stored) -> Self {
        Self {
            id: id.to_string(),
            unfinished: head.unfinished,
            due_ms: head.due_ms,
            about: codec::decode(&stored.bytes)
                .ok()
                .map(|task| About::of(&task)),
            bytes: STANDARD.encode(&stored.bytes),
            line: 0,
        }
    }

    pub(super) fn value(&self) -> Result<(TaskId, Vec<u8>), String> {
        let id = self.id.parse().map_err(|error| format!("id: {error}"))?;
        let bytes = STANDARD.decode(&self.bytes);
        Ok((id, bytes.map_err(|error| format!("bytes: {error}"))?))
    }
}

/// What people want to know of a task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct About {
    status: &'static str,
    principal: String,
    plugin: String,
    tool: String,
    created_ms: u64,
    updated_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
}

impl About {
    pub(super) fn of(task: &Task) -> Self {
        Self {
            status: match task.status() {
                Status::Working => "working",
                Status::InputRequired => "input_required",
                Status::Completed => "completed",
                Status::Failed => "failed",
                Status::Cancelled => "cancelled",
            },
            principal: task.call.principal.as_str().to_owned(),
            plugin: task.call.plugin.clone(),
            tool: task.call.tool.clone(),
            created_ms: task.created_ms,
            updated_ms: task.updated_ms,
            status_message: task.status_message.clone(),
            external_id: task.external_id.clone(),
        }
    }

    /// With the id, on one line.
    pub(super) fn to_line(&self, id: &TaskId) -> io::Result<String> {
        #[derive(Serialize)]
        struct Found<'a> {
            id: String,
            #[serde(flatten)]
            about: &'a About,
        }
        let id = id.to_string();
        Ok(serde_json::to_string(&Found { id, about: self })?)
    }
}

/// Writes one line.
pub(super) fn write(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
