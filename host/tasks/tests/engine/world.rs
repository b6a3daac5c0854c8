//! What the tests share: a store, scripts and a clock that outlive the engines started on them.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longshore_tasks::store::Revision;
use longshore_tasks::{
    Birth, Call, Clock, Engine, EngineError, Failures, ManualClock, MemoryStore, OnCrash, Ports,
    Principal, Put, Reason, Settings, Status, Store, StoreError, Stored, TaskId, TaskView,
};
use tokio::sync::Semaphore;

use crate::script::Scripts;

/// No condition takes so long, unless it never comes true.
const PATIENCE: Duration = Duration::from_secs(10);

/// More writes at once than any test makes.
const PERMITS: usize = 10_000;

pub(crate) struct World {
    pub(crate) store: Arc<Shelf>,
    /// What the last engine holds of the store.
    cable: Mutex<Arc<Cable>>,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) clock: ManualClock,
    pub(crate) settings: Settings,
}

/// The in-memory store, with a count of writes, faults on demand, and a gate before writes.
pub(crate) struct Shelf {
    inner: MemoryStore,
    pub(crate) writes: AtomicUsize,
    /// So many writes fail from now on.
    pub(crate) faults: AtomicUsize,
    /// A write needs a permit.
    pub(crate) gate: Semaphore,
}

/// An engine's end of the store. Cut, nothing comes through any more, as after a crash.
pub(crate) struct Cable {
    shelf: Arc<Shelf>,
    cut: AtomicBool,
}

pub(crate) struct Words;

impl Failures for Words {
    fn error(&self, reason: Reason, call: &Call) -> String {
        format!("{reason} in {}", call.plugin)
    }

    fn message(&self, error: &str) -> Option<String> {
        Some(format!("because: {error}"))
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let store = Shelf {
            inner: MemoryStore::default(),
            writes: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
            gate: Semaphore::new(PERMITS),
        };
        let store = Arc::new(store);
        Self {
            cable: Mutex::new(Cable::to(&store)),
            store,
            scripts: Arc::new(Scripts::new()),
            clock: ManualClock::new(1_000_000),
            settings: Settings::default(),
        }
    }

    pub(crate) fn lingering(linger_ms: u64) -> Self {
        let mut world = Self::new();
        world.settings.linger_ms = linger_ms;
        world
    }

    pub(crate) async fn engine(&self) -> Engine {
        self.engine_on(Arc::new(self.clock.clone())).await
    }

    pub(crate) async fn engine_on(&self, clock: Arc<dyn Clock>) -> Engine {
        let cable = Cable::to(&self.store);
        *self.cable.lock().unwrap() = Arc::clone(&cable);
        let ports = Ports {
            store: cable as Arc<dyn Store>,
            runner: Arc::clone(&self.scripts) as _,
            clock,
            failures: Arc::new(Words),
        };
        Engine::start(ports, self.settings.clone()).await.unwrap()
    }

    /// An engine where the last one was not shut down. What the last one still does reaches nobody.
    pub(crate) async fn engine_after_a_crash(&self, crashed: Engine) -> Engine {
        self.cable.lock().unwrap().cut.store(true, Ordering::SeqCst);
        drop(crashed);
        self.engine().await
    }

    pub(crate) fn writes(&self) -> usize {
        self.store.writes.load(Ordering::SeqCst)
    }

    /// Lets no write through until `open_store`.
    pub(crate) fn shut_store(&self) {
        self.store.gate.forget_permits(PERMITS);
    }

    pub(crate) fn open_store(&self) {
        self.store.gate.add_permits(PERMITS);
    }

    /// Waits until so many runs are in memory.
    pub(crate) async fn until_in_memory(&self, runs: usize) {
        until("the runs in memory", async || {
            self.scripts.in_memory() == runs
        })
        .await;
    }
}

/// Waits for a condition; bounded.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// Lets everything that is ready run, so that what did not happen by then would not have.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn owner() -> Principal {
    Principal::new("owner")
}

pub(crate) fn call(script: &str) -> Call {
    Call {
        principal: owner(),
        plugin: "scripts".into(),
        version: "v1".into(),
        tool: script.into(),
        on_crash: OnCrash::Resume,
        body: vec![1, 2, 3],
    }
}

pub(crate) fn birth() -> Birth {
    Birth {
        poll_interval_ms: 500,
        ttl_ms: Some(3_600_000),
        pinned: false,
    }
}

