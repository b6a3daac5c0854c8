//! The judge of what was read: another reader of messages and headers, who sees the same or this is a fault.
//!
//! Of two members of one name it takes the last, where ours refuses the object. It must not use how ours reads: names of members and
//! headers stand here once more, and wrapped header values are taken apart by hand.

use crate::catalogue::Kind;
use crate::catalogue::header::HeaderParams;
use crate::era::Era;
use crate::listen::filter::Filter;
use crate::members::Members;
use crate::message::{Fault, Notification, Request, Response};
use crate::meta::{Meta, features, level_named};
use crate::params::{Checked, CompleteParams, Rounds, ToolParams};
use crate::wire::legacy::Revision;
use crate::wire::response::read_responses;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use longshore_runtime::contract::{ClientFeatures, CompletionTarget};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
const CAPABILITIES: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
const TASKS: &str = "/extensions/io.modelcontextprotocol~1tasks";
const LOG_LEVEL: &str = "/params/_meta/io.modelcontextprotocol~1logLevel";

/// A message as the other reader sees it. It decodes every string, ours only those that are looked at: half of a surrogate pair, which
/// the grammar admits and no text can hold, may stand where nobody looks.
pub(super) fn other_reading(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

/// What is no message is answered under its id, or under none.
pub(super) fn fault(fault: &Fault, other: Option<&Value>) {
    assert!(matches!(fault.error.code, -32700 | -32600));
    let Some(id) = &fault.id else { return };
    assert!(is_id(&value(id)));
    if let Some(other) = other {
        assert_eq!(value(id), other["id"]);
    }
}

/// A request: its parts, and its era.
pub(super) fn request(request: &Request, other: &Value) {
    assert_eq!(other["jsonrpc"], "2.0");
    assert_eq!(value(&request.id), other["id"]);
    assert!(is_id(&other["id"]));
    assert_eq!(request.method, other["method"]);
    members(&request.params, other.get("params"));
    let meta = other.pointer("/params/_meta");
    members(&request.meta, meta.filter(|meta| meta.is_object()));
}

pub(super) fn notification(notification: &Notification, other: &Value) {
    assert_eq!(other["jsonrpc"], "2.0");
    assert_eq!(other.get("id"), None);
    assert_eq!(notification.method, other["method"]);
    members(&notification.params, other.get("params"));
    assert_eq!(notification.is_modern(), other.pointer(VERSION).is_some());
}

pub(super) fn response(response: &Response, other: &Value) {
    assert_eq!(other["jsonrpc"], "2.0");
    assert_eq!(value(&response.id), other["id"]);
    assert!(is_id(&other["id"]));
    assert_eq!(other.get("method"), None);
    let parse = |text: &String| serde_json::from_str::<Value>(text).expect("it is JSON");
    let result = response.answer.as_ref().ok().map(parse);
    let error = response.answer.as_ref().err().map(parse);
    assert_eq!(result.as_ref(), other.get("result"));
    assert_eq!(error.unwrap_or(Value::Null), other["error"]);
}

/// A request stands for itself where it states a version.
pub(super) fn era(era: Era, other: &Value) {
    let right = match other.pointer(VERSION) {
        Some(_) => Era::Modern,
        None if other["method"] == "initialize" => Era::Handshake,
        None => Era::Session,
    };
    assert_eq!(era, right);
}

/// A request that stands for itself.
pub(super) fn modern(checked: &Checked, meta: &Meta, other: &Value) {
    assert_eq!(other.pointer(VERSION), Some(&json!("2026-07-28")));
    let capabilities = other.pointer(CAPABILITIES).expect("they must be there");
    let has_tasks = capabilities.pointer(TASKS).is_some_and(Value::is_object);
    assert_eq!(meta.has_tasks(), has_tasks);
    assert_eq!(meta.features, features(capabilities));
    let level = other.pointer(LOG_LEVEL).and_then(Value::as_str);
    assert_eq!(meta.log_level, level.and_then(level_named));
    call(meta, other);
    executed(checked, &other["method"], &other["params"]);
    rounds(checked, &other["params"]);
    let follows = matches!(checked, Checked::Listen(filter) if filter.task_ids.is_some());
    assert!(has_tasks || !follows);
    assert!(
        has_tasks
            || !other["method"]
                .as_str()
                .is_some_and(|method| method.starts_with("tasks/"))
    );
}

/// `initialize`.
pub(super) fn handshake(revision: Revision, declared: ClientFeatures, other: &Value) {
    let right = match &other["params"]["protocolVersion"] {
        Value::String(version) if version == "2025-06-18" => "2025-06-18",
        Value::String(_) => "2025-11-25",
        version => panic!("{version} is no version"),
    };
    assert_eq!(revision.name(), right);
    let capabilities = &other["params"]["capabilities"];
    assert!(capabilities.is_object());
    assert_eq!(declared, revision.known(features(capabilities)));
    assert!(!declared.contains(ClientFeatures::TASKS));
}

/// A request of a session: it is what it is in the other era, but what a client answers comes another way.
pub(super) fn of_session(checked: &Checked, meta: &Meta, other: &Value) {
    call(meta, other);
    executed(checked, &other["method"], &other["params"]);
    rounds(checked, &json!({}));
}

/// What `_meta` says of a single call.
fn call(meta: &Meta, other: &Value) {
    let stated = &other["params"]["_meta"];
    raw(meta.progress_token.as_deref(), stated.get("progressToken"));
    let keys = ["traceparent", "tracestate", "baggage"];
    let trace = keys
        .iter()
        .filter_map(|key| Some((*key, stated[key].as_str()?)));
    let read = meta
        .trace
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    assert!(read.eq(trace));
}

/// What will be executed is what the other reader sees.
fn executed(checked: &Checked, method: &Value, params: &Value) {
    assert_eq!(method_of(checked), method);
    match checked {
        Checked::Discover => {}
        Checked::List { cursor, .. } => text(cursor.as_ref(), params.get("cursor")),
        Checked::CallTool(read, _) => tool(read, params),
        Checked::GetPrompt {
            name, arguments, ..
        } => {
            assert_eq!(*name, params["name"]);
            strings(arguments, params.get("arguments"));
        }
        Checked::ReadResource { uri, .. } => assert_eq!(*uri, params["uri"]),
        Checked::Complete(read) => completion(read, params),
        Checked::Listen(filter) => listen(filter, &params["notifications"]),
        Checked::GetTask { id } | Checked::CancelTask { id } => assert_eq!(*id, params["taskId"]),
        Checked::UpdateTask { id, responses } => {
            assert_eq!(*id, params["taskId"]);
            answers(responses, &params["inputResponses"]);
        }
    }
}

/// The method that will be executed.
pub(super) fn method_of(checked: &Checked) -> &'static str {
    match checked {
        Checked::Discover => "server/discover",
        Checked::List { kind, .. } => match kind {
            Kind::Tool => "tools/list",
            Kind::Prompt => "prompts/list",
            Kind::Resource => "resources/list",
            Kind::Template => "resources/templates/list",
        },
        Checked::CallTool(..) => "tools/call",
        Checked::GetPrompt { .. } => "prompts/get",
        Checked::ReadResource { .. } => "resources/read",
        Checked::Complete(_) => "completion/complete",
        Checked::Listen(_) => "subscriptions/listen",
        Checked::GetTask { .. } => "tasks/get",
        Checked::UpdateTask { .. } => "tasks/update",
        Checked::CancelTask { .. } => "tasks/cancel",
    }
}

