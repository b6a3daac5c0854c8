//! The async driver: load, decide, make durable, act, answer.
//!
//! Every transition is one write with an expected revision; who writes first wins, the other reads
//! again and decides again. Nothing is acted on or shown before it is durable. A run in memory is
//! driven by one tokio task and never told *what* changed, only to look at the durable state, so
//! no message can be lost or come in the wrong order.
//!
//! - `commands`: what callers ask for.
//! - `drive`: one run, from its start to the end of its task or until it is let go.
//! - `insist`: patience with a store that fails.
//! - `keys`: keys of questions, when a run starts over.
//! - `live`: which tasks have a run in memory.
//! - `open`: how many unfinished tasks each principal has.
//! - `recovery`: unfinished tasks go on after a start.
//! - `sweep`: tasks whose time is over.
//! - `versions`: which versions of plugins tasks need.
//! - `waiting`: which runs wait in memory for answers.
//!
//! Must not know what a payload says or how a run runs.

mod commands;
mod drive;
mod insist;
mod keys;
mod live;
mod open;
mod recovery;
mod sweep;
mod versions;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::codec::{self, CodecError};
use crate::decide::{Command, Effect, Moment, Patience, decide};
use crate::id::{Ids, TaskId};
use crate::model::Call;
use crate::run::{Failures, Reason, Runner};
use crate::state::{Illegal, Outcome, Task, apply};
use crate::store::{Put, Revision, Store, StoreError};
use live::Live;
use open::Open;
use waiting::Waiting;

/// How often a decision is made anew because someone else wrote first. One task has few writers: its
/// run, its owner, the sweep; only a storm of answers comes near.
const CONFLICTS_MAX: usize = 64;

/// How many of these come at once; after that there is a wait between, in milliseconds. A group commit takes a few.
const CONFLICTS_AT_ONCE: usize = 8;
const CONFLICT_WAIT_MS: u64 = 5;

/// How long a shutdown waits, after the drain time, for writes under way, in milliseconds. A write
/// takes about one; a store that takes longer is lost anyway.
const LAST_WRITES_MS: u64 = 2_000;

/// Changes that a listener may lag behind. One that lags further looks at all its tasks anyway.
const CHANGES_MAX: usize = 1_024;

/// How many ids of unfinished tasks are read at once: 160 KiB. Their tasks are read in between, which takes a store's cache from
/// the index; with shorter pages coming back to it took a quarter of the start with 100,000 tasks.
const ID_PAGE: usize = 8_192;

/// What the engine stands on.
#[derive(Clone)]
pub struct Ports {
    /// Where tasks are kept.
    pub store: Arc<dyn Store>,
    /// Who runs calls.
    pub runner: Arc<dyn Runner>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who words the engine's own failures.
    pub failures: Arc<dyn Failures>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// What an operator may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long an ended task is kept at least, in milliseconds.
    pub keep_ms: u64,
    /// How long a run that asked stays in memory for its answers, in milliseconds; 0: not at all.
    pub linger_ms: u64,
    /// How many runs may linger so at once; for one more the oldest is dropped.
    pub lingering_max: usize,
    /// What runs that wait for answers may hold in memory together, in bytes. The oldest of those that linger are dropped for a
    /// newer one; a pinned run that finds no room even so fails. Pinned runs of one plugin hold half of it at most.
    pub waiting_bytes_max: usize,
    /// What the calls of running tasks may take in memory together, in bytes; a call beyond is refused as busy. Tasks that
    /// wait without a run take none.
    pub running_bytes_max: usize,
    /// How long a run may go on after a wish to cancel, in milliseconds.
    pub grace_ms: u64,
    /// How often expired tasks are looked for, in milliseconds.
    pub sweep_every_ms: u64,
    /// How many expired tasks are read at once.
    pub sweep_batch: usize,
    /// How many unfinished tasks are read at once at the start.
    pub recovery_parallel: u32,
    /// After how many crashes of the server under its runs, without getting on in between, a task is
    /// given up.
    pub patience: Patience,
    /// How many unfinished tasks one principal may have; more are refused.
    pub open_per_principal_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keep_ms: 600_000,
            linger_ms: 30_000,
            // They hold slots that calls are waiting for; a Python guest holds a megabyte too.
            lingering_max: 128,
            // A guest in Rust counts 1.3 MiB.
            waiting_bytes_max: 512 << 20,
            // Some ten thousand tasks of usual size.
            running_bytes_max: 256 << 20,
            grace_ms: 1_000,
            sweep_every_ms: 500,
            sweep_batch: 256,
            recovery_parallel: 32,
            patience: Patience {
                crashes_max: 5,
                at_least_ms: 60_000,
            },
            // Each takes some kilobytes of disk, and memory only while it runs.
            open_per_principal_max: 1 << 17,
        }
    }
}

