//! Follows the directory of plugins.
//!
//! Native events are hints that something may have changed; the truth is what a scan finds, and a slow rescan catches what no
//! event told. A file is read when it has stood still for a moment. A file that cannot be served leaves its older version
//! serving; it is looked at again when it changes.

use crate::clock;
use crate::plugin::{Plugin, PluginError, Version};
use crate::registry::{Inner, Refusal, plugin_name};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinSet};

/// How long a file must stand still before it is read.
const SETTLE: Duration = Duration::from_millis(80);

/// How often the directory is looked at without a hint. It costs a few system calls a file.
const RESCAN: Duration = Duration::from_secs(1);

/// Files that are loaded at once: compiling takes a core each.
const LOADS_MAX: usize = 2;

/// Load what is there; then go on in the background until the runtime is gone.
pub(crate) async fn follow(inner: &Arc<Inner>) {
    let (hint, hints) = mpsc::channel(1);
    let watcher = watch_native(&inner.settings.plugins_dir, hint);
    let mut follower = Follower::new(inner, hints, watcher);
    follower.scan(inner, true).await;
    while follower.is_loading() {
        follower.finish_one(inner).await;
    }
    tokio::spawn(follower.go_on());
}

/// Events of the system, if it has them for this directory. Without them the rescan has to do.
fn watch_native(folder: &Path, hint: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let tell = move |_: notify::Result<notify::Event>| {
        // The channel has room for one: one hint is as good as many.
        let _ = hint.try_send(());
    };
    notify::recommended_watcher(tell)
        .and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        })
        .inspect_err(|error| {
            tracing::warn!(%error, folder = %folder.display(), "no events of changes are to be had; the folder is looked at every second");
        })
        .ok()
}

/// What tells two states of a file apart. The change time moves even when a tool sets an old modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
}

#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    read: bool,
}

type Loaded = (PathBuf, Result<Option<Plugin>, PluginError>);

struct Follower {
    runtime: Weak<Inner>,
    hints: mpsc::Receiver<()>,
    // Dropping it ends the events.
    _watcher: Option<RecommendedWatcher>,
    seen: HashMap<PathBuf, Seen>,
    missing: HashSet<PathBuf>,
    waiting: Vec<PathBuf>,
    loads: JoinSet<Loaded>,
    loading: HashMap<PathBuf, AbortHandle>,
    unreadable: bool,
}

impl Follower {
    fn new(
        inner: &Arc<Inner>,
        hints: mpsc::Receiver<()>,
        watcher: Option<RecommendedWatcher>,
    ) -> Self {
        Self {
            runtime: Arc::downgrade(inner),
            hints,
            _watcher: watcher,
            seen: HashMap::new(),
            missing: HashSet::new(),
            waiting: Vec::new(),
            loads: JoinSet::new(),
            loading: HashMap::new(),
            unreadable: false,
        }
    }

    fn is_loading(&self) -> bool {
        !self.loads.is_empty()
    }

    async fn go_on(mut self) {
        loop {
            let pause = if self.is_unsettled() { SETTLE } else { RESCAN };
            tokio::select! {
                _ = self.hints.recv() => clock::sleep(SETTLE).await,
                () = clock::sleep(pause) => {}
                Some(loaded) = self.loads.join_next_with_id() => {
                    let Some(inner) = self.runtime.upgrade() else { return };
                    self.loaded(&inner, loaded);
                    continue;
                }
            }
            let Some(inner) = self.runtime.upgrade() else {
                return;
            };
            self.scan(&inner, false).await;
        }
    }

    fn is_unsettled(&self) -> bool {
        !self.missing.is_empty() || self.seen.values().any(|seen| !seen.read)
    }

