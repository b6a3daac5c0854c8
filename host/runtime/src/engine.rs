//! wasmtime as this project uses it: one configuration, one engine, one linker, and threads of their own for guests.
//!
//! It must not know of plugins or calls.

use crate::guest::{self, Guest};
use crate::limits::STACK_BYTES;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result,
};

/// How often a computing guest gives way, and is looked after.
///
/// Five milliseconds: short against any grace period, and too rare to be seen in a guest's speed.
const TICK: Duration = Duration::from_millis(5);

/// How far a guest stands back for everything else: for the protocol, that its answers do not wait until a guest has computed,
/// and for the machine's other programs.
///
/// Ten of nice's steps: where there is no core for both, a guest gets a tenth. Where there is, it loses nothing.
const NICE: i32 = 10;

/// The largest memory limit that an operator may set. It costs address space only.
pub(crate) const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Core instances in a component: Python guests have between 9 and 16.
const CORE_INSTANCES_PER_COMPONENT: u32 = 16;

/// Bytes of a slot that stay in memory between two runs, so that the next one need not fault them in again.
const KEEP_RESIDENT_BYTES: usize = 256 << 10;

/// Warm slots that are kept; a Python guest leaves 400 KB in each.
const WARM_SLOTS_MAX: u32 = 100;

/// Whether a guest's work is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metering {
    /// In fuel. Its checks cost a guest up to a third of its speed.
    Fuel,
    /// Not at all, by the operator's choice: time is the only bound on its work.
    Off,
}

/// What must be the same where a component is compiled and where it runs.
fn base_config(metering: Metering) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(metering == Metering::Fuel)
        .epoch_interruption(true)
        // Without it a fresh instance costs a third less; no async components are supported.
        .concurrency_support(false)
        // The rest makes a run a function of its record: NaN bits and relaxed SIMD differ between processors.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .max_wasm_stack(usize::try_from(STACK_BYTES).unwrap_or(usize::MAX));
    config
}

/// An engine that compiles and does not run.
pub(crate) fn compiling(metering: Metering) -> Result<Engine> {
    Engine::new(&base_config(metering))
}

fn pool(slots: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES_PER_COMPONENT))
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT)
        .total_memories(slots.saturating_mul(2))
        .total_tables(slots.saturating_mul(2))
        .total_stacks(slots)
        .max_memory_size(usize::try_from(MEMORY_BYTES_MAX).unwrap_or(usize::MAX))
        .max_unused_warm_slots(WARM_SLOTS_MAX)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(KEEP_RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    pool
}

fn running(slots: u32) -> Result<Engine> {
    let mut config = base_config(Metering::Fuel);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(slots)));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(%error, "no pool of instances is to be had here; a call will cost more");
        compiling(Metering::Fuel)
    })
}

/// An engine that runs guests, with all that a guest can import, and the threads it runs on.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Guest>,
    pub(crate) metering: Metering,
    threads: Arc<Threads>,
}

/// Where guests run. The last host that uses them ends them.
struct Threads(Option<tokio::runtime::Runtime>);

impl Host {
    /// A host for at most `slots` guests at once.
    pub(crate) fn new(slots: u32) -> Result<Self> {
        let threads = Arc::new(Threads(Some(threads()?)));
        Self::on(running(slots)?, Metering::Fuel, threads)
    }

    /// A host for guests whose work is not counted, on the same threads. Without a pool: they are few, and a second one would take
    /// as much address space again.
    pub(crate) fn unmetered(&self) -> Result<Self> {
        Self::on(
            compiling(Metering::Off)?,
            Metering::Off,
            self.threads.clone(),
        )
    }

    fn on(engine: Engine, metering: Metering, threads: Arc<Threads>) -> Result<Self> {
        let mut linker = Linker::new(&engine);
        guest::link(&mut linker)?;
        tick(&engine)?;
        Ok(Self {
            engine,
            linker,
            metering,
            threads,
        })
    }

    /// Where guests run. Protocol work never shares a thread with one.
    pub(crate) fn threads(&self) -> &tokio::runtime::Handle {
        // It is only taken in `drop`.
        self.threads
            .0
            .as_ref()
            .expect("the threads live as long as the host")
            .handle()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

fn threads() -> std::io::Result<tokio::runtime::Runtime> {
    let workers = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .max(2);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("guest")
        .on_thread_start(stand_back)
        // A computing guest is one long poll after another; with tokio's defaults the others' timers and wake-ups wait for 61
        // of them.
        .event_interval(1)
        .global_queue_interval(1)
        .enable_all()
        .build()
}

/// On Linux this is for the thread that asks.
fn stand_back() {
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::warn!(%error, "guests run with the priority of the protocol: its answers may wait for them");
    }
}

/// Move the epoch on until the engine is gone.
fn tick(engine: &Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    std::thread::Builder::new()
        .name("epoch".to_owned())
        .spawn(move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(TICK);
            }
        })?;
    Ok(())
}
