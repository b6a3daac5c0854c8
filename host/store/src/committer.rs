//! The one thread that writes: it drains the queue into groups, makes a group durable with one
//! flush and one fdatasync, and only then answers everyone in it.
//!
//! One writer, because concurrent flushes of sled can deadlock, because sled's own flush does not
//! reach the disk's cache, and because a group is what makes it fast. A group stays under 1 MiB:
//! sled may reuse the space of a moved page once a segment (8 MiB) more was written, so less than
//! that must pass between two of our syncs.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use longshore_tasks::store::Revision;
use longshore_tasks::{Put, StoreError, TaskId};
use tokio::sync::{mpsc, oneshot};

use crate::folder::{self, Opened};
use crate::record::{self, Head, PIECE_BYTES_MAX};
use crate::tide::Tide;

/// Most of a group, in bytes of keys and values; see above.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Most changes in a group: with more, those who came first would wait for those who came last.
const GROUP_CHANGES_MAX: usize = 512;

/// Roughly what a key and sled's own bookkeeping add to a value.
const ENTRY_BYTES: usize = 64;

/// What is asked of the committer.
pub(crate) enum Order {
    Change(Change, oneshot::Sender<Result<Revision, StoreError>>),
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// A change of one task, with the revision it is based on.
pub(crate) enum Change {
    Put(Put),
    Delete(TaskId, Revision),
}

/// What becomes durable together.
#[derive(Default)]
struct Group {
    batch: sled::Batch,
    bytes: usize,
    /// The heads as the group leaves them.
    heads: HashMap<TaskId, Option<Head>>,
    answers: Vec<(oneshot::Sender<Result<Revision, StoreError>>, Revision)>,
}

impl Group {
    fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len() + ENTRY_BYTES;
        self.batch.insert(key, value);
    }

    fn remove(&mut self, key: Vec<u8>) {
        self.bytes += key.len() + ENTRY_BYTES;
        self.batch.remove(key);
    }
}

struct Committer {
    db: sled::Db,
    /// A second descriptor of sled's log, for our own syncs.
    log: File,
    dir: PathBuf,
    tide: Arc<Tide>,
    group: Group,
}

/// Starts the thread. It ends when the last sender is gone, or when it is told to close.
pub(crate) fn start(
    opened: &Opened,
    tide: Arc<Tide>,
    queue: mpsc::Receiver<Order>,
) -> io::Result<JoinHandle<()>> {
    let committer = Committer {
        db: opened.db.clone(),
        log: opened.log.try_clone()?,
        dir: opened.dir.clone(),
        tide,
        group: Group::default(),
    };
    thread::Builder::new()
        .name("task-store".to_owned())
        .spawn(move || committer.run(queue))
}

impl Committer {
    fn run(mut self, mut queue: mpsc::Receiver<Order>) {
        let mut closing = None;
        while closing.is_none()
            && let Some(first) = queue.blocking_recv()
        {
            let mut next = Some(first);
            while let Some(order) = next.take() {
                match order {
                    Order::Change(change, reply) => self.place(change, reply),
                    Order::Close(reply) => closing = Some(reply),
                }
                if closing.is_none() && self.group.answers.len() < GROUP_CHANGES_MAX {
                    next = queue.try_recv().ok();
                }
            }
            self.commit();
        }
        let ended = self.tide.check();
        self.tide.stop("it is closed".to_owned());
        if let Some(reply) = closing {
            let _ = reply.send(ended);
        }
    }

