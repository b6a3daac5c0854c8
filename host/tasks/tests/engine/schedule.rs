//! Thousands of schedules on a clock moved by hand: cancels, answers, completions, expiries, stops
//! and crashes in any order, over a store under fire. Every acknowledged fact must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longshore_tasks::{
    Birth, Engine, EngineError, ManualClock, MemoryStore, Patience, Ports, Settings, Status,
    Store as _, TaskId, TaskView,
};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use crate::fire::{Dice, Fire};
use crate::script::Scripts;
use crate::world::{Words, call, owner};

const TTL_MS: u64 = 20_000;
const KEEP_MS: u64 = 5_000;
const GRACE_MS: u64 = 1_000;

const SCRIPTS: &[&str] = &[
    "finish",
    "gate finish",
    "ask:a finish",
    "gate ask:a,b gate ask:c finish",
    "name:n ask:a effect finish",
    "effect gate finish",
    "effect pin:a gate finish",
    "say:x wait yield",
    "ask:a wait finish",
    "hang",
    "gate fail",
];

/// What was acknowledged of one task.
#[derive(Debug, Default)]
struct Facts {
    created_ms: u64,
    last: Option<TaskView>,
    /// Keys of which an answer was acknowledged while they were asked.
    spent: BTreeSet<String>,
    gone: bool,
    /// A cancel was asked for; acknowledged or not, it may have been kept, and then no answer counts.
    wish_sent: bool,
    wished_ms: Option<u64>,
}

type Known = Arc<Mutex<BTreeMap<TaskId, Facts>>>;

struct Schedule {
    seed: u64,
    dice: Dice,
    disk: Arc<MemoryStore>,
    fire: Arc<Fire>,
    scripts: Arc<Scripts>,
    clock: ManualClock,
    settings: Settings,
    engine: Engine,
    known: Known,
    changes: broadcast::Receiver<TaskId>,
    /// The tasks as they looked when a change of them was told last.
    heard: BTreeMap<TaskId, Option<TaskView>>,
    /// Calls on their way.
    calls: JoinSet<()>,
    lives: u64,
}

