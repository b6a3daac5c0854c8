//! Follows the directory of plugins.
//!
//! Native events are hints that something may have changed; the truth is what a scan finds, and a slow rescan catches what no
//! event told. A file is read at once when it came under its name as a whole or its writer has closed it, else when it has
//! stood still for a moment. A file that cannot be served leaves its older version serving; it is looked at again when it
//! changes.
//!
//! - `list`: what lies there.
//! - `signs`: what the system tells.
//!
//! It must not know which version of a plugin is served; that is `versions`.

mod list;
mod signs;

use crate::clock;
use crate::registry::{Inner, plugin_name};
use crate::versions::Look;
use list::{Listing, Stamp};
use notify::RecommendedWatcher;
use signs::{Signs, Told};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::task::{AbortHandle, Id, JoinSet};

/// How often the directory is looked at without a hint. It costs a few system calls a file.
const RESCAN: Duration = Duration::from_secs(1);

/// How long a file must stand still where nothing tells of its writer: some file systems show what another machine writes late,
/// and in pieces.
const STILL_WITHOUT_EVENTS: Duration = Duration::from_millis(500);

/// How long a writer may pause before its file is read all the same: it may never close it.
const WRITER_PAUSE: Duration = Duration::from_secs(2);

/// Files that are loaded at once. Fewer are compiled at once; the others wait for that with their bytes in memory.
const LOADS_MAX: usize = 16;

/// Look at the directory, and follow it, in the background, until the runtime is gone.
pub(crate) fn follow(inner: &Arc<Inner>) {
    tokio::spawn(Follower::new(inner).go_on());
}

/// Wait until it is time to look again. Who cancels it must look at once: a hint may have been taken.
async fn next_look(signs: &Signs, settle: Duration, pause: Duration) {
    let hinted = async {
        signs.hint.notified().await;
        clock::sleep(settle).await;
    };
    tokio::select! {
        () = signs.whole.notified() => {}
        () = hinted => {}
        () = clock::sleep(pause) => {}
    }
}

#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    since: Instant,
    read: bool,
}

struct Loaded {
    path: PathBuf,
    stamp: Stamp,
    look: Look,
}

struct Follower {
    runtime: Weak<Inner>,
    settle: Duration,
    signs: Arc<Signs>,
    /// Dropping it ends the events.
    watcher: Option<RecommendedWatcher>,
    /// The folder that the events are of.
    folder: Option<(u64, u64)>,
    seen: HashMap<PathBuf, Seen>,
    /// Files that are not there any more, and since when.
    missing: HashMap<PathBuf, Instant>,
    waiting: VecDeque<(PathBuf, Stamp)>,
    loads: JoinSet<Loaded>,
    loading: HashMap<PathBuf, AbortHandle>,
    unreadable: bool,
    first_look: bool,
}

impl Follower {
    fn new(inner: &Arc<Inner>) -> Self {
        Self {
            runtime: Arc::downgrade(inner),
            settle: inner.settings.settle,
            signs: Arc::default(),
            watcher: None,
            folder: None,
            seen: HashMap::new(),
            missing: HashMap::new(),
            waiting: VecDeque::new(),
            loads: JoinSet::new(),
            loading: HashMap::new(),
            unreadable: false,
            first_look: true,
        }
    }

    async fn go_on(mut self) {
        loop {
            let Some(inner) = self.runtime.upgrade() else {
                return;
            };
            self.scan(&inner).await;
            self.end_first_look(&inner);
            drop(inner);
            let pause = if self.is_unsettled() {
                self.settle
            } else {
                RESCAN
            };
            let signs = self.signs.clone();
            let mut look = pin!(next_look(&signs, self.settle, pause));
            // Not after each load: with a thousand files that would be a million looks at one.
            loop {
                let loaded = tokio::select! {
                    () = &mut look => break,
                    Some(loaded) = self.loads.join_next_with_id() => loaded,
                };
                let Some(inner) = self.runtime.upgrade() else {
                    return;
                };
                self.loaded(&inner, loaded);
                self.end_first_look(&inner);
            }
        }
    }

    /// How long a file must stand still before it is read, if nothing tells that it is whole.
    fn still(&self) -> Duration {
        match self.watcher {
            Some(_) => self.settle,
            None => self.settle.max(STILL_WITHOUT_EVENTS),
        }
    }

    fn is_unsettled(&self) -> bool {
        !self.missing.is_empty() || self.seen.values().any(|seen| !seen.read)
    }

    fn end_first_look(&mut self, inner: &Inner) {
        if self.first_look && self.loading.is_empty() && self.waiting.is_empty() {
            self.first_look = false;
            inner.publish(|snapshot| snapshot.settled = true);
        }
    }

