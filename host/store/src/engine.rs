//! The database below the store: which there are, and what each of them does.
//!
//! To the rest of the store a database is an ordered map of bytes that changes in batches. Of a
//! batch all is kept or nothing, and it is durable when the write returns. It knows nothing of what
//! the bytes say.

mod on_redb;
mod on_sled;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_tasks::StoreError;
use serde::Deserialize;

use crate::folder::OpenError;
use crate::regular;

/// Which database keeps the tasks. A folder stays with the one it was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreEngine {
    /// A tree in one file: starts at once whatever it holds, also after a crash.
    #[default]
    Redb,
    /// A log: writes faster, and reads what was written since the last start again after a crash.
    Sled,
}

/// How much of a database is read when it is opened, to see whether it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// Nothing: what is left of a damaged one is wanted.
    None,
    /// All of it if that takes no time to speak of.
    IfSmall,
    /// All of it.
    All,
}

/// An open database. It is closed when dropped.
pub(crate) trait Database: Send + Sync {
    /// What stands at `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Shows the entries in a range, in the order of their keys, until `show` breaks.
    fn scan(&self, keys: &Keys, show: &mut Show<'_>) -> Result<(), StoreError>;

    /// Makes the batch durable, all of it or nothing. After a failure nobody knows which, and the
    /// database takes nothing more: it must be opened anew.
    fn write(&self, batch: Batch) -> io::Result<()>;

    /// Whether its tasks are to be counted one by one when it was opened, because it may have lost
    /// some without a word.
    fn needs_recount(&self) -> io::Result<bool>;
}

/// A range of keys.
pub(crate) type Keys = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Is shown entries.
pub(crate) type Show<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError> + 'a;

/// What changes together; of several changes of a key the last counts. In the order of keys, in
/// which a tree takes it best.
#[derive(Debug, Default)]
pub(crate) struct Batch(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Batch {
    pub(crate) fn insert(&mut self, key: impl Into<Vec<u8>>, value: Vec<u8>) {
        self.0.insert(key.into(), Some(value));
    }

    pub(crate) fn remove(&mut self, key: impl Into<Vec<u8>>) {
        self.0.insert(key.into(), None);
    }
}

impl StoreEngine {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Redb, Self::Sled];

    /// The format of folders that are made with it; see `folder`.
    pub(crate) fn format(self) -> u32 {
        match self {
            Self::Sled => 4,
            Self::Redb => 5,
        }
    }

    /// The one with which folders of this format are made.
    pub(crate) fn of_format(format: u32) -> Option<Self> {
        match format {
            4 => Some(Self::Sled),
            5 => Some(Self::Redb),
            _ => None,
        }
    }

    /// The one whose folder is in `dir`.
    pub(crate) fn found_in(dir: &Path) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|engine| engine.folder(dir).exists())
    }

    /// The file in which it keeps all that matters.
    pub(crate) fn file(self, dir: &Path) -> PathBuf {
        self.folder(dir).join("db")
    }

    /// The folder of its own.
    pub(crate) fn folder(self, dir: &Path) -> PathBuf {
        dir.join(self.to_string())
    }

    /// Opens the database in `dir`, made if it is not there. All that it shows is durable.
    pub(crate) fn open(
        self,
        dir: &Path,
        scrutiny: Scrutiny,
    ) -> Result<Arc<dyn Database>, OpenError> {
        regular::expect(&self.file(dir)).map_err(|error| OpenError::io(dir, error))?;
        Ok(match self {
            Self::Redb => Arc::new(on_redb::open(dir, scrutiny)?),
            Self::Sled => Arc::new(on_sled::open(dir)?),
        })
    }

    /// What is left to do when the database in `dir` was closed after so many bytes were written.
    pub(crate) fn settle(self, dir: &Path, written_bytes: u64) {
        if self == Self::Sled {
            on_sled::settle(dir, written_bytes);
        }
    }
}

impl fmt::Display for StoreEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redb => "redb",
            Self::Sled => "sled",
        })
    }
}

/// Does something with a database that may be damaged in ways that make it panic.
pub(crate) fn caught<T>(act: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let panicked = |_| {
        Err(StoreError::Corrupt(
            "a part of the database cannot be understood (it panicked)".to_owned(),
        ))
    };
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(panicked)
}
