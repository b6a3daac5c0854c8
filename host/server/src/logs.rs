//! The log: on standard error, as text or JSON. Arguments, results and other bodies never go there.
//!
//! A thread of its own writes it. Who reads standard error too slowly loses lines; no call waits for that.

use crate::config::{Config, LogFormat};
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
    let queue = Queue::start();
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(queue.clone());
    let is_terminal = std::io::stderr().is_terminal();
    match config.log.format {
        // For somebody who watches: what happened, and of which plugin.
        _ if config.dev => {
            let layer = layer.compact().without_time().with_target(false);
            registry.with(layer.with_ansi(is_terminal)).init();
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

/// Lines on their way to the thread that writes them.
#[derive(Clone)]
struct Queue(SyncSender<Entry>);

impl Queue {
    fn start() -> Self {
        let (queue, entries) = sync_channel(LINES_MAX);
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
        Self(queue)
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
        let _ = self.0.try_send(Entry::Line(line.to_vec()));
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
        if self.0.0.try_send(Entry::End(written)).is_ok() {
            let _ = end.recv_timeout(LAST_LINES);
        }
    }
}
