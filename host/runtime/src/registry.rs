//! The plugins that are served now, and the versions that older calls still need.
//!
//! What is served is an immutable [`Snapshot`] behind one atomic swap: a call resolves once to an `Arc<Plugin>` and carries it
//! through. A component's bytes are on disk in the content store before its tools can be seen.
//!
//! It must not know how changes of the directory are noticed; that is `watch`.

use crate::admission::{Admission, Patience};
use crate::cache::CompileCache;
use crate::call::{Call, REPLAY_ABI};
use crate::compile::Compiler;
use crate::content::ContentStore;
use crate::contract::InputRequest;
use crate::engine::Host;
use crate::failure::Failure;
use crate::files;
use crate::grants::Grants;
use crate::history::History;
use crate::limits::Limits;
use crate::load::Loader;
use crate::news::{News, Newsroom};
use crate::plugin::{Inspection, Plugin, PluginError, Version};
use crate::record::Record;
use crate::run::{self, Rules, Run, Terms};
use crate::versions::Withheld;
use crate::watch;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, broadcast, watch as watch_channel};

/// Slots beside those of calls: a plugin is asked for its tools also when all of these are taken.
const SPARE_SLOTS: u32 = 8;

/// How a [`Runtime`] is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder whose `.wasm` files are the plugins.
    pub plugins_dir: PathBuf,
    /// Where the bytes of served components are kept.
    pub components_dir: PathBuf,
    /// Where compiled components are kept. Several hosts may share it.
    pub compile_cache_dir: PathBuf,
    /// Size of that folder, in bytes; beyond it what was used longest ago goes, if nothing here needs it.
    pub compile_cache_bytes: u64,
    /// How to compile.
    pub compiler: Compiler,
    /// Guests that may be alive at once, running or waiting.
    pub concurrent_runs: u32,
    /// Calls that may wait for a slot; more are refused as busy.
    pub queued_calls: u32,
    /// Size of a component file, in bytes.
    pub component_bytes_max: u64,
    /// What holds for a plugin of which nothing else is said. It should have no grants.
    pub plugin: PluginSettings,
    /// What holds for the others, by name.
    pub plugins: HashMap<String, PluginSettings>,
    /// What the wire says of a question; the error is for the guest.
    pub check_question: fn(&InputRequest) -> Result<(), String>,
    /// How long a guest may go on when its time is over, or after it has given its result.
    pub grace: Duration,
    /// Whether an answer comes with what its run used. Then it does not come before the run is over.
    pub tells_usage: bool,
    /// Whose definitions change only by the operator's word.
    pub pins: Pins,
    /// Versions of each plugin that an operator may go back to.
    pub history_versions: usize,
    /// How long a file must stand still before it is read, where nothing tells that it is whole.
    pub settle: Duration,
}

/// Plugins whose definitions change only by the operator's word.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// What holds for plugins without a word of their own.
    pub all: bool,
    /// The word on one plugin, by name.
    pub plugins: HashMap<String, bool>,
}

impl Pins {
    /// Whether they hold this plugin.
    pub(crate) fn hold(&self, name: &str) -> bool {
        self.plugins.get(name).copied().unwrap_or(self.all)
    }
}

/// What the operator says of one plugin.
#[derive(Clone, Debug, Default)]
pub struct PluginSettings {
    /// The limits of its runs.
    pub limits: Limits,
    /// What it may reach.
    pub grants: Arc<Grants>,
    /// Its work is not counted, so that it runs faster; time is the only bound on it.
    pub unmetered: bool,
}

/// A file that is not served, or not in its newest version.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Name of the plugin: the file's name without `.wasm`.
    pub plugin: String,
    /// What is in the file, if it could be read.
    pub version: Option<Version>,
    /// Why.
    pub reason: PluginError,
    /// The version that goes on serving, if there is one.
    pub still_serving: Option<Version>,
}

