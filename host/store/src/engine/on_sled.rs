//! A store on sled: a log, with an index of it in memory.
//!
//! Owns sled's files: opening them where sled alone would give up or keep silent, and making what
//! was written durable. sled shows a write before it is durable, and mends a damaged log by leaving
//! out what it cannot read; `tide` and `census` are there for that.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use longshore_tasks::StoreError;

use super::{Batch, Database, Keys, Show, StoreEngine};
use crate::folder::OpenError;
use crate::regular;

/// A page of more than a quarter of a segment becomes a file that sled does not sync, and less
/// than a segment may be written between two of our syncs; 8 MiB leaves room on both sides.
const SEGMENT_BYTES: usize = 8 << 20;

/// Recently used pages; sled's own default is 1 GiB. The system's page cache holds the others: with
/// four times as much a start is no faster, and 50,000 waiting tasks take 30 MiB more.
const CACHE_BYTES: u64 = 16 << 20;

/// sled's own flusher, in milliseconds. It is also the only one that cleans segments; without it
/// space is never reused.
const FLUSH_EVERY_MS: u64 = 500;

/// After so much was written, in bytes, a store that is closed is opened once more: that is when
/// sled writes down where its pages are, and without it the next start has to read all of this
/// again. It takes about a second for a gigabyte, at the stop instead of at the start.
const REOPEN_AFTER_BYTES: u64 = 256 << 20;

/// Up to this length of the log all tasks are counted at a start, in bytes: it takes under a second.
/// Above it only the unfinished are, and `check` counts the rest.
const RECOUNT_BYTES_MAX: u64 = 512 << 20;

pub(super) struct Sled {
    db: sled::Db,
    /// A second descriptor of the same file, for our own syncs.
    file: File,
    blobs: PathBuf,
}

pub(super) fn open(dir: &Path) -> Result<Sled, OpenError> {
    let io = |error| OpenError::io(dir, error);
    let folder = StoreEngine::Sled.folder(dir);
    remove_torn_snapshots(dir).map_err(io)?;
    expect_regular_files(dir).map_err(io)?;
    let db = open_sled(dir).or_else(|error| open_without_snapshots(dir, error))?;
    let log = Sled {
        db,
        file: File::open(StoreEngine::Sled.file(dir)).map_err(io)?,
        blobs: folder.join("blobs"),
    };
    // sled writes its settings without a sync; torn by a power cut they would stop the next start.
    File::open(folder.join("conf"))
        .and_then(|conf| conf.sync_all())
        .and_then(|()| log.sync())
        .map_err(io)?;
    Ok(log)
}

pub(super) fn settle(dir: &Path, written_bytes: u64) {
    if written_bytes > REOPEN_AFTER_BYTES {
        // If it does not work now, the next start says so.
        drop(open(dir));
    }
}

impl Sled {
    /// Makes all that was written durable. sled's flush starts the write-back, but neither empties
    /// the disk's cache nor makes the file's new length durable.
    fn sync(&self) -> io::Result<()> {
        self.db.flush()?;
        self.file.sync_data()?;
        self.expect_no_blobs();
        Ok(())
    }

    /// sled syncs no blob file, so there must be none; see `record::PIECE_BYTES_MAX`.
    fn expect_no_blobs(&self) {
        let mut entries = fs::read_dir(&self.blobs).into_iter().flatten();
        if entries.next().is_some() {
            tracing::error!(dir = %self.blobs.display(), "the task store has blobs, which are not durable");
        }
    }
}

impl Database for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.db.get(key).map_err(unreadable)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(&self, keys: &Keys, show: &mut Show<'_>) -> Result<(), StoreError> {
        for entry in self.db.range(keys.clone()) {
            let (key, value) = entry.map_err(unreadable)?;
            if show(&key, &value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, batch: Batch) -> io::Result<()> {
        let mut changes = sled::Batch::default();
        for (key, value) in batch.0 {
            match value {
                Some(value) => changes.insert(key, value),
                None => changes.remove(key),
            }
        }
        self.db.apply_batch(changes)?;
        self.sync()
    }

    fn needs_recount(&self) -> io::Result<bool> {
        let log = self.file.metadata()?;
        Ok(log.len() <= RECOUNT_BYTES_MAX)
    }
}

/// A snapshot that a crash cut short sorts as the newest one, and sled would fail on it. The log
/// holds all that it says.
fn remove_torn_snapshots(dir: &Path) -> io::Result<()> {
    for path in snapshots(dir)? {
        if path
            .extension()
            .is_some_and(|extension| extension == "generating")
        {
            tracing::warn!(file = %path.display(), "removing a snapshot that was never finished");
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// sled opens them by itself, and would wait for what a pipe has to say.
fn expect_regular_files(dir: &Path) -> io::Result<()> {
    let conf = StoreEngine::Sled.folder(dir).join("conf");
    let mut files = snapshots(dir)?.into_iter().chain([conf]);
    files.try_for_each(|file| regular::expect(&file))
}

fn snapshots(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(StoreEngine::Sled.folder(dir)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let is_snapshot = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"snap."))
    };
    paths
        .filter(|path| path.as_ref().map_or(true, is_snapshot))
        .collect()
}

fn open_sled(dir: &Path) -> Result<sled::Db, OpenError> {
    let config = sled::Config::new()
        .path(StoreEngine::Sled.folder(dir))
        .segment_size(SEGMENT_BYTES)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(Some(FLUSH_EVERY_MS));
    // On damage sled may panic instead of saying so; a thread of its own keeps that apart.
    let opened = thread::Builder::new()
        .name("task-store-open".to_owned())
        .spawn(move || config.open())
        .map_err(|error| OpenError::io(dir, error))?
        .join();
    match opened {
        Ok(Ok(db)) => Ok(db),
        Ok(Err(error)) => Err(refused(dir, error)),
        Err(_) => Err(OpenError::damaged(
            dir,
            "sled panicked while it read the log",
        )),
    }
}

/// A snapshot only saves reading the log: a second try does without, if damage was the cause.
fn open_without_snapshots(dir: &Path, error: OpenError) -> Result<sled::Db, OpenError> {
    let snapshots = snapshots(dir).map_err(|error| OpenError::io(dir, error))?;
    if !matches!(error, OpenError::Damaged { .. }) || snapshots.is_empty() {
        return Err(error);
    }
    tracing::warn!(%error, "trying again without the snapshots, which are set aside");
    for path in snapshots {
        let name = path.file_name().unwrap_or_default();
        fs::rename(&path, dir.join(name)).map_err(|error| OpenError::io(dir, error))?;
    }
    open_sled(dir)
}

fn refused(dir: &Path, error: sled::Error) -> OpenError {
    match error {
        sled::Error::Io(error) => OpenError::io(dir, error),
        sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)
        | sled::Error::ReportableBug(_)
        | sled::Error::Corruption { .. } => OpenError::damaged(dir, error.to_string()),
    }
}

/// sled's error on a read, as the engine's.
fn unreadable(error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => StoreError::Unavailable(format!("it cannot be read: {error}")),
        sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)
        | sled::Error::ReportableBug(_)
        | sled::Error::Corruption { .. } => StoreError::Corrupt(error.to_string()),
    }
}
