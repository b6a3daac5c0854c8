//! The folder of a store: its lock, its format, and sled's files within.
//!
//! Opening refuses what must not be opened, and never makes an empty store where there was one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use longshore_tasks::store::Revision;
use longshore_tasks::{StoreError, TaskId};

use crate::committer::expect_no_blobs;
use crate::record::{self, Head};

/// The format written here, and the newest that is read.
const FORMAT: u32 = 1;

/// A page of more than a quarter of a segment becomes a file that sled does not sync, and less
/// than a segment may be written between two of our syncs; 8 MiB leaves room on both sides.
const SEGMENT_BYTES: usize = 8 << 20;

/// Recently used pages; sled's own default is 1 GiB.
const CACHE_BYTES: u64 = 64 << 20;

/// sled's own flusher, in milliseconds. It is also the only one that cleans segments; without it
/// space is never reused.
const FLUSH_EVERY_MS: u64 = 500;

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "the task store in {} is in use by process {owner}: stop that one, or choose another \
         data folder", dir.display()
    )]
    InUse {
        /// The folder.
        dir: PathBuf,
        /// What the other process wrote of itself: its id.
        owner: String,
    },
    /// A newer program wrote it.
    #[error(
        "the task store in {} has format {found}, this program knows {FORMAT}: use a newer \
         longshore", dir.display()
    )]
    Newer {
        /// The folder.
        dir: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It is not whole.
    #[error(
        "the task store in {} is damaged ({cause}): put back a copy of the folder, or move it away \
         to begin with an empty one", dir.display()
    )]
    Damaged {
        /// The folder.
        dir: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// The file system refused.
    #[error("the task store in {} cannot be opened: {cause}", dir.display())]
    Io {
        /// The folder.
        dir: PathBuf,
        /// Its word.
        cause: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(dir: &Path, cause: io::Error) -> Self {
        Self::Io {
            dir: dir.to_owned(),
            cause,
        }
    }

    fn damaged(dir: &Path, cause: impl Into<String>) -> Self {
        Self::Damaged {
            dir: dir.to_owned(),
            cause: cause.into(),
        }
    }
}

/// The right to use the folder, until dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

/// An open store.
pub(crate) struct Opened {
    pub(crate) db: sled::Db,
    pub(crate) log: File,
    pub(crate) dir: PathBuf,
    pub(crate) lock: Lock,
}

/// sled's own folder.
fn sled_dir(dir: &Path) -> PathBuf {
    dir.join("sled")
}

/// Where sled would put what is too large for its log.
pub(crate) fn blobs(dir: &Path) -> PathBuf {
    sled_dir(dir).join("blobs")
}

/// Opens the store in `dir`, or makes one if there never was one.
pub(crate) fn open(dir: &Path) -> Result<Opened, OpenError> {
    let io = |error| OpenError::io(dir, error);
    fs::create_dir_all(dir).map_err(io)?;
    let lock = lock(dir)?;
    let known = read_format(dir)?;
    let log_path = sled_dir(dir).join("db");
    if known && !log_path.is_file() {
        return Err(OpenError::damaged(dir, "its log is missing"));
    }
    remove_torn_snapshots(dir).map_err(io)?;
    let db = open_sled(dir).or_else(|error| open_without_snapshots(dir, error))?;
    expect_no_blobs(dir);
    let log = File::open(&log_path).map_err(io)?;
    if !has_format_record(dir, &db)? {
        if known || !db.is_empty() {
            return Err(OpenError::damaged(dir, "what it held is gone"));
        }
        let body = record::seal(record::FORMAT_KEY, &FORMAT.to_be_bytes());
        db.insert(record::FORMAT_KEY, body)
            .map_err(|error| sled_error(dir, error))?;
    }
    sweep_orphans(dir, &db)?;
    db.flush().map_err(|error| sled_error(dir, error))?;
    log.sync_data().map_err(io)?;
    if !known {
        write_format(dir).map_err(io)?;
    }
    Ok(Opened {
        db,
        log,
        dir: dir.to_owned(),
        lock,
    })
}

fn lock(dir: &Path) -> Result<Lock, OpenError> {
    let io = |error| OpenError::io(dir, error);
    let path = dir.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            // The name is a courtesy; without it the error still says what matters.
            let _ = file.take(32).read_to_string(&mut owner);
            return Err(OpenError::InUse {
                dir: dir.to_owned(),
                owner: owner.trim().to_owned(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(io)?;
    Ok(Lock(file))
}

/// Whether a store was made here before, as a file beside sled's own says: sled takes a log it
/// cannot make sense of for an empty one.
fn read_format(dir: &Path) -> Result<bool, OpenError> {
    let text = match fs::read_to_string(dir.join("format")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(OpenError::io(dir, error)),
    };
    match text
        .trim()
        .strip_prefix("longshore task store ")
        .map(str::parse::<u32>)
    {
        Some(Ok(found)) => expect_format(dir, found).map(|()| true),
        _ => Err(OpenError::damaged(
            dir,
            "the file `format` does not name one",
        )),
    }
}

fn write_format(dir: &Path) -> io::Result<()> {
    let (new, path) = (dir.join("format.new"), dir.join("format"));
    let mut file = File::create(&new)?;
    writeln!(file, "longshore task store {FORMAT}")?;
    file.sync_all()?;
    // sled's files must be found again before the format says that there are any.
    sync_dir(&sled_dir(dir))?;
    sync_dir(dir)?;
    fs::rename(new, path)?;
    sync_dir(dir)?;
    // A new folder is an entry of its parent.
    match dir.canonicalize()?.parent() {
        Some(parent) => sync_dir(parent),
        None => Ok(()),
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn expect_format(dir: &Path, found: u32) -> Result<(), OpenError> {
    if found > FORMAT {
        return Err(OpenError::Newer {
            dir: dir.to_owned(),
            found,
        });
    }
    Ok(())
}

fn has_format_record(dir: &Path, db: &sled::Db) -> Result<bool, OpenError> {
    let key = record::FORMAT_KEY;
    let Some(sealed) = db.get(key).map_err(|error| sled_error(dir, error))? else {
        return Ok(false);
    };
    let body = record::unseal(key, &sealed).map_err(|error| store_error(dir, &error))?;
    let found = body.try_into().map(u32::from_be_bytes);
    expect_format(
        dir,
        found.map_err(|_| OpenError::damaged(dir, "an odd format record"))?,
    )?;
    Ok(true)
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

/// Parts of large values whose head never came, because of a crash.
fn sweep_orphans(dir: &Path, db: &sled::Db) -> Result<(), OpenError> {
    for intent in db.scan_prefix(record::INTENT) {
        let (key, sealed) = intent.map_err(|error| sled_error(dir, error))?;
        let swept = sweep_intent(db, &key, &sealed);
        let swept = swept.map_err(|error| store_error(dir, &error))?;
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

fn sled_error(dir: &Path, error: sled::Error) -> OpenError {
    match error {
        sled::Error::Io(error) => OpenError::io(dir, error),
        sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)
        | sled::Error::ReportableBug(_)
        | sled::Error::Corruption { .. } => OpenError::damaged(dir, error.to_string()),
    }
}

fn store_error(dir: &Path, error: &StoreError) -> OpenError {
    OpenError::damaged(dir, error.to_string())
}
