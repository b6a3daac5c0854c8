//! Measures runs without HTTP: a fresh sandbox made, called and dropped, in this process, and runs made again from a record.
//!
//! How runs share cores is measured by the affinity of the process: a child of this program is bound to one core (by
//! `taskset`), another to two. The guests' threads are those that the server has too. Callers are on them as well, or on a thread of
//! their own, as the protocol is: then each run is handed over and back.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use longshore_runtime::contract::ClientFeatures;
use longshore_runtime::{
    Answer, Call, Compiler, Context, Patience, Pins, Plugin, PluginSettings, Record, Run, Runtime,
    Settings, Step, Work,
};
use longshore_tests::server::{FIXTURES, Home, binary};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::measure::{Samples, Stopwatch};
use crate::report::Report;

/// Runs of each measurement.
const RUNS: usize = 20_000;
/// Runs at once where the rate is measured: enough that the cores never wait for this side.
const AT_ONCE: usize = 8;
/// How often a run is made again from its record.
const REPLAYS: usize = 200;
/// How often a spinning guest is ended, and for how long it may spin before: until it is at it on its core.
const KILLS: usize = 100;
const SPIN: Duration = Duration::from_millis(20);

/// How many cores a child has.
const CORES: [usize; 2] = [1, 2];

/// Measure in children, so that each has its cores alone.
///
/// # Errors
/// If a run does not end as it must.
pub(crate) fn run(rounds: usize) -> Result<Report> {
    let mut found: HashMap<String, Samples> = HashMap::new();
    for _ in 0..rounds {
        for cores in CORES {
            for (name, value) in child(cores)? {
                found.entry(name).or_default().add(value);
            }
        }
    }
    let median = |name: &str| found.get(name).map_or(0.0, Samples::median);
    let mut report = Report::default();
    for name in ["runs", "handed_runs"] {
        let per_s = |cores: usize| median(&format!("{name}_per_s_{cores}"));
        report.ratio(&format!("{name}_on_2_cores_vs_1"), per_s(2) / per_s(1));
        report.figure(&format!("{name}_on_1_core_per_s"), per_s(1));
        report.figure(&format!("{name}_on_2_cores_per_s"), per_s(2));
    }
    report.figure("run_cpu_us", median("run_cpu_us_1"));
    report.figure("run_alone_p50_us", median("run_alone_us_2"));
    report.figure("guest_ended_p50_ms", median("ended_p50_ms_2"));
    report.figure("guest_ended_p99_ms", median("ended_p99_ms_2"));
    report.figure("replay_20_entries_us", median("replay_20_us_2"));
    report.figure("replay_2000_entries_us", median("replay_2000_us_2"));
    Ok(report)
}

fn child(cores: usize) -> Result<Vec<(String, f64)>> {
    let output = Command::new("taskset")
        .args(["--cpu-list", &format!("0-{}", cores - 1)])
        .arg(std::env::current_exe()?)
        .arg("inside")
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("starting taskset, of Debian's package util-linux")?;
    ensure!(
        output.status.success(),
        "the child with {cores} cores failed"
    );
    let found: HashMap<String, f64> = serde_json::from_slice(&output.stdout)?;
    Ok(found
        .into_iter()
        .map(|(name, value)| (format!("{name}_{cores}"), value))
        .collect())
}

/// Be the child: measure, and give the figures by name.
///
/// # Errors
/// If a run does not end as it must.
pub(crate) fn measure() -> Result<Value> {
    let home = Home::new(&[FIXTURES], "");
    let threads = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    threads.block_on(async {
        let (runtime, plugin) = serving(&home, 64).await?;
        let ended_ms = ended().await?;
        let alone_us = alone(&runtime, &plugin).await?;
        let beside_guests = runtime.guest_threads();
        let (per_s, cpu_us) = together(&runtime, &plugin, &beside_guests).await?;
        let here = tokio::runtime::Handle::current();
        let (handed_per_s, _) = together(&runtime, &plugin, &here).await?;
        Ok(json!({
            "run_alone_us": alone_us,
            "runs_per_s": per_s,
            "handed_runs_per_s": handed_per_s,
            "run_cpu_us": cpu_us,
            "ended_p50_ms": ended_ms.median(),
            "ended_p99_ms": ended_ms.quantile(0.99),
            "replay_20_us": replay(&runtime, &plugin, 20).await?,
            "replay_2000_us": replay(&runtime, &plugin, 2_000).await?,
        }))
    })
}

/// A runtime with so many slots for guests, and the plugin that it serves.
async fn serving(home: &Home, slots: u32) -> Result<(Runtime, Arc<Plugin>)> {
    let runtime = runtime(home, slots)?;
    let mut changes = runtime.changes();
    runtime.serve_directory();
    while !runtime.snapshot().settled {
        changes.changed().await?;
    }
    let plugin = runtime.snapshot().plugins["fixtures"].clone();
    Ok((runtime, plugin))
}

