//! Keys and framing of everything kept. All in one tree, told apart by the first byte:
//!
//! | key | value |
//! |---|---|
//! | `f` | the format of the store |
//! | `h` id | head: revision, flags, due time, length, parts; a small value stands in it |
//! | `c` id revision index | one part of a larger value |
//! | `i` id | the revision whose parts are being written; gone with the head that names them |
//! | `u` id | (empty) the task is unfinished |
//! | `e` due-ms id | (empty) the task is due then |
//! | `z` | the census: how many groups were written, and what they left |
//!
//! Numbers are big-endian, so that keys sort by them. A value begins with the version of its
//! framing and ends with a CRC-32 of key, version and body: a value at the wrong key is as damaged
//! as one with a wrong bit. Index keys have no value: what they say is in the key, and the head
//! says it again.

use std::ops::Bound;

use longshore_tasks::store::Revision;
use longshore_tasks::{StoreError, Stored, TaskId};

use crate::engine::{Database, Keys};

/// The version of the framing written here.
const VERSION: u8 = 1;

/// The largest piece of a value in one record. sled puts pages beyond a quarter of a segment into
/// files of their own, which it does not sync; pieces up to 64 KiB never get there.
pub(crate) const PIECE_BYTES_MAX: usize = 64 * 1024 - 256;

/// The largest value taken: far above what limits of runs allow, far below what hurts.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 20;

/// Key of the format record.
pub(crate) const FORMAT_KEY: &[u8] = b"f";

/// Key of the census. It changes with every group: its neighbours, the unfinished, are small.
pub(crate) const CENSUS_KEY: &[u8] = b"z";

/// First byte of the keys of intents.
const INTENT: &[u8] = b"i";

/// What stands at the head of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) revision: Revision,
    pub(crate) unfinished: bool,
    pub(crate) due_ms: Option<u64>,
    /// Length of the whole value.
    pub(crate) len: usize,
    /// How many parts it has; none if it stands inline.
    pub(crate) chunks: u32,
    pub(crate) inline: Vec<u8>,
}

const HEAD_BYTES: usize = 8 + 1 + 8 + 8 + 4;
const UNFINISHED: u8 = 1;
const HAS_DUE: u8 = 2;

impl Head {
    /// The head of `id` as the database shows it now.
    pub(crate) fn read(db: &dyn Database, id: &TaskId) -> Result<Option<Self>, StoreError> {
        let key = head_key(id);
        let sealed = db.get(&key)?;
        sealed.map(|sealed| Self::unseal(id, &sealed)).transpose()
    }

    /// The head of `id` in its sealed form.
    pub(crate) fn unseal(id: &TaskId, sealed: &[u8]) -> Result<Self, StoreError> {
        Self::from_body(unseal(&head_key(id), sealed)?)
            .ok_or_else(|| StoreError::Corrupt(format!("task {id} has a short head")))
    }

    /// Its sealed form.
    pub(crate) fn seal(&self, id: &TaskId) -> Vec<u8> {
        let mut body = Vec::with_capacity(HEAD_BYTES + self.inline.len());
        let due = if self.due_ms.is_some() { HAS_DUE } else { 0 };
        body.extend_from_slice(&self.revision.to_be_bytes());
        body.push(if self.unfinished { UNFINISHED } else { 0 } | due);
        body.extend_from_slice(&self.due_ms.unwrap_or(0).to_be_bytes());
        body.extend_from_slice(&(self.len as u64).to_be_bytes());
        body.extend_from_slice(&self.chunks.to_be_bytes());
        body.extend_from_slice(&self.inline);
        seal(&head_key(id), &body)
    }

    fn from_body(body: &[u8]) -> Option<Self> {
        let (revision, rest) = body.split_first_chunk()?;
        let (&flags, rest) = rest.split_first()?;
        let (due_ms, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (chunks, inline) = rest.split_first_chunk()?;
        Some(Self {
            revision: u64::from_be_bytes(*revision),
            unfinished: flags & UNFINISHED != 0,
            due_ms: (flags & HAS_DUE != 0).then_some(u64::from_be_bytes(*due_ms)),
            len: usize::try_from(u64::from_be_bytes(*len)).ok()?,
            chunks: u32::from_be_bytes(*chunks),
            inline: inline.to_vec(),
        })
    }
}

/// One attempt to read; `None` if the task changed under it.
pub(crate) fn read(db: &dyn Database, id: &TaskId) -> Result<Option<Option<Stored>>, StoreError> {
    let Some(head) = Head::read(db, id)? else {
        return Ok(Some(None));
    };
    let mut bytes = head.inline;
    bytes.reserve_exact(head.len.saturating_sub(bytes.len()));
    for index in 0..head.chunks {
        let key = chunk_key(id, head.revision, index);
        let Some(sealed) = db.get(&key)? else {
            let now = Head::read(db, id)?.map(|head| head.revision);
            if now == Some(head.revision) {
                return Err(StoreError::Corrupt(format!(
                    "a part of task {id} is missing"
                )));
            }
            return Ok(None);
        };
        bytes.extend_from_slice(unseal(&key, &sealed)?);
    }
    if bytes.len() != head.len {
        return Err(StoreError::Corrupt(format!(
            "task {id} has another length than it says"
        )));
    }
    Ok(Some(Some(Stored {
        revision: head.revision,
        bytes,
    })))
}

/// `body` framed for `key`.
pub(crate) fn seal(key: &[u8], body: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(body.len() + 5);
    sealed.push(VERSION);
    sealed.extend_from_slice(body);
    sealed.extend_from_slice(&checksum(key, &sealed).to_be_bytes());
    sealed
}

/// The body framed in `sealed`, if it is whole and stands where it was put.
pub(crate) fn unseal<'a>(key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], StoreError> {
    let damaged = |what: &str| StoreError::Corrupt(format!("{what} at key {}", key.escape_ascii()));
    let (framed, sum) = sealed
        .split_last_chunk()
        .ok_or_else(|| damaged("a short record"))?;
    if u32::from_be_bytes(*sum) != checksum(key, framed) {
        return Err(damaged("a wrong checksum"));
    }
    match framed.split_first() {
        Some((&VERSION, body)) => Ok(body),
        Some(_) => Err(damaged("a record of a newer version")),
        None => Err(damaged("a short record")),
    }
}

