//! `subscriptions/listen`: a stream of notifications that stays open.
//!
//! What changes leaves marks, and nothing else: a stream holds the set of what it has yet to say, and looks at how things are
//! only when it says it. So bursts become one notification with the newest state, and a reader that is slow costs a few bytes
//! a mark.
//!
//! - `feed`: from what changes in the server to marks.
//! - `filter`: what a client wants to hear of.
//! - `hub`: who listens to what.

pub(crate) mod feed;
pub(crate) mod filter;
pub(crate) mod hub;

use crate::app::App;
use crate::errand::Errand;
use crate::follow;
use crate::outcome::{Notices, Outcome};
use crate::params::Rounds;
use crate::resolve::Caller;
use crate::task_methods;
use crate::wire::{WireError, subscription};
use filter::{Filter, Honoured};
use futures::future::join_all;
use http::StatusCode;
use hub::{Mark, Seat};
use longshore_runtime::Work;
use longshore_tasks::{EngineError, Principal, TaskId};
use serde_json::value::RawValue;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a plugin may take to hear that a resource is listened to; the client waits for the acknowledgement meanwhile.
const SUBSCRIBE_TIME: Duration = Duration::from_secs(2);

/// Where a stream goes.
pub(crate) struct Listener<'a> {
    /// The id of the request, which names the stream.
    pub(crate) id: &'a RawValue,
    /// The address that it comes from.
    pub(crate) peer: Option<IpAddr>,
    /// What is written there.
    pub(crate) notices: &'a Notices,
}

/// Serve a stream until the client goes, which drops the future, or the server stops.
///
/// # Errors
/// If there are too many streams, or the client reads none.
pub(crate) async fn listen(
    app: &Arc<App>,
    filter: Filter,
    caller: Caller,
    listener: Listener<'_>,
) -> Result<Outcome, WireError> {
    let Listener { id, peer, notices } = listener;
    if !notices.are_read() {
        let message =
            "a stream of notifications needs a header Accept that admits text/event-stream";
        return Err(WireError::invalid_request(message).with_status(StatusCode::NOT_ACCEPTABLE));
    }
    // It has to outlive the seat: whether anyone is left is looked at without this stream.
    let mut subscriptions = Subscriptions::new(app, &caller);
    // Before anything is looked at: what changes from here on is not missed.
    let seat = Seat::take(&app.hub, peer, filter.marks()).map_err(|full| full.wire_error())?;
    let principal = caller.principal;
    subscriptions.open(filter.uris()).await;
    let tasks = visible_tasks(app, &filter, &principal, &seat).await?;
    let honoured = Honoured {
        uris: subscriptions.uris.clone(),
        tasks,
    };
    notices.send(subscription::acknowledged(id, &filter, &honoured));
    let stream = Stream {
        app,
        seat,
        honoured,
        principal,
    };
    stream.run(id, notices).await;
    Ok(Outcome::result(subscription::closing(id)))
}

/// The tasks that the caller may see. Those at which there is something for the client to see are marked: what happened before
/// the stream was there must not be missed.
async fn visible_tasks(
    app: &App,
    filter: &Filter,
    principal: &Principal,
    seat: &Seat,
) -> Result<Vec<TaskId>, WireError> {
    let mut visible = Vec::new();
    for id in filter.task_ids() {
        match app.engine.get(&id, principal).await {
            Ok(view) => {
                if view.status != longshore_tasks::Status::Working {
                    seat.mark(Mark::Task(id));
                }
                visible.push(id);
            }
            Err(EngineError::NotFound) => {}
            Err(error) => return Err(task_methods::wire_error(error)),
        }
    }
    Ok(visible)
}

struct Stream<'a> {
    app: &'a App,
    seat: Seat,
    honoured: Honoured,
    principal: Principal,
}

