//! A store under fire: writes fail, are kept and denied, come late, and the process dies at any of
//! them. What it does is drawn from a seed, so that a schedule can be run again.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longshore_tasks::store::Revision;
use longshore_tasks::{MemoryStore, Put, Store, StoreError, Stored, TaskId};

/// Random numbers from a seed (xorshift).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        dice.roll(2);
        dice
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}

/// One process' end of the store. It dies with the process: nothing comes through any more.
pub(crate) struct Fire {
    disk: Arc<MemoryStore>,
    dice: Mutex<Dice>,
    /// One in so many writes goes wrong or comes late; 0: none does.
    pub(crate) wrong_in: AtomicUsize,
    /// Writes left until the process dies.
    pub(crate) fuse: AtomicUsize,
    dead: AtomicBool,
}

enum Fate {
    Good,
    Refused,
    KeptAndDenied,
    Late,
    Dead,
    KeptAndDead,
}

impl Fire {
    pub(crate) fn new(disk: &Arc<MemoryStore>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            disk: Arc::clone(disk),
            dice: Mutex::new(Dice::new(seed)),
            wrong_in: AtomicUsize::new(0),
            fuse: AtomicUsize::new(usize::MAX),
            dead: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    async fn alive(&self) {
        if self.is_dead() {
            pending::<()>().await;
        }
    }

    fn fate(&self) -> Fate {
        let mut dice = self.dice.lock().unwrap();
        if self.fuse.fetch_sub(1, Ordering::SeqCst) == 0 {
            self.die();
            return if dice.roll(2) == 0 {
                Fate::Dead
            } else {
                Fate::KeptAndDead
            };
        }
        let wrong_in = self.wrong_in.load(Ordering::SeqCst);
        if wrong_in == 0 || dice.roll(wrong_in) > 0 {
            return Fate::Good;
        }
        [Fate::Refused, Fate::KeptAndDenied, Fate::Late]
            .into_iter()
            .nth(dice.roll(3))
            .unwrap()
    }

    async fn change<T>(
        &self,
        change: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.alive().await;
        let denied = || Err(StoreError::Unavailable("told to fail".into()));
        match self.fate() {
            Fate::Good => change.await,
            Fate::Refused => denied(),
            Fate::KeptAndDenied => {
                change.await?;
                denied()
            }
            Fate::Late => {
                let naps = self.dice.lock().unwrap().roll(40);
                let early = self.dice.lock().unwrap().roll(2) == 0;
                if early {
                    let done = change.await;
                    self.nap(naps).await;
                    return done;
                }
                self.nap(naps).await;
                change.await
            }
            Fate::Dead => pending().await,
            Fate::KeptAndDead => {
                // It was kept, and nobody heard of it.
                let _ = change.await;
                pending().await
            }
        }
    }

    async fn nap(&self, naps: usize) {
        for _ in 0..naps {
            tokio::task::yield_now().await;
        }
        self.alive().await;
    }
}

#[async_trait]
impl Store for Fire {
    async fn get(&self, id: &TaskId) -> Result<Option<Stored>, StoreError> {
        self.alive().await;
        self.disk.get(id).await
    }

    async fn put(&self, put: Put) -> Result<Revision, StoreError> {
        self.change(self.disk.put(put)).await
    }

    async fn delete(&self, id: &TaskId, expected: Revision) -> Result<(), StoreError> {
        self.change(self.disk.delete(id, expected)).await
    }

    async fn unfinished(
        &self,
        after: Option<TaskId>,
        max: usize,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.alive().await;
        self.disk.unfinished(after, max).await
    }

    async fn due(
        &self,
        until_ms: u64,
        after: Option<(u64, TaskId)>,
        max: usize,
    ) -> Result<Vec<(u64, TaskId)>, StoreError> {
        self.alive().await;
        self.disk.due(until_ms, after, max).await
    }

    async fn begin(&self) -> Result<bool, StoreError> {
        self.alive().await;
        self.disk.begin().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.alive().await;
        self.disk.close().await
    }
}
