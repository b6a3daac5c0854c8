//! The wiring: from a configuration to the parts that serve requests, and back to nothing.

use crate::CHILD_ENVIRONMENT;
use crate::admin::{self, Socket};
use crate::catalogue::{Catalogue, Served};
use crate::config::Config;
use crate::ends::Ends;
use crate::http::{self, Sessions};
use crate::leftover::Leftovers;
use crate::listen::feed::{self, Gathering};
use crate::listen::hub::Hub;
use crate::parked::ParkedCalls;
use crate::rate::{Rate, Who};
use crate::result::Results;
use crate::runner::{GuestRunner, Wording};
use crate::schema::Checks;
use crate::seal::Sealer;
use crate::start;
use crate::stdio;
use crate::waiting_room::WaitingRoom;
use crate::wire::question::check_question;
use anyhow::Context as _;
use longshore_runtime::{Compiler, Runtime};
use longshore_store::DiskStore;
use longshore_tasks::{Clock, Engine, Ports, SystemClock};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The hidden command by which this program compiles components in a process of its own.
pub(crate) const COMPILE_COMMAND: &str = "compile-component";

/// How often what nobody needs any more is let go, in milliseconds. It holds memory or a place on the disk; nothing else waits for
/// it.
const SWEEP_EVERY_MS: u64 = 5_000;

/// How long a file must stand still before it is read, where nothing tells that it is whole: tools that copy pause for less.
const SETTLE: Duration = Duration::from_millis(80);

/// The same for authors of plugins, who write with few tools and want to see it soon.
const DEV_SETTLE: Duration = Duration::from_millis(20);

/// How long the engine may wait for guests that cannot go on later when a stdio server ends: its launcher waits too.
const STDIO_DRAIN: Duration = Duration::from_secs(1);

/// The end, in two steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    /// Take nothing new, and let go on what goes on, for a while.
    pub(crate) begin: CancellationToken,
    /// Let nothing go on.
    pub(crate) now: CancellationToken,
}

