//! A store that no server uses, for its operator: look, check, write it out as JSON lines, read
//! those back.
//!
//! An export is text, one JSON object a line: a header, the tasks in the order of their ids, and an
//! end that says how many there were, so that a cut file is noticed.
//!
//! ```text
//! {"export":"longshore tasks","version":1}
//! {"id":"0f…","unfinished":true,"dueMs":1764,"about":{"status":"working",…},"bytes":"<base64>"}
//! {"end":true,"tasks":1,"damaged":0}
//! ```
//!
//! `bytes` is the task as it is kept (see `longshore_tasks::codec`), and with `id` all that an import
//! reads; the rest is for people. Memory does not grow with the store: one task at a time is held on
//! the way out, a few on the way in.

mod line;
mod salvage;

use std::io::{self, BufRead, Read as _, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use longshore_tasks::{Put, Store, StoreError, Stored, TaskId, codec};

use crate::census::Census;
use crate::engine::{Database, Scrutiny, caught};
use crate::folder::{self, Lock, OpenError};
use crate::record::{self, Head};
use line::{About, End, Header, Line, Row};

/// How many tasks are imported at once: they share the store's groups.
const IMPORTS_AT_ONCE: usize = 64;

/// The longest line of an export, in bytes: the largest value in base64, and what is said about it.
const LINE_BYTES_MAX: u64 = record::VALUE_BYTES_MAX as u64 / 3 * 4 + (1 << 20);

/// Why an archive was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The export cannot be read or written.
    #[error("the export: {0}")]
    Io(#[from] io::Error),
    /// The export is not one, or was cut or changed.
    #[error("line {line} of the export: {cause}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong.
        cause: String,
    },
    /// A task is there already.
    #[error(
        "the store already holds the task {0}, so none was imported: import into a new data folder"
    )]
    Exists(TaskId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was found, or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Tasks that are whole.
    pub tasks: u64,
    /// Of these, unfinished ones.
    pub unfinished: u64,
    /// What they take, in bytes.
    pub bytes: u64,
    /// Tasks that cannot be read.
    pub damaged: u64,
}

/// A store that no server uses. It is locked as long as this lives.
pub struct Archive {
    db: Arc<dyn Database>,
    dir: PathBuf,
    census: Option<Census>,
    _lock: Lock,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("dir", &self.dir).finish()
    }
}

