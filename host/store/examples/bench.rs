//! Figures of the store: space, memory and the time of a start.
//!
//! ```text
//! cargo run --release -p longshore-store --example bench -- redb|sled COMMAND DIR [COUNT]
//! ```
//!
//! - `finished`: makes COUNT ended tasks of 2 KiB (1,000,000); `open` then starts on them
//! - `parked`: makes COUNT tasks that wait for an answer (100,000), with an engine, and stops
//! - `answer`: starts on those, answers all, and waits until all are completed
//! - `churn`: makes, changes and removes COUNT tasks of 2 KiB (200,000), at most 1,000 at once
//! - `open`: opens, reads some, counts
//! - `latency`: COUNT writes, one after the other, then by 256 writers

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a tool of ours, which measures time and is read by people"
)]

use std::collections::VecDeque;
use std::fs;
use std::future::pending;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use longshore_store::{DiskStore, StoreEngine};
use longshore_tasks::{
    Birth, Call, Engine, Failures, OnCrash, Past, Payload, Ports, Principal, Put, Question, Reason,
    Run, Runner, Settings, Status, Step, Store, SystemClock, TaskId,
};

const VALUE_BYTES: usize = 2 << 10;

/// Calls on their way at once: what a busy server has.
const AT_ONCE: usize = 256;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, engine, command, dir, count @ ..] = args.as_slice() else {
        bail!("say ENGINE COMMAND DIR [COUNT]");
    };
    let known = StoreEngine::ALL
        .into_iter()
        .find(|known| known.to_string() == *engine);
    let place = Place {
        dir: Path::new(dir),
        engine: known.with_context(|| format!("no engine {engine}"))?,
    };
    let stated: Option<usize> = count.first().map(|text| text.parse()).transpose()?;
    let count = |usual| stated.unwrap_or(usual);
    tokio::runtime::Runtime::new()?.block_on(async {
        match command.as_str() {
            "finished" => finished(place, count(1_000_000)).await,
            "parked" => parked(place, count(100_000)).await,
            "answer" => answer(place).await,
            "churn" => churn(place, count(200_000)).await,
            "open" => open(place).await,
            "latency" => latency(place, count(20_000)).await,
            other => bail!("no command {other}"),
        }
    })
}

/// A store on the disk.
#[derive(Clone, Copy)]
struct Place<'a> {
    dir: &'a Path,
    engine: StoreEngine,
}

impl Place<'_> {
    fn open(self) -> Result<DiskStore> {
        Ok(DiskStore::open(self.dir, self.engine)?)
    }
}

fn say(what: &str, since: Instant, place: Place<'_>) -> Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let memory_mib = |name: &str| -> Result<u64> {
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(kib.context("the system does not say")?.parse::<u64>()? / 1024)
    };
    println!(
        "{what}: {:.2} s, {} MiB on disk, {} MiB resident, {} at most",
        since.elapsed().as_secs_f64(),
        disk_bytes(place.dir)? >> 20,
        memory_mib("VmRSS")?,
        memory_mib("VmHWM")?,
    );
    Ok(())
}

fn disk_bytes(dir: &Path) -> Result<u64> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(0);
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            disk_bytes(&entry.path())?
        } else {
            // What it takes, not how long it is: a file may have holes.
            metadata.blocks() * 512
        };
    }
    Ok(bytes)
}

fn value(id: &TaskId) -> Vec<u8> {
    let first: [u8; 8] = std::array::from_fn(|at| id.as_bytes()[at]);
    let mut state = u64::from_be_bytes(first) | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963);
        (state >> 56) as u8
    };
    (0..VALUE_BYTES).map(|_| next()).collect()
}

/// So many new ids.
fn new_ids(count: usize) -> Result<Vec<TaskId>> {
    let ids: std::result::Result<_, _> = (0..count).map(|_| TaskId::random()).collect();
    ids.context("the system has no random numbers")
}

fn put(id: TaskId, expected: Option<u64>, unfinished: bool) -> Put {
    Put {
        id,
        expected,
        unfinished,
        due_ms: Some(u64::MAX / 2),
        bytes: value(&id),
    }
}

async fn finished(place: Place<'_>, count: usize) -> Result<()> {
    let since = Instant::now();
    let store = place.open()?;
    let puts = stream::iter(new_ids(count)?).map(|id| store.put(put(id, None, false)));
    let mut done = 0;
    let mut puts = puts.buffer_unordered(AT_ONCE);
    while let Some(put) = puts.next().await {
        put?;
        done += 1;
        if done % 100_000 == 0 {
            say(&format!("{done} ended tasks"), since, place)?;
        }
    }
    store.close().await?;
    say("closed", since, place)?;
    Ok(())
}

async fn open(place: Place<'_>) -> Result<()> {
    let since = Instant::now();
    let store = place.open()?;
    say("open", since, place)?;
    let since = Instant::now();
    let due = store.due(u64::MAX, None, 1_000).await?;
    for (_, id) in &due {
        store.get(id).await?;
    }
    say(&format!("{} random reads", due.len()), since, place)?;
    store.close().await?;
    Ok(())
}