fn tool(read: &ToolParams, params: &Value) {
    assert_eq!(read.name, params["name"]);
    let arguments = params.get("arguments").cloned().unwrap_or(json!({}));
    assert!(arguments.is_object());
    assert_eq!(read.arguments, arguments);
    let text: Value = serde_json::from_str(&read.text).expect("arguments are JSON");
    assert_eq!(text, arguments);
}

fn completion(read: &CompleteParams, params: &Value) {
    let (kind, member, name) = match &read.target {
        CompletionTarget::Prompt(name) => ("ref/prompt", "name", name),
        CompletionTarget::ResourceTemplate(uri) => ("ref/resource", "uri", uri),
    };
    assert_eq!(params["ref"]["type"], kind);
    assert_eq!(params["ref"][member], *name);
    assert_eq!(read.argument, params["argument"]["name"]);
    assert_eq!(read.value, params["argument"]["value"]);
    strings(&read.known, params.pointer("/context/arguments"));
}

fn listen(filter: &Filter, wanted: &Value) {
    for (flag, member) in [
        (filter.tools, "toolsListChanged"),
        (filter.prompts, "promptsListChanged"),
        (filter.resources, "resourcesListChanged"),
    ] {
        assert_eq!(json!(flag), *wanted.get(member).unwrap_or(&json!(false)));
    }
    for (read, member) in [
        (&filter.resource_subscriptions, "resourceSubscriptions"),
        (&filter.task_ids, "taskIds"),
    ] {
        let mut once: Vec<&Value> = Vec::new();
        for entry in wanted
            .get(member)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if !once.contains(&entry) {
                once.push(entry);
            }
        }
        let right = wanted.get(member).map(|_| json!(once));
        assert_eq!(read.as_ref().map(|read| json!(read)), right);
    }
}