impl Archive {
    /// Opens the store in `dir`, whichever database it is made with, and makes none. The whole
    /// database is read once, to see that it can be trusted.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let engine = folder::engine_of(dir)?.ok_or_else(|| no_store(dir))?;
        let opened = folder::open(dir, engine, Scrutiny::All)?;
        Ok(Self {
            db: opened.db,
            dir: dir.to_owned(),
            census: Some(opened.census),
            _lock: opened.lock,
        })
    }

    /// Opens what is left of a damaged store. sled mends its log on the way, by leaving out what it
    /// cannot read: work on a copy.
    pub fn open_damaged(dir: &Path) -> Result<Self, OpenError> {
        match folder::engine_of(dir) {
            Ok(None) => return Err(no_store(dir)),
            Ok(Some(_)) | Err(OpenError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        let (db, lock) = folder::open_damaged(dir)?;
        Ok(Self {
            db,
            dir: dir.to_owned(),
            census: None,
            _lock: lock,
        })
    }

    /// Reads all that is kept. Each damage is told as one line.
    pub fn check(&self, mut tell: impl FnMut(&str)) -> Result<Summary, OpenError> {
        let summary = self.each(&mut tell, |_, _, _| Ok(()))?;
        if let Some(census) = self.census
            && folder::look(&self.dir, || Census::count(&*self.db))?
                != (Census {
                    sequence: 0,
                    ..census
                })
        {
            return Err(OpenError::damaged(
                &self.dir,
                "its tasks are not those that were written",
            ));
        }
        Ok(summary)
    }

    /// Writes all tasks to `out`. Each damage is told as one line, and left out.
    pub fn export(
        &self,
        out: &mut impl Write,
        mut tell: impl FnMut(&str),
    ) -> Result<Summary, ArchiveError> {
        line::write(out, &Header::now())?;
        let row = |id: &TaskId, head: &Head, stored: &Stored| {
            line::write(out, &Row::new(id, head, stored))
        };
        let summary = match self.census {
            Some(_) => self.each(&mut tell, row)?,
            None => self.each_left(&mut tell, row)?,
        };
        line::write(out, &End::of(&summary))?;
        out.flush()?;
        Ok(summary)
    }

    /// Tells of the tasks to which their tools gave this name elsewhere, each as a line of JSON.
    /// Reads all tasks.
    pub fn find(
        &self,
        external_id: &str,
        mut tell: impl FnMut(&str),
    ) -> Result<Summary, ArchiveError> {
        let mut found = Summary::default();
        self.each(&mut |_| (), |id, head, stored| {
            let task = codec::decode(&stored.bytes).ok();
            let task = task.filter(|task| task.external_id.as_deref() == Some(external_id));
            if let Some(task) = task {
                found.tasks += 1;
                found.unfinished += u64::from(head.unfinished);
                tell(&About::of(&task).to_line(id)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Visits every task that is whole.
    fn each(
        &self,
        tell: &mut impl FnMut(&str),
        visit: impl FnMut(&TaskId, &Head, &Stored) -> io::Result<()>,
    ) -> Result<Summary, OpenError> {
        let mut summary = Summary::default();
        folder::look(&self.dir, || {
            let db = &*self.db;
            let show = &mut visitor(db, &mut summary, tell, visit);
            db.scan(&record::head_range(None), show)
        })?;
        Ok(summary)
    }

    /// Visits every task that is whole, in a database of which parts may be unreadable.
    fn each_left(
        &self,
        tell: &mut impl FnMut(&str),
        visit: impl FnMut(&TaskId, &Head, &Stored) -> io::Result<()>,
    ) -> Result<Summary, OpenError> {
        let (db, mut summary, mut holes) = (&*self.db, Summary::default(), Vec::new());
        folder::look(&self.dir, || {
            let show = &mut visitor(db, &mut summary, tell, visit);
            salvage::heads(db, &mut |error| holes.push(error.to_string()), show)
        })?;
        for error in &holes {
            tell(&format!("a part of the database cannot be read: {error}"));
        }
        match caught(|| Census::read(db)) {
            Ok(Some(census)) => {
                let missing = census.tasks.saturating_sub(summary.tasks);
                summary.damaged = summary.damaged.max(missing);
            }
            _ if holes.is_empty() => {}
            _ => tell("how many tasks were lost there is not known"),
        }
        Ok(summary)
    }
}

/// Counts what a scan shows, and has it visited if it is whole.
fn visitor<'a>(
    db: &'a dyn Database,
    summary: &'a mut Summary,
    tell: &'a mut impl FnMut(&str),
    mut visit: impl FnMut(&TaskId, &Head, &Stored) -> io::Result<()> + 'a,
) -> impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError> + 'a {
    move |key, sealed| {
        match caught(|| whole(db, key, sealed)) {
            Ok((id, head, stored)) => {
                summary.tasks += 1;
                summary.unfinished += u64::from(head.unfinished);
                summary.bytes += stored.bytes.len() as u64;
                visit(&id, &head, &stored).map_err(|error| {
                    StoreError::Unavailable(format!("what was found cannot be written: {error}"))
                })?;
            }
            Err(error) => {
                summary.damaged += 1;
                tell(&error.to_string());
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn whole(
    db: &dyn Database,
    key: &[u8],
    sealed: &[u8],
) -> Result<(TaskId, Head, Stored), StoreError> {
    let id = record::id_at(key, 1)?;
    let head = Head::unseal(&id, sealed)?;
    // Nobody writes: what was there is there.
    let stored = record::read(db, &id)?.flatten();
    let stored = stored.ok_or_else(|| StoreError::Corrupt(format!("task {id} has no value")))?;
    let task = codec::decode(&stored.bytes)
        .map_err(|error| StoreError::Corrupt(format!("task {id}: {error}")))?;
    if task.id != id || task.outcome.is_none() != head.unfinished {
        return Err(StoreError::Corrupt(format!(
            "task {id} is not what its head says"
        )));
    }
    Ok((id, head, stored))
}

fn no_store(dir: &Path) -> OpenError {
    let cause = io::Error::new(io::ErrorKind::NotFound, "no store was ever made there");
    OpenError::io(dir, cause)
}

/// Reads a whole export and changes nothing: whatever [`import`] would refuse of it, whichever the store, is told.
pub fn judge(input: impl BufRead) -> Result<(), ArchiveError> {
    let mut last = None;
    Rows::begin(input)?.try_for_each(|row| {
        let row = row?;
        let id = to_put(&row)?.0.id;
        if last.replace(id).is_some_and(|last| last >= id) {
            let cause = format!("the task {id} is there twice, or out of the order of the ids");
            return Err(row.wrong(cause));
        }
        Ok(())
    })
}

/// Puts the tasks of an export, which was [judged](judge), into `store`. If that holds one of them, none is put; nobody else may
/// write to it meanwhile. What was put before the store itself fails stays.
pub async fn import(
    store: &dyn Store,
    mut input: impl BufRead + Seek,
) -> Result<Summary, ArchiveError> {
    let start = input.stream_position()?;
    for row in Rows::begin(&mut input)? {
        let id = to_put(&row?)?.0.id;
        if store.get(&id).await?.is_some() {
            return Err(ArchiveError::Exists(id));
        }
    }
    input.seek(SeekFrom::Start(start))?;
    let rows = Rows::begin(input)?;
    let put = |row: Result<Row, ArchiveError>| async {
        let row = row?;
        let (put, bytes, unfinished) = to_put(&row)?;
        let id = put.id;
        match store.put(put).await {
            Ok(_) => Ok((bytes, unfinished)),
            Err(StoreError::Conflict) => Err(ArchiveError::Exists(id)),
            Err(error) => Err(error.into()),
        }
    };
    let imported = stream::iter(rows)
        .map(put)
        .buffer_unordered(IMPORTS_AT_ONCE);
    imported
        .try_fold(
            Summary::default(),
            |mut summary, (bytes, unfinished)| async move {
                summary.tasks += 1;
                summary.bytes += bytes;
                summary.unfinished += u64::from(unfinished);
                Ok(summary)
            },
        )
        .await
}

fn to_put(row: &Row) -> Result<(Put, u64, bool), ArchiveError> {
    let (id, bytes) = row.value().map_err(|cause| row.wrong(cause))?;
    let task = codec::decode(&bytes).map_err(|error| row.wrong(error.to_string()))?;
    if task.id != id {
        return Err(row.wrong("its bytes are those of another task".to_owned()));
    }
    let len = bytes.len() as u64;
    // The task knows best when it is due and whether it has ended.
    let unfinished = task.outcome.is_none();
    let put = Put {
        id,
        expected: None,
        unfinished,
        due_ms: task.expires_ms,
        bytes,
    };
    Ok((put, len, unfinished))
}

impl Row {
    fn wrong(&self, cause: String) -> ArchiveError {
        let line = self.line;
        ArchiveError::Line { line, cause }
    }
}

/// The rows of an export; ends with an error if the export is not whole.
struct Rows<R> {
    input: R,
    line: u64,
    tasks: u64,
    ended: bool,
}

impl<R: BufRead> Rows<R> {
    fn begin(input: R) -> Result<Self, ArchiveError> {
        let mut rows = Self {
            input,
            line: 0,
            tasks: 0,
            ended: false,
        };
        match rows.read()? {
            Line::Header(header) if header.is_known() => Ok(rows),
            _ => Err(rows.wrong("it is no export that this program knows")),
        }
    }

    fn read(&mut self) -> Result<Line, ArchiveError> {
        self.line += 1;
        let mut text = Vec::new();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX);
        limited.read_until(b'\n', &mut text)?;
        if text.last() != Some(&b'\n') {
            return Err(self.wrong("the export ends here, or the line is too long"));
        }
        serde_json::from_slice(&text).map_err(|error| self.wrong(&error.to_string()))
    }

    /// Two exports in one file are not one.
    fn nothing_follows(&mut self) -> Result<(), ArchiveError> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(());
        }
        self.line += 1;
        Err(self.wrong("there is more after the end of the export"))
    }

    fn wrong(&self, cause: &str) -> ArchiveError {
        ArchiveError::Line {
            line: self.line,
            cause: cause.to_owned(),
        }
    }
}

impl<R: BufRead> Iterator for Rows<R> {
    type Item = Result<Row, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = match self.read() {
            Ok(Line::Row(mut row)) => {
                self.tasks += 1;
                row.line = self.line;
                return Some(Ok(row));
            }
            Ok(Line::End(end)) if end.tasks == self.tasks => self.nothing_follows().err().map(Err),
            Ok(Line::End(_)) => Some(Err(self.wrong("some of the tasks are missing"))),
            Ok(Line::Header(_)) => Some(Err(self.wrong("a second header"))),
            Err(error) => Some(Err(error)),
        };
        self.ended = true;
        row
    }
}
