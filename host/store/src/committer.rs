//! The one thread that writes: it drains the queue into groups, makes a group durable with one
//! write of the database, notes it in the mark, and only then answers everyone in it.
//!
//! One writer, because a group is what makes it fast, because redb takes one at a time, and because
//! concurrent flushes of sled can deadlock. A group stays under 1 MiB: sled may reuse the space of a
//! moved page once a segment (8 MiB) more was written, so less than that must pass between two syncs.
//!
//! After a failed write nobody knows what is on the disk, and the database refuses all further work.
//! So it is opened anew, which shows what is there, and the store goes on (see `mend`).

mod mend;

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use longshore_tasks::store::Revision;
use longshore_tasks::{Put, StoreError, TaskId};
use tokio::sync::{mpsc, oneshot};

use crate::census::Census;
use crate::engine::{Batch, Database, StoreEngine};
use crate::mark::Mark;
use crate::record::{self, Head, PIECE_BYTES_MAX};
use crate::tide::Tide;
use crate::window::Window;

/// Most of a group, in bytes of keys and values; see above.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Most changes in a group: with more, those who came first would wait for those who came last.
const GROUP_CHANGES_MAX: usize = 512;

/// Roughly what a key and the database's own bookkeeping add to a value.
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
    batch: Batch,
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
    /// `None` between a failed write and the mend.
    db: Option<Arc<dyn Database>>,
    engine: StoreEngine,
    mark: Mark,
    /// What is durable, with what is in the group.
    census: Census,
    /// Groups known to be durable.
    durable: u64,
    /// Bytes written since the database was opened.
    written_bytes: u64,
    dir: PathBuf,
    tide: Arc<Tide>,
    window: Arc<Window>,
    group: Group,
}

/// What the committer works on.
pub(crate) struct Desk {
    pub(crate) db: Arc<dyn Database>,
    pub(crate) engine: StoreEngine,
    pub(crate) mark: Mark,
    pub(crate) census: Census,
    pub(crate) tide: Arc<Tide>,
    pub(crate) window: Arc<Window>,
}

/// Starts the thread. It ends when the last sender is gone, or when it is told to close.
pub(crate) fn start(
    dir: &Path,
    desk: Desk,
    queue: mpsc::Receiver<Order>,
) -> io::Result<JoinHandle<()>> {
    let committer = Committer {
        db: Some(desk.db),
        engine: desk.engine,
        mark: desk.mark,
        durable: desk.census.sequence,
        written_bytes: 0,
        census: desk.census,
        dir: dir.to_owned(),
        tide: desk.tide,
        window: desk.window,
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
            if closing.is_none() && self.db.is_none() {
                closing = self.mend_until_it_works(&mut queue);
            }
        }
        let ended = self.tide.check();
        let closed = StoreError::Unavailable("it is closed".to_owned());
        self.tide.stop(closed);
        self.window.shut();
        // The database is closed before that is said.
        self.db = None;
        if closing.is_some() && ended.is_ok() {
            self.engine.settle(&self.dir, self.written_bytes);
        }
        let marked = if closing.is_some() {
            self.mark.close()
        } else {
            self.mark.sync()
        };
        if let Err(error) = marked {
            // It only asks for less than it could.
            tracing::warn!(%error, "the mark of the task store was not synced");
        }
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
        self.census.add(&id, &head);
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
        self.census.remove(id, old);
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
            None => Head::read(self.db()?, id)?,
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

    fn db(&self) -> Result<&dyn Database, StoreError> {
        self.db.as_deref().ok_or_else(|| self.tide.stopped())
    }

    /// Makes the group durable and answers all in it.
    fn commit(&mut self) {
        let Group {
            mut batch,
            bytes,
            heads,
            answers,
        } = std::mem::take(&mut self.group);
        if bytes == 0 {
            return;
        }
        self.census.sequence += 1;
        self.written_bytes += bytes as u64;
        batch.insert(record::CENSUS_KEY, self.census.seal());
        self.tide.launch(heads.into_keys());
        // Databases have panics on paths that are not ours to repair.
        let written = catch_unwind(AssertUnwindSafe(|| self.write(batch)));
        let written = written.unwrap_or_else(|_| Err(damage("the database panicked")));
        match written {
            Ok(()) => self.durable = self.census.sequence,
            Err(error) => self.fail(&error),
        }
        self.tide.land();
        for (reply, revision) in answers {
            // Whoever does not wait any more does not need the answer.
            let _ = reply.send(self.tide.check().map(|()| revision));
        }
    }

    fn write(&self, batch: Batch) -> io::Result<()> {
        self.db().map_err(io::Error::other)?.write(batch)?;
        self.mark.note(self.census.sequence)
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::error!(%error, dir = %self.dir.display(), "a write to the task store failed");
        let dir = self.dir.display();
        self.tide.fail(match error.kind() {
            // A start does not look at all of a large database, so this may be the first word of it.
            io::ErrorKind::InvalidData => StoreError::Corrupt(format!(
                "a write in {dir} needs a part that cannot be read ({error}); stop the server, then put back a copy of the folder, or save what is left with `longshore store export --damaged`"
            )),
            _ => StoreError::Unavailable(format!(
                "a write in {dir} failed ({error}); it goes on when the disk has room and works"
            )),
        });
        self.window.shut();
        self.db = None;
    }
}

fn damage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
