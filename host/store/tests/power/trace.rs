//! The output of `strace`, as events on the files below one folder.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use longshore_tasks::TaskId;

/// What happened. Paths are relative to the folder.
#[derive(Debug)]
pub(crate) enum Event {
    Opened {
        path: PathBuf,
        create: bool,
        truncate: bool,
    },
    MadeDir(PathBuf),
    Renamed(PathBuf, PathBuf),
    Removed(PathBuf),
    Wrote {
        path: PathBuf,
        at: Option<u64>,
        bytes: Vec<u8>,
    },
    Truncated {
        path: PathBuf,
        len: u64,
    },
    /// A thread asks for all that was written before to be safe.
    SyncBegan {
        thread: u32,
        path: PathBuf,
    },
    /// It is.
    SyncEnded {
        thread: u32,
    },
    /// The workload was told that this is durable.
    Acked(TaskId, u64),
    /// Nothing of interest.
    Other,
}

/// The events of a trace.
pub(crate) struct Trace<R> {
    input: R,
    dir: PathBuf,
    /// Calls that another thread's line came between.
    unfinished: HashMap<u32, String>,
    /// A sync is two events.
    then: Option<Event>,
}

impl<R: BufRead> Trace<R> {
    pub(crate) fn of(input: R, dir: &Path) -> Self {
        Self {
            input,
            dir: dir.canonicalize().unwrap(),
            unfinished: HashMap::new(),
            then: None,
        }
    }

    fn line(&mut self, line: &str) -> Event {
        let (thread, call) = line.trim_end().split_once(' ').unwrap();
        let (thread, call) = (thread.parse().unwrap(), call.trim_start());
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            self.unfinished.insert(thread, begun.to_owned());
            let syncs = begun.starts_with("fsync") || begun.starts_with("fdatasync");
            let path = syncs.then(|| self.fd_path(begun)).flatten();
            return path.map_or(Event::Other, |path| Event::SyncBegan { thread, path });
        }
        if call.starts_with("<... ") {
            let begun = self.unfinished.remove(&thread).unwrap_or_default();
            if begun.starts_with("fsync") || begun.starts_with("fdatasync") {
                return Event::SyncEnded { thread };
            }
            let rest = call.split_once("resumed>").map_or("", |(_, rest)| rest);
            return self.call(thread, &format!("{begun}{rest}"));
        }
        self.call(thread, call)
    }

    fn call(&mut self, thread: u32, call: &str) -> Event {
        let name = call.split('(').next().unwrap_or_default();
        let failed = call
            .rsplit(" = ")
            .next()
            .is_none_or(|end| end.starts_with('-'));
        if failed {
            return Event::Other;
        }
        let seen = match name {
            "fsync" | "fdatasync" => self.fd_path(call).map(|path| {
                self.then = Some(Event::SyncEnded { thread });
                Event::SyncBegan { thread, path }
            }),
            "write" if call.starts_with("write(2<") => ack(call),
            "write" | "pwrite64" => self.wrote(name, call),
            "ftruncate" => self.fd_path(call).map(|path| Event::Truncated {
                path,
                len: last_number(call, 0),
            }),
            "openat" | "creat" => self.opened(call),
            "mkdir" => self.paths(call).into_iter().next().map(Event::MadeDir),
            "unlink" | "unlinkat" => self.paths(call).into_iter().next().map(Event::Removed),
            "rename" | "renameat" | "renameat2" => {
                let mut paths = self.paths(call).into_iter();
                paths
                    .next()
                    .zip(paths.next())
                    .map(|(from, to)| Event::Renamed(from, to))
            }
            "fallocate" | "writev" | "pwritev" if self.fd_path(call).is_some() => {
                panic!("the disk does not follow {name}")
            }
            _ => None,
        };
        seen.unwrap_or(Event::Other)
    }

    fn opened(&self, call: &str) -> Option<Event> {
        let path = self.paths(call).into_iter().next()?;
        let flag = |name| call.contains(name);
        Some(Event::Opened {
            path,
            create: flag("O_CREAT"),
            truncate: flag("O_TRUNC"),
        })
    }

    fn wrote(&self, name: &str, call: &str) -> Option<Event> {
        let path = self.fd_path(call)?;
        let bytes = strings(call).into_iter().next()?;
        let written = usize::try_from(result(call)).unwrap();
        assert!(
            written == bytes.len(),
            "a short write: {written} of {}",
            bytes.len()
        );
        let at = (name == "pwrite64").then(|| last_number(call, 0));
        Some(Event::Wrote { path, at, bytes })
    }

    /// The path that `-y` shows of the first descriptor.
    fn fd_path(&self, call: &str) -> Option<PathBuf> {
        let shown = call.split_once('<')?.1.split_once('>')?.0;
        self.below(&decode(shown))
    }

    fn paths(&self, call: &str) -> Vec<PathBuf> {
        let strings = strings(call);
        strings
            .iter()
            .filter_map(|bytes| self.below(bytes))
            .collect()
    }

    fn below(&self, bytes: &[u8]) -> Option<PathBuf> {
        let path = Path::new(std::str::from_utf8(bytes).ok()?);
        path.strip_prefix(&self.dir).ok().map(Path::to_owned)
    }
}

impl<R: BufRead> Iterator for Trace<R> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.then.take() {
            return Some(event);
        }
        let mut line = String::new();
        let read = self.input.read_line(&mut line).unwrap();
        (read > 0).then(|| self.line(&line))
    }
}

fn ack(call: &str) -> Option<Event> {
    let text = String::from_utf8(strings(call).into_iter().next()?).ok()?;
    let mut words = text.split_whitespace();
    let is_ack = words.next() == Some("ack");
    let (id, revision) = (words.next()?, words.next()?);
    is_ack.then(|| Event::Acked(id.parse().unwrap(), revision.parse().unwrap()))
}

/// The quoted strings of a call.
fn strings(call: &str) -> Vec<Vec<u8>> {
    let quoted = call.split('"').skip(1).step_by(2);
    quoted.map(decode).collect()
}

/// `\x2f\x61` and plain text to bytes.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if let (b'\\', [b'x', high, low, after @ ..]) = (first, more) {
            let digit = |byte: &u8| (*byte as char).to_digit(16).unwrap() as u8;
            bytes.push(digit(high) << 4 | digit(low));
            rest = after;
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    bytes
}

/// The number after the last comma of the arguments.
fn last_number(call: &str, default: u64) -> u64 {
    let arguments = call
        .rsplit_once(" = ")
        .map_or(call, |(arguments, _)| arguments);
    let last = arguments
        .trim_end()
        .trim_end_matches(')')
        .rsplit(',')
        .next();
    last.and_then(|text| text.trim().parse().ok())
        .unwrap_or(default)
}

fn result(call: &str) -> u64 {
    let end = call.rsplit(" = ").next().unwrap_or_default();
    let digits: String = end.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}