/// What is served, as one value.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Counts changes, from 0.
    pub generation: u64,
    /// Whether all that lay in the directory at the start has been served or refused.
    pub settled: bool,
    /// By name.
    pub plugins: BTreeMap<String, Arc<Plugin>>,
    /// By name.
    pub refused: BTreeMap<String, Refusal>,
    /// Versions that could be served and are not, by the name of their plugin.
    pub withheld: BTreeMap<String, Withheld>,
}

/// Keeps plugins loaded and current, and runs them. Cheap to clone; the last clone ends it.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

/// A version of a plugin, by the plugin's name.
type Key = (String, Version);

/// Held by who loads a version.
type Turn = tokio::sync::Mutex<()>;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    host: Arc<Host>,
    pub(crate) loader: Loader,
    pub(crate) content: Arc<ContentStore>,
    pub(crate) history: History,
    pub(crate) admission: Arc<Admission>,
    snapshot: ArcSwap<Snapshot>,
    generation: watch_channel::Sender<u64>,
    /// Held while the snapshot is changed: a change builds on the one before it.
    publishing: Mutex<()>,
    newsroom: Arc<Newsroom>,
    /// Versions that are not served any more and that some call still holds.
    former: Mutex<HashMap<Key, Weak<Plugin>>>,
    /// One for each version that is being loaded for a call, so that a thousand tasks load it once.
    loading: Mutex<HashMap<Key, Weak<Turn>>>,
}

impl Runtime {
    /// Set up. No plugin is loaded yet.
    ///
    /// # Errors
    /// If the engine cannot be made, or a folder cannot be.
    pub fn new(settings: Settings) -> Result<Self, PluginError> {
        let storage = |what: &Path, error: std::io::Error| {
            PluginError::Storage(format!("{}: {error}", what.display()))
        };
        let host = Host::new(settings.concurrent_runs.saturating_add(SPARE_SLOTS))
            .map_err(|error| PluginError::Storage(format!("the engine: {error:#}")))?;
        let host = Arc::new(host);
        let content = ContentStore::open(settings.components_dir.clone())
            .map_err(|error| storage(&settings.components_dir, error))?;
        let history_file = settings.components_dir.join("history.json");
        let history = History::open(history_file.clone(), settings.history_versions)
            .map_err(|error| storage(&history_file, error))?;
        let cache_dir = settings.compile_cache_dir.clone();
        let bytes_max = settings.compile_cache_bytes;
        let cache = CompileCache::open(cache_dir.clone(), settings.compiler.clone(), bytes_max)
            .map_err(|error| storage(&cache_dir, error))?;
        let admission = Admission::new(settings.concurrent_runs, settings.queued_calls);
        let inner = |newsroom: Arc<Newsroom>| Inner {
            loader: Loader {
                host: host.clone(),
                unmetered: OnceLock::new(),
                cache,
                listings: Semaphore::new(SPARE_SLOTS as usize),
            },
            settings,
            host,
            content: Arc::new(content),
            history,
            admission: Arc::new(admission),
            snapshot: ArcSwap::default(),
            generation: watch_channel::channel(0).0,
            publishing: Mutex::default(),
            newsroom,
            former: Mutex::default(),
            loading: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new_cyclic(|desk: &Weak<Inner>| inner(Newsroom::new(desk.clone()))),
        })
    }

    /// Load what lies in the directory, and follow its changes, in the background, until the last clone is gone. The snapshot is
    /// settled when all that was there is served or refused.
    pub fn serve_directory(&self) {
        watch::follow(&self.inner);
    }

    /// What is served now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.snapshot.load_full()
    }

    /// Tells of new generations of the snapshot.
    pub fn changes(&self) -> watch_channel::Receiver<u64> {
        self.inner.generation.subscribe()
    }

    /// News that plugins tell of themselves. A listener that lags behind loses the oldest.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.inner.newsroom.listen()
    }

    /// A version that is served, or was.
    ///
    /// # Errors
    /// If its bytes are not to be had any more, or do not load.
    pub async fn plugin_by_version(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<Arc<Plugin>, PluginError> {
        self.inner.plugin_by_version(name, version).await
    }

    /// Where guests run. For who measures runs alone: one that is started from there is not handed over from another thread.
    pub fn guest_threads(&self) -> tokio::runtime::Handle {
        self.inner.host.threads().clone()
    }

    /// Run a call from its record. The run fails at once if the record was made by a host with another replay ABI, or under
    /// other grants.
    pub fn run(
        &self,
        plugin: &Arc<Plugin>,
        call: Call,
        record: Option<Record>,
        patience: Patience,
    ) -> Run {
        let inner = &self.inner;
        if record.is_some() && call.grants != plugin.grants_print {
            let plugin = &plugin.name;
            let detail = format!(
                "what the operator grants the plugin {plugin} has changed since the call began"
            );
            return run::stillborn(&inner.host, Failure::Diverged { step: 0, detail });
        }
        if record.is_some() && call.abi != REPLAY_ABI {
            let detail = format!(
                "the record has replay ABI {}, this host {REPLAY_ABI}",
                call.abi
            );
            return run::stillborn(&inner.host, Failure::Diverged { step: 0, detail });
        }
        let rules = Rules {
            check_question: inner.settings.check_question,
            grace: inner.settings.grace,
            tells_usage: inner.settings.tells_usage,
            newsroom: Some(inner.newsroom.clone()),
        };
        let terms = Terms { rules, patience };
        run::start(
            &plugin.host,
            &inner.admission,
            plugin,
            (call, record),
            terms,
        )
    }

    /// A run that fails at once, for a call whose plugin cannot be had.
    pub fn failed_run(&self, failure: Failure) -> Run {
        run::stillborn(&self.inner.host, failure)
    }

    /// Load a file as the server would, without serving it.
    ///
    /// # Errors
    /// Why it would not be served.
    pub async fn check_file(&self, path: &Path) -> Result<Plugin, PluginError> {
        let (version, bytes) = self.inner.read_component(path).await?;
        self.inner.load(&plugin_name(path), version, &bytes).await
    }

    /// What a component file says of itself.
    ///
    /// # Errors
    /// If it is no component that compiles.
    pub async fn inspect_file(&self, path: &Path) -> Result<Inspection, PluginError> {
        let (version, bytes) = self.inner.read_component(path).await?;
        self.inner.loader.inspect(version, &bytes).await
    }
}

