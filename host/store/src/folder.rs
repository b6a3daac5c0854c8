//! The folder of a store: its lock, its format, and whether what is in it can be trusted.
//!
//! Opening refuses what must not be opened, and never makes an empty store where there was one.
//! What says that there was one stands in three places: the file `format`, the mark, and the log.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use longshore_tasks::StoreError;

use crate::census::Census;
use crate::log::{self, Log};
use crate::mark::{self, Mark};
use crate::record;

/// The format written here, and the newest that is read.
const FORMAT: u32 = 2;

/// Format 1 had neither census nor mark; it gets them when it is opened.
const FORMAT_WITHOUT_CENSUS: u32 = 1;

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
        "the task store in {} is damaged ({cause}): put back a copy of the folder; or save what is \
         left of it with `longshore store export --damaged` and move it away to begin with an empty \
         one", dir.display()
    )]
    Damaged {
        /// The folder.
        dir: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// The file system refused.
    #[error(
        "the task store in {} cannot be opened: {cause}; see that the folder can be written to and \
         its disk has room", dir.display()
    )]
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

    pub(crate) fn damaged(dir: &Path, cause: impl Into<String>) -> Self {
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
    pub(crate) log: Log,
    pub(crate) mark: Mark,
    pub(crate) census: Census,
    /// The last server closed it; so it is with a new one.
    pub(crate) closed: bool,
    pub(crate) lock: Lock,
}

/// Opens the store in `dir`, or makes one if there never was one.
pub(crate) fn open(dir: &Path) -> Result<Opened, OpenError> {
    let io = |error| OpenError::io(dir, error);
    fs::create_dir_all(dir).map_err(io)?;
    let lock = lock(dir)?;
    let format = read_format(dir)?;
    let log = open_log(dir, format)?;
    let (mark, census, closed) = match log.look(dir, format_of)? {
        None if format.is_some() || mark::path(dir).exists() || !log.db.is_empty() => {
            return Err(OpenError::damaged(dir, "what it held is gone"));
        }
        None => begin(dir, &log, Census::default())?,
        Some(_) if format == Some(FORMAT_WITHOUT_CENSUS) => {
            let census = log.look(dir, Census::count)?;
            begin(dir, &log, census)?
        }
        Some(found) => {
            expect_format(dir, found)?;
            trusted(dir, &log, format)?
        }
    };
    log.look(dir, log::sweep_orphans)?;
    log.sync().map_err(io)?;
    if format != Some(FORMAT) {
        write_format(dir).map_err(io)?;
    }
    Ok(Opened {
        log,
        mark,
        census,
        closed,
        lock,
    })
}

/// Whether anything of a store is in `dir`.
pub(crate) fn holds_store(dir: &Path) -> bool {
    [dir.join("format"), mark::path(dir), log::path(dir)]
        .iter()
        .any(|path| path.exists())
}

/// Opens the log of a store that may be damaged, to save what is left. Nothing else is looked at.
pub(crate) fn open_damaged(dir: &Path) -> Result<(Log, Lock), OpenError> {
    let lock = lock(dir)?;
    let format = read_format(dir).unwrap_or(Some(FORMAT));
    Ok((open_log(dir, format)?, lock))
}

/// The census and the log agree, as they must at a start and after a mend.
pub(crate) fn recount(dir: &Path, log: &Log) -> Result<Census, OpenError> {
    let bytes = log.bytes().map_err(|error| OpenError::io(dir, error))?;
    log.look(dir, |db| {
        let census = Census::read(db)?;
        let census = census.ok_or_else(|| StoreError::Corrupt("its census is gone".to_owned()))?;
        census.expect(db, bytes).map(|()| census)
    })
}

fn open_log(dir: &Path, format: Option<u32>) -> Result<Log, OpenError> {
    let path = log::path(dir);
    if (format.is_some() || mark::path(dir).exists()) && !path.is_file() {
        let cause = format!("its log, {}, is missing", path.display());
        return Err(OpenError::damaged(dir, cause));
    }
    Log::open(dir)
}

/// A new store, or one that had no census: writes what format 2 has.
fn begin(dir: &Path, log: &Log, census: Census) -> Result<(Mark, Census, bool), OpenError> {
    let io = |error| OpenError::io(dir, error);
    let mut batch = sled::Batch::default();
    let format = record::seal(record::FORMAT_KEY, &FORMAT.to_be_bytes());
    batch.insert(record::FORMAT_KEY, format);
    batch.insert(record::CENSUS_KEY, census.seal());
    log.db
        .apply_batch(batch)
        .map_err(|error| log::sled_error(dir, error))?;
    // The mark says that there is a log: after a power cut it must not be found without.
    log.sync()
        .and_then(|()| sync_dir(&log::sled_dir(dir)))
        .and_then(|()| sync_dir(dir))
        .map_err(io)?;
    Ok((Mark::create(dir).map_err(io)?, census, true))
}

/// The mark and the census of a store that was used before, if they fit what is there.
fn trusted(dir: &Path, log: &Log, format: Option<u32>) -> Result<(Mark, Census, bool), OpenError> {
    let io = |error| OpenError::io(dir, error);
    let census = recount(dir, log)?;
    let (mark, known, closed) = match Mark::open(dir) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A first start that was cut short has not got so far; nothing was kept yet.
            if format.is_some() || census.sequence > 0 {
                return Err(OpenError::damaged(dir, "its file `mark` is missing"));
            }
            return Ok((Mark::create(dir).map_err(io)?, census, true));
        }
        Err(error) => return Err(io(error)),
    };
    let known = known.ok_or_else(|| OpenError::damaged(dir, "its file `mark` cannot be read"))?;
    if census.sequence < known {
        let cause = format!(
            "{} groups of changes were acknowledged and its log holds {}: its end is lost, or it is \
             an old copy",
            known, census.sequence
        );
        return Err(OpenError::damaged(dir, cause));
    }
    Ok((mark, census, closed))
}

fn format_of(db: &sled::Db) -> Result<Option<u32>, StoreError> {
    let key = record::FORMAT_KEY;
    let Some(sealed) = db.get(key).map_err(record::unreadable)? else {
        return Ok(None);
    };
    let body = record::unseal(key, &sealed)?.try_into();
    let body = body.map_err(|_| StoreError::Corrupt("an odd format record".to_owned()))?;
    Ok(Some(u32::from_be_bytes(body)))
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

/// The format of the store that was made here before, as a file beside sled's own says: sled takes a
/// log it cannot make sense of for an empty one.
fn read_format(dir: &Path) -> Result<Option<u32>, OpenError> {
    let text = match fs::read_to_string(dir.join("format")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::io(dir, error)),
    };
    match text
        .trim()
        .strip_prefix("longshore task store ")
        .map(str::parse::<u32>)
    {
        Some(Ok(found)) => expect_format(dir, found).map(|()| Some(found)),
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
    sync_dir(&log::sled_dir(dir))?;
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