fn runtime(home: &Home, slots: u32) -> Result<Runtime> {
    let program = binary();
    let target = program.ancestors().nth(2).unwrap_or(Path::new("target"));
    Ok(Runtime::new(Settings {
        plugins_dir: home.plugins(),
        components_dir: home.data().join("components"),
        compile_cache_dir: target.join("compile-cache"),
        compile_cache_bytes: 1 << 30,
        compiler: Compiler {
            program: program.clone(),
            args: vec!["compile-component".into()],
            environment: Vec::new(),
            memory_bytes: 2 << 30,
            cpu_s: 120,
        },
        concurrent_runs: slots,
        queued_calls: 64,
        component_bytes_max: 64 << 20,
        plugin: PluginSettings::default(),
        plugins: HashMap::new(),
        check_question: |_| Ok(()),
        grace: Duration::ZERO,
        tells_usage: false,
        pins: Pins::default(),
        history_versions: 1,
        settle: Duration::from_millis(80),
    })?)
}

fn call(plugin: &Plugin, tool: &str, arguments: &Value) -> Result<Call> {
    let work = Work::Tool {
        name: tool.to_owned(),
        arguments: arguments.to_string(),
    };
    let context = Context {
        features: ClientFeatures::all(),
        log_level: None,
        trace: Vec::new(),
    };
    Call::begin(work, context, plugin.terms()).context("the system has no random numbers")
}

/// To its result.
async fn finish(mut run: Run) -> Result<()> {
    match run.step().await {
        Step::Finished { answer, .. } if matches!(*answer, Answer::Tool(_)) => Ok(()),
        other => bail!("not a result: {other:?}"),
    }
}

/// The median time of one run after the other, in microseconds: with the way to the guests' threads and back.
async fn alone(runtime: &Runtime, plugin: &Arc<Plugin>) -> Result<f64> {
    let mut samples = Samples::default();
    for _ in 0..RUNS {
        let call = call(plugin, "echo", &json!({ "text": "x" }))?;
        let watch = Stopwatch::start();
        finish(runtime.run(plugin, call, None, Patience::Queue)).await?;
        samples.add(watch.us());
    }
    Ok(samples.median())
}

/// How long it takes, in milliseconds, from the word that ends a spinning guest to the end of another that waits for its slot.
#[allow(
    clippy::disallowed_methods,
    reason = "nothing says that a guest computes"
)]
async fn ended() -> Result<Samples> {
    let home = Home::new(&[FIXTURES], "");
    let (runtime, plugin) = serving(&home, 1).await?;
    let mut samples = Samples::default();
    for _ in 0..KILLS {
        let spins = runtime.run(
            &plugin,
            call(&plugin, "spin", &json!({}))?,
            None,
            Patience::Queue,
        );
        let waits = call(&plugin, "echo", &json!({ "text": "x" }))?;
        tokio::time::sleep(SPIN).await;
        let watch = Stopwatch::start();
        drop(spins);
        finish(runtime.run(&plugin, waits, None, Patience::Queue)).await?;
        samples.add(watch.ms());
    }
    Ok(samples)
}

/// Runs a second for callers on these threads, and the time of a processor that each took, in microseconds, all of this process
/// counted.
async fn together(
    runtime: &Runtime,
    plugin: &Arc<Plugin>,
    threads: &tokio::runtime::Handle,
) -> Result<(f64, f64)> {
    let (cpu, watch) = (cpu_us(), Stopwatch::start());
    let mut clients = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (runtime, plugin) = (runtime.clone(), plugin.clone());
        let client = async move {
            for _ in 0..RUNS / AT_ONCE {
                let call = call(&plugin, "echo", &json!({ "text": "x" }))?;
                finish(runtime.run(&plugin, call, None, Patience::Queue)).await?;
            }
            anyhow::Ok(())
        };
        clients.spawn_on(client, threads);
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    let runs = RUNS as f64;
    Ok((runs * 1e6 / watch.us(), (cpu_us() - cpu) / runs))
}

/// The time of a processor that this process has had.
fn cpu_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default().as_secs_f64() * 1e6
}

/// The median time until a run that is made again from so many entries asks its question again, in microseconds.
async fn replay(runtime: &Runtime, plugin: &Arc<Plugin>, entries: usize) -> Result<f64> {
    let call = call(plugin, "readings", &json!({ "count": entries }))?;
    let record = asked(runtime.run(plugin, call.clone(), None, Patience::Queue)).await?;
    let mut samples = Samples::default();
    for _ in 0..REPLAYS {
        let (call, record) = (call.clone(), Some(record.clone()));
        let watch = Stopwatch::start();
        asked(runtime.run(plugin, call, record, Patience::Queue)).await?;
        samples.add(watch.us());
    }
    Ok(samples.median())
}

/// To its question: the record that leads there.
async fn asked(mut run: Run) -> Result<Record> {
    match run.step().await {
        Step::NeedsInput {
            record: Some(record),
            ..
        } => Ok(record),
        other => bail!("not a question with a record: {other:?}"),
    }
}