/// What a request brings from earlier rounds.
fn rounds(checked: &Checked, params: &Value) {
    let (Checked::CallTool(_, rounds)
    | Checked::GetPrompt { rounds, .. }
    | Checked::ReadResource { rounds, .. }) = checked
    else {
        return;
    };
    let Rounds {
        input_responses,
        request_state,
    } = rounds;
    raw(request_state.as_deref(), params.get("requestState"));
    match (input_responses, params.get("inputResponses")) {
        (Some(read), Some(other)) => answers(read, other),
        (read, other) => assert!(read.is_none() && other.is_none()),
    }
}

/// Answers, and what will be taken of them.
fn answers(read: &RawValue, other: &Value) {
    assert_eq!(value(read), *other);
    let Ok(taken) = read_responses(read) else {
        return;
    };
    assert_eq!(Some(taken.len()), other.as_object().map(Map::len));
    for (key, answer) in taken {
        assert_eq!(answer, other[key].to_string());
    }
}

/// What the headers of a request say that was accepted.
pub(super) fn mirrored(headers: &HeaderMap, checked: &Checked, other: &Value) {
    let params = &other["params"];
    let version = said(headers, "mcp-protocol-version");
    assert_eq!(version.map(Value::String).as_ref(), other.pointer(VERSION));
    assert_eq!(
        said(headers, "mcp-method").map(Value::String).as_ref(),
        other.get("method")
    );
    let (named, required) = match method_of(checked) {
        "tools/call" | "prompts/get" => (&params["name"], true),
        "resources/read" => (&params["uri"], true),
        "tasks/get" | "tasks/update" | "tasks/cancel" => (&params["taskId"], false),
        _ => return,
    };
    match said(headers, "mcp-name") {
        Some(name) => assert_eq!(unwrapped(&name), *named),
        None => assert!(!required, "a name is required"),
    }
    if let Checked::CallTool(tool, _) = checked {
        parameters(headers, &tool.arguments);
    }
}

/// A request of a session is on its wire.
pub(super) fn headers_of_session(headers: &HeaderMap) {
    assert!(headers.contains_key("mcp-session-id"));
    let version = said(headers, "mcp-protocol-version");
    assert!(version.is_none_or(|version| ["2025-11-25", "2025-06-18"].contains(&version.as_str())));
}