/// Why the engine did not do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No such task, or another principal's: the answer is the same.
    #[error("no such task")]
    NotFound,
    /// No new task is taken any more.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The running tasks take all the memory they may; nothing was made.
    #[error("too many tasks are running")]
    Busy,
    /// The principal has all the unfinished tasks it may; nothing was made.
    #[error("the principal has {open_max} unfinished tasks, more are not taken")]
    Full {
        /// How many it may have.
        open_max: usize,
    },
    /// Too many writers at once; nothing was changed.
    #[error("the task is changed by too many at once")]
    Contended,
    /// The store failed; whether the change was kept is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the store holds is no task of this program.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A run broke its contract.
    #[error(transparent)]
    Illegal(#[from] Illegal),
    /// The operating system has no random numbers for a new id.
    #[error("no random numbers for a task id: {0}")]
    Entropy(String),
}

/// The engine. A clone is another handle of the same.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

struct Inner {
    ports: Ports,
    settings: Settings,
    ids: Ids,
    live: Arc<Live>,
    open: Open,
    /// Places for runs that wait in memory.
    waiting: Arc<Waiting>,
    /// Which tasks have changed, for those who listen.
    changes: broadcast::Sender<TaskId>,
    /// Everything spawned: runs, commands under way, the sweep.
    spawned: TaskTracker,
    /// No new tasks; runs that can be started again are dropped.
    draining: CancellationToken,
    /// Pinned runs are dropped too.
    drained: CancellationToken,
}

impl Engine {
    /// Starts the engine: when it returns, every unfinished task in the store has been taken up
    /// again. Fails if the store cannot be read.
    pub async fn start(ports: Ports, settings: Settings) -> Result<Self, EngineError> {
        let inner = Arc::new(Inner {
            ports,
            waiting: Waiting::new(settings.lingering_max, settings.waiting_bytes_max),
            open: Open::new(settings.open_per_principal_max),
            settings,
            ids: Ids::default(),
            live: Arc::default(),
            changes: broadcast::channel(CHANGES_MAX).0,
            spawned: TaskTracker::new(),
            draining: CancellationToken::new(),
            drained: CancellationToken::new(),
        });
        if let Err(error) = recovery::recover(&inner).await {
            inner.draining.cancel();
            inner.drained.cancel();
            return Err(error);
        }
        inner.spawned.spawn(sweep::sweep(Arc::clone(&inner)));
        Ok(Self { inner })
    }

    /// Tells which tasks look different to their owners, each after its change is durable. It says
    /// only that there is something to see; a listener that lags behind loses the oldest.
    pub fn changes(&self) -> broadcast::Receiver<TaskId> {
        self.inner.changes.subscribe()
    }

    /// Whether the store can be read. Changes nothing.
    pub async fn probe(&self) -> Result<(), EngineError> {
        let nobody = TaskId::from_bytes([0; TaskId::BYTES]);
        self.inner.ports.store.get(&nobody).await?;
        Ok(())
    }

    /// Stops, which is no cancellation: new tasks are refused, runs that can be started again are
    /// dropped at once, pinned ones after `drain`, and every task stays as it is stored. Then the
    /// store is closed. Dropping the future leaves the rest undone, but nothing stored by half.
    pub async fn shutdown(&self, drain: Duration) {
        let inner = &self.inner;
        let drain_ms = u64::try_from(drain.as_millis()).unwrap_or(u64::MAX);
        inner.draining.cancel();
        inner.spawned.close();
        inner.settle(drain_ms).await;
        inner.drained.cancel();
        inner.settle(LAST_WRITES_MS).await;
        if let Err(error) = inner.ports.store.close().await {
            tracing::error!(%error, "the task store did not close cleanly");
        }
    }
}