fn checksum(key: &[u8], framed: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(key);
    crc.update(framed);
    crc.finalize()
}

pub(crate) fn head_key(id: &TaskId) -> Vec<u8> {
    [b"h", id.as_bytes().as_slice()].concat()
}

pub(crate) fn intent_key(id: &TaskId) -> Vec<u8> {
    [INTENT, id.as_bytes().as_slice()].concat()
}

pub(crate) fn unfinished_key(id: &TaskId) -> Vec<u8> {
    [b"u", id.as_bytes().as_slice()].concat()
}

pub(crate) fn due_key(due_ms: u64, id: &TaskId) -> Vec<u8> {
    [b"e", due_ms.to_be_bytes().as_slice(), id.as_bytes()].concat()
}

pub(crate) fn chunk_key(id: &TaskId, revision: Revision, index: u32) -> Vec<u8> {
    let (revision, index) = (revision.to_be_bytes(), index.to_be_bytes());
    [b"c", id.as_bytes().as_slice(), &revision, &index].concat()
}

/// All parts of a revision.
pub(crate) fn chunk_range(id: &TaskId, revision: Revision) -> Keys {
    let at = |index| Bound::Included(chunk_key(id, revision, index));
    (at(0), at(u32::MAX))
}

pub(crate) fn intent_range() -> Keys {
    let [first, next] = [b"i", b"j"].map(|prefix| prefix.to_vec());
    (Bound::Included(first), Bound::Excluded(next))
}

pub(crate) fn head_range(after: Option<TaskId>) -> Keys {
    let lowest = Bound::Included(b"h".to_vec());
    let above = after.map_or(lowest, |id| Bound::Excluded(head_key(&id)));
    (above, Bound::Excluded(b"i".to_vec()))
}

pub(crate) fn unfinished_range(after: Option<TaskId>) -> Keys {
    let lowest = Bound::Included(b"u".to_vec());
    let above = after.map_or(lowest, |id| Bound::Excluded(unfinished_key(&id)));
    (above, Bound::Excluded(b"v".to_vec()))
}

pub(crate) fn due_range(after: Option<(u64, TaskId)>, until_ms: u64) -> Keys {
    let lowest = Bound::Included(b"e".to_vec());
    let above = after.map_or(lowest, |(due_ms, id)| Bound::Excluded(due_key(due_ms, &id)));
    let highest = TaskId::from_bytes([u8::MAX; TaskId::BYTES]);
    // An empty range is turned around only if `after` lies beyond: a database would panic on it.
    let end = due_key(
        until_ms.max(after.map_or(0, |(due_ms, _)| due_ms)),
        &highest,
    );
    (above, Bound::Included(end))
}

pub(crate) fn unfinished_id(key: &[u8]) -> Result<TaskId, StoreError> {
    id_at(key, 1)
}

pub(crate) fn due_of(key: &[u8]) -> Result<(u64, TaskId), StoreError> {
    let due_ms = key.get(1..).and_then(|rest| rest.first_chunk());
    let due_ms = due_ms.ok_or_else(|| StoreError::Corrupt("a short index key".to_owned()))?;
    Ok((u64::from_be_bytes(*due_ms), id_at(key, 9)?))
}

/// The id that ends the key from this place on.
pub(crate) fn id_at(key: &[u8], place: usize) -> Result<TaskId, StoreError> {
    let bytes = key.get(place..).and_then(|bytes| bytes.try_into().ok());
    bytes
        .map(TaskId::from_bytes)
        .ok_or_else(|| StoreError::Corrupt(format!("an odd index key {}", key.escape_ascii())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_refused_with_any_bit_wrong_or_at_another_key() {
        let sealed = seal(b"key", b"some body");
        assert_eq!(unseal(b"key", &sealed).unwrap(), b"some body");
        assert!(unseal(b"kez", &sealed).is_err());
        for bit in 0..sealed.len() * 8 {
            let mut wrong = sealed.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal(b"key", &wrong).is_err(), "bit {bit}");
        }
        for len in 0..sealed.len() {
            assert!(unseal(b"key", &sealed[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn a_head_round_trips() {
        let head = Head {
            revision: 7,
            unfinished: true,
            due_ms: Some(9),
            len: 3,
            chunks: 0,
            inline: vec![1, 2, 3],
        };
        let id = TaskId::from_bytes([5; TaskId::BYTES]);
        let sealed = head.seal(&id);
        let body = unseal(&head_key(&id), &sealed).unwrap();
        assert_eq!(Head::from_body(body), Some(head));
        assert_eq!(Head::from_body(&body[..HEAD_BYTES - 1]), None);
    }
}