static MIRRORED: LazyLock<HeaderParams> = LazyLock::new(|| {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "deep": { "type": "object", "properties": { "flag": { "type": "boolean", "x-mcp-header": "Flag" } } },
    } });
    HeaderParams::find(&schema).expect("the annotations are right")
});

/// Arguments that are mirrored, where the check finds them right.
fn parameters(headers: &HeaderMap, arguments: &Value) {
    if MIRRORED.check(headers, arguments).is_err() {
        return;
    }
    for (header, place) in [
        ("mcp-param-region", "/region"),
        ("mcp-param-count", "/count"),
        ("mcp-param-flag", "/deep/flag"),
    ] {
        let stated = said(headers, header).map(|text| unwrapped(&text));
        match arguments.pointer(place) {
            None | Some(Value::Null) => assert_eq!(stated, None),
            Some(Value::String(text)) => assert_eq!(stated.as_ref(), Some(text)),
            Some(Value::Bool(truth)) => assert_eq!(stated, Some(truth.to_string())),
            Some(Value::Number(number)) => {
                let stated = stated.map(|text| whole(&text));
                assert_eq!(stated, Some(whole(&number.to_string())));
            }
            // No schema admits it.
            Some(Value::Array(_) | Value::Object(_)) => {}
        }
    }
}

/// An integer, which may be written with a fraction of zero.
fn whole(text: &str) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.bytes().all(|byte| byte == b'0'), "{text}");
    whole.parse().expect("it is an integer")
}

/// The one value of a header, without the spaces around it.
fn said(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter().map(|value| value.as_bytes());
    let first = values.next()?;
    assert!(values.all(|value| value == first), "{name} says two things");
    assert!(first.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')));
    let text = String::from_utf8(first.to_vec()).expect("it is ASCII");
    Some(text.trim_matches([' ', '\t']).to_owned())
}

/// What a header stands for that may be wrapped: `=?base64?...?=`.
fn unwrapped(header: &str) -> String {
    let bytes = header.as_bytes();
    let (start, end) = ("=?base64?".len(), bytes.len().saturating_sub("?=".len()));
    if start > end || !header.starts_with("=?base64?") || !header.ends_with("?=") {
        return header.to_owned();
    }
    let (mut text, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in bytes[start..end].iter().filter(|byte| **byte != b'=') {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("{other} is no digit of base64"),
        };
        bits = (bits << 6 | u32::from(digit)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            text.push(u8::try_from(bits >> count & 0xff).expect("it is a byte"));
        }
    }
    // One text is wrapped in one way only.
    assert_eq!(STANDARD.encode(&text), header[start..end]);
    String::from_utf8(text).expect("it is text")
}

/// A member that is text.
fn text(read: Option<&String>, other: Option<&Value>) {
    assert_eq!(read.map(|read| json!(read)).as_ref(), other);
}

/// A member that was kept as it was written.
fn raw(read: Option<&RawValue>, other: Option<&Value>) {
    assert_eq!(read.map(value).as_ref(), other);
}

/// Texts by name; where there are none, an empty object.
fn strings(read: &[(String, String)], other: Option<&Value>) {
    let object: Map<String, Value> = read
        .iter()
        .map(|(name, text)| (name.clone(), json!(text)))
        .collect();
    assert_eq!(object.len(), read.len());
    assert_eq!(&Value::Object(object), other.unwrap_or(&json!({})));
}

/// An object that was taken apart.
fn members(read: &Members, other: Option<&Value>) {
    let read: Value = serde_json::from_str(&read.to_json()).expect("it is JSON");
    assert_eq!(&read, other.unwrap_or(&json!({})));
}

/// What an id is: a text, or else a number as it was written.
pub(super) fn id(id: &RawValue) -> Result<String, String> {
    serde_json::from_str(id.get()).map_err(|_| id.get().to_owned())
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).expect("it is JSON")
}

fn is_id(id: &Value) -> bool {
    // Long integers are kept digit by digit; another reader takes them for fractions.
    id.is_string() || id.is_number()
}
