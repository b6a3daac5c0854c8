//! The durable store of tasks, on sled.
//!
//! Owns the folder it is given: its lock, its format, sled's files, and the promise that what has
//! been answered is on the disk. It must not know what a task is: bytes by id, each with a
//! revision, as `longshore-tasks` asks of every store.
//!
//! - `folder`: opening, and refusing what must not be opened.
//! - `record`: keys and framing of everything kept.
//! - `committer`: the one thread that writes.
//! - `tide`: what is written but not durable yet, and must not be read.

mod committer;
mod folder;
mod record;
mod tide;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use longshore_tasks::store::Revision;
use longshore_tasks::{Put, Store, StoreError, Stored, TaskId};
use tokio::sync::{mpsc, oneshot};

use committer::{Change, Order};
use record::Head;
use tide::Tide;

pub use folder::OpenError;

/// How many orders wait for the committer; more senders wait in turn. A group takes them all in
/// one go, so a longer queue would only hold more memory.
const ORDERS_MAX: usize = 512;

/// How often a read is begun anew because its task changed meanwhile. Each time someone else's
/// write became durable, a millisecond or so apart.
const READS_MAX: usize = 64;

/// A store in a folder of its own.
///
/// Dropping it waits for what was accepted to become durable, as [`Store::close`] does.
pub struct SledStore {
    db: sled::Db,
    tide: Arc<Tide>,
    orders: Option<mpsc::Sender<Order>>,
    committer: Option<JoinHandle<()>>,
    /// Held for as long as sled is open.
    _lock: folder::Lock,
}

impl fmt::Debug for SledStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SledStore").finish_non_exhaustive()
    }
}

impl SledStore {
    /// Opens the store in `dir`, made if it is not there. Blocks, for seconds if the store is big
    /// and was not closed.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let opened = folder::open(dir)?;
        let tide = Arc::new(Tide::default());
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        let committer = committer::start(&opened, Arc::clone(&tide), queue)
            .map_err(|error| OpenError::io(dir, error))?;
        Ok(Self {
            db: opened.db,
            tide,
            orders: Some(orders),
            committer: Some(committer),
            _lock: opened.lock,
        })
    }

    async fn change(&self, change: Change) -> Result<Revision, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Change(change, reply)).await?;
        answer.await.unwrap_or_else(|_| Err(self.tide.stopped()))
    }

    async fn order(&self, order: Order) -> Result<(), StoreError> {
        let orders = self.orders.as_ref().ok_or_else(|| self.tide.stopped())?;
        orders.send(order).await.map_err(|_| self.tide.stopped())
    }

    /// One attempt to read; `None` if the task changed under it.
    fn read(&self, id: &TaskId) -> Result<Option<Option<Stored>>, StoreError> {
        let Some(head) = Head::read(&self.db, id)? else {
            return Ok(Some(None));
        };
        let mut bytes = head.inline;
        bytes.reserve_exact(head.len.saturating_sub(bytes.len()));
        for index in 0..head.chunks {
            let key = record::chunk_key(id, head.revision, index);
            let Some(sealed) = self.db.get(&key).map_err(record::unreadable)? else {
                let now = Head::read(&self.db, id)?.map(|head| head.revision);
                if now == Some(head.revision) {
                    return Err(StoreError::Corrupt(format!(
                        "a part of task {id} is missing"
                    )));
                }
                return Ok(None);
            };
            bytes.extend_from_slice(record::unseal(&key, &sealed)?);
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
}

/// Reads go straight to sled on the caller's thread: cached they take microseconds, and otherwise
/// one short read of the page cache or the disk (18 µs at the median of a million tasks), less than
/// handing them to another thread would.
#[async_trait]
impl Store for SledStore {
    async fn get(&self, id: &TaskId) -> Result<Option<Stored>, StoreError> {
        for _ in 0..READS_MAX {
            self.tide.durable(id).await?;
            let read = self.read(id);
            // Only what was durable before or is by now may be shown.
            if self.tide.is_durable(id)?
                && let Some(stored) = read?
            {
                return Ok(stored);
            }
        }
        Err(StoreError::Unavailable(format!(
            "task {id} changes too fast to be read"
        )))
    }

    async fn put(&self, put: Put) -> Result<Revision, StoreError> {
        if put.bytes.len() > record::VALUE_BYTES_MAX {
            let (bytes, bytes_max) = (put.bytes.len(), record::VALUE_BYTES_MAX);
            return Err(StoreError::TooLarge { bytes, bytes_max });
        }
        self.change(Change::Put(put)).await
    }

    async fn delete(&self, id: &TaskId, expected: Revision) -> Result<(), StoreError> {
        self.change(Change::Delete(*id, expected)).await.map(drop)
    }

    async fn unfinished(
        &self,
        after: Option<TaskId>,
        max: usize,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.tide.check()?;
        let keys = self
            .db
            .range(record::unfinished_range(after))
            .keys()
            .take(max);
        keys.map(|key| record::unfinished_id(&key.map_err(record::unreadable)?))
            .collect()
    }

    async fn due(
        &self,
        until_ms: u64,
        after: Option<(u64, TaskId)>,
        max: usize,
    ) -> Result<Vec<(u64, TaskId)>, StoreError> {
        self.tide.check()?;
        let keys = self
            .db
            .range(record::due_range(after, until_ms))
            .keys()
            .take(max);
        keys.map(|key| record::due_of(&key.map_err(record::unreadable)?))
            .collect()
    }

    async fn close(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Close(reply)).await?;
        answer.await.unwrap_or_else(|_| Err(self.tide.stopped()))
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        // Without a sender the committer ends after what is queued; a bounded wait.
        self.orders = None;
        if let Some(committer) = self.committer.take()
            && committer.join().is_err()
        {
            tracing::error!("the committer of the task store panicked");
        }
    }
}