/// The parts that serve requests.
pub(crate) struct App {
    /// What the operator chose.
    pub(crate) config: Config,
    /// Plugins.
    pub(crate) runtime: Runtime,
    /// Tasks.
    pub(crate) engine: Engine,
    /// Time, the same as the engine's.
    pub(crate) clock: Arc<dyn Clock>,
    /// When it started, in milliseconds since the epoch.
    pub(crate) started_ms: u64,
    /// Seals what clients carry from round to round.
    pub(crate) sealer: Sealer,
    /// Checks values against the schemas of plugins.
    pub(crate) checks: Arc<Checks>,
    /// Checks what guests give.
    pub(crate) results: Arc<Results>,
    /// Calls that wait in memory from round to round.
    pub(crate) parked: ParkedCalls,
    /// Sessions of older clients over HTTP.
    pub(crate) sessions: Sessions,
    /// Questions that older clients were asked.
    pub(crate) questions_asked: Arc<AtomicU64>,
    /// What guests of plain calls hold that wait in memory for answers.
    pub(crate) waiting_room: WaitingRoom,
    /// Guests that wait in memory for answers of older clients.
    pub(crate) lingering: WaitingRoom,
    /// How often each caller calls tools.
    pub(crate) call_rate: Rate<Who>,
    /// Tells the operator of calls that come to no result.
    pub(crate) ends: Arc<Ends>,
    /// What is served; one value at a time.
    pub(crate) catalogue: Served,
    /// Who listens to what.
    pub(crate) hub: Arc<Hub>,
    /// Changes of lists that are yet to be told.
    pub(crate) gathering: Gathering,
    /// Done when streams are to end: at the latest when the stop begins.
    pub(crate) stopping: CancellationToken,
    /// Done when calls that still go on are told that they are cut off: they had their time after the stop began.
    pub(crate) cut_off: CancellationToken,
    /// Whether requests are taken: after the start, until the shutdown.
    pub(crate) ready: AtomicBool,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Serve over HTTP until a signal says to stop.
///
/// # Errors
/// If something that is needed cannot be had; the text says what.
pub(crate) async fn serve_http(config: Config) -> anyhow::Result<()> {
    // First, so that a port that is taken shows at once. Who connects now waits until tasks and keys are there.
    let listener = http::listen(config.listen);
    let listener = listener.map_err(|error| cannot_listen(config.listen, &error))?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() && config.auth.is_empty() {
        tracing::warn!(%address, "whoever reaches this address may call every tool: let callers have tokens (longshore token NAME)");
    }
    let stop = Stop::default();
    let (app, mut background) = launch(config, &stop).await?;
    // Whatever the log's format and level: others wait for this line.
    eprintln!("listening on http://{address}/mcp");
    let drain = Duration::from_millis(app.config.http.drain_ms);
    let served = app
        .run(http::serve(&app, listener, &stop), &stop, drain)
        .await;
    background.shutdown().await;
    tracing::info!("stopped");
    served.context("the listening address was lost")
}

/// Serve one client over standard input and output until the input ends, or a signal says to stop.
///
/// # Errors
/// If something that is needed cannot be had; the text says what.
pub(crate) async fn serve_stdio(config: Config) -> anyhow::Result<()> {
    let stop = Stop::default();
    let (app, mut background) = launch(config, &stop).await?;
    tracing::info!("serving standard input and output");
    app.run(stdio::serve(&app, &stop), &stop, STDIO_DRAIN).await;
    background.shutdown().await;
    tracing::info!("stopped");
    Ok(())
}

/// All parts, ready to serve, and what goes on beside them.
async fn launch(config: Config, stop: &Stop) -> anyhow::Result<(Arc<App>, JoinSet<()>)> {
    let mut background = JoinSet::new();
    background.spawn(follow_signals(stop.clone())?);
    let app = Arc::new(App::start(config, stop.begin.child_token()).await?);
    background.spawn(follow_plugins(app.clone()));
    background.spawn(feed::tell_of_lists(app.clone()));
    background.spawn(feed::tell_of_plugins(app.clone()));
    background.spawn(feed::tell_of_tasks(app.hub.clone(), app.engine.clone()));
    background.spawn(sweep(app.clone()));
    background.spawn(name_unknown_plugins(app.clone()));
    match Socket::open(&app.config.data_dir) {
        Ok(socket) => {
            background.spawn(admin::serve(app.clone(), socket));
        }
        Err(error) => {
            tracing::warn!(%error, "no orders are taken (longshore plugin list, rollback and so on): the socket cannot be opened in the data folder");
        }
    }
    app.ready.store(true, Ordering::Release);
    Ok((app, background))
}

impl App {
    async fn start(config: Config, stopping: CancellationToken) -> anyhow::Result<Self> {
        anyhow::ensure!(
            config.plugins_dir.is_dir(),
            "the folder of plugins, {}, is not there; make it, or name another one (plugins_dir, --plugins)",
            config.plugins_dir.display()
        );
        let data = config.data_dir.clone();
        longshore_runtime::private_folder(&data)
            .with_context(|| folder_needed("data_dir", &data))?;
        let sealer = sealer(&config)?;
        let settings = runtime_settings(&config, data.join("components"))?;
        let checks = Arc::new(Checks::new(settings.compiler.program.clone()));
        let runtime = Runtime::new(settings)?;
        let tasks = data.join("tasks");
        longshore_runtime::private_folder(&tasks)
            .with_context(|| folder_needed("data_dir", &tasks))?;
        let engine = config.store.engine;
        // It reads the disk, with sled for seconds if the store was not closed.
        let store = tokio::task::spawn_blocking(move || DiskStore::open(&tasks, engine)).await??;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let results = Arc::new(Results::new(checks.clone()));
        let ends = Arc::new(Ends::new(clock.clone()));
        let ports = Ports {
            store: Arc::new(store),
            runner: Arc::new(GuestRunner::new(
                runtime.clone(),
                results.clone(),
                ends.clone(),
            )),
            clock: clock.clone(),
            failures: Arc::new(Wording {
                ends: ends.clone(),
                waiting_bytes_max: config.tasks.waiting_bytes_max,
            }),
        };
        let engine = Engine::start(ports, engine_settings(&config)).await?;
        runtime.serve_directory();
        let listen = &config.listening;
        let hub = Hub::new(listen.streams_max, listen.streams_per_client_max);
        let sessions = Sessions::new(config.sessions.clone());
        let lingering = WaitingRoom::new(lingering_max(&config) as u64);
        let waiting_room = WaitingRoom::new(config.tasks.waiting_bytes_max);
        let call_rate = Rate::new(config.host.calls_per_minute);
        Ok(Self {
            hub,
            gathering: Gathering::default(),
            stopping,
            cut_off: CancellationToken::new(),
            config,
            runtime,
            engine,
            started_ms: clock.now_ms(),
            clock,
            sealer,
            checks,
            results,
            parked: ParkedCalls::default(),
            sessions,
            call_rate,
            ends,
            questions_asked: Arc::default(),
            waiting_room,
            lingering,
            catalogue: Served::default(),
            ready: AtomicBool::new(false),
        })
    }