impl Inner {
    fn now_ms(&self) -> u64 {
        self.ports.clock.now_ms()
    }

    /// Waits until nothing spawned is left, at most so long.
    async fn settle(&self, at_most_ms: u64) {
        let until_ms = self.now_ms().saturating_add(at_most_ms);
        tokio::select! {
            () = self.spawned.wait() => {}
            () = self.ports.clock.sleep_until(until_ms) => {}
        }
    }

    async fn load(&self, id: &TaskId) -> Result<(Task, Revision), EngineError> {
        let stored = self
            .ports
            .store
            .get(id)
            .await?
            .ok_or(EngineError::NotFound)?;
        Ok((codec::decode(&stored.bytes)?, stored.revision))
    }

    async fn save(&self, task: &Task, expected: Option<Revision>) -> Result<(), EngineError> {
        let bytes = codec::encode(task)?;
        let unfinished = task.outcome.is_none();
        let due_ms = task.expires_ms;
        let put = Put {
            id: task.id,
            expected,
            unfinished,
            due_ms,
            bytes,
        };
        let saved = self.ports.store.put(put).await;
        // After another error it may have been kept all the same.
        if saved != Err(StoreError::Conflict) {
            self.tell(&task.id);
        }
        saved?;
        Ok(())
    }

    /// Tells those who listen that there is something new to see of a task.
    fn tell(&self, id: &TaskId) {
        // Without listeners nobody wants to know.
        let _ = self.changes.send(*id);
    }

    /// One command, durable and acted on when it returns; the task as it is then. It must run to
    /// its end (spawn it where a caller may go away): between write and effect it must not stop.
    async fn transition(
        self: &Arc<Self>,
        id: &TaskId,
        command: impl Fn(&Task) -> Command + Send + Sync,
    ) -> Result<Task, EngineError> {
        for conflicts in 0..CONFLICTS_MAX {
            self.give_way(conflicts).await;
            let (task, revision) = self.load(id).await?;
            let at = Moment {
                now_ms: self.now_ms(),
                keep_ms: self.settings.keep_ms,
            };
            let command = command(&task);
            let expires = matches!(command, Command::Expire { .. });
            let decision = decide(&task, command, at);
            let done = match decision.event {
                None => Ok(task),
                Some(event) => {
                    let task = apply(task, event, at.now_ms)?;
                    let saved = self.save(&task, Some(revision)).await;
                    if saved.is_ok() && task.outcome.is_some() {
                        self.open.remove(&task.call.principal);
                        if expires {
                            tracing::info!(task = %id, tool = %task.call.tool, "a task ended at its time to live");
                        }
                    }
                    saved.map(|()| task)
                }
            };
            match done {
                Ok(task) => return self.act(task, revision, decision.effect).await,
                Err(EngineError::Store(StoreError::Conflict)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Contended)
    }

    /// Lets the other writer end: a store may refuse a write before the one it conflicts with can be read.
    async fn give_way(&self, conflicts: usize) {
        match conflicts {
            0 => {}
            1..CONFLICTS_AT_ONCE => tokio::task::yield_now().await,
            _ => {
                let until_ms = self.now_ms().saturating_add(CONFLICT_WAIT_MS);
                self.ports.clock.sleep_until(until_ms).await;
            }
        }
    }

    async fn act(
        self: &Arc<Self>,
        task: Task,
        revision: Revision,
        effect: Effect,
    ) -> Result<Task, EngineError> {
        match effect {
            Effect::Rest => {}
            Effect::Wake => self.live.wake(&task.id),
            Effect::Attend => self.attend(task.id, None),
            Effect::Delete => self.ports.store.delete(&task.id, revision).await?,
        }
        Ok(task)
    }

    /// The end of a task of `call` by the engine's own word.
    fn failure(&self, reason: Reason, call: &Call) -> Command {
        let error = self.ports.failures.error(reason, call);
        let message = self.ports.failures.message(&error);
        Command::Close {
            outcome: Outcome::Failed(error),
            message,
        }
    }
}
