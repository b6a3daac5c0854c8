//! What a guest prints and logs: into the operator's log, up to a cap, one line at a time, with control characters escaped.

use crate::grants::Grants;
use crate::limits::Limits;
use bytes::Bytes;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::io::{AsyncWrite, sink};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// A line that is longer is cut into several.
const LINE_BYTES_MAX: usize = 4 << 10;

/// What is left of a run's allowance, and who speaks.
pub(crate) struct Output {
    plugin: String,
    tool: String,
    /// What stands in no line.
    secrets: Vec<String>,
    left: Mutex<Allowance>,
}

struct Allowance {
    bytes: u64,
    lines: u64,
    dropped_lines: u64,
    muted: bool,
}

impl Output {
    pub(crate) fn new(plugin: &str, tool: &str, limits: &Limits) -> Self {
        Self {
            plugin: plugin.to_owned(),
            tool: tool.to_owned(),
            secrets: Vec::new(),
            left: Mutex::new(Allowance {
                bytes: limits.log_bytes,
                lines: limits.log_lines,
                dropped_lines: 0,
                muted: false,
            }),
        }
    }

    /// Write none of the secrets that the guest was given.
    pub(crate) fn hiding(mut self, grants: &Grants) -> Self {
        let secrets = grants.environment.iter();
        let secrets = secrets.filter(|variable| variable.is_secret && !variable.value.is_empty());
        self.secrets = secrets.map(|variable| variable.value.clone()).collect();
        self
    }

    fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let hide = |text: Cow<'a, str>, secret: &String| {
            if text.contains(secret.as_str()) {
                return text.replace(secret.as_str(), "[secret]").into();
            }
            text
        };
        self.secrets.iter().fold(text.into(), hide)
    }

    /// Whether one more line may be written; if so it is written to the operator's log, unless it is a repetition.
    pub(crate) fn line(&self, source: &str, text: &str, repeated: bool) -> bool {
        if !self.allow(text.len()) {
            return false;
        }
        if !repeated {
            let (plugin, tool) = (&self.plugin, &self.tool);
            let text = self.without_secrets(text);
            tracing::info!(target: "plugin", %plugin, %tool, source, "{text}");
        }
        true
    }

    fn allow(&self, bytes: usize) -> bool {
        let mut left = self.left.lock();
        if left.lines == 0 || left.bytes < bytes as u64 {
            left.dropped_lines += 1;
            return false;
        }
        left.lines -= 1;
        left.bytes -= bytes as u64;
        true
    }

    /// While muted, output is counted and not written: it was written by an earlier run.
    pub(crate) fn mute(&self, muted: bool) {
        self.left.lock().muted = muted;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let dropped_lines = self.left.get_mut().dropped_lines;
        if dropped_lines > 0 {
            tracing::warn!(plugin = %self.plugin, tool = %self.tool, dropped_lines, "a run printed more than its limits allow");
        }
    }
}

/// Standard output or standard error of a guest.
#[derive(Clone)]
pub(crate) struct Printer {
    output: Arc<Output>,
    source: &'static str,
    partial: Arc<Mutex<Vec<u8>>>,
}

impl Printer {
    pub(crate) fn new(output: &Arc<Output>, source: &'static str) -> Self {
        Self {
            output: output.clone(),
            source,
            partial: Arc::default(),
        }
    }

    fn print(&self, line: &[u8]) {
        let muted = self.output.left.lock().muted;
        self.output
            .line(self.source, &String::from_utf8_lossy(line), muted);
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        // The last clone: what was not ended by a newline.
        if Arc::strong_count(&self.partial) == 1 {
            let rest = std::mem::take(&mut *self.partial.lock());
            if !rest.is_empty() {
                self.print(&rest);
            }
        }
    }
}

impl IsTerminal for Printer {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printer {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only the interfaces of WASI 0.3 take this way, and they are not linked.
        Box::new(sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Printer {
    /// Always: a guest that could wait here would see the host's speed.
    async fn ready(&mut self) {}
}

impl OutputStream for Printer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut partial = self.partial.lock();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(piece);
            let ended = piece.ends_with(b"\n");
            if ended || partial.len() >= LINE_BYTES_MAX {
                let line = std::mem::take(&mut *partial);
                self.print(line.strip_suffix(b"\n").unwrap_or(&line));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(LINE_BYTES_MAX)
    }
}
