//! What the engine asks of a store, its in-memory twin, and the suite every store passes.
//!
//! A store keeps opaque bytes by id, each with a revision. It knows nothing of statuses or rules:
//! what is unfinished and when a task is due it is told with every write.

mod memory;
#[cfg(any(test, feature = "suite"))]
pub mod suite;

use async_trait::async_trait;

pub use memory::MemoryStore;

use crate::id::TaskId;

/// Counts the writes of one task; the first is 1.
pub type Revision = u64;

/// A task as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its present revision.
    pub revision: Revision,
    /// What was put.
    pub bytes: Vec<u8>,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Whose.
    pub id: TaskId,
    /// The revision it is based on; `None` if the task must not exist yet.
    pub expected: Option<Revision>,
    /// Found by [`Store::unfinished`] from now on, or not.
    pub unfinished: bool,
    /// Found by [`Store::due`] from this time on, in milliseconds since the epoch; `None` is never.
    pub due_ms: Option<u64>,
    /// What to keep.
    pub bytes: Vec<u8>,
}

/// Why a store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Someone else wrote first: read again and decide again.
    #[error("the task has another revision than expected")]
    Conflict,
    /// The store cannot work now; whether a write was kept is unknown.
    #[error("the task store is unavailable: {0}")]
    Unavailable(String),
    /// What was kept cannot be read back.
    #[error("the task store is damaged: {0}")]
    Corrupt(String),
    /// More than a store can keep in one value.
    #[error("{bytes} bytes are too many for the task store, at most {bytes_max}")]
    TooLarge {
        /// How many were given.
        bytes: usize,
        /// How many it takes.
        bytes_max: usize,
    },
}

/// A durable map from ids to bytes.
///
/// Whatever a call has returned is durable, and what a read shows was durable before it was shown.
/// A call whose future is dropped may or may not take effect, but never by half.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The task as it is kept; `None` if there is none.
    async fn get(&self, id: &TaskId) -> Result<Option<Stored>, StoreError>;

    /// Writes all of `put` or nothing, and returns the new revision. `Conflict` if the present
    /// revision is another than expected.
    async fn put(&self, put: Put) -> Result<Revision, StoreError>;

    /// Removes the task. `Conflict` if its revision is another than expected, or it is gone.
    async fn delete(&self, id: &TaskId, expected: Revision) -> Result<(), StoreError>;

    /// At most `max` unfinished tasks with ids above `after`, in the order of ids.
    async fn unfinished(
        &self,
        after: Option<TaskId>,
        max: usize,
    ) -> Result<Vec<TaskId>, StoreError>;

    /// At most `max` tasks due at `until_ms` or before and above `after`, in the order of
    /// (due time, id).
    async fn due(
        &self,
        until_ms: u64,
        after: Option<(u64, TaskId)>,
        max: usize,
    ) -> Result<Vec<(u64, TaskId)>, StoreError>;

    /// A server begins to use the store: whether the one before ended under it, instead of closing
    /// it.
    async fn begin(&self) -> Result<bool, StoreError>;

    /// Waits until everything accepted is durable and closes the store: later calls are refused.
    /// (The in-memory twin stays open, so that a test may start another engine on it.)
    async fn close(&self) -> Result<(), StoreError>;
}