impl Stream<'_> {
    /// Say what is marked, one at a time, as fast as the client takes it; end when the server stops and all is said.
    async fn run(&self, id: &RawValue, notices: &Notices) {
        loop {
            if let Some(mark) = self.seat.next_mark() {
                if let Some(notification) = self.word(id, &mark).await {
                    notices.send(notification);
                }
                // The one who polls this writes first, and comes back when the client has room.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.seat.rung() => {}
                () = self.app.stopping.cancelled() => return,
            }
        }
    }

    async fn word(&self, id: &RawValue, mark: &Mark) -> Option<String> {
        match mark {
            Mark::Tools => Some(subscription::list_changed(id, "tools")),
            Mark::Prompts => Some(subscription::list_changed(id, "prompts")),
            Mark::Resources => Some(subscription::list_changed(id, "resources")),
            Mark::Resource(uri) => {
                let honoured = self.honoured.uris.contains(uri);
                honoured.then(|| subscription::resource_updated(id, uri))
            }
            Mark::Task(task) if self.honoured.tasks.contains(task) => self.task(id, *task).await,
            Mark::Task(_) => None,
        }
    }

    /// The task as it is now. One that has ended is told once.
    async fn task(&self, id: &RawValue, task: TaskId) -> Option<String> {
        match self.app.engine.get(&task, &self.principal).await {
            Ok(view) => {
                if view.status.is_terminal() {
                    self.seat.forget(&Mark::Task(task));
                }
                Some(task_methods::notification(self.app, id, &view))
            }
            Err(EngineError::NotFound) => {
                self.seat.forget(&Mark::Task(task));
                None
            }
            Err(error) => {
                tracing::error!(%task, %error, "a listener was not told of a task");
                None
            }
        }
    }
}

/// The resources that a stream follows. Their plugins know, until it is dropped.
struct Subscriptions {
    app: Arc<App>,
    uris: Vec<String>,
    caller: Caller,
}

impl Subscriptions {
    fn new(app: &Arc<App>, caller: &Caller) -> Self {
        Self {
            app: app.clone(),
            uris: Vec::new(),
            caller: caller.clone(),
        }
    }

    /// Tell the plugins. What no plugin has, or its plugin refuses, is left out.
    async fn open(&mut self, uris: &[String]) {
        // Dropped on the way, those that heard already hear that it was for nothing.
        self.uris = uris.to_vec();
        let wish = |uri: &String| {
            let work = Work::Subscribe { uri: uri.clone() };
            let told = tell(self.app.clone(), work, self.caller.clone());
            let uri = uri.clone();
            async move { told.await.then_some(uri) }
        };
        let agreed = join_all(uris.iter().map(wish)).await;
        self.uris = agreed.into_iter().flatten().collect();
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        if self.app.stopping.is_cancelled() {
            return;
        }
        for uri in std::mem::take(&mut self.uris) {
            let (app, caller) = (self.app.clone(), self.caller.clone());
            tokio::spawn(async move {
                if !app.hub.is_wanted(&Mark::Resource(uri.clone())) {
                    tell(app, Work::Unsubscribe { uri }, caller).await;
                }
            });
        }
    }
}

/// Let the plugin of a resource know. Whether it agreed.
async fn tell(app: Arc<App>, work: Work, caller: Caller) -> bool {
    let Some(plugin) = app.catalogue.load().plugin_of_uri(work.subject()).cloned() else {
        return false;
    };
    let errand = Errand {
        plugin,
        work,
        meta: caller.meta,
        rounds: Rounds::default(),
        principal: caller.principal,
    };
    let nobody = Notices::unread();
    let told = Box::pin(follow::plainly(&app, &errand, &nobody));
    match tokio::time::timeout(SUBSCRIBE_TIME, told).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => {
            let uri = errand.work.subject();
            tracing::debug!(
                uri,
                error = error.message,
                "a plugin did not take a subscription"
            );
            false
        }
        Err(_) => {
            tracing::warn!(uri = errand.work.subject(), plugin = %errand.plugin.name, "a plugin took too long to take a subscription");
            false
        }
    }
}
