//! Measures how fast tasks become durable: the task engine on its store, beside a file that is appended to and synced.
//!
//! In this process and without HTTP, for the store is faster than HTTP is; `http_create_*` is the same over HTTP, guest and
//! all.

use std::fs::File;
use std::future::pending;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use async_trait::async_trait;
use longshore_store::{DiskStore, StoreEngine};
use longshore_tasks::{
    Birth, Call, Engine, Failures, OnCrash, Past, Payload, Ports, Principal, Reason, Run, Runner,
    Settings, Step, SystemClock, TaskId,
};
use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Server};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::load;
use crate::measure::{Samples, Stopwatch};
use crate::report::Report;

/// Clients at once.
const CLIENTS: [usize; 3] = [1, 16, 256];
/// How long each is measured in a round.
const TIME: Duration = Duration::from_secs(1);
/// What one task takes in the file that is appended to.
const ENTRY_BYTES: usize = 500;

/// What one side has shown with so many clients, a value for each round.
#[derive(Debug, Default)]
struct Course {
    p50_us: Samples,
    per_s: Samples,
}

/// Create tasks.
///
/// # Errors
/// If the store or the server fails.
pub(crate) fn run(rounds: usize) -> Result<Report> {
    let mut engine: [Course; 3] = Default::default();
    let mut file: [Course; 3] = Default::default();
    let mut http: [Course; 3] = Default::default();
    for _ in 0..rounds {
        for (at, clients) in CLIENTS.into_iter().enumerate() {
            engine[at].add(create(clients)?);
            file[at].add(append(clients)?);
            http[at].add(create_over_http(clients)?);
        }
    }
    let mut report = Report::default();
    report.ratio(
        "durable_create_1_vs_fdatasync",
        engine[0].p50_us.median() / file[0].p50_us.median(),
    );
    report.ratio(
        "durable_create_16_vs_1",
        engine[1].per_s.median() / engine[0].per_s.median(),
    );
    report.ratio(
        "durable_create_256_vs_append",
        engine[2].per_s.median() / file[2].per_s.median(),
    );
    for (name, courses) in [
        ("durable_create", &engine),
        ("append", &file),
        ("http_create", &http),
    ] {
        for (clients, course) in CLIENTS.iter().zip(courses) {
            report.figure(&format!("{name}_{clients}_p50_us"), course.p50_us.median());
            report.figure(&format!("{name}_{clients}_per_s"), course.per_s.median());
        }
    }
    Ok(report)
}

impl Course {
    fn add(&mut self, (p50_us, per_s): (f64, f64)) {
        self.p50_us.add(p50_us);
        self.per_s.add(per_s);
    }
}

/// An entry and who waits for it.
type Entry = (Vec<u8>, oneshot::Sender<()>);

/// Clients that each wait until their entry is in the file and the file is synced. All that came meanwhile go together: what a
/// group commit can be at best.
fn append(clients: usize) -> Result<(f64, f64)> {
    let folder = folder()?;
    let file = File::create(folder.path().join("log"))?;
    let (entries, queue) = mpsc::channel(clients);
    let writer = std::thread::spawn(move || sync_in_groups(file, queue));
    let found = threads()?.block_on(together(clients, move || {
        let entries = entries.clone();
        async move {
            let (told, synced) = oneshot::channel();
            entries.send((vec![7; ENTRY_BYTES], told)).await?;
            Ok(synced.await?)
        }
    }));
    match writer.join() {
        Ok(written) => written?,
        Err(_) => bail!("the writer of the file panicked"),
    }
    found
}

fn sync_in_groups(mut file: File, mut queue: mpsc::Receiver<Entry>) -> std::io::Result<()> {
    let (mut group, mut waiting) = (Vec::new(), Vec::new());
    while let Some(first) = queue.blocking_recv() {
        let more = std::iter::from_fn(|| queue.try_recv().ok());
        for (entry, told) in std::iter::once(first).chain(more) {
            group.extend_from_slice(&entry);
            waiting.push(told);
        }
        file.write_all(&group)?;
        file.sync_data()?;
        group.clear();
        for told in waiting.drain(..) {
            // Whoever does not wait any more does not want to know.
            let _ = told.send(());
        }
    }
    Ok(())
}

