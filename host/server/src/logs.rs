//! The log: on standard error, as text or JSON. Arguments, results and other bodies never go there.
//!
//! A thread of its own writes it. Who reads standard error too slowly loses lines; no call waits for that.
//!
//! A line is one line, and all of it is seen, whatever strangers' names and texts stand in it: that is made sure of here, for
//! every line and in one way.

use crate::config::{Config, LogFormat};
use longshore_runtime::is_unseen;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Lines that may wait to be written; more are dropped. A line has some hundred bytes, 4 KiB at most from a guest.
const LINES_MAX: usize = 4_096;

/// How long the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Begin to log, by the configuration. Call it once, and keep what it returns until the end of the program.
pub(crate) fn init(config: &Config) -> LastLines {
    // The configuration was checked: the level parses.
    let filter: Targets = config.log.level.parse().unwrap_or_default();
    let is_coloured = config.dev && std::io::stderr().is_terminal();
    let form = match config.log.format {
        _ if is_coloured => Form::Coloured,
        LogFormat::Json if !config.dev => Form::Json,
        LogFormat::Text | LogFormat::Json => Form::Text,
    };
    let queue = Queue::start(form);
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(queue.clone());
    match config.log.format {
        // For somebody who watches: what happened, and of which plugin.
        _ if config.dev => {
            let layer = layer.compact().without_time().with_target(false);
            registry.with(layer.with_ansi(is_coloured)).init();
        }
        LogFormat::Text => registry.with(layer.with_ansi(false)).init(),
        LogFormat::Json => registry.with(layer.json()).init(),
    }
    LastLines(queue)
}

enum Entry {
    Line(Vec<u8>),
    /// Told when all before it is written.
    End(SyncSender<()>),
}

/// What a line is, and so how a character stands in it that would not be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    /// With sequences for a terminal. Those that are not the formatter's own it has escaped.
    Coloured,
    Json,
}

impl Form {
    /// The line as it is shown. Most are plain, and stay what they are.
    fn shown(self, line: &[u8]) -> Cow<'_, [u8]> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            return line.into();
        }
        let mut shown = String::with_capacity(line.len());
        for character in String::from_utf8_lossy(text).chars() {
            self.push(&mut shown, character);
        }
        if text.len() < line.len() {
            shown.push('\n');
        }
        shown.into_bytes().into()
    }

    fn push(self, shown: &mut String, character: char) {
        let is_own = self == Self::Coloured && character == '\u{1b}';
        if is_own || !is_unseen(character) {
            return shown.push(character);
        }
        match self {
            Self::Text | Self::Coloured => shown.extend(character.escape_default()),
            // It stands in a string, for nowhere else does the formatter write any: so this is the same value.
            Self::Json => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
    }
}

/// Lines on their way to the thread that writes them.
#[derive(Clone)]
struct Queue {
    entries: SyncSender<Entry>,
    form: Form,
}

impl Queue {
    fn start(form: Form) -> Self {
        let (sender, entries) = sync_channel(LINES_MAX);
        let write = move || {
            let mut stderr = std::io::stderr();
            for entry in entries {
                match entry {
                    // With nobody to read it there is nobody to be told.
                    Entry::Line(line) => drop(stderr.write_all(&line)),
                    Entry::End(written) => drop(written.send(())),
                }
            }
        };
        let thread = std::thread::Builder::new().name("log".to_owned());
        if thread.spawn(write).is_err() {
            eprintln!("there is no thread for the log; nothing will be logged");
        }
        Self {
            entries: sender,
            form,
        }
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Queue {
    /// One whole line, as the formatter gives it.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        // A full queue drops the line.
        let shown = self.form.shown(line).into_owned();
        let _ = self.entries.try_send(Entry::Line(shown));
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// When it is dropped, what was logged before is written, if someone reads it.
pub(crate) struct LastLines(Queue);

impl Drop for LastLines {
    fn drop(&mut self) {
        let (written, end) = sync_channel(1);
        if self.0.entries.try_send(Entry::End(written)).is_ok() {
            let _ = end.recv_timeout(LAST_LINES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(form: Form, line: &str) -> String {
        String::from_utf8(form.shown(line.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn a_line_is_one_line_and_all_of_it_is_seen() {
        let line = "a\nb\u{9b}c\u{202e}d é 世\n";
        assert_eq!(shown(Form::Text, line), "a\\nb\\u{9b}c\\u{202e}d é 世\n");
        assert_eq!(shown(Form::Text, "\u{1b}[31m"), "\\u{1b}[31m");
        assert_eq!(shown(Form::Coloured, "\u{1b}[31m"), "\u{1b}[31m");
        assert_eq!(shown(Form::Text, "plain \\ \"\n"), "plain \\ \"\n");
    }

    #[test]
    fn a_line_of_json_keeps_its_value() {
        let value = serde_json::Value::from("a\u{202e}\u{e0001}\u{7f}b");
        let line = shown(Form::Json, &format!("{value}\n"));
        assert!(
            line.trim_end().chars().all(|shown| !is_unseen(shown)),
            "{line:?}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&line).unwrap(),
            value
        );
    }
}
