//! News of plugins: that a list or a resource has changed. A burst becomes one.
//!
//! Each plugin has a teller of its own while it has news: it tells what has gathered, rests for a moment, and looks again. So
//! the first news is told at once, and a flood costs its own plugin's clients one message of each kind a round.
//!
//! It must not know who listens, nor how a list is asked for again; that is the [`Desk`]'s.

use crate::clock;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::broadcast;

/// Something has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Of which plugin, by name.
    pub plugin: String,
    /// What has changed.
    pub kind: NewsKind,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NewsKind {
    /// The list of its tools.
    Tools,
    /// The list of its prompts.
    Prompts,
    /// The list of its resources. The snapshot has the new one already.
    Resources,
    /// The resource with this URI.
    ResourceUpdated(String),
}

/// How long a teller rests. People do not notice a quarter of a second; four messages a second are no load for a client.
const ROUND: Duration = Duration::from_millis(250);

/// News of one plugin that waits for the next round. A client that follows more resources than this should follow the list.
const WAITING_MAX: usize = 1_000;

/// News that a slow listener may lag behind: one full round of a plugin.
const BACKLOG_MAX: usize = 1_024;

/// What is to be done before news is told.
#[async_trait]
pub(crate) trait Desk: Send + Sync {
    /// The list of this plugin's resources has changed: ask for it again. `false`: it could not be asked now, and is to be
    /// asked again in the next round.
    async fn relist(&self, plugin: &str) -> bool;
}

/// Gathers news of all plugins, and tells it.
pub(crate) struct Newsroom {
    desk: Weak<dyn Desk>,
    listeners: broadcast::Sender<News>,
    /// By plugin, while it has a teller.
    waiting: Mutex<HashMap<String, BTreeSet<NewsKind>>>,
}

impl Newsroom {
    pub(crate) fn new(desk: Weak<dyn Desk>) -> Arc<Self> {
        Arc::new(Self {
            desk,
            listeners: broadcast::channel(BACKLOG_MAX).0,
            waiting: Mutex::default(),
        })
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<News> {
        self.listeners.subscribe()
    }

    /// Take news in. It never waits. The teller runs where this is called.
    pub(crate) fn report(self: &Arc<Self>, plugin: &str, kind: NewsKind) {
        let mut waiting = self.waiting.lock();
        if let Some(kinds) = waiting.get_mut(plugin) {
            if kinds.len() < WAITING_MAX {
                kinds.insert(kind);
            } else if !kinds.contains(&kind) {
                tracing::warn!(%plugin, "a plugin has more news than can be told; some is dropped");
            }
            return;
        }
        waiting.insert(plugin.to_owned(), BTreeSet::from([kind]));
        drop(waiting);
        tokio::spawn(self.clone().tell(plugin.to_owned()));
    }

    async fn tell(self: Arc<Self>, plugin: String) {
        while let Some(kinds) = self.next_round(&plugin) {
            let relists = kinds.contains(&NewsKind::Resources);
            for kind in kinds {
                if kind != NewsKind::Resources {
                    self.send(&plugin, kind);
                }
            }
            if relists {
                let Some(desk) = self.desk.upgrade() else {
                    return;
                };
                if desk.relist(&plugin).await {
                    self.send(&plugin, NewsKind::Resources);
                } else {
                    self.report(&plugin, NewsKind::Resources);
                }
            }
            clock::sleep(ROUND).await;
        }
    }

    fn send(&self, plugin: &str, kind: NewsKind) {
        let plugin = plugin.to_owned();
        // Without listeners nobody wants to know.
        let _ = self.listeners.send(News { plugin, kind });
    }

    /// What has gathered; with nothing, the teller goes.
    fn next_round(&self, plugin: &str) -> Option<BTreeSet<NewsKind>> {
        let mut waiting = self.waiting.lock();
        let kinds = std::mem::take(waiting.get_mut(plugin)?);
        if kinds.is_empty() {
            waiting.remove(plugin);
            return None;
        }
        Some(kinds)
    }
}

impl std::fmt::Debug for Newsroom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Newsroom").finish_non_exhaustive()
    }
}