pub(crate) async fn create(engine: &Engine, script: &str) -> TaskId {
    engine.create(call(script), birth()).await.unwrap().id
}

pub(crate) async fn view(engine: &Engine, id: &TaskId) -> TaskView {
    engine.get(id, &owner()).await.unwrap()
}

/// Waits for the status, and returns the task then.
pub(crate) async fn reach(engine: &Engine, id: &TaskId, status: Status) -> TaskView {
    reach_view(engine, id, |view| view.status == status).await
}

/// Waits for the question of this key.
pub(crate) async fn reach_question(engine: &Engine, id: &TaskId, key: &str) {
    reach_view(engine, id, |view| keys(view) == [key]).await;
}

async fn reach_view(engine: &Engine, id: &TaskId, wanted: impl Fn(&TaskView) -> bool) -> TaskView {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            let view = view(engine, id).await;
            if wanted(&view) {
                return view;
            }
            tokio::task::yield_now().await;
        }
    });
    match waited.await {
        Ok(view) => view,
        Err(_) => panic!("waited in vain: {:?}", view(engine, id).await),
    }
}

pub(crate) async fn answer(engine: &Engine, id: &TaskId, pairs: &[(&str, &str)]) {
    let answers = pairs
        .iter()
        .map(|(key, answer)| ((*key).into(), (*answer).into()))
        .collect();
    engine.answer(id, &owner(), answers).await.unwrap();
}

pub(crate) async fn cancel(engine: &Engine, id: &TaskId) {
    engine.cancel(id, &owner()).await.unwrap();
}

pub(crate) fn keys(view: &TaskView) -> Vec<&str> {
    view.questions
        .iter()
        .map(|question| question.key.as_str())
        .collect()
}

pub(crate) fn is_not_found<T>(result: &Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::NotFound))
}

#[async_trait]
impl Store for Shelf {
    async fn get(&self, id: &TaskId) -> Result<Option<Stored>, StoreError> {
        self.inner.get(id).await
    }

    async fn put(&self, put: Put) -> Result<Revision, StoreError> {
        let _permit = self.gate.acquire().await.unwrap();
        let fault = |left: usize| left.checked_sub(1);
        if self
            .faults
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fault)
            .is_ok()
        {
            return Err(StoreError::Unavailable("told to fail".into()));
        }
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.inner.put(put).await
    }

    async fn delete(&self, id: &TaskId, expected: Revision) -> Result<(), StoreError> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.inner.delete(id, expected).await
    }

    async fn unfinished(
        &self,
        after: Option<TaskId>,
        max: usize,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.inner.unfinished(after, max).await
    }

    async fn due(
        &self,
        until_ms: u64,
        after: Option<(u64, TaskId)>,
        max: usize,
    ) -> Result<Vec<(u64, TaskId)>, StoreError> {
        self.inner.due(until_ms, after, max).await
    }

    async fn begin(&self) -> Result<bool, StoreError> {
        self.inner.begin().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.inner.close().await
    }
}

impl Cable {
    fn to(shelf: &Arc<Shelf>) -> Arc<Self> {
        Arc::new(Self {
            shelf: Arc::clone(shelf),
            cut: AtomicBool::new(false),
        })
    }

    async fn hold(&self) -> &Shelf {
        if self.cut.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
        &self.shelf
    }
}

#[async_trait]
impl Store for Cable {
    async fn get(&self, id: &TaskId) -> Result<Option<Stored>, StoreError> {
        self.hold().await.get(id).await
    }

    async fn put(&self, put: Put) -> Result<Revision, StoreError> {
        self.hold().await.put(put).await
    }

    async fn delete(&self, id: &TaskId, expected: Revision) -> Result<(), StoreError> {
        self.hold().await.delete(id, expected).await
    }

    async fn unfinished(
        &self,
        after: Option<TaskId>,
        max: usize,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.hold().await.unfinished(after, max).await
    }

    async fn due(
        &self,
        until_ms: u64,
        after: Option<(u64, TaskId)>,
        max: usize,
    ) -> Result<Vec<(u64, TaskId)>, StoreError> {
        self.hold().await.due(until_ms, after, max).await
    }

    async fn begin(&self) -> Result<bool, StoreError> {
        self.hold().await.begin().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.hold().await.close().await
    }
}