/// The name of the plugin in this file.
pub(crate) fn plugin_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    match name.to_str() {
        Some(name) => name.to_owned(),
        // It is refused, but under a name of its own.
        None => name.as_encoded_bytes().escape_ascii().to_string(),
    }
}

impl Inner {
    pub(crate) fn current(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The bytes of a component file, if it is a regular file and not too large, and the version that they are.
    pub(crate) async fn read_component(
        &self,
        path: &Path,
    ) -> Result<(Version, Vec<u8>), PluginError> {
        if path.file_stem().is_some_and(|name| name.to_str().is_none()) {
            let problem = "its name is not UTF-8; give it another one".to_owned();
            return Err(PluginError::Read(problem));
        }
        let bytes_max = self.settings.component_bytes_max;
        let path = path.to_owned();
        let read = move || {
            let file = match files::open_regular(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_symlink() => {
                    let to = std::fs::read_link(&path)?;
                    return Ok(Err(PluginError::Dangling(to.display().to_string())));
                }
                opened => opened?,
            };
            let bytes = file.metadata()?.len();
            if bytes > bytes_max {
                return Ok(Err(PluginError::TooLarge { bytes, bytes_max }));
            }
            let mut component = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
            // It may grow meanwhile; then it is read again.
            file.take(bytes_max).read_to_end(&mut component)?;
            Ok(Ok((Version::of(&component), component)))
        };
        let failed = |error: std::io::Error| PluginError::Read(error.to_string());
        files::aside(read).await.map_err(failed)?
    }

    pub(crate) async fn plugin_by_version(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<Arc<Plugin>, PluginError> {
        if let Some(plugin) = self.in_memory(name, version) {
            return Ok(plugin);
        }
        let turn = self.turn_to_load(name, version);
        let _turn = turn.lock().await;
        if let Some(plugin) = self.in_memory(name, version) {
            return Ok(plugin);
        }
        let (content, wanted) = (self.content.clone(), version.clone());
        let read = files::aside(move || content.read(&wanted)).await;
        let bytes = read.map_err(|error| {
            PluginError::Storage(format!("version {version} of {name}: {error}"))
        })?;
        let plugin = Arc::new(self.load(name, version.clone(), &bytes).await?);
        self.remember_former(&plugin);
        Ok(plugin)
    }

    /// Load these bytes, which have this version.
    pub(crate) async fn load(
        &self,
        name: &str,
        version: Version,
        bytes: &[u8],
    ) -> Result<Plugin, PluginError> {
        let settings = &self.settings;
        let own = settings.plugins.get(name).unwrap_or(&settings.plugin);
        self.loader.load(name, version, bytes, own.clone()).await
    }

    /// Keep the bytes of a component. They are on disk when this returns.
    pub(crate) async fn keep(&self, version: &Version, bytes: Vec<u8>) -> Result<(), PluginError> {
        let (content, version) = (self.content.clone(), version.clone());
        let kept = files::aside(move || content.keep(&version, &bytes)).await;
        kept.map_err(|error| PluginError::Storage(error.to_string()))
    }

    /// A version that is served, or that some call still holds.
    fn in_memory(&self, name: &str, version: &Version) -> Option<Arc<Plugin>> {
        let served = self.current().plugins.get(name).cloned();
        served
            .filter(|plugin| plugin.version == *version)
            .or_else(|| {
                let key = (name.to_owned(), version.clone());
                self.former.lock().get(&key).and_then(Weak::upgrade)
            })
    }

    fn turn_to_load(&self, name: &str, version: &Version) -> Arc<Turn> {
        let key = (name.to_owned(), version.clone());
        let mut loading = self.loading.lock();
        loading.retain(|_, turn| turn.strong_count() > 0);
        let turn = loading.get(&key).and_then(Weak::upgrade);
        turn.unwrap_or_else(|| {
            let turn = Arc::default();
            loading.insert(key, Arc::downgrade(&turn));
            turn
        })
    }

    /// Change what is served.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut Snapshot)) {
        let changed = self.try_publish(|snapshot| {
            change(snapshot);
            Ok::<_, Infallible>(())
        });
        match changed {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Change what is served, unless the change is found impossible.
    pub(crate) fn try_publish<T, E>(
        &self,
        change: impl FnOnce(&mut Snapshot) -> Result<T, E>,
    ) -> Result<T, E> {
        let _alone = self.publishing.lock();
        let before = self.snapshot.load_full();
        let mut snapshot = Snapshot::clone(&before);
        let changed = change(&mut snapshot)?;
        snapshot.generation += 1;
        for (name, plugin) in &before.plugins {
            let replaced = snapshot
                .plugins
                .get(name)
                .is_none_or(|now| now.version != plugin.version);
            if replaced {
                self.remember_former(plugin);
            }
        }
        let generation = snapshot.generation;
        self.snapshot.store(Arc::new(snapshot));
        self.generation.send_replace(generation);
        Ok(changed)
    }

    /// Versions that some call holds, though they are not served any more.
    pub(crate) fn versions_in_use(&self) -> Vec<Version> {
        let former = self.former.lock();
        let held = former.iter().filter(|(_, held)| held.strong_count() > 0);
        held.map(|((_, version), _)| version.clone()).collect()
    }

    pub(crate) fn remember_former(&self, plugin: &Arc<Plugin>) {
        let mut former = self.former.lock();
        former.retain(|_, held| held.strong_count() > 0);
        former.insert(
            (plugin.name.clone(), plugin.version.clone()),
            Arc::downgrade(plugin),
        );
    }
}
