//! `tools/call`: answer now, ask first, or hand out a task. Rungs 22 to 25 of the ladder, in their order.
//!
//! If the client goes away, the future of [`call`] is dropped, and the guest with it; a task goes on.

use crate::app::App;
use crate::catalogue::CatalogueTool;
use crate::errand::{Errand, speaker};
use crate::failure;
use crate::follow::{Following, Origin, Plan};
use crate::outcome::{Notices, Outcome};
use crate::rate::Who;
use crate::runner;
use crate::schema::Misfit;
use crate::task_methods;
use crate::wire::{WireError, content};
use longshore_runtime::contract::{ClientFeatures, TaskSupport, ToolAnnotations};
use longshore_runtime::{Call, Plugin};
use longshore_tasks::{self as tasks, Birth, OnCrash, Principal, TaskId, TaskView};
use serde_json::Value;
use std::sync::Arc;

/// A call of a tool, its headers, name and shape found right.
#[derive(Debug)]
pub(crate) struct CallRequest {
    /// Whose calls it counts among.
    pub(crate) who: Who,
    /// The tool.
    pub(crate) tool: Arc<CatalogueTool>,
    /// Its arguments, parsed: what is checked. The guest gets the text of the same parse.
    pub(crate) arguments: Value,
    /// The call.
    pub(crate) errand: Errand,
}

/// Serve a call whose headers, name and shape were found right.
///
/// # Errors
/// What is wrong with the call, or why it has no result.
pub(crate) async fn call(
    app: &Arc<App>,
    request: &CallRequest,
    notices: &Notices,
) -> Result<Outcome, WireError> {
    let answered = answer(app, request, notices).await;
    answered.inspect_err(|error| app.ends.tell(error, request.errand.whose()))
}

async fn answer(
    app: &Arc<App>,
    request: &CallRequest,
    notices: &Notices,
) -> Result<Outcome, WireError> {
    let CallRequest {
        who,
        tool,
        arguments,
        errand,
    } = request;
    let plan = plan(tool, errand)?;
    let offered = errand.offered_answers()?;
    let origin = Origin::of(app, errand).await?;
    match tool.check_arguments(&app.checks, arguments).await {
        Ok(()) => {}
        Err(Misfit::Wrong(wrong)) => return Ok(Outcome::result(content::tool_error(&wrong))),
        Err(Misfit::Failed(failure)) => {
            let speaker = speaker(&errand.plugin, &errand.work);
            return Err(failure::of_run(&failure, &speaker));
        }
    }
    admit(app, who, errand)?;
    if plan == Plan::Task && origin.is_fresh() {
        return create(app, errand).await;
    }
    let following = Following::start(app, errand, origin, offered)?;
    Box::pin(following.follow(plan, notices)).await
}

/// Whether the caller may call now. A request that any other rung refuses does not count.
fn admit(app: &App, who: &Who, errand: &Errand) -> Result<(), WireError> {
    let admitted = app.call_rate.admit(who, app.clock.now_ms());
    admitted.map_err(|wait_ms| {
        let speaker = speaker(&errand.plugin, &errand.work);
        failure::too_often(&speaker, app.config.host.calls_per_minute, wait_ms)
    })
}

fn plan(tool: &CatalogueTool, errand: &Errand) -> Result<Plan, WireError> {
    if errand.session.is_some() {
        // Older clients know no tasks of this kind; they wait, and are asked while they do.
        return Ok(Plan::Plain);
    }
    let has_tasks = errand.meta.features.contains(ClientFeatures::TASKS);
    match (tool.task_support, has_tasks) {
        (TaskSupport::Forbidden, _) | (TaskSupport::Optional, false) => Ok(Plan::Plain),
        (TaskSupport::Required, false) => Err(WireError::tasks_required(&format!(
            "the tool {}",
            tool.name()
        ))),
        (TaskSupport::Optional | TaskSupport::Required, true) if tool.asks_first() => {
            Ok(Plan::AskFirst)
        }
        (TaskSupport::Optional, true) => Ok(Plan::Inline),
        (TaskSupport::Required, true) => Ok(Plan::Task),
    }
}

/// A task before anything runs.
async fn create(app: &Arc<App>, errand: &Errand) -> Result<Outcome, WireError> {
    let call = task_call(app, &errand.new_call()?, &errand.plugin, &errand.principal)?;
    let view = app.engine.create(call, birth(app)).await.map_err(|error| {
        let speaker = speaker(&errand.plugin, &errand.work);
        failure::of_birth(error, &speaker, app.config.tasks.running_bytes_max)
    })?;
    Ok(handle(app, &view, &errand.principal))
}

/// What a task is given at its birth.
pub(crate) fn birth(app: &App) -> Birth {
    let tasks = &app.config.tasks;
    Birth {
        poll_interval_ms: tasks.poll_interval_ms,
        ttl_ms: Some(tasks.ttl_ms),
        pinned: false,
    }
}

/// A call as its task keeps it.
///
/// # Errors
/// -32603 if it cannot be written.
pub(crate) fn task_call(
    app: &App,
    call: &Call,
    plugin: &Plugin,
    principal: &Principal,
) -> Result<tasks::Call, WireError> {
    Ok(tasks::Call {
        principal: principal.clone(),
        plugin: plugin.name.clone(),
        version: plugin.version.as_str().to_owned(),
        tool: call.work.subject().to_owned(),
        on_crash: on_crash(app, plugin, call.work.subject()),
        body: runner::encode_call(call).map_err(|error| WireError::internal("encoding", error))?,
    })
}

/// The operator's word, else what the tool says of itself.
fn on_crash(app: &App, plugin: &Plugin, tool: &str) -> OnCrash {
    let said = app.config.on_crash(&plugin.name, tool);
    said.unwrap_or_else(|| {
        let tool = plugin.tools.iter().find(|listed| listed.name == tool);
        let hints = tool.and_then(|tool| tool.annotations.as_ref());
        let harmless = |hints: &ToolAnnotations| {
            hints.idempotent == Some(true) || hints.read_only == Some(true)
        };
        if hints.is_some_and(harmless) {
            OnCrash::Rerun
        } else {
            OnCrash::Resume
        }
    })
}

/// Hand out a task.
pub(crate) fn handle(app: &Arc<App>, view: &TaskView, principal: &Principal) -> Outcome {
    let undelivered = Undelivered {
        app: app.clone(),
        handle: Some((view.id, principal.clone())),
    };
    Outcome::handle(task_methods::create_result(app, view), undelivered)
}

/// The handle of a task on its way to the client. Dropped before it was delivered, nobody has it, and the task is cancelled.
pub(crate) struct Undelivered {
    app: Arc<App>,
    handle: Option<(TaskId, Principal)>,
}

impl Undelivered {
    /// The client has it, as far as can be known.
    pub(crate) fn delivered(mut self) {
        self.handle = None;
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        let Some((id, principal)) = self.handle.take() else {
            return;
        };
        let app = self.app.clone();
        tokio::spawn(async move {
            tracing::info!(task = %id, "the client went away before it had the handle; the task is cancelled");
            if let Err(error) = app.engine.cancel(&id, &principal).await {
                tracing::warn!(task = %id, %error, "a task that nobody knows of was not cancelled");
            }
        });
    }
}

impl std::fmt::Debug for Undelivered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Undelivered")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
