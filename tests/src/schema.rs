//! Judges every JSON-RPC message by the official schemas, and by the rules on results that a schema cannot say.

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// Which schema a definition is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Core,
    Tasks,
    /// 2025-11-25
    Latest,
    /// 2025-06-18
    Earlier,
}

const CORE: &str = include_str!("../schemas/mcp-2026-07-28.schema.json");
const TASKS: &str = include_str!("../schemas/tasks-extension.schema.json");
const LATEST: &str = include_str!("../schemas/mcp-2025-11-25.schema.json");
const EARLIER: &str = include_str!("../schemas/mcp-2025-06-18.schema.json");

type Validators = HashMap<(Source, &'static str), Arc<Validator>>;

static VALIDATORS: LazyLock<Mutex<Validators>> = LazyLock::new(Mutex::default);

/// Why a message is wrong.
pub(crate) type Verdict = Result<(), String>;

fn validator(source: Source, name: &'static str) -> Arc<Validator> {
    let mut known = VALIDATORS.lock().unwrap();
    let made = known.entry((source, name)).or_insert_with(|| {
        let text = match source {
            Source::Core => CORE,
            Source::Tasks => TASKS,
            Source::Latest => LATEST,
            Source::Earlier => EARLIER,
        };
        let whole: Value = serde_json::from_str(text).unwrap();
        let (place, draft) = match source {
            Source::Earlier => ("definitions", Draft::Draft7),
            _ => ("$defs", Draft::Draft202012),
        };
        let defined = whole[place].get(name).is_some();
        assert!(defined, "{source:?} defines no {name}");
        let schema = json!({ place: whole[place], "$ref": format!("#/{place}/{name}") });
        let options = jsonschema::options().with_draft(draft);
        let options = options.should_validate_formats(true);
        Arc::new(options.build(&schema).unwrap())
    });
    Arc::clone(made)
}

pub(crate) fn fits(source: Source, name: &'static str, value: &Value) -> Verdict {
    let validator = validator(source, name);
    let faults: Vec<_> = validator
        .iter_errors(value)
        .map(|fault| format!("at {}: {fault}", fault.instance_path()))
        .collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("no {name}: {}\n{value:#}", faults.join("; ")))
}

fn core(name: &'static str, value: &Value) -> Verdict {
    fits(Source::Core, name, value)
}

fn tasks(name: &'static str, value: &Value) -> Verdict {
    fits(Source::Tasks, name, value)
}

pub(crate) fn must(holds: bool, rule: &str, value: &Value) -> Verdict {
    if holds {
        return Ok(());
    }
    Err(format!("{rule}\n{value:#}"))
}

/// Judges a request or notification of a client.
///
/// # Errors
/// What is wrong with it.
pub fn request(message: &Value) -> Verdict {
    let method = message["method"].as_str().unwrap_or_default();
    if message.get("id").is_none() {
        return core("JSONRPCNotification", message);
    }
    core("JSONRPCRequest", message)?;
    match method {
        "server/discover" => core("DiscoverRequest", message),
        "tools/list" => core("ListToolsRequest", message),
        "tools/call" => core("CallToolRequest", message),
        "prompts/list" => core("ListPromptsRequest", message),
        "prompts/get" => core("GetPromptRequest", message),
        "resources/list" => core("ListResourcesRequest", message),
        "resources/templates/list" => core("ListResourceTemplatesRequest", message),
        "resources/read" => core("ReadResourceRequest", message),
        "completion/complete" => core("CompleteRequest", message),
        "subscriptions/listen" => core("SubscriptionsListenRequest", message),
        "tasks/get" => tasks("GetTaskRequest", message),
        "tasks/update" => tasks("UpdateTaskRequest", message),
        "tasks/cancel" => tasks("CancelTaskRequest", message),
        _ => Ok(()),
    }?;
    core("RequestParams", &message["params"])
}

/// Judges what a server sends in reply to a request of this method: the response, or a notification before it.
///
/// # Errors
/// What is wrong with it.
pub fn reply(method: &str, message: &Value) -> Verdict {
    must(message["jsonrpc"] == "2.0", "not JSON-RPC 2.0", message)?;
    if message.get("method").is_some() {
        return notification(message);
    }
    match (message.get("result"), message.get("error")) {
        (Some(result), None) => {
            core("JSONRPCResultResponse", message)?;
            self::result(method, result)
        }
        (None, Some(error)) => {
            core("JSONRPCErrorResponse", message)?;
            self::error(error)?;
            error_response(message)
        }
        _ => Err(format!("not one of result and error\n{message:#}")),
    }
}

