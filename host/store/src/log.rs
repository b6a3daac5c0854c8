//! sled's files: opening them where sled alone would give up or keep silent, and making what was
//! written durable.
//!
//! Knows nothing of what is in the records but the orphans it sweeps.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;

use longshore_tasks::store::Revision;
use longshore_tasks::{StoreError, TaskId};

use crate::folder::OpenError;
use crate::record::{self, Head};

/// A page of more than a quarter of a segment becomes a file that sled does not sync, and less
/// than a segment may be written between two of our syncs; 8 MiB leaves room on both sides.
const SEGMENT_BYTES: usize = 8 << 20;

/// Recently used pages; sled's own default is 1 GiB. The system's page cache holds the others: with
/// four times as much a start is no faster, and 50,000 waiting tasks take 30 MiB more.
const CACHE_BYTES: u64 = 16 << 20;

/// sled's own flusher, in milliseconds. It is also the only one that cleans segments; without it
/// space is never reused.
const FLUSH_EVERY_MS: u64 = 500;

/// sled's own folder.
pub(crate) fn sled_dir(dir: &Path) -> PathBuf {
    dir.join("sled")
}

/// The open log.
pub(crate) struct Log {
    pub(crate) db: sled::Db,
    /// A second descriptor of the same file, for our own syncs.
    file: File,
    blobs: PathBuf,
}

impl Log {
    /// Opens the log in `dir`, made if it is not there.
    pub(crate) fn open(dir: &Path) -> Result<Self, OpenError> {
        let io = |error| OpenError::io(dir, error);
        remove_torn_snapshots(dir).map_err(io)?;
        let db = open_sled(dir).or_else(|error| open_without_snapshots(dir, error))?;
        let log = Self {
            db,
            file: File::open(path(dir)).map_err(io)?,
            blobs: sled_dir(dir).join("blobs"),
        };
        // sled writes its settings without a sync; torn by a power cut they would stop the next start.
        File::open(sled_dir(dir).join("conf"))
            .and_then(|conf| conf.sync_all())
            .map_err(io)?;
        log.expect_no_blobs();
        Ok(log)
    }

    /// Makes all that was written durable. sled's flush starts the write-back, but neither empties
    /// the disk's cache nor makes the file's new length durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.db.flush()?;
        self.file.sync_data()?;
        self.expect_no_blobs();
        Ok(())
    }

    /// Its length on the disk.
    pub(crate) fn bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    /// Looks at what is in the log, which may be damaged in ways that make sled panic.
    pub(crate) fn look<T>(
        &self,
        dir: &Path,
        look: impl FnOnce(&sled::Db) -> Result<T, StoreError>,
    ) -> Result<T, OpenError> {
        let looked = catch_unwind(AssertUnwindSafe(|| look(&self.db)));
        let looked =
            looked.map_err(|_| OpenError::damaged(dir, "sled panicked while reading it"))?;
        looked.map_err(|error| match error {
            StoreError::Corrupt(cause) => OpenError::damaged(dir, cause),
            error => OpenError::io(dir, io::Error::other(error)),
        })
    }

    /// sled syncs no blob file, so there must be none; see `record::PIECE_BYTES_MAX`.
    fn expect_no_blobs(&self) {
        let mut entries = fs::read_dir(&self.blobs).into_iter().flatten();
        if entries.next().is_some() {
            tracing::error!(dir = %self.blobs.display(), "the task store has blobs, which are not durable");
        }
    }
}

/// The file of the log of the store in `dir`.
pub(crate) fn path(dir: &Path) -> PathBuf {
    sled_dir(dir).join("db")
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

fn snapshots(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(sled_dir(dir)) {
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
        .path(sled_dir(dir))
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
        Ok(Err(error)) => Err(sled_error(dir, error)),
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

/// Removes parts of large values whose head never came, because of a crash.
pub(crate) fn sweep_orphans(db: &sled::Db) -> Result<(), StoreError> {
    for intent in db.scan_prefix(record::INTENT) {
        let (key, sealed) = intent.map_err(record::unreadable)?;
        let swept = sweep_intent(db, &key, &sealed)?;
        tracing::info!(
            parts = swept,
            "removed parts of a value that a crash cut short"
        );
    }
    Ok(())
}

fn sweep_intent(db: &sled::Db, key: &[u8], sealed: &[u8]) -> Result<usize, StoreError> {
    let id: TaskId = record::id_at(key, 1)?;
    let revision = record::unseal(key, sealed)?
        .try_into()
        .map(Revision::from_be_bytes);
    let revision = revision.map_err(|_| StoreError::Corrupt("an odd intent".to_owned()))?;
    if Head::read(db, &id)?.is_some_and(|head| head.revision == revision) {
        return Err(StoreError::Corrupt(format!(
            "task {id} is complete and is not"
        )));
    }
    let mut batch = sled::Batch::default();
    let mut parts = 0;
    for part in db.scan_prefix(record::chunk_prefix(&id, revision)).keys() {
        batch.remove(part.map_err(record::unreadable)?);
        parts += 1;
    }
    batch.remove(key);
    db.apply_batch(batch).map_err(record::unreadable)?;
    Ok(parts)
}

pub(crate) fn sled_error(dir: &Path, error: sled::Error) -> OpenError {
    match error {
        sled::Error::Io(error) => OpenError::io(dir, error),
        sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)
        | sled::Error::ReportableBug(_)
        | sled::Error::Corruption { .. } => OpenError::damaged(dir, error.to_string()),
    }
}
