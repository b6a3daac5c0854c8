//! The durable store of tasks, on redb or sled.
//!
//! Owns the folder it is given: its lock, its format, the database's files, and the promise that
//! what has been answered is on the disk. It must not know what a task is: bytes by id, each with a
//! revision, as `longshore-tasks` asks of every store.
//!
//! - `engine`: the databases; nobody else knows which one it is.
//! - `folder`: opening, and refusing what must not be opened.
//! - `regular`: opening files that may be pipes.
//! - `record`: keys and framing of everything kept.
//! - `orphan`: what a crash leaves of large values.
//! - `census`, `mark`: how what is lost or stale is noticed.
//! - `committer`: the one thread that writes, and mends after a failure.
//! - `tide`: what is written but not durable yet, and must not be read.
//! - `window`: where readers find the database.
//! - `archive`: a store that no server uses, for its operator: check, export, import, find.

mod archive;
mod census;
mod committer;
mod engine;
mod folder;
mod making;
mod mark;
mod orphan;
mod record;
mod regular;
mod tide;
mod window;

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use async_trait::async_trait;
use longshore_tasks::store::Revision;
use longshore_tasks::{Put, Store, StoreError, Stored, TaskId};
use tokio::sync::{mpsc, oneshot};

use committer::{Change, Desk, Order};
use engine::{Keys, Scrutiny};
use tide::Tide;
use window::{Glimpse, Window};

pub use archive::{Archive, ArchiveError, Summary, import, judge};
pub use engine::StoreEngine;
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
pub struct DiskStore {
    window: Arc<Window>,
    tide: Arc<Tide>,
    orders: Option<mpsc::Sender<Order>>,
    committer: Option<JoinHandle<()>>,
    in_use: AtomicBool,
    /// Held for as long as the database is open.
    _lock: folder::Lock,
}

impl fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore").finish_non_exhaustive()
    }
}

impl DiskStore {
    /// Opens the store in `dir`, made if it is not there, on this database. Blocks; with sled for
    /// seconds if the store is big and was not closed.
    pub fn open(dir: &Path, engine: StoreEngine) -> Result<Self, OpenError> {
        let folder::Opened {
            db,
            mark,
            census,
            closed,
            lock,
        } = folder::open(dir, engine, Scrutiny::IfSmall)?;
        mark.begin().map_err(|error| OpenError::io(dir, error))?;
        let (tide, window) = (Arc::new(Tide::default()), Arc::new(Window::default()));
        window.open(&db);
        let desk = Desk {
            db,
            engine,
            mark,
            census,
            tide: Arc::clone(&tide),
            window: Arc::clone(&window),
        };
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        let committer = committer::start(dir, desk, queue);
        Ok(Self {
            window,
            tide,
            orders: Some(orders),
            committer: Some(committer.map_err(|error| OpenError::io(dir, error))?),
            in_use: AtomicBool::new(!closed),
            _lock: lock,
        })
    }

    fn look(&self) -> Result<Glimpse, StoreError> {
        self.tide.check()?;
        self.window.look().ok_or_else(|| self.tide.stopped())
    }

    /// What a part of an index names, at most so many.
    fn page<T>(
        &self,
        keys: &Keys,
        max: usize,
        read: fn(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.look()?.db.scan(keys, &mut |key, _| {
            if found.len() == max {
                return Ok(ControlFlow::Break(()));
            }
            found.push(read(key)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
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
}

/// Reads go straight to the database on the caller's thread: cached they take microseconds, and
/// otherwise one short read of the page cache or the disk (18 µs at the median of a million tasks),
/// less than handing them to another thread would.
#[async_trait]
impl Store for DiskStore {
    async fn get(&self, id: &TaskId) -> Result<Option<Stored>, StoreError> {
        for _ in 0..READS_MAX {
            self.tide.durable(id).await?;
            let glimpse = self.look()?;
            let read = record::read(&*glimpse.db, id);
            // Only what was durable before or is by now may be shown.
            if self.tide.is_durable(id)?
                && self.window.still_shows(&glimpse)
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
        self.page(&record::unfinished_range(after), max, record::unfinished_id)
    }

    async fn due(
        &self,
        until_ms: u64,
        after: Option<(u64, TaskId)>,
        max: usize,
    ) -> Result<Vec<(u64, TaskId)>, StoreError> {
        self.page(&record::due_range(after, until_ms), max, record::due_of)
    }

    async fn begin(&self) -> Result<bool, StoreError> {
        Ok(self.in_use.swap(true, Ordering::Relaxed))
    }

    async fn close(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Close(reply)).await?;
        answer.await.unwrap_or_else(|_| Err(self.tide.stopped()))
    }
}

impl Drop for DiskStore {
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
