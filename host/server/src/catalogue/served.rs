//! The catalogue that is served, and for a while those before it: a client that reads a list page by page gets all of it from
//! one.

use super::Catalogue;
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

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
    /// Tells of another one.
    replaced: watch::Sender<()>,
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

    /// Serve another one from now on. The present one is kept from this time on, unless nobody has seen a page of it.
    pub(crate) fn replace(&self, newer: Arc<Catalogue>, kept_from_ms: Option<u64>) {
        let former = self.current.swap(newer);
        if let Some(now_ms) = kept_from_ms {
            let mut kept = self.former.lock();
            kept.push_front((now_ms, former));
            kept.truncate(FORMER_MAX);
        }
        self.replaced.send_replace(());
    }

    /// The first one that is as wanted; when the patience is over, the present one.
    pub(crate) async fn wait(
        &self,
        patience: Duration,
        wanted: impl Fn(&Catalogue) -> bool,
    ) -> Arc<Catalogue> {
        let mut replaced = self.replaced.subscribe();
        let found = async {
            loop {
                let current = self.load_full();
                if wanted(&current) {
                    return current;
                }
                // The sender lives as long as this.
                let _ = replaced.changed().await;
            }
        };
        let found = tokio::time::timeout(patience, found).await;
        found.unwrap_or_else(|_| self.load_full())
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