    async fn scan(&mut self, inner: &Arc<Inner>) {
        let folder = inner.settings.plugins_dir.clone();
        let told = self.signs.take();
        let found = tokio::task::spawn_blocking(move || list::list(&folder)).await;
        let Listing { folder, files } = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return self.cannot_read(&error.to_string()),
            Err(error) => return self.cannot_read(&error.to_string()),
        };
        self.unreadable = false;
        if self.folder.replace(folder) != Some(folder) {
            // What changed before there were events is found by the next look.
            self.watcher = signs::listen(&inner.settings.plugins_dir, &self.signs);
            self.signs.hint.notify_one();
        }
        let mut ready: Vec<_> = files
            .iter()
            .filter(|(path, stamp)| self.is_ready(path, **stamp, &told))
            .map(|(path, stamp)| (path.clone(), *stamp))
            .collect();
        // The small ones first: they are served while the large ones compile.
        ready.sort_by_key(|(_, stamp)| stamp.len);
        self.load(inner, ready);
        self.notice_missing(inner, &files);
    }

    fn cannot_read(&mut self, error: &str) {
        self.folder = None;
        if !std::mem::replace(&mut self.unreadable, true) {
            tracing::error!(
                error,
                "the folder of plugins cannot be read; what is loaded goes on serving"
            );
        }
    }

    /// Whether a file is to be read now: it is in a new state, and whole as far as can be known.
    fn is_ready(&mut self, path: &Path, stamp: Stamp, told: &Told) -> bool {
        self.missing.remove(path);
        let still = self.still();
        let now = clock::instant();
        let seen = self.seen.entry(path.to_owned()).or_insert(Seen {
            stamp,
            since: now,
            read: false,
        });
        if seen.stamp != stamp {
            *seen = Seen {
                stamp,
                since: now,
                read: false,
            };
        }
        if seen.read {
            return false;
        }
        let stood = now.duration_since(seen.since);
        if told.written.contains(path) {
            seen.read = stood >= WRITER_PAUSE;
            if seen.read {
                self.signs.forget(path);
            }
        } else {
            let is_whole = told.whole.contains(path) || self.first_look;
            seen.read = is_whole || stood >= still;
        }
        seen.read
    }

    /// A file that stays away is removed; for a moment it may be on its way to be replaced.
    fn notice_missing(&mut self, inner: &Arc<Inner>, found: &BTreeMap<PathBuf, Stamp>) {
        let now = clock::instant();
        let gone = self.seen.keys().filter(|path| !found.contains_key(*path));
        for path in gone.cloned().collect::<Vec<_>>() {
            let since = *self.missing.entry(path.clone()).or_insert(now);
            if now.duration_since(since) < self.settle {
                continue;
            }
            self.missing.remove(&path);
            self.seen.remove(&path);
            self.signs.forget(&path);
            self.forget_loads(&HashSet::from([path.as_path()]));
            inner.remove(&plugin_name(&path));
        }
    }

    fn forget_loads(&mut self, paths: &HashSet<&Path>) {
        self.waiting
            .retain(|(waiting, _)| !paths.contains(waiting.as_path()));
        for path in paths {
            if let Some(load) = self.loading.remove(*path) {
                load.abort();
            }
        }
    }

    fn load(&mut self, inner: &Arc<Inner>, ready: Vec<(PathBuf, Stamp)>) {
        if ready.is_empty() {
            return;
        }
        // A newer state of a file: what was being loaded is of no interest any more.
        self.forget_loads(&ready.iter().map(|(path, _)| path.as_path()).collect());
        self.waiting.extend(ready);
        self.start_loads(inner);
    }

    fn start_loads(&mut self, inner: &Arc<Inner>) {
        while self.loading.len() < LOADS_MAX
            && let Some((path, stamp)) = self.waiting.pop_front()
        {
            let (runtime, file) = (inner.clone(), path.clone());
            let load = self.loads.spawn(async move {
                let look = runtime.look_at(&file).await;
                Loaded {
                    path: file,
                    stamp,
                    look,
                }
            });
            self.loading.insert(path, load);
        }
    }

    fn loaded(&mut self, inner: &Arc<Inner>, loaded: Result<(Id, Loaded), tokio::task::JoinError>) {
        match loaded {
            // An aborted load may have been done already; its file is being loaded anew.
            Ok((id, loaded)) => {
                let expected = self.loading.get(&loaded.path);
                if expected.is_some_and(|load| load.id() == id) {
                    self.loading.remove(&loaded.path);
                    // What was read while it changed may be half of this and half of that; the next look sees the change.
                    if Stamp::now(&loaded.path) == Some(loaded.stamp) {
                        inner.take(loaded.look);
                    }
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