impl Schedule {
    async fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let disk = Arc::new(MemoryStore::default());
        let fire = Fire::new(&disk, seed);
        let scripts = Arc::new(Scripts::new());
        let clock = ManualClock::new(1_000_000);
        let settings = Settings {
            keep_ms: KEEP_MS,
            linger_ms: [0, 2_000][dice.roll(2)],
            lingering_max: 2,
            grace_ms: GRACE_MS,
            patience: Patience {
                crashes_max: 1_000,
                at_least_ms: 0,
            },
            ..Settings::default()
        };
        let engine = start(&fire, &scripts, &clock, &settings).await;
        Self {
            seed,
            dice,
            disk,
            fire,
            scripts,
            clock,
            settings,
            changes: engine.changes(),
            heard: BTreeMap::new(),
            engine,
            known: Known::default(),
            calls: JoinSet::new(),
            lives: 1,
        }
    }

    fn some_task(&mut self) -> Option<TaskId> {
        let known = self.known.lock().unwrap();
        let count = known.len();
        let place = self.dice.roll(count.max(1));
        known.keys().nth(place).copied()
    }

    async fn act(&mut self) {
        match self.dice.roll(20) {
            0..4 => self.create(),
            4..8 => self.answer(),
            8..10 => self.cancel(),
            10 => self.clock.advance_ms([1, 500, 2_500][self.dice.roll(3)]),
            11 => self.clock.advance_ms(TTL_MS / 2),
            12 => drop(self.scripts.gate.send_replace(true)),
            13 => drop(self.scripts.gate.send_replace(false)),
            14 => self
                .fire
                .wrong_in
                .store([0, 2, 6][self.dice.roll(3)], Ordering::SeqCst),
            15 => self.fire.fuse.store(self.dice.roll(4), Ordering::SeqCst),
            16 => self.stop().await,
            17 => self.fire.die(),
            _ => self.look(),
        }
        for _ in 0..self.dice.roll(12) {
            tokio::task::yield_now().await;
        }
        if self.fire.is_dead() {
            self.start_again().await;
        }
        self.hear().await;
    }

    /// Looks at what is told to have changed, as a listener does.
    async fn hear(&mut self) {
        while let Ok(id) = self.changes.try_recv() {
            let view = self.engine.get(&id, &owner()).await.ok();
            self.heard.insert(id, view);
        }
    }

    /// What was told and what a poll says are the same.
    async fn compare_heard(&mut self) {
        self.hear().await;
        for (id, heard) in &self.heard {
            let polled = self.engine.get(id, &owner()).await.ok();
            // That a task is gone is not told.
            if polled.is_some() {
                assert_eq!(&polled, heard, "seed {}: {id} changed unheard", self.seed);
            }
        }
    }

    fn create(&mut self) {
        let script = SCRIPTS[self.dice.roll(SCRIPTS.len())];
        let birth = Birth {
            poll_interval_ms: 500,
            ttl_ms: Some(TTL_MS),
            pinned: false,
        };
        let (engine, known) = (self.engine.clone(), Arc::clone(&self.known));
        self.calls.spawn(async move {
            if let Ok(view) = engine.create(call(script), birth).await {
                let facts = Facts {
                    created_ms: view.created_ms,
                    ..Facts::default()
                };
                known.lock().unwrap().insert(view.id, facts);
            }
        });
    }

    fn answer(&mut self) {
        let Some(id) = self.some_task() else { return };
        let (engine, known) = (self.engine.clone(), Arc::clone(&self.known));
        let keys: Vec<&str> = ["a", "b", "c", "nonsense"]
            .into_iter()
            .filter(|_| self.dice.roll(3) > 0)
            .collect();
        self.calls.spawn(async move {
            let Ok(before) = engine.get(&id, &owner()).await else {
                return;
            };
            let answers = keys.iter().map(|key| ((*key).to_owned(), "1".to_owned()));
            if engine
                .answer(&id, &owner(), answers.collect())
                .await
                .is_ok()
            {
                let mut known = known.lock().unwrap();
                let spent = &mut known.get_mut(&id).unwrap().spent;
                let asked = before.questions.iter().map(|question| question.key.clone());
                spent.extend(asked.filter(|key| keys.contains(&key.as_str())));
            }
        });
    }

    fn cancel(&mut self) {
        let Some(id) = self.some_task() else { return };
        let (engine, known) = (self.engine.clone(), Arc::clone(&self.known));
        let now_ms = longshore_tasks::Clock::now_ms(&self.clock);
        known.lock().unwrap().get_mut(&id).unwrap().wish_sent = true;
        self.calls.spawn(async move {
            if engine.cancel(&id, &owner()).await.is_ok() {
                let mut known = known.lock().unwrap();
                known.get_mut(&id).unwrap().wished_ms.get_or_insert(now_ms);
            }
        });
    }

    fn look(&mut self) {
        let Some(id) = self.some_task() else { return };
        let looker = self.looker(id);
        self.calls.spawn(looker);
    }

    /// Looks at the task and compares it with what is known.
    fn looker(&self, id: TaskId) -> impl Future<Output = ()> + Send + 'static {
        let (engine, known, seed) = (self.engine.clone(), Arc::clone(&self.known), self.seed);
        let clock = self.clock.clone();
        async move {
            // Facts known before the look must show in it; later ones may.
            let (spent, last) = {
                let known = known.lock().unwrap();
                (known[&id].spent.clone(), known[&id].last.clone())
            };
            let seen = engine.get(&id, &owner()).await;
            let now_ms = longshore_tasks::Clock::now_ms(&clock);
            let mut known = known.lock().unwrap();
            let facts = known.get_mut(&id).unwrap();
            let view = match seen {
                Ok(view) => view,
                Err(EngineError::NotFound) => {
                    let due_ms = facts.created_ms + TTL_MS;
                    assert!(now_ms >= due_ms, "seed {seed}: {id} is lost: {facts:?}");
                    facts.gone = true;
                    return;
                }
                Err(error) => panic!("seed {seed}: {id} cannot be read: {error}"),
            };
            // Another look may have been quicker; but what is gone has ended.
            let back = facts.gone && !view.status.is_terminal();
            assert!(!back, "seed {seed}: {id} is back: {view:?}");
            for question in &view.questions {
                assert!(
                    facts.wish_sent || !spent.contains(&question.key),
                    "seed {seed}: the answer to {} is lost: {view:?}",
                    question.key
                );
            }
            if let Some(last) = last {
                assert!(
                    view.updated_ms >= last.updated_ms,
                    "seed {seed}: back in time"
                );
                if last.status.is_terminal() {
                    assert_eq!(view, last, "seed {seed}: terminal is final");
                }
            }
            if facts
                .last
                .as_ref()
                .is_none_or(|last| last.updated_ms <= view.updated_ms)
            {
                facts.last = Some(view);
            }
        }
    }

    async fn stop(&mut self) {
        let stopping = {
            let engine = self.engine.clone();
            tokio::spawn(async move { engine.shutdown(Duration::from_millis(500)).await })
        };
        for _ in 0..200 {
            if stopping.is_finished() || self.fire.is_dead() {
                break;
            }
            self.clock.advance_ms(50);
            tokio::task::yield_now().await;
        }
        self.fire.die();
        self.start_again().await;
    }

    /// The process is dead; so are the calls on their way, unless they were answered.
    async fn start_again(&mut self) {
        self.calls.abort_all();
        while let Some(done) = self.calls.join_next().await {
            if let Err(error) = done {
                assert!(error.is_cancelled(), "seed {}: {error}", self.seed);
            }
        }
        self.lives += 1;
        self.fire = Fire::new(&self.disk, self.seed.wrapping_add(self.lives << 32));
        self.engine = start(&self.fire, &self.scripts, &self.clock, &self.settings).await;
        self.changes = self.engine.changes();
        // Who connects anew looks at all its tasks first.
        let ids: Vec<TaskId> = self.known.lock().unwrap().keys().copied().collect();
        self.heard.clear();
        for id in ids {
            let view = self.engine.get(&id, &owner()).await.ok();
            self.heard.insert(id, view);
        }
        self.look_at_all().await;
    }

    async fn look_at_all(&mut self) {
        let ids: Vec<TaskId> = self.known.lock().unwrap().keys().copied().collect();
        for id in ids {
            self.looker(id).await;
        }
    }

    /// Peace: all calls are answered, and time goes on until every wish is granted.
    async fn settle(&mut self, for_ms: u64) {
        self.fire.wrong_in.store(0, Ordering::SeqCst);
        self.fire.fuse.store(usize::MAX, Ordering::SeqCst);
        let step_ms = 250;
        for _ in 0..for_ms / step_ms {
            for _ in 0..15 {
                tokio::task::yield_now().await;
            }
            self.clock.advance_ms(step_ms);
        }
        for _ in 0..60 {
            tokio::task::yield_now().await;
        }
        while let Some(done) = self.calls.try_join_next() {
            done.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        }
        assert!(self.calls.is_empty(), "seed {}: a call hangs", self.seed);
    }

    async fn finish(&mut self) {
        let seed = self.seed;
        // Longer than a store that fails is waited for, and the grace period on top.
        self.settle(3_500).await;
        self.look_at_all().await;
        self.compare_heard().await;
        for (id, facts) in self.known.lock().unwrap().iter() {
            let Some(last) = &facts.last else { continue };
            if facts.wished_ms.is_some() {
                assert!(
                    facts.gone || last.status.is_terminal(),
                    "seed {seed}: {id} was cancelled: {facts:?}"
                );
            }
        }
        // In the end every task ends, and is gone.
        self.settle(TTL_MS + 1_000).await;
        self.look_at_all().await;
        self.compare_heard().await;
        for (id, facts) in self.known.lock().unwrap().iter() {
            let ended = facts.gone
                || facts
                    .last
                    .as_ref()
                    .is_none_or(|last| last.status.is_terminal());
            assert!(ended, "seed {seed}: {id} outlived its time: {facts:?}");
        }
        self.settle(TTL_MS + KEEP_MS + 1_000).await;
        let unfinished = self.disk.unfinished(None, 10).await.unwrap();
        let left = self.disk.due(u64::MAX, None, 10).await.unwrap();
        assert!(
            unfinished.is_empty() && left.is_empty(),
            "seed {seed}: something is left"
        );
        let effects = self.scripts.effects_of_each();
        assert!(
            effects.values().all(|count| *count == 1),
            "seed {seed}: an effect was doubled: {effects:?}"
        );
    }
}