    /// Serve until the stop; then end in order. Tasks stay as they are stored: a shutdown is no cancellation.
    async fn run<T>(&self, serving: impl Future<Output = T>, stop: &Stop, drain: Duration) -> T {
        let end_tasks = async {
            stop.begin.cancelled().await;
            self.ready.store(false, Ordering::Release);
            tokio::select! {
                () = self.engine.shutdown(drain) => {}
                // What is stored is whole whenever this is dropped; the store ends with its last owner.
                () = stop.now.cancelled() => self.engine.shutdown(Duration::ZERO).await,
            }
        };
        tokio::join!(serving, end_tasks).0
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let (ip, port) = (address.ip(), address.port());
    let why = match error.kind() {
        ErrorKind::AddrInUse => format!(
            "another program listens there, perhaps another longshore; end it, or choose another port (listen, --listen {ip}:0 for any free one)"
        ),
        ErrorKind::AddrNotAvailable => format!(
            "this machine has no such address; choose one that it has (listen, --listen 127.0.0.1:{port})"
        ),
        ErrorKind::PermissionDenied => format!(
            "this user may not use port {port}; choose one from 1024 on (listen, --listen {ip}:7777)"
        ),
        _ => format!("{error}; choose another address (listen, --listen)"),
    };
    anyhow::anyhow!("cannot listen at {address}: {why}")
}

/// With the operator's own keys, else with those of the data folder.
fn sealer(config: &Config) -> anyhow::Result<Sealer> {
    if !config.state_key_files.is_empty() {
        let sealer = Sealer::of_files(&config.state_key_files);
        return sealer.context("a key cannot be used (state_key_files)");
    }
    let keys = config.data_dir.join("keys");
    longshore_runtime::private_folder(&keys)
        .and_then(|()| Sealer::open(&keys))
        .with_context(|| folder_needed("data_dir", &keys))
}

fn folder_needed(key: &str, folder: &Path) -> String {
    format!("the folder {} is needed ({key})", folder.display())
}

/// How the runtime is set up by a configuration, with the components that are served kept in `components_dir`.
pub(crate) fn runtime_settings(
    config: &Config,
    components_dir: std::path::PathBuf,
) -> anyhow::Result<longshore_runtime::Settings> {
    let program = std::env::current_exe().context("this program's own file is not to be found")?;
    Ok(longshore_runtime::Settings {
        plugins_dir: config.plugins_dir.clone(),
        components_dir,
        compile_cache_dir: config.compile_cache_dir.clone(),
        compile_cache_bytes: config.compile_cache_bytes_max,
        compiler: Compiler {
            program,
            args: vec![OsString::from(COMPILE_COMMAND)],
            environment: CHILD_ENVIRONMENT
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            memory_bytes: config.host.compile_memory_bytes,
            cpu_s: config.host.compile_cpu_s,
        },
        concurrent_runs: config.host.concurrent_runs,
        queued_calls: config.host.queued_calls,
        component_bytes_max: config.host.component_bytes,
        plugin: config.common_settings(),
        plugins: config.own_settings(),
        check_question,
        grace: Duration::from_millis(config.tasks.grace_ms),
        tells_usage: config.usage_in_results,
        pins: config.pins(),
        history_versions: config.history_versions as usize,
        settle: if config.dev { DEV_SETTLE } else { SETTLE },
    })
}

/// Guests that may wait in memory for answers. They hold slots; calls must find some.
fn lingering_max(config: &Config) -> usize {
    let tasks = config.tasks.lingering_max;
    tasks.min(config.host.concurrent_runs / 4) as usize
}

fn engine_settings(config: &Config) -> longshore_tasks::Settings {
    longshore_tasks::Settings {
        keep_ms: config.tasks.keep_ms,
        linger_ms: config.tasks.linger_ms,
        lingering_max: lingering_max(config),
        waiting_bytes_max: usize::try_from(config.tasks.waiting_bytes_max).unwrap_or(usize::MAX),
        running_bytes_max: usize::try_from(config.tasks.running_bytes_max).unwrap_or(usize::MAX),
        grace_ms: config.tasks.grace_ms,
        patience: longshore_tasks::Patience {
            crashes_max: config.tasks.crashes_max,
            ..longshore_tasks::Settings::default().patience
        },
        open_per_principal_max: config.tasks.open_per_principal_max as usize,
        ..longshore_tasks::Settings::default()
    }
}

/// The first signal begins the stop, the second ends it at once.
fn follow_signals(stop: Stop) -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        for (token, what) in [(&stop.begin, "stopping"), (&stop.now, "stopping at once")] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("{what}");
            token.cancel();
        }
    })
}