/// So many clients, each at it again when it is done, for a while: the median time of one, and how many a second.
async fn together<F>(
    clients: usize,
    act: impl Fn() -> F + Clone + Send + 'static,
) -> Result<(f64, f64)>
where
    F: Future<Output = Result<()>> + Send,
{
    let (watch, mut all) = (Stopwatch::start(), Samples::default());
    let mut acting = JoinSet::new();
    for _ in 0..clients {
        let act = act.clone();
        acting.spawn(async move {
            let mut samples = Samples::default();
            while watch.elapsed() < TIME {
                let one = Stopwatch::start();
                act().await?;
                samples.add(one.us());
            }
            anyhow::Ok(samples)
        });
    }
    while let Some(samples) = acting.join_next().await {
        all.extend(samples??);
    }
    Ok((all.median(), rate(all.len(), watch)))
}

fn threads() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

fn create(clients: usize) -> Result<(f64, f64)> {
    let folder = folder()?;
    threads()?.block_on(async {
        let ports = Ports {
            store: Arc::new(DiskStore::open(
                &folder.path().join("tasks"),
                StoreEngine::default(),
            )?),
            runner: Arc::new(Host),
            clock: Arc::new(SystemClock::new()),
            failures: Arc::new(Host),
        };
        let settings = Settings {
            running_bytes_max: usize::MAX >> 8,
            open_per_principal_max: usize::MAX >> 8,
            ..Settings::default()
        };
        let engine = Engine::start(ports, settings).await?;
        let creating = engine.clone();
        let found = together(clients, move || {
            let engine = creating.clone();
            async move { Ok(engine.create(call(), birth()).await.map(drop)?) }
        });
        let found = found.await;
        engine.shutdown(Duration::ZERO).await;
        found
    })
}

/// A tool that is always a task, and waits for long.
fn create_over_http(clients: usize) -> Result<(f64, f64)> {
    // So few slots that the guests' own work is not measured: the tasks queue.
    let server = Server::start(&[FIXTURES], "[limits]\nconcurrent_runs = 4\n");
    let create = Message::call("sleep_required", json!({ "ms": 60_000 })).tasks();
    let request = create.bytes(server.address());
    let load = load::repeat(server.address(), &request, "taskId", clients, TIME)?;
    Ok((load.latency_us.median(), load.per_s))
}

#[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn rate(count: usize, watch: Stopwatch) -> f64 {
    count as f64 / watch.elapsed().as_secs_f64()
}

/// On the disk where the project is: the folder for temporary files may be in memory.
fn folder() -> Result<TempDir> {
    let target = std::env::current_exe()?;
    let folder = target.ancestors().nth(2).map(std::path::Path::to_owned);
    Ok(tempfile::tempdir_in(
        folder.unwrap_or_else(std::env::temp_dir),
    )?)
}

fn call() -> Call {
    Call {
        principal: Principal::new("bench"),
        plugin: "bench".into(),
        version: "v".into(),
        tool: "waits".into(),
        on_crash: OnCrash::Resume,
        body: vec![5; ENTRY_BYTES - 100],
    }
}

fn birth() -> Birth {
    Birth {
        poll_interval_ms: 500,
        ttl_ms: Some(86_400_000),
        pinned: false,
    }
}

/// Runs that go on for ever.
struct Host;

struct Waits;

#[async_trait]
impl Run for Waits {
    async fn step(&mut self) -> Step {
        pending().await
    }

    fn answer(&mut self, _answers: Vec<(String, Payload)>) {}

    fn cancel(&mut self) {}

    fn held_bytes(&self) -> usize {
        0
    }
}

impl Runner for Host {
    fn start(&self, _id: &TaskId, _call: &Call, _past: Past<'_>) -> Box<dyn Run> {
        Box::new(Waits)
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