    /// Puts a change into the group, or answers it at once if it cannot be.
    fn place(&mut self, change: Change, reply: oneshot::Sender<Result<Revision, StoreError>>) {
        let placed = match change {
            Change::Put(put) => self.place_put(put),
            Change::Delete(id, expected) => self.place_delete(&id, expected),
        };
        match placed {
            Ok(revision) => self.group.answers.push((reply, revision)),
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn place_put(&mut self, put: Put) -> Result<Revision, StoreError> {
        let Put {
            id,
            expected,
            unfinished,
            due_ms,
            bytes,
        } = put;
        let old = self.expect(&id, expected)?;
        let revision = expected.unwrap_or(0) + 1;
        let mut head = Head {
            revision,
            unfinished,
            due_ms,
            len: bytes.len(),
            chunks: 0,
            inline: Vec::new(),
        };
        if bytes.len() <= PIECE_BYTES_MAX {
            head.inline = bytes;
        } else {
            head.chunks = self.place_chunks(&id, revision, &bytes)?;
        }
        // What follows must be one group: the old parts go as the new head comes.
        let old_chunks = old.as_ref().map_or(0, |old| old.chunks as usize);
        self.make_room(head.inline.len() + (old_chunks + 8) * 2 * ENTRY_BYTES)?;
        if let Some(old) = &old {
            self.place_removal(&id, old);
        }
        let group = &mut self.group;
        if head.chunks > 0 {
            group.remove(record::intent_key(&id));
        }
        if unfinished {
            group.insert(record::unfinished_key(&id), Vec::new());
        }
        if let Some(due_ms) = due_ms {
            group.insert(record::due_key(due_ms, &id), Vec::new());
        }
        group.insert(record::head_key(&id), head.seal(&id));
        group.heads.insert(
            id,
            Some(Head {
                inline: Vec::new(),
                ..head
            }),
        );
        Ok(revision)
    }

    /// The parts of a large value, in as many groups as they need. Until its head is durable
    /// nothing names them, but the intent: what a crash leaves of them is swept at the next start.
    fn place_chunks(
        &mut self,
        id: &TaskId,
        revision: Revision,
        bytes: &[u8],
    ) -> Result<u32, StoreError> {
        let mut index = 0;
        let intent = record::intent_key(id);
        let body = record::seal(&intent, &revision.to_be_bytes());
        self.group.insert(intent, body);
        for piece in bytes.chunks(PIECE_BYTES_MAX) {
            self.make_room(piece.len() + 2 * ENTRY_BYTES)?;
            let key = record::chunk_key(id, revision, index);
            let sealed = record::seal(&key, piece);
            self.group.insert(key, sealed);
            index += 1;
        }
        Ok(index)
    }

    fn place_delete(&mut self, id: &TaskId, expected: Revision) -> Result<Revision, StoreError> {
        let old = self.expect(id, Some(expected))?;
        if let Some(old) = &old {
            self.make_room((old.chunks as usize + 8) * 2 * ENTRY_BYTES)?;
            self.place_removal(id, old);
        }
        self.group.remove(record::head_key(id));
        self.group.heads.insert(*id, None);
        Ok(expected)
    }

    /// All that belongs to an old head, but the head itself.
    fn place_removal(&mut self, id: &TaskId, old: &Head) {
        if old.unfinished {
            self.group.remove(record::unfinished_key(id));
        }
        if let Some(due_ms) = old.due_ms {
            self.group.remove(record::due_key(due_ms, id));
        }
        for index in 0..old.chunks {
            self.group
                .remove(record::chunk_key(id, old.revision, index));
        }
    }

    /// The present head of `id`, if its revision is the expected one.
    fn expect(&self, id: &TaskId, expected: Option<Revision>) -> Result<Option<Head>, StoreError> {
        self.tide.check()?;
        let head = match self.group.heads.get(id) {
            Some(head) => head.clone(),
            None => Head::read(&self.db, id)?,
        };
        if head.as_ref().map(|head| head.revision) == expected {
            Ok(head)
        } else {
            Err(StoreError::Conflict)
        }
    }

    /// Commits what there is if so many bytes more would be too many.
    fn make_room(&mut self, bytes: usize) -> Result<(), StoreError> {
        if self.group.bytes + bytes > GROUP_BYTES_MAX {
            self.commit();
        }
        self.tide.check()
    }

    /// Makes the group durable and answers all in it.
    fn commit(&mut self) {
        let Group {
            batch,
            bytes,
            heads,
            answers,
        } = std::mem::take(&mut self.group);
        if bytes == 0 {
            return;
        }
        self.tide.launch(heads.into_keys());
        // sled has panics on paths that are not ours to repair.
        let written = catch_unwind(AssertUnwindSafe(|| self.write(batch)));
        let written = written.unwrap_or_else(|_| Err(io::Error::other("sled panicked")));
        if let Err(error) = &written {
            tracing::error!(%error, dir = %self.dir.display(), "a write to the task store failed");
            self.tide.stop(format!(
                "a write in {} failed ({error}); see that the disk has room and works, then \
                 restart",
                self.dir.display()
            ));
        }
        self.tide.land();
        for (reply, revision) in answers {
            // Whoever does not wait any more does not need the answer.
            let _ = reply.send(self.tide.check().map(|()| revision));
        }
    }

    fn write(&self, batch: sled::Batch) -> io::Result<()> {
        self.db.apply_batch(batch)?;
        self.db.flush()?;
        // sled's flush starts the write-back, but neither empties the disk's cache nor makes the
        // file's new length durable.
        self.log.sync_data()?;
        expect_no_blobs(&self.dir);
        Ok(())
    }
}

/// sled syncs no blob file, so there must be none; see `PIECE_BYTES_MAX`.
pub(crate) fn expect_no_blobs(dir: &Path) {
    let blobs = folder::blobs(dir);
    let mut entries = std::fs::read_dir(&blobs).into_iter().flatten();
    if entries.next().is_some() {
        tracing::error!(dir = %blobs.display(), "the task store has blobs, which are not durable");
    }
}
