//! `tasks/get`, `tasks/update` and `tasks/cancel`, and how a task looks on the wire.
//!
//! Ids of other principals, unknown ids and texts that are no ids are one answer. Tasks extension, "Protocol Errors".

use crate::app::App;
use crate::wire::object::Object;
use crate::wire::{WireError, question, response, subscription};
use longshore_tasks::{EngineError, Principal, Status, TaskId, TaskView};
use serde_json::value::RawValue;

/// `tasks/get`: the task as it is. Changes nothing.
pub(crate) async fn get(
    app: &App,
    principal: &Principal,
    task_id: &str,
) -> Result<String, WireError> {
    let view = app
        .engine
        .get(&parse(task_id)?, principal)
        .await
        .map_err(wire_error)?;
    Ok(detailed(app, Object::result("complete"), &view).finish_result())
}

/// `notifications/tasks` on a stream: what `tasks/get` says at this moment.
pub(crate) fn notification(app: &App, stream: &RawValue, view: &TaskView) -> String {
    subscription::task(detailed(app, subscription::params(stream), view))
}

/// A task with what belongs to its status.
fn detailed(app: &App, object: Object, view: &TaskView) -> Object {
    let wire = task(app, object, view);
    match (view.status, &view.result, &view.error) {
        (Status::InputRequired, ..) => wire.value(
            "inputRequests",
            &question::input_requests(view.questions.iter()),
        ),
        // What is stored is wire text already.
        (Status::Completed, Some(result), _) => wire.raw("result", result),
        (Status::Failed, _, Some(error)) => wire.raw("error", error),
        _ => wire,
    }
}

/// `tasks/update`: answers to questions. Those that fit are taken; unknown and spent keys, and what does not fit, are not, and
/// that is no error.
pub(crate) async fn update(
    app: &App,
    principal: &Principal,
    task_id: &str,
    responses: &RawValue,
) -> Result<String, WireError> {
    let id = parse(task_id)?;
    let view = app.engine.get(&id, principal).await.map_err(wire_error)?;
    let mut responses = response::read_responses(responses).map_err(WireError::invalid_params)?;
    responses.retain(|(key, answer)| {
        let asked = view.questions.iter().find(|asked| asked.key == *key);
        if asked.is_none() {
            tracing::info!(task = %id, key = crate::wire::error::shortened(key), "an answer is to no question of the task; it is left alone");
        }
        asked.is_some_and(|asked| match response::read_answer(&asked.request, answer) {
            Ok(_) => true,
            Err(misfit) => {
                tracing::info!(task = %id, key, %misfit, "an answer does not fit its question; the question stays");
                false
            }
        })
    });
    app.engine
        .answer(&id, principal, responses)
        .await
        .map_err(wire_error)?;
    Ok(ack())
}

/// `tasks/cancel`: the wish is durable when this returns. A task that has ended stays as it is, and that is no error.
pub(crate) async fn cancel(
    app: &App,
    principal: &Principal,
    task_id: &str,
) -> Result<String, WireError> {
    app.engine
        .cancel(&parse(task_id)?, principal)
        .await
        .map_err(wire_error)?;
    Ok(ack())
}

/// The result of a call that became a task: the task, flat, without anything that belongs to `tasks/get`.
pub(crate) fn create_result(app: &App, view: &TaskView) -> String {
    task(app, Object::result("task"), view).finish_result()
}

fn ack() -> String {
    Object::result("complete").finish_result()
}

fn parse(task_id: &str) -> Result<TaskId, WireError> {
    task_id.parse().map_err(|_| no_such_task())
}

fn no_such_task() -> WireError {
    WireError::invalid_params("there is no such task; it may have expired")
}

/// What the engine's errors are on the wire.
pub(crate) fn wire_error(error: EngineError) -> WireError {
    match error {
        EngineError::NotFound => no_such_task(),
        EngineError::ShuttingDown => WireError::internal(
            "shutting_down",
            "the server is shutting down; try again later",
        ),
        EngineError::Busy => WireError::internal(
            "busy",
            "too many tasks are running (tasks.running_bytes_max); try again when some have ended",
        ),
        EngineError::Full { open_max } => WireError::internal(
            "open_tasks",
            format!(
                "you have {open_max} unfinished tasks (tasks.open_per_principal_max); try again when some have ended"
            ),
        ),
        EngineError::Contended => WireError::internal(
            "contended",
            "the task is being changed by too many at once; try again",
        ),
        error => {
            tracing::error!(%error, "the task store failed");
            WireError::internal(
                "store",
                "the task store failed; try again later, and if it stays, the operator finds the cause in /readyz and in the log",
            )
        }
    }
}

/// How long a task is young: most that become tasks at all end within it.
const YOUNG_MS: u64 = 2_000;

fn poll_interval_ms(app: &App, view: &TaskView) -> u64 {
    let age_ms = app.clock.now_ms().saturating_sub(view.created_ms);
    if view.status.is_terminal() || age_ms >= YOUNG_MS {
        return view.poll_interval_ms;
    }
    view.poll_interval_ms
        .min(app.config.tasks.first_poll_interval_ms)
}

fn task(app: &App, object: Object, view: &TaskView) -> Object {
    let status = match view.status {
        Status::Working => "working",
        Status::InputRequired => "input_required",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    };
    object
        .value("taskId", &view.id.to_string())
        .value("status", &status)
        .option("statusMessage", view.status_message.as_ref())
        .value("createdAt", &timestamp(view.created_ms))
        .value("lastUpdatedAt", &timestamp(view.updated_ms))
        .value("ttlMs", &view.ttl_ms)
        .value("pollIntervalMs", &poll_interval_ms(app, view))
}

/// RFC 3339 in UTC, to the millisecond.
fn timestamp(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(jiff::Timestamp::MAX))
}