async fn churn(place: Place<'_>, count: usize) -> Result<()> {
    let since = Instant::now();
    let store = Arc::new(place.open()?);
    let mut live = VecDeque::new();
    for done in 0..count {
        let store_of_task = Arc::clone(&store);
        live.push_back(tokio::spawn(async move {
            let id = TaskId::random()?;
            for revision in 0..6 {
                let expected = (revision > 0).then_some(revision);
                let put = put(id, expected, revision < 5);
                store_of_task.put(put).await?;
            }
            anyhow::Ok(id)
        }));
        if live.len() == 1_000 {
            let oldest = live.pop_front().context("nothing is live")?;
            store.delete(&oldest.await??, 6).await?;
        }
        if (done + 1) % (count / 20).max(1) == 0 {
            say(&format!("{} tasks", done + 1), since, place)?;
        }
    }
    for task in live {
        store.delete(&task.await??, 6).await?;
    }
    say("all removed", since, place)?;
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(10));
        say("idle", since, place)?;
    }
    store.close().await?;
    say("closed", since, place)?;
    Ok(())
}

async fn latency(place: Place<'_>, count: usize) -> Result<()> {
    let store = place.open()?;
    for at_once in [1, 16, AT_ONCE] {
        let since = Instant::now();
        let puts = stream::iter(new_ids(count)?).map(|id| store.put(put(id, None, false)));
        puts.buffer_unordered(at_once)
            .try_for_each(async |_| Ok(()))
            .await?;
        let each_us = since.elapsed().as_micros() * at_once as u128 / count as u128;
        let text = format!("{count} writes, {at_once} at once, {each_us} us each");
        say(&text, since, place)?;
    }
    store.close().await?;
    Ok(())
}

/// A call that asks once and is done.
struct Asks {
    answered: bool,
    asked: bool,
}

#[async_trait]
impl Run for Asks {
    async fn step(&mut self) -> Step {
        if self.answered {
            return Step::Finished("{\"content\":[]}".into());
        }
        if self.asked {
            pending::<()>().await;
        }
        self.asked = true;
        let question = Question {
            key: "q".into(),
            request: "{\"method\":\"elicitation/create\"}".into(),
        };
        Step::NeedsInput {
            questions: vec![question],
            record: Some(vec![7; 1_000]),
        }
    }

    fn answer(&mut self, _answers: Vec<(String, Payload)>) {
        self.answered = true;
    }

    fn held_bytes(&self) -> usize {
        0
    }

    fn cancel(&mut self) {}
}

struct Host;

impl Runner for Host {
    fn start(&self, _id: &TaskId, _call: &Call, _past: Past<'_>) -> Box<dyn Run> {
        Box::new(Asks {
            answered: false,
            asked: false,
        })
    }
}

impl Failures for Host {
    fn error(&self, reason: Reason, _call: &Call) -> Payload {
        reason.to_string()
    }

    fn message(&self, error: &str) -> Option<String> {
        Some(error.to_owned())
    }
}

async fn engine(place: Place<'_>) -> Result<Engine> {
    let ports = Ports {
        store: Arc::new(place.open()?),
        runner: Arc::new(Host),
        clock: Arc::new(SystemClock::new()),
        failures: Arc::new(Host),
    };
    let settings = Settings {
        linger_ms: 0,
        ..Settings::default()
    };
    Ok(Engine::start(ports, settings).await?)
}

fn owner() -> Principal {
    Principal::new("owner")
}

/// The ids, one a line: who answers knows its handles.
fn handles(dir: &Path) -> std::path::PathBuf {
    dir.with_extension("handles")
}

async fn parked(place: Place<'_>, count: usize) -> Result<()> {
    let since = Instant::now();
    let engine = engine(place).await?;
    let make = |_| async {
        let call = Call {
            principal: owner(),
            plugin: "bench".into(),
            version: "v".into(),
            tool: "asks".into(),
            on_crash: OnCrash::Resume,
            body: vec![5; 500],
        };
        let birth = Birth {
            poll_interval_ms: 500,
            ttl_ms: Some(86_400_000),
            pinned: false,
        };
        anyhow::Ok(engine.create(call, birth).await?.id)
    };
    let ids: Vec<TaskId> = stream::iter(0..count)
        .map(make)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    for id in &ids {
        while engine.get(id, &owner()).await?.status != Status::InputRequired {
            tokio::task::yield_now().await;
        }
    }
    say(&format!("{count} tasks parked"), since, place)?;
    let lines: Vec<String> = ids.iter().map(TaskId::to_string).collect();
    fs::write(handles(place.dir), lines.join("\n"))?;
    let since = Instant::now();
    engine.shutdown(Duration::from_secs(1)).await;
    say("stopped", since, place)?;
    Ok(())
}

async fn answer(place: Place<'_>) -> Result<()> {
    let since = Instant::now();
    let engine = engine(place).await?;
    say("ready", since, place)?;
    let since = Instant::now();
    let text = fs::read_to_string(handles(place.dir))?;
    let ids: Vec<TaskId> = text
        .lines()
        .map(|line| line.parse().ok().context("a line is no id"))
        .collect::<Result<_>>()?;
    let engine = &engine;
    let answers = stream::iter(&ids).map(|id| async move {
        let answers = vec![("q".to_owned(), "{}".to_owned())];
        anyhow::Ok(engine.answer(id, &owner(), answers).await?)
    });
    answers
        .buffer_unordered(AT_ONCE)
        .try_for_each(async |()| Ok(()))
        .await?;
    for id in &ids {
        while engine.get(id, &owner()).await?.status != Status::Completed {
            tokio::task::yield_now().await;
        }
    }
    say(
        &format!("{} answered and completed", ids.len()),
        since,
        place,
    )?;
    engine.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