fn notification(message: &Value) -> Verdict {
    let rule = "a server sends no requests on this wire";
    must(message.get("id").is_none(), rule, message)?;
    match message["method"].as_str().unwrap_or_default() {
        "notifications/progress" => core("ProgressNotification", message),
        "notifications/message" => core("LoggingMessageNotification", message),
        "notifications/subscriptions/acknowledged" => {
            core("SubscriptionsAcknowledgedNotification", message)?;
            let granted = &message["params"]["notifications"];
            tasks("TaskSubscriptionAcknowledgedNotifications", granted)?;
            of_a_stream(message)
        }
        "notifications/tools/list_changed" => {
            core("ToolListChangedNotification", message)?;
            of_a_stream(message)
        }
        "notifications/prompts/list_changed" => {
            core("PromptListChangedNotification", message)?;
            of_a_stream(message)
        }
        "notifications/resources/list_changed" => {
            core("ResourceListChangedNotification", message)?;
            of_a_stream(message)
        }
        "notifications/resources/updated" => {
            core("ResourceUpdatedNotification", message)?;
            of_a_stream(message)
        }
        "notifications/tasks" => {
            tasks("TaskStatusNotification", message)?;
            of_a_stream(message)?;
            without(&message["params"], &["resultType"])?;
            task_parts(&message["params"])
        }
        _ => core("ServerNotification", message),
    }
}

/// What goes over a stream of notifications says over which.
fn of_a_stream(message: &Value) -> Verdict {
    let id = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    let named = id.is_string() || id.is_i64() || id.is_u64();
    must(named, "no subscriptionId in `_meta`", message)
}

fn error_response(message: &Value) -> Verdict {
    match message["error"]["code"].as_i64() {
        Some(-32020) => core("HeaderMismatchError", message),
        Some(-32021) => core("MissingRequiredClientCapabilityError", message),
        Some(-32022) => core("UnsupportedProtocolVersionError", message),
        _ => Ok(()),
    }
}

/// An error, in a response or in a failed task.
fn error(error: &Value) -> Verdict {
    core("Error", error)?;
    match error["code"].as_i64() {
        Some(-32700) => core("ParseError", error),
        Some(-32600) => core("InvalidRequestError", error),
        Some(-32601) => core("MethodNotFoundError", error),
        Some(-32602) => core("InvalidParamsError", error),
        Some(-32603) => core("InternalError", error),
        Some(-32002 | -32042) => Err(format!("a code of the legacy wire\n{error:#}")),
        _ => Ok(()),
    }
}

fn result(method: &str, result: &Value) -> Verdict {
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    must(info.is_object(), "no serverInfo in `_meta`", result)?;
    match method {
        "server/discover" => complete("DiscoverResult", result),
        "tools/list" => complete("ListToolsResult", result),
        "tools/call" => call_result(result),
        "prompts/list" => complete("ListPromptsResult", result),
        "prompts/get" => asked_or("GetPromptResult", result),
        "resources/list" => complete("ListResourcesResult", result),
        "resources/templates/list" => complete("ListResourceTemplatesResult", result),
        "resources/read" => asked_or("ReadResourceResult", result),
        "completion/complete" => complete("CompleteResult", result),
        "subscriptions/listen" => complete("SubscriptionsListenResult", result),
        "tasks/get" => task(result),
        "tasks/update" => tasks("UpdateTaskResult", result),
        "tasks/cancel" => tasks("CancelTaskResult", result),
        _ => core("Result", result),
    }
}

fn complete(name: &'static str, result: &Value) -> Verdict {
    let rule = "its resultType is not `complete`";
    must(result["resultType"] == "complete", rule, result)?;
    core(name, result)
}

fn call_result(result: &Value) -> Verdict {
    match result["resultType"].as_str() {
        Some("task") => {
            tasks("CreateTaskResult", result)?;
            without(
                result,
                &["inputRequests", "result", "error", "requestState", "task"],
            )
        }
        _ => asked_or("CallToolResult", result),
    }
}

/// A question, or the result of this kind.
fn asked_or(name: &'static str, result: &Value) -> Verdict {
    if result["resultType"] != "input_required" {
        return complete(name, result);
    }
    core("InputRequiredResult", result)?;
    let asks = result["inputRequests"].as_object();
    let state = result["requestState"].as_str();
    let says = asks.is_some_and(|asks| !asks.is_empty()) || state.is_some();
    must(says, "asks nothing and holds no state", result)?;
    without(result, &["ttlMs", "cacheScope"])
}

/// What `tasks/get` says.
fn task(result: &Value) -> Verdict {
    tasks("GetTaskResult", result)?;
    task_parts(result)
}

/// What belongs to the status of a task is there, and nothing else.
fn task_parts(result: &Value) -> Verdict {
    without(result, &["task", "requestState"])?;
    let only = |name: &str, status: &str| {
        let held = result.get(name).is_some();
        let rule = format!("`{name}` and the status do not agree");
        must(held == (result["status"] == status), &rule, result)
    };
    only("inputRequests", "input_required")?;
    only("result", "completed")?;
    only("error", "failed")?;
    match result["status"].as_str() {
        Some("completed") => complete("CallToolResult", &result["result"]),
        Some("failed") => error(&result["error"]),
        _ => Ok(()),
    }
}

pub(crate) fn without(result: &Value, names: &[&str]) -> Verdict {
    let empty = Map::new();
    let members = result.as_object().unwrap_or(&empty);
    let found = names.iter().find(|name| members.contains_key(**name));
    found.map_or(Ok(()), |name| {
        Err(format!("`{name}` has no place here\n{result:#}"))
    })
}
