//! What the store holds, counted, in a record that changes with every group.
//!
//! sled mends a damaged log by leaving out what it cannot read, and says nothing. So each group
//! writes, in its own batch, how many groups there were, how many tasks there are and a sum over
//! their heads. At a start the groups are compared with the mark (see `mark`), and the tasks are
//! counted again.

use longshore_tasks::{StoreError, TaskId};

use crate::record::{self, Head};

/// Up to this size of the log all heads are read again at a start, in bytes: it takes under a second. Above it,
/// only the index of the unfinished is counted, and `check` counts the rest.
const RECOUNT_BYTES_MAX: u64 = 512 << 20;

/// How many tasks there are, and which, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Census {
    /// How many groups were written, ever.
    pub(crate) sequence: u64,
    /// Heads.
    pub(crate) tasks: u64,
    /// Heads of tasks that are unfinished.
    pub(crate) unfinished: u64,
    /// Heads of tasks that fall due.
    pub(crate) due: u64,
    /// Sum of a checksum of each id with its revision.
    pub(crate) sum: u64,
}

const BYTES: usize = 5 * 8;

impl Census {
    /// A head comes.
    pub(crate) fn add(&mut self, id: &TaskId, head: &Head) {
        self.tasks = self.tasks.wrapping_add(1);
        self.unfinished = self.unfinished.wrapping_add(u64::from(head.unfinished));
        self.due = self.due.wrapping_add(u64::from(head.due_ms.is_some()));
        self.sum = self.sum.wrapping_add(checksum(id, head.revision));
    }

    /// A head goes.
    pub(crate) fn remove(&mut self, id: &TaskId, head: &Head) {
        self.tasks = self.tasks.wrapping_sub(1);
        self.unfinished = self.unfinished.wrapping_sub(u64::from(head.unfinished));
        self.due = self.due.wrapping_sub(u64::from(head.due_ms.is_some()));
        self.sum = self.sum.wrapping_sub(checksum(id, head.revision));
    }

    /// Its sealed form.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let numbers = [
            self.sequence,
            self.tasks,
            self.unfinished,
            self.due,
            self.sum,
        ];
        let body: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        record::seal(record::CENSUS_KEY, &body)
    }

    /// The census as sled shows it; `None` if there is none.
    pub(crate) fn read(db: &sled::Db) -> Result<Option<Self>, StoreError> {
        let key = record::CENSUS_KEY;
        let Some(sealed) = db.get(key).map_err(record::unreadable)? else {
            return Ok(None);
        };
        let body = record::unseal(key, &sealed)?;
        if body.len() != BYTES {
            return Err(StoreError::Corrupt("an odd census".to_owned()));
        }
        let mut numbers = body.chunks_exact(8).map(|bytes| {
            let bytes = bytes.try_into().unwrap_or_default();
            u64::from_be_bytes(bytes)
        });
        let mut next = || numbers.next().unwrap_or_default();
        Ok(Some(Self {
            sequence: next(),
            tasks: next(),
            unfinished: next(),
            due: next(),
            sum: next(),
        }))
    }

    /// Counts what is there, all heads and both indexes. Reads every head and the small values in
    /// them; memory does not grow with the store.
    pub(crate) fn count(db: &sled::Db) -> Result<Self, StoreError> {
        let mut census = Self::default();
        for entry in db.range(record::head_range(None)) {
            let (key, sealed) = entry.map_err(record::unreadable)?;
            let id = record::id_at(&key, 1)?;
            census.add(&id, &Head::unseal(&id, &sealed)?);
        }
        let (unfinished, due) = (count_keys(db, b"u")?, count_keys(db, b"e")?);
        if (unfinished, due) != (census.unfinished, census.due) {
            return Err(StoreError::Corrupt(format!(
                "its indexes name {unfinished} unfinished and {due} due tasks, its tasks say {} and {}",
                census.unfinished, census.due
            )));
        }
        Ok(census)
    }

    /// Fails if what is there is not what this census says. A large log is not read whole.
    pub(crate) fn expect(&self, db: &sled::Db, log_bytes: u64) -> Result<(), StoreError> {
        let differs = |what: &str, found, expected| {
            StoreError::Corrupt(format!("it holds {found} {what}, {expected} were written"))
        };
        if log_bytes > RECOUNT_BYTES_MAX {
            let unfinished = count_keys(db, b"u")?;
            return match unfinished == self.unfinished {
                true => Ok(()),
                false => Err(differs("unfinished tasks", unfinished, self.unfinished)),
            };
        }
        let found = Self {
            sequence: self.sequence,
            ..Self::count(db)?
        };
        if found.tasks != self.tasks {
            return Err(differs("tasks", found.tasks, self.tasks));
        }
        if found != *self {
            return Err(StoreError::Corrupt(
                "some of its tasks are older than what was written".to_owned(),
            ));
        }
        Ok(())
    }
}

fn count_keys(db: &sled::Db, prefix: &[u8]) -> Result<u64, StoreError> {
    let mut count = 0;
    for key in db.scan_prefix(prefix).keys() {
        key.map_err(record::unreadable)?;
        count += 1;
    }
    Ok(count)
}

fn checksum(id: &TaskId, revision: u64) -> u64 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(id.as_bytes());
    crc.update(&revision.to_be_bytes());
    u64::from(crc.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_leaves_nothing() {
        let mut census = Census::default();
        let id = TaskId::from_bytes([9; 16]);
        let head = Head {
            revision: 4,
            unfinished: true,
            due_ms: Some(1),
            len: 0,
            chunks: 0,
            inline: Vec::new(),
        };
        census.add(&id, &head);
        let newer = Head {
            revision: 5,
            unfinished: false,
            ..head.clone()
        };
        census.remove(&id, &head);
        census.add(&id, &newer);
        assert_eq!((census.tasks, census.unfinished, census.due), (1, 0, 1));
        census.remove(&id, &newer);
        assert_eq!(census, Census::default());
    }

    fn head(unfinished: bool) -> Head {
        Head {
            revision: 1,
            unfinished,
            due_ms: None,
            len: 0,
            chunks: 0,
            inline: Vec::new(),
        }
    }

    #[test]
    fn of_a_large_log_only_the_unfinished_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let db = sled::open(dir.path()).unwrap();
        let mut census = Census::default();
        for (byte, unfinished) in [(1, true), (2, false), (3, false)] {
            let id = TaskId::from_bytes([byte; 16]);
            let head = head(unfinished);
            census.add(&id, &head);
            db.insert(record::head_key(&id), head.seal(&id)).unwrap();
            if unfinished {
                db.insert(record::unfinished_key(&id), &[]).unwrap();
            }
        }
        let (small, large) = (0, RECOUNT_BYTES_MAX + 1);
        assert_eq!(census.expect(&db, small), Ok(()));
        assert_eq!(census.expect(&db, large), Ok(()));

        let ended = record::head_key(&TaskId::from_bytes([2; 16]));
        db.remove(ended).unwrap();
        let lost = census.expect(&db, small);
        assert!(matches!(lost, Err(StoreError::Corrupt(_))), "{lost:?}");
        assert_eq!(census.expect(&db, large), Ok(()));
        db.remove(record::unfinished_key(&TaskId::from_bytes([1; 16])))
            .unwrap();
        assert!(census.expect(&db, large).is_err());
    }
}