    /// Look at the directory once. `settled`: take each file as it is, without waiting for it to stand still.
    async fn scan(&mut self, inner: &Arc<Inner>, settled: bool) {
        let folder = inner.settings.plugins_dir.clone();
        let found = tokio::task::spawn_blocking(move || list(&folder)).await;
        let found = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return self.cannot_read(&error.to_string()),
            Err(error) => return self.cannot_read(&error.to_string()),
        };
        self.unreadable = false;
        for (path, stamp) in &found {
            self.missing.remove(path);
            let stood_still = self.seen.get(path).is_some_and(|seen| seen.stamp == *stamp);
            if self
                .seen
                .get(path)
                .is_some_and(|seen| seen.read && stood_still)
            {
                continue;
            }
            let read = settled || stood_still;
            self.seen.insert(
                path.clone(),
                Seen {
                    stamp: *stamp,
                    read,
                },
            );
            if read {
                self.load(inner, path);
            }
        }
        self.notice_missing(inner, &found);
    }

    fn cannot_read(&mut self, error: &str) {
        if !std::mem::replace(&mut self.unreadable, true) {
            tracing::error!(
                error,
                "the folder of plugins cannot be read; what is loaded goes on serving"
            );
        }
    }

    /// A file that is gone at two looks is removed; at one look it may be on its way to be replaced.
    fn notice_missing(&mut self, inner: &Arc<Inner>, found: &BTreeMap<PathBuf, Stamp>) {
        let gone: Vec<PathBuf> = self
            .seen
            .keys()
            .filter(|path| !found.contains_key(*path))
            .cloned()
            .collect();
        for path in gone {
            if self.missing.insert(path.clone()) {
                continue;
            }
            self.missing.remove(&path);
            self.seen.remove(&path);
            self.forget_load(&path);
            let name = plugin_name(&path);
            tracing::info!(plugin = %name, "the plugin's file is gone; it is not served any more");
            inner.publish(|snapshot| {
                snapshot.plugins.remove(&name);
                snapshot.refused.remove(&name);
            });
        }
    }

    fn forget_load(&mut self, path: &Path) {
        self.waiting.retain(|waiting| waiting != path);
        if let Some(load) = self.loading.remove(path) {
            load.abort();
        }
    }

    fn load(&mut self, inner: &Arc<Inner>, path: &Path) {
        // A newer state of the file: what was being loaded is of no interest any more.
        self.forget_load(path);
        self.waiting.push(path.to_owned());
        self.start_loads(inner);
    }

    fn start_loads(&mut self, inner: &Arc<Inner>) {
        while self.loading.len() < LOADS_MAX && !self.waiting.is_empty() {
            let path = self.waiting.remove(0);
            let (runtime, file) = (inner.clone(), path.clone());
            let load = self.loads.spawn(async move {
                let loaded = runtime.load_to_serve(&file).await;
                (file, loaded)
            });
            self.loading.insert(path, load);
        }
    }

    async fn finish_one(&mut self, inner: &Arc<Inner>) {
        if let Some(loaded) = self.loads.join_next_with_id().await {
            self.loaded(inner, loaded);
        }
    }

    fn loaded(&mut self, inner: &Arc<Inner>, loaded: Result<(Id, Loaded), tokio::task::JoinError>) {
        match loaded {
            Ok((id, (path, result))) => {
                // An aborted load may have been done already; its file is being loaded anew.
                if self.loading.get(&path).is_some_and(|load| load.id() == id) {
                    self.loading.remove(&path);
                    take(inner, &path, result);
                }
            }
            Err(error) => {
                self.loading.retain(|_, load| load.id() != error.id());
                if error.is_panic() {
                    tracing::error!(%error, "a load panicked; its file is not served");
                }
            }
        }
        self.start_loads(inner);
    }
}

/// Serve what was loaded, or say why not.
fn take(inner: &Inner, path: &Path, result: Result<Option<Plugin>, PluginError>) {
    let name = plugin_name(path);
    match result {
        Ok(Some(plugin)) => {
            tracing::info!(plugin = %name, version = %plugin.version, tools = plugin.tools.len(), "serving the plugin");
            inner.publish(|snapshot| {
                snapshot.refused.remove(&name);
                snapshot.plugins.insert(name.clone(), Arc::new(plugin));
            });
        }
        Ok(None) => inner.publish_recovery(&name),
        Err(reason) => refuse(inner, name, reason),
    }
}

fn refuse(inner: &Inner, name: String, reason: PluginError) {
    let still_serving = inner.served_version(&name);
    match &still_serving {
        Some(version) => {
            tracing::error!(plugin = %name, %reason, %version, "the new file is refused; the older version goes on serving");
        }
        None => tracing::error!(plugin = %name, %reason, "the file is refused"),
    }
    inner.publish(|snapshot| {
        let refusal = Refusal {
            plugin: name.clone(),
            reason,
            still_serving,
        };
        snapshot.refused.insert(name, refusal);
    });
}

impl Inner {
    fn served_version(&self, name: &str) -> Option<Version> {
        self.current()
            .plugins
            .get(name)
            .map(|plugin| plugin.version.clone())
    }

    /// The file holds what is served: an earlier refusal is over.
    fn publish_recovery(&self, name: &str) {
        if self.current().refused.contains_key(name) {
            self.publish(|snapshot| {
                snapshot.refused.remove(name);
            });
        }
    }
}

/// What is named `*.wasm` in a folder, also what is no file. Hidden files are left out: tools write under such names before they rename.
fn list(folder: &Path) -> std::io::Result<BTreeMap<PathBuf, Stamp>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden || path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        // Follows links. A file that vanished meanwhile is simply not there.
        let Ok(metadata) = std::fs::metadata(&path) else {
            continue;
        };
        // What is no regular file is refused by its name, and never opened.
        found.insert(path, stamp(&metadata));
    }
    Ok(found)
}

fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    Stamp {
        len: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    }
}