/// Keep the catalogue at the newest snapshot.
async fn follow_plugins(app: Arc<App>) {
    let mut changes = app.runtime.changes();
    // What changed between the start and now counts too.
    changes.mark_changed();
    while changes.changed().await.is_ok() {
        let builder = app.clone();
        let build = move || {
            let former = builder.catalogue.load_full();
            let newer = Catalogue::build(&builder.runtime.snapshot(), &builder.config, &former);
            let newer = Arc::new(newer);
            let now_ms = builder.clock.now_ms();
            let seen = start::is_listed(&builder, &former);
            let kept_from_ms = seen.then_some(now_ms);
            builder.catalogue.replace(newer.clone(), kept_from_ms);
            // Only now, so that who hears of it and asks gets the new lists.
            if seen {
                builder.gathering.compare(&former, &newer);
            }
        };
        if let Err(error) = tokio::task::spawn_blocking(build).await {
            tracing::error!(%error, "the lists of what is served were not made anew");
        }
    }
}

/// Settings of a plugin or a tool that is not there: a slip of the pen, and a limit that does not hold.
async fn name_unknown_plugins(app: Arc<App>) {
    start::over(&app).await;
    let snapshot = app.runtime.snapshot();
    for (name, own) in &app.config.plugins {
        if !snapshot.plugins.contains_key(name) && !snapshot.refused.contains_key(name) {
            tracing::warn!(plugin = %name, "the configuration names a plugin that is not there: plugins.{name}");
        }
        let Some(plugin) = snapshot.plugins.get(name) else {
            continue;
        };
        let named: BTreeSet<_> = own.task_support.keys().chain(own.on_crash.keys()).collect();
        for tool in named {
            if !plugin.tools.iter().any(|served| served.name == *tool) {
                tracing::warn!(plugin = %name, tool, "the configuration names a tool that the plugin does not have (names stand there without their prefix): plugins.{name}.tools.{tool}");
            }
        }
    }
}

async fn sweep(app: Arc<App>) {
    let mut leftovers = Leftovers::default();
    loop {
        let now_ms = app.clock.now_ms();
        app.parked.sweep(now_ms);
        app.sessions.sweep(now_ms);
        app.catalogue.sweep(now_ms);
        app.ends.sweep();
        leftovers.sweep(&app, now_ms).await;
        app.clock
            .sleep_until(now_ms.saturating_add(SWEEP_EVERY_MS))
            .await;
    }
}
