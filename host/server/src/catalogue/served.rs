//! The catalogue that is served, and for a while those before it: a client that reads a list page by page gets all of it from
//! one.

use super::Catalogue;
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Former catalogues that are kept. Each holds its plugins, so these are few.
const FORMER_MAX: usize = 4;

/// How long they are kept, in milliseconds: a client reads its pages one after the other.
const FORMER_MS: u64 = 60_000;

/// The catalogues.
#[derive(Debug, Default)]
pub(crate) struct Served {
    current: ArcSwap<Catalogue>,
    /// With the time at which they were replaced, the latest first.
    former: Mutex<VecDeque<(u64, Arc<Catalogue>)>>,
}

impl Served {
    /// The present one, for a moment.
    pub(crate) fn load(&self) -> Guard<Arc<Catalogue>> {
        self.current.load()
    }

    /// The present one.
    pub(crate) fn load_full(&self) -> Arc<Catalogue> {
        self.current.load_full()
    }

    /// Serve another one from now on.
    pub(crate) fn replace(&self, newer: Arc<Catalogue>, now_ms: u64) {
        let former = self.current.swap(newer);
        let mut kept = self.former.lock();
        kept.push_front((now_ms, former));
        kept.truncate(FORMER_MAX);
    }

    /// The latest of the former ones that is as wanted.
    pub(crate) fn former(&self, wanted: impl Fn(&Catalogue) -> bool) -> Option<Arc<Catalogue>> {
        let kept = self.former.lock();
        let found = kept.iter().find(|(_, catalogue)| wanted(catalogue));
        found.map(|(_, catalogue)| catalogue.clone())
    }

    /// Let go of those that were kept for long enough.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.former
            .lock()
            .retain(|(replaced_ms, _)| now_ms.saturating_sub(*replaced_ms) < FORMER_MS);
    }
}