async fn start(
    fire: &Arc<Fire>,
    scripts: &Arc<Scripts>,
    clock: &ManualClock,
    settings: &Settings,
) -> Engine {
    let ports = Ports {
        store: Arc::clone(fire) as _,
        runner: Arc::clone(scripts) as _,
        clock: Arc::new(clock.clone()),
        failures: Arc::new(Words),
    };
    Engine::start(ports, settings.clone()).await.unwrap()
}

fn run(seeds: std::ops::Range<u64>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for seed in seeds {
        let local = async {
            let mut schedule = Schedule::new(seed).await;
            for _ in 0..30 {
                schedule.act().await;
            }
            schedule.finish().await;
            assert!(matches!(schedule.lives, 1..), "seed {seed}");
        };
        runtime.block_on(local);
    }
}

#[test]
fn acknowledged_facts_hold_on_any_schedule() {
    run(0..2_000);
}

#[test]
fn statuses_of_the_wire_are_all_reached() {
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for seed in 0..40 {
        runtime.block_on(async {
            let mut schedule = Schedule::new(seed).await;
            for _ in 0..30 {
                schedule.act().await;
                schedule.look_at_all().await;
                for facts in schedule.known.lock().unwrap().values() {
                    let status = facts.last.as_ref().map(|last| last.status);
                    seen.lock().unwrap().insert(format!("{status:?}"));
                }
            }
        });
    }
    for status in [
        Status::Working,
        Status::InputRequired,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
    ] {
        let seen = seen.lock().unwrap();
        assert!(
            seen.contains(&format!("{:?}", Some(status))),
            "{status:?} of {seen:?}"
        );
    }
}
