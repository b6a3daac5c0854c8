//! The folder of a store: its lock, its format, and whether what is in it can be trusted.
//!
//! Opening refuses what must not be opened, and never makes an empty store where there was one.
//! What says that there was one stands in three places: the file `format`, the mark, and the
//! database (`making` tells those of a store that was never finished). The format also says which database it is, so that a program that does not know it
//! refuses by the number alone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_tasks::StoreError;

use crate::census::Census;
use crate::engine::{Batch, Database, Scrutiny, StoreEngine, caught};
use crate::mark::{self, Mark};
use crate::{making, orphan, record, regular};

/// The newest format that is read.
const FORMAT_MAX: u32 = 5;

/// The oldest: ids of tasks had another length before.
const FORMAT_MIN: u32 = 4;

/// What stands before the number in the file `format`.
const FORMAT_WORDS: &str = "longshore task store ";

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
        "the task store in {} has format {found}, this program knows {FORMAT_MAX}: use a newer \
         longshore", dir.display()
    )]
    Newer {
        /// The folder.
        dir: PathBuf,
        /// Its format.
        found: u32,
    },
    /// An older program wrote it.
    #[error(
        "the task store in {} has format {found}, and the oldest that this program knows is {FORMAT_MIN}: use the longshore that \
         made it until its tasks are over, or move the folder away to begin with an empty one", dir.display()
    )]
    Older {
        /// The folder.
        dir: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It was made with another database than is asked for.
    #[error(
        "the task store in {} was made with {found}, and store.engine is \"{wanted}\": set it to \
         \"{found}\"; or move the tasks: `longshore store export` writes them out, and once the folder \
         is moved away, `longshore store import` reads them into a new one", dir.display()
    )]
    OtherEngine {
        /// The folder.
        dir: PathBuf,
        /// What it was made with.
        found: StoreEngine,
        /// What was asked for.
        wanted: StoreEngine,
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
    pub(crate) db: Arc<dyn Database>,
    pub(crate) mark: Mark,
    pub(crate) census: Census,
    /// The last server closed it; so it is with a new one.
    pub(crate) closed: bool,
    pub(crate) lock: Lock,
}

/// Opens the store in `dir`, or makes one if there never was one.
pub(crate) fn open(
    dir: &Path,
    engine: StoreEngine,
    scrutiny: Scrutiny,
) -> Result<Opened, OpenError> {
    let io = |error| OpenError::io(dir, error);
    fs::create_dir_all(dir).map_err(io)?;
    let lock = lock(dir)?;
    making::start_over(dir).map_err(io)?;
    let format = read_format(dir)?;
    if making::is_due(dir) {
        making::begin(dir).map_err(io)?;
    }
    let db = open_database(dir, engine, format, scrutiny)?;
    let (mark, census, closed) = match look(dir, || format_of(&*db))? {
        None if format.is_some() || mark::path(dir).exists() || !look(dir, || is_empty(&*db))? => {
            return Err(OpenError::damaged(dir, "what it held is gone"));
        }
        None => begin(dir, &*db, engine)?,
        Some(found) => {
            expect_format(dir, found)?;
            trusted(dir, &*db, format)?
        }
    };
    sweep_orphans(dir, &*db)?;
    if format != Some(engine.format()) {
        write_format(dir, engine).map_err(io)?;
    }
    making::end(dir).map_err(io)?;
    Ok(Opened {
        db,
        mark,
        census,
        closed,
        lock,
    })
}

/// The database of the store in `dir`; none if there is nothing of a store.
pub(crate) fn engine_of(dir: &Path) -> Result<Option<StoreEngine>, OpenError> {
    if making::is_cut_short(dir) {
        return Ok(None);
    }
    let there = StoreEngine::found_in(dir);
    let found = match read_format(dir)? {
        Some(format) => StoreEngine::of_format(format),
        None => there,
    };
    // One that was changed by hand must not send anybody to the wrong database.
    if let (Some(named), Some(there)) = (found, there)
        && named != there
        && !named.folder(dir).exists()
    {
        let cause = format!(
            "its file `format` names {named}, and its database is one of {there}: if nothing else was changed, write \
             `{FORMAT_WORDS}{}` into that file",
            there.format()
        );
        return Err(OpenError::damaged(dir, cause));
    }
    // The mark alone says that there was one; whichever it was, its file is missing.
    Ok(found.or_else(|| mark::path(dir).exists().then(StoreEngine::default)))
}

/// Opens the database of a store that may be damaged, to save what is left. Nothing else is looked
/// at: the file `format` may be what is damaged, so the database is the one whose folder is there.
pub(crate) fn open_damaged(dir: &Path) -> Result<(Arc<dyn Database>, Lock), OpenError> {
    let lock = lock(dir)?;
    let engine = StoreEngine::found_in(dir)
        .ok_or_else(|| OpenError::damaged(dir, "there is no database"))?;
    let file = engine.file(dir);
    if !file.is_file() {
        let cause = format!("its database, {}, is missing", file.display());
        return Err(OpenError::damaged(dir, cause));
    }
    Ok((engine.open(dir, Scrutiny::None)?, lock))
}

