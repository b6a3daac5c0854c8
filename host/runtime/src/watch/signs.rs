//! What the system tells of the directory, as it comes: that something may have changed, that a file is being written, and that
//! it is whole.
//!
//! It must not know what is done about it. Nothing here is the truth: events get lost, and some file systems have none.

use super::list::is_component;
use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;

/// Files that are remembered at once; what is told of more is a hint only, and the next look finds them.
const FILES_MAX: usize = 4_096;

/// What was told of a file last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// Somebody writes it.
    Written,
    /// It was closed behind a writer, or came under its name as a whole.
    Whole,
}

/// What was told since it was last asked for.
#[derive(Debug, Default)]
pub(super) struct Signs {
    files: Mutex<HashMap<PathBuf, Sign>>,
    /// Rings for anything at all.
    pub(super) hint: Notify,
    /// Rings when a file is whole.
    pub(super) whole: Notify,
}

/// Files by what was told of them.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) whole: HashSet<PathBuf>,
    pub(super) written: HashSet<PathBuf>,
}

impl Signs {
    /// What was told. That a file is whole is told once; that it is being written, until it is whole.
    pub(super) fn take(&self) -> Told {
        let mut told = Told::default();
        self.files.lock().retain(|path, sign| {
            let set = match sign {
                Sign::Whole => &mut told.whole,
                Sign::Written => &mut told.written,
            };
            set.insert(path.clone());
            *sign == Sign::Written
        });
        told
    }

    /// A file is gone, or its writer took too long: what was told of it does not count any more.
    pub(super) fn forget(&self, path: &Path) {
        self.files.lock().remove(path);
    }

    fn note(&self, event: notify::Result<Event>) {
        if let Ok(event) = event
            && let Some(sign) = sign(event.kind)
        {
            let mut files = self.files.lock();
            for path in event.paths.into_iter().filter(|path| is_component(path)) {
                if files.len() < FILES_MAX || files.contains_key(&path) {
                    files.insert(path, sign);
                }
            }
            if sign == Sign::Whole {
                self.whole.notify_one();
            }
        }
        self.hint.notify_one();
    }
}

fn sign(kind: EventKind) -> Option<Sign> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(Sign::Whole),
        EventKind::Modify(ModifyKind::Data(_)) => Some(Sign::Written),
        _ => None,
    }
}

/// Have the system tell of a folder, if it can. It ends when what is returned is dropped.
pub(super) fn listen(folder: &Path, signs: &Arc<Signs>) -> Option<RecommendedWatcher> {
    let told = signs.clone();
    notify::recommended_watcher(move |event| told.note(event))
        .and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        })
        .inspect_err(|error| {
            tracing::warn!(%error, folder = %folder.display(), "the system tells of no changes in the folder of plugins, so it is looked at every second; if a limit is reached, raise fs.inotify.max_user_instances or max_user_watches (sysctl) and start again");
        })
        .ok()
}
