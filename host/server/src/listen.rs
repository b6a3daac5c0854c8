//! `subscriptions/listen`: a stream of notifications that stays open.
//!
//! What changes leaves marks, and nothing else: a stream holds the set of what it has yet to say, and looks at how things are
//! only when it says it. So bursts become one notification with the newest state, and a reader that is slow costs a few bytes
//! a mark.
//!
//! - `feed`: from what changes in the server to marks.
//! - `filter`: what a client wants to hear of.
//! - `hub`: who listens to what.
//! - `subscriptions`: letting plugins know which of their resources someone follows.

pub(crate) mod feed;
pub(crate) mod filter;
pub(crate) mod hub;
pub(crate) mod subscriptions;

use crate::app::App;
use crate::ends::Whose;
use crate::outcome::{Notices, Outcome};
use crate::rate::Who;
use crate::resolve::Caller;
use crate::task_methods;
use crate::wire::{WireError, subscription};
use filter::{Filter, Honoured};
use http::StatusCode;
use hub::{Full, Mark, Seat};
use longshore_tasks::{EngineError, Principal, TaskId};
use serde_json::value::RawValue;
use std::net::IpAddr;
use std::sync::Arc;
use subscriptions::Subscriptions;

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
/// If there are too many streams, the client reads none, or the stream cannot go on.
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
    let who = Who::of(&caller.principal, peer);
    let seat = Seat::take(&app.hub, who, filter.marks());
    let seat = seat.map_err(|full| told(app, full, &caller))?;
    let principal = caller.principal;
    subscriptions.open(filter.uris()).await;
    let tasks = visible_tasks(app, &filter, &principal, &seat).await?;
    let honoured = Honoured {
        uris: subscriptions.uris().to_vec(),
        tasks,
    };
    notices.send(subscription::acknowledged(id, &filter, &honoured));
    let stream = Stream {
        app,
        seat,
        honoured,
        principal,
    };
    stream.run(id, notices).await?;
    Ok(Outcome::result(subscription::closing(id)))
}

/// For the client; the operator has heard of it.
fn told(app: &App, full: Full, caller: &Caller) -> WireError {
    let error = full.wire_error();
    let whose = Whose {
        principal: Some(&caller.principal),
        ..Whose::default()
    };
    app.ends.tell(&error, whose);
    error
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
    ///
    /// # Errors
    /// If a task cannot be read. A client is never left to wait for an end that it was not told of: it learns that the stream is
    /// over, and may ask again.
    async fn run(&self, id: &RawValue, notices: &Notices) -> Result<(), WireError> {
        loop {
            if let Some(mark) = self.seat.next_mark() {
                if let Some(notification) = self.word(id, &mark).await? {
                    notices.send(notification);
                }
                // The one who polls this writes first, and comes back when the client has room.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.seat.rung() => {}
                () = self.app.stopping.cancelled() => return Ok(()),
            }
        }
    }

    async fn word(&self, id: &RawValue, mark: &Mark) -> Result<Option<String>, WireError> {
        Ok(match mark {
            Mark::Tools => Some(subscription::list_changed(id, "tools")),
            Mark::Prompts => Some(subscription::list_changed(id, "prompts")),
            Mark::Resources => Some(subscription::list_changed(id, "resources")),
            Mark::Resource(uri) => {
                let honoured = self.honoured.uris.contains(uri);
                honoured.then(|| subscription::resource_updated(id, uri))
            }
            Mark::Task(task) if self.honoured.tasks.contains(task) => self.task(id, *task).await?,
            Mark::Task(_) => None,
        })
    }

    /// The task as it is now. One that has ended is told once.
    async fn task(&self, id: &RawValue, task: TaskId) -> Result<Option<String>, WireError> {
        match self.app.engine.get(&task, &self.principal).await {
            Ok(view) => {
                if view.status.is_terminal() {
                    self.seat.forget(&Mark::Task(task));
                }
                Ok(Some(task_methods::notification(self.app, id, &view)))
            }
            Err(EngineError::NotFound) => {
                self.seat.forget(&Mark::Task(task));
                Ok(None)
            }
            Err(error) => {
                tracing::error!(%task, %error, "a listener cannot be told of a task; its stream ends");
                Err(task_methods::wire_error(error))
            }
        }
    }
}