/// Looks at what is in a database, which may be damaged in ways that make it panic.
pub(crate) fn look<T>(
    dir: &Path,
    look: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, OpenError> {
    caught(look).map_err(|error| match error {
        StoreError::Corrupt(cause) => OpenError::damaged(dir, cause),
        error => OpenError::io(dir, io::Error::other(error)),
    })
}

/// The census and the database agree, as they must at a start and after a mend.
pub(crate) fn recount(dir: &Path, db: &dyn Database) -> Result<Census, OpenError> {
    let all = db
        .needs_recount()
        .map_err(|error| OpenError::io(dir, error))?;
    look(dir, || {
        let census = Census::read(db)?;
        let census = census.ok_or_else(|| StoreError::Corrupt("its census is gone".to_owned()))?;
        census.expect(db, all).map(|()| census)
    })
}

/// Removes what a crash left of large values.
pub(crate) fn sweep_orphans(dir: &Path, db: &dyn Database) -> Result<(), OpenError> {
    let (parts, batch) = look(dir, || orphan::sweep(db))?;
    if parts == 0 {
        return Ok(());
    }
    tracing::info!(parts, "removed parts of values that a crash cut short");
    db.write(batch).map_err(|error| OpenError::io(dir, error))
}

fn open_database(
    dir: &Path,
    engine: StoreEngine,
    format: Option<u32>,
    scrutiny: Scrutiny,
) -> Result<Arc<dyn Database>, OpenError> {
    let file = engine.file(dir);
    if let Some(found) = engine_of(dir)?.filter(|found| *found != engine) {
        return Err(OpenError::OtherEngine {
            dir: dir.to_owned(),
            found,
            wanted: engine,
        });
    }
    if (format.is_some() || mark::path(dir).exists()) && !file.is_file() {
        let cause = format!("its database, {}, is missing", file.display());
        return Err(OpenError::damaged(dir, cause));
    }
    engine.open(dir, scrutiny)
}

/// A new store: writes what every store has.
fn begin(
    dir: &Path,
    db: &dyn Database,
    engine: StoreEngine,
) -> Result<(Mark, Census, bool), OpenError> {
    let io = |error| OpenError::io(dir, error);
    let (mut batch, census) = (Batch::default(), Census::default());
    let format = record::seal(record::FORMAT_KEY, &engine.format().to_be_bytes());
    batch.insert(record::FORMAT_KEY, format);
    batch.insert(record::CENSUS_KEY, census.seal());
    // The mark says that there is a database: after a power cut it must not be found without.
    db.write(batch)
        .and_then(|()| sync_names(dir, engine))
        .map_err(io)?;
    Ok((Mark::create(dir).map_err(io)?, census, true))
}

/// The mark and the census of a store that was used before, if they fit what is there.
fn trusted(
    dir: &Path,
    db: &dyn Database,
    format: Option<u32>,
) -> Result<(Mark, Census, bool), OpenError> {
    let io = |error| OpenError::io(dir, error);
    let census = recount(dir, db)?;
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
            "{} groups of changes were acknowledged and it holds {}: its end is lost, or it is an old \
             copy",
            known, census.sequence
        );
        return Err(OpenError::damaged(dir, cause));
    }
    Ok((mark, census, closed))
}

fn format_of(db: &dyn Database) -> Result<Option<u32>, StoreError> {
    let key = record::FORMAT_KEY;
    let Some(sealed) = db.get(key)? else {
        return Ok(None);
    };
    let body = record::unseal(key, &sealed)?.try_into();
    let body = body.map_err(|_| StoreError::Corrupt("an odd format record".to_owned()))?;
    Ok(Some(u32::from_be_bytes(body)))
}

fn is_empty(db: &dyn Database) -> Result<bool, StoreError> {
    let mut empty = true;
    db.scan(&(Bound::Unbounded, Bound::Unbounded), &mut |_, _| {
        empty = false;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(empty)
}

fn lock(dir: &Path) -> Result<Lock, OpenError> {
    let io = |error| OpenError::io(dir, error);
    let path = dir.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = regular::open(&path, &mut options).map_err(io)?;
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

/// The format of the store that was made here before, as a file beside the database says: sled
/// takes a log it cannot make sense of for an empty one.
fn read_format(dir: &Path) -> Result<Option<u32>, OpenError> {
    let text = match regular::read(&format_path(dir)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::io(dir, error)),
    };
    match text
        .trim()
        .strip_prefix(FORMAT_WORDS)
        .map(str::parse::<u32>)
    {
        Some(Ok(found)) => expect_format(dir, found).map(|()| Some(found)),
        _ => Err(OpenError::damaged(
            dir,
            "the file `format` does not name one",
        )),
    }
}

fn write_format(dir: &Path, engine: StoreEngine) -> io::Result<()> {
    let (new, path) = (dir.join("format.new"), format_path(dir));
    let mut options = OpenOptions::new();
    let mut file = regular::open(&new, options.write(true).create(true).truncate(true))?;
    writeln!(file, "{FORMAT_WORDS}{}", engine.format())?;
    file.sync_all()?;
    // The database must be found again before the format says that there is one.
    sync_names(dir, engine)?;
    fs::rename(new, path)?;
    sync_dir(dir)?;
    // A new folder is an entry of its parent.
    match dir.canonicalize()?.parent() {
        Some(parent) => sync_dir(parent),
        None => Ok(()),
    }
}

/// Makes the names of the database's files durable.
fn sync_names(dir: &Path, engine: StoreEngine) -> io::Result<()> {
    sync_dir(&engine.folder(dir))?;
    sync_dir(dir)
}

pub(crate) fn format_path(dir: &Path) -> PathBuf {
    dir.join("format")
}

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn expect_format(dir: &Path, found: u32) -> Result<(), OpenError> {
    let dir = dir.to_owned();
    match found {
        ..FORMAT_MIN => Err(OpenError::Older { dir, found }),
        FORMAT_MIN..=FORMAT_MAX => Ok(()),
        _ => Err(OpenError::Newer { dir, found }),
    }
}
