//! A database itself, with nothing of the store around it: to change what the store would not.

use std::path::{Path, PathBuf};

use longshore_store::StoreEngine;
use redb::{ReadableDatabase as _, TableDefinition};

const TASKS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("tasks");

pub(crate) enum Raw {
    Redb(redb::Database),
    Sled(sled::Db),
}

/// The file that holds all.
pub(crate) fn file(dir: &Path, engine: StoreEngine) -> PathBuf {
    dir.join(engine.to_string()).join("db")
}

impl Raw {
    pub(crate) fn open(dir: &Path, engine: StoreEngine) -> Self {
        match engine {
            StoreEngine::Redb => Self::Redb(redb::Database::open(file(dir, engine)).unwrap()),
            StoreEngine::Sled => {
                let config = sled::Config::new().path(dir.join("sled"));
                Self::Sled(config.segment_size(8 << 20).open().unwrap())
            }
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Vec<u8> {
        match self {
            Self::Redb(db) => {
                let table = db.begin_read().unwrap().open_table(TASKS).unwrap();
                table.get(key).unwrap().unwrap().value().to_vec()
            }
            Self::Sled(db) => db.get(key).unwrap().unwrap().to_vec(),
        }
    }

    pub(crate) fn keys(&self, prefix: &[u8]) -> Vec<Vec<u8>> {
        match self {
            Self::Redb(db) => {
                let table = db.begin_read().unwrap().open_table(TASKS).unwrap();
                let keys = table.range::<&[u8]>(prefix..).unwrap();
                let keys = keys.map(|entry| entry.unwrap().0.value().to_vec());
                keys.take_while(|key| key.starts_with(prefix)).collect()
            }
            Self::Sled(db) => {
                let keys = db.scan_prefix(prefix).keys();
                keys.map(|key| key.unwrap().to_vec()).collect()
            }
        }
    }

    /// Puts this value at the key, or nothing.
    pub(crate) fn set(&self, key: &[u8], value: Option<&[u8]>) {
        match (self, value) {
            (Self::Redb(db), value) => {
                let transaction = db.begin_write().unwrap();
                {
                    let mut table = transaction.open_table(TASKS).unwrap();
                    match value {
                        Some(value) => drop(table.insert(key, value).unwrap()),
                        None => drop(table.remove(key).unwrap()),
                    }
                }
                transaction.commit().unwrap();
            }
            (Self::Sled(db), Some(value)) => drop(db.insert(key, value).unwrap()),
            (Self::Sled(db), None) => drop(db.remove(key).unwrap()),
        }
    }
}
