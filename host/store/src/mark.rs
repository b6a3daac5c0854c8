//! How many groups were acknowledged, in a small file beside the database.
//!
//! A log may lose its tail to damage and look like an older, sound one, and any file may be put in
//! place of a newer one. The mark is written
//! after each group is durable and before anyone is answered, so a database that holds fewer groups than
//! the mark says has lost some. It never runs ahead of the database.
//!
//! A note of it costs one small write to the page cache, not a sync: a crash of the process keeps
//! it. A power cut may set it back to its last sync, and then it asks for less than it could.
//! Two places are written in turn, so that a torn write leaves the other. A third says whether the
//! last server closed the store.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::regular;

/// Where in the file a place begins, in bytes; each in a sector of its own.
const PLACE_BYTES: u64 = 512;

/// Where it stands whether the store was closed, and what stands there.
const CLOSED_AT: u64 = 2 * PLACE_BYTES;
const CLOSED: u64 = 1;
const IN_USE: u64 = 0;

/// How many notes may pass without a sync: its cost is shared by as many groups.
const NOTES_PER_SYNC: u64 = 64;

/// The open mark.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
}

/// Where the mark of the store in `dir` is.
pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("mark")
}

impl Mark {
    /// Makes the mark of a new store. Its entry in the folder is not synced.
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mark = Self {
            file: regular::open(&path(dir), &mut options)?,
        };
        // Both places exist from now on, so a full disk never refuses a note.
        mark.write(0, 0)?;
        mark.write(0, PLACE_BYTES)?;
        mark.write(CLOSED, CLOSED_AT)?;
        mark.sync()?;
        Ok(mark)
    }

    /// Opens the mark; with the number of groups it knows of, `None` if it cannot be read, and
    /// whether the last server closed the store.
    pub(crate) fn open(dir: &Path) -> io::Result<(Self, Option<u64>, bool)> {
        let mut options = OpenOptions::new();
        let mut file = regular::open(&path(dir), options.read(true).write(true))?;
        let mut bytes = Vec::new();
        // Longer, it is no mark.
        file.by_ref()
            .take(4 * PLACE_BYTES)
            .read_to_end(&mut bytes)?;
        let place = |at: usize| read_place(bytes.get(at..at + 12)?);
        let known = place(0).max(place(PLACE_BYTES as usize));
        let closed = place(CLOSED_AT as usize) == Some(CLOSED);
        Ok((Self { file }, known, closed))
    }

    /// So many groups are durable.
    pub(crate) fn note(&self, sequence: u64) -> io::Result<()> {
        self.write(sequence, sequence % 2 * PLACE_BYTES)?;
        if sequence.is_multiple_of(NOTES_PER_SYNC) {
            self.sync()?;
        }
        Ok(())
    }

    /// A server uses the store from now on; durable when this returns.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.write(IN_USE, CLOSED_AT)?;
        self.sync()
    }

    /// The server is done with the store; durable when this returns.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.write(CLOSED, CLOSED_AT)?;
        self.sync()
    }

    /// Makes the last note safe from a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, number: u64, at: u64) -> io::Result<()> {
        let number = number.to_be_bytes();
        let mut place = number.to_vec();
        place.extend_from_slice(&crc32fast::hash(&number).to_be_bytes());
        self.file.write_all_at(&place, at)
    }
}

fn read_place(place: &[u8]) -> Option<u64> {
    let (number, sum) = place.split_first_chunk::<8>()?;
    let whole = sum == crc32fast::hash(number).to_be_bytes();
    whole.then_some(u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_note_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let mark = Mark::create(dir.path()).unwrap();
        for sequence in 1..=200 {
            mark.note(sequence).unwrap();
        }
        assert_eq!(Mark::open(dir.path()).unwrap().1, Some(200));
        mark.file.write_all_at(&[7], 3).unwrap();
        assert_eq!(Mark::open(dir.path()).unwrap().1, Some(199));
        mark.file.write_all_at(&[7], PLACE_BYTES + 3).unwrap();
        assert_eq!(Mark::open(dir.path()).unwrap().1, None);
    }

    #[test]
    fn whether_it_was_closed_is_known() {
        let dir = tempfile::tempdir().unwrap();
        drop(Mark::create(dir.path()).unwrap());
        for closed in [true, false] {
            let (mark, _, was_closed) = Mark::open(dir.path()).unwrap();
            assert_eq!(was_closed, closed);
            mark.begin().unwrap();
        }
        Mark::open(dir.path()).unwrap().0.close().unwrap();
        assert!(Mark::open(dir.path()).unwrap().2);
    }
}
