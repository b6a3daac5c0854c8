//! From what changes in the server to marks: lists, resources, tasks.

use super::hub::{Hub, Mark};
use crate::app::App;
use crate::catalogue::Catalogue;
use longshore_runtime::NewsKind;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

/// A burst of changes of lists has ended when nothing came for so long.
const QUIET: Duration = Duration::from_millis(200);

/// How long the first of a burst waits for its end: fifty files that are copied at once, and compiled one by one, are few
/// notifications then.
const BURST_MAX: Duration = Duration::from_secs(3);

/// Gathers changes of lists, so that a burst becomes one.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    marks: Mutex<BTreeSet<Mark>>,
    bell: Notify,
}

impl Gathering {
    fn add(&self, mark: Mark) {
        self.marks.lock().insert(mark);
        self.bell.notify_one();
    }

    /// What is different in a newer catalogue, which is served already.
    pub(crate) fn compare(&self, former: &Catalogue, newer: &Catalogue) {
        if former.tools.print() != newer.tools.print() {
            self.add(Mark::Tools);
        }
        if former.prompts.print() != newer.prompts.print() {
            self.add(Mark::Prompts);
        }
        let resources = former.resources.print() == newer.resources.print();
        if !resources || former.templates.print() != newer.templates.print() {
            self.add(Mark::Resources);
        }
    }

    /// The next burst, when it is over.
    async fn burst(&self) -> BTreeSet<Mark> {
        self.bell.notified().await;
        let latest = Instant::now() + BURST_MAX;
        while Instant::now() < latest {
            let quiet = latest.min(Instant::now() + QUIET);
            if timeout_at(quiet, self.bell.notified()).await.is_err() {
                break;
            }
        }
        std::mem::take(&mut *self.marks.lock())
    }
}

/// Tell of changed lists, a burst at a time.
pub(crate) async fn tell_of_lists(app: Arc<App>) {
    loop {
        for mark in app.gathering.burst().await {
            app.hub.tell(&mark);
        }
    }
}

/// Tell what plugins say of themselves. A plugin speaks for its own resources only.
pub(crate) async fn tell_of_plugins(app: Arc<App>) {
    let mut news = app.runtime.news();
    loop {
        let told = match news.recv().await {
            Ok(told) => told,
            Err(RecvError::Lagged(_)) => {
                app.hub.tell_all(|mark| !matches!(mark, Mark::Task(_)));
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        match told.kind {
            NewsKind::Tools => app.gathering.add(Mark::Tools),
            NewsKind::Prompts => app.gathering.add(Mark::Prompts),
            NewsKind::Resources => app.gathering.add(Mark::Resources),
            NewsKind::ResourceUpdated(uri) => {
                let owner = app.catalogue.load().plugin_of_uri(&uri).cloned();
                if owner.is_some_and(|owner| owner.name == told.plugin) {
                    app.hub.tell(&Mark::Resource(uri));
                }
            }
        }
    }
}

/// Tell of changed tasks.
pub(crate) async fn tell_of_tasks(hub: Arc<Hub>, engine: longshore_tasks::Engine) {
    let mut changes = engine.changes();
    loop {
        match changes.recv().await {
            Ok(id) => hub.tell(&Mark::Task(id)),
            Err(RecvError::Lagged(_)) => hub.tell_all(|mark| matches!(mark, Mark::Task(_))),
            Err(RecvError::Closed) => return,
        }
    }
}
