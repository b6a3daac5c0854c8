//! A store on redb: one file with a tree that is never changed in place.
//!
//! Readers see what was committed, and a commit is durable when it returns. Once the file is large,
//! each commit also writes down which pages are free (redb's "quick repair", which implies its commit
//! in two phases): without it the start after a crash reads the whole file to find that out, and with
//! it a million tasks in 4 GiB are open after a kill in 30 ms and 5 MiB. It costs a second sync and
//! some 250 KiB for each 4 GiB of the file in each commit: 8 ms instead of 5 for one change in that
//! file, 83 instead of 65 for 256. A small file is read whole at a start anyway, so there one sync
//! does: of a commit that a power cut broke off redb finds out by its checksums, and shows the one
//! before.
//!
//! redb checks its pages only when it is asked to, so a small file is checked whole at the start.
//! In a large one each record still has its own checksum; `longshore store check` reads all.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use longshore_tasks::StoreError;
use redb::{
    Builder, DatabaseError, ReadOnlyTable, ReadableDatabase as _, StorageError, TableDefinition,
    TableError,
};

use super::{Batch, Database, Keys, Scrutiny, Show, StoreEngine, caught};
use crate::folder::OpenError;

/// The only table.
const TASKS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("tasks");

/// The same, open for reading.
type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Recently used pages and those of the commit under way, in bytes; redb's own default is 1 GiB.
/// The system's page cache holds the others.
const CACHE_BYTES: usize = 32 << 20;

/// Up to this length of the file all of it is read at a start, in bytes: that takes a tenth of a second.
const SMALL_BYTES_MAX: u64 = 64 << 20;

pub(super) struct Redb {
    /// The table as the last commit left it, so that a read need not open it again, which takes longer than the read; `None`
    /// before the first commit. Only a commit changes it: it never shows less than what is durable.
    shown: RwLock<Option<Arc<Table>>>,
    db: redb::Database,
    /// When it was opened.
    small: bool,
    /// The same file, to be asked how long it is.
    file: File,
}

pub(super) fn open(dir: &Path, scrutiny: Scrutiny) -> Result<Redb, OpenError> {
    let io = |error| OpenError::io(dir, error);
    let path = StoreEngine::Redb.file(dir);
    fs::create_dir_all(StoreEngine::Redb.folder(dir)).map_err(io)?;
    let small = fs::metadata(&path).map_or(true, |file| is_small(&file));
    let whole = scrutiny == Scrutiny::All || (scrutiny == Scrutiny::IfSmall && small);
    let opened = caught(|| {
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES);
        builder.set_check_integrity_on_open(whole);
        Ok(builder.create(&path))
    });
    let opened = opened.map_err(|error| OpenError::damaged(dir, error.to_string()))?;
    let db = opened.map_err(|error| refused(dir, error))?;
    // A process that was killed may have left what it had not yet synced.
    let file = File::open(&path).map_err(io)?;
    file.sync_data().map_err(io)?;
    let shown = RwLock::default();
    let redb = Redb {
        shown,
        db,
        small,
        file,
    };
    // What cannot be read says so at each read.
    let _ = caught(|| {
        redb.show();
        Ok(())
    });
    Ok(redb)
}

fn is_small(file: &Metadata) -> bool {
    file.len() <= SMALL_BYTES_MAX
}

fn refused(dir: &Path, error: DatabaseError) -> OpenError {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        DatabaseError::Storage(StorageError::Io(error))
            if !matches!(error.kind(), InvalidData | UnexpectedEof) =>
        {
            OpenError::io(dir, error)
        }
        DatabaseError::DatabaseAlreadyOpen => OpenError::io(dir, io::Error::other(error)),
        error => OpenError::damaged(dir, error.to_string()),
    }
}

impl Redb {
    /// The table as the last commit left it; `None` before the first.
    fn table(&self) -> Result<Option<Arc<Table>>, redb::Error> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        match &*shown {
            Some(table) => Ok(Some(Arc::clone(table))),
            None => Ok(self.open_table()?.map(Arc::new)),
        }
    }

    /// From now on readers see what is committed by now. If it cannot be opened for all, each of them tries for itself.
    fn show(&self) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        *shown = None;
        *shown = self.open_table().ok().flatten().map(Arc::new);
    }

    fn open_table(&self) -> Result<Option<Table>, redb::Error> {
        match self.db.begin_read()?.open_table(TASKS) {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn commit(&self, batch: Batch) -> Result<(), redb::Error> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_quick_repair(!is_small(&self.file.metadata()?));
        {
            let mut table = transaction.open_table(TASKS)?;
            for (key, value) in batch.0 {
                match value {
                    Some(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
                    None => drop(table.remove(key.as_slice())?),
                }
            }
        }
        transaction.commit()?;
        self.show();
        Ok(())
    }
}

impl Database for Redb {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        caught(|| {
            let read = || match self.table()? {
                Some(table) => Ok(table.get(key)?.map(|value| value.value().to_vec())),
                None => Ok(None),
            };
            read().map_err(unreadable)
        })
    }

    fn scan(&self, keys: &Keys, show: &mut Show<'_>) -> Result<(), StoreError> {
        caught(|| {
            let Some(table) = self.table().map_err(unreadable)? else {
                return Ok(());
            };
            let bounds = (
                keys.0.as_ref().map(Vec::as_slice),
                keys.1.as_ref().map(Vec::as_slice),
            );
            let range = table.range::<&[u8]>(bounds);
            for entry in range.map_err(|error| unreadable(error.into()))? {
                let (key, value) = entry.map_err(|error| unreadable(error.into()))?;
                if show(key.value(), value.value())?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn write(&self, batch: Batch) -> io::Result<()> {
        self.commit(batch).map_err(|error| match error {
            redb::Error::Io(error) => error,
            error @ redb::Error::Corrupted(_) => io::Error::new(io::ErrorKind::InvalidData, error),
            error => io::Error::other(error),
        })
    }

    /// It says itself whether it has all that it had at its last commit, so a small one is counted for
    /// good measure only.
    fn needs_recount(&self) -> io::Result<bool> {
        Ok(self.small)
    }
}

/// redb's error on a read, as the engine's.
fn unreadable(error: redb::Error) -> StoreError {
    match error {
        redb::Error::Io(error) => StoreError::Unavailable(format!("it cannot be read: {error}")),
        redb::Error::PreviousIo | redb::Error::DatabaseClosed => {
            StoreError::Unavailable(error.to_string())
        }
        error => StoreError::Corrupt(error.to_string()),
    }
}
