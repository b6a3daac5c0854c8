//! The judge can say no: without this, a judge that lets everything through would not be noticed.

use longshore_tests::client::Message;
use longshore_tests::era::judge_lines;
use longshore_tests::legacy::{LATEST, initialize};
use longshore_tests::schema;
use serde_json::{Value, json};

fn reply(result: Value) -> Value {
    let mut result = result;
    result["_meta"] =
        json!({ "io.modelcontextprotocol/serverInfo": { "name": "n", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 1, "result": result })
}

fn error(error: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "error": error })
}

fn task(status: &str) -> Value {
    json!({
        "resultType": "complete", "taskId": "t", "status": status, "ttlMs": 1,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    })
}

/// A task as a notification says it.
fn told(task: &Value) -> Value {
    let mut params = task.clone();
    params.as_object_mut().unwrap().remove("resultType");
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": 1 });
    json!({ "jsonrpc": "2.0", "method": "notifications/tasks", "params": params })
}

#[test]
fn right_messages_pass() {
    let done = json!({ "resultType": "complete", "content": [] });
    let mut completed = task("completed");
    completed["result"] = done.clone();
    for (method, message) in [
        ("tools/call", reply(done)),
        (
            "tools/list",
            reply(
                json!({ "resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private" }),
            ),
        ),
        ("tasks/get", reply(task("working"))),
        ("subscriptions/listen", told(&task("working"))),
        ("subscriptions/listen", told(&completed)),
        ("tasks/get", reply(completed)),
        ("tasks/cancel", reply(json!({ "resultType": "complete" }))),
        (
            "tools/call",
            error(&json!({ "code": -32602, "message": "m" })),
        ),
    ] {
        schema::reply(method, &message).unwrap();
    }
    schema::request(Message::call("t", json!({})).json()).unwrap();
}

#[test]
fn wrong_replies_do_not() {
    let mut without_type = task("completed");
    without_type["result"] = json!({ "content": [] });
    let mut with_task = task("working");
    with_task["resultType"] = json!("task");
    let mut with_result = task("working");
    with_result["result"] = json!({});
    let mut null_message = task("working");
    null_message["statusMessage"] = Value::Null;
    for (method, message) in [
        (
            "tools/list",
            reply(json!({ "resultType": "complete", "tools": [] })),
        ),
        ("tools/call", reply(json!({ "content": [] }))),
        (
            "tools/call",
            reply(json!({ "resultType": "done", "content": [] })),
        ),
        (
            "tools/call",
            reply(json!({ "resultType": "input_required" })),
        ),
        (
            "tools/call",
            reply(json!({ "resultType": "complete", "content": [{ "type": "x" }] })),
        ),
        (
            "tools/call",
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "complete", "content": [] } }),
        ),
        ("tasks/get", reply(task("completed"))),
        ("tasks/get", reply(task("input_required"))),
        ("tasks/get", reply(task("failed"))),
        ("tasks/get", reply(without_type)),
        ("tasks/get", reply(with_task)),
        ("tasks/get", reply(with_result)),
        ("tasks/get", reply(null_message)),
        ("tasks/cancel", reply(json!({}))),
        (
            "tools/call",
            error(&json!({ "code": -32021, "message": "m" })),
        ),
        (
            "tools/call",
            error(&json!({ "code": -32022, "message": "m", "data": {} })),
        ),
        (
            "tools/call",
            error(&json!({ "code": -32002, "message": "m" })),
        ),
        ("tools/call", error(&json!({ "code": "x", "message": "m" }))),
        (
            "tools/call",
            json!({ "jsonrpc": "2.0", "id": null, "error": { "code": 1, "message": "m" } }),
        ),
        (
            "tools/call",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {} }),
        ),
        (
            "tools/call",
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} }),
        ),
    ] {
        assert!(
            schema::reply(method, &message).is_err(),
            "{method}: {message:#}"
        );
    }
}

#[test]
fn wrong_messages_of_streams_prompts_and_resources_do_not() {
    for (method, message) in [
        ("subscriptions/listen", told(&task("failed"))),
        (
            "subscriptions/listen",
            json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
        ),
        ("prompts/get", reply(json!({ "resultType": "complete" }))),
        (
            "resources/read",
            reply(json!({ "resultType": "complete", "contents": [] })),
        ),
    ] {
        assert!(
            schema::reply(method, &message).is_err(),
            "{method}: {message:#}"
        );
    }
}

#[test]
fn wrong_requests_do_not() {
    for message in [
        Message::new("tools/list").no_param("_meta"),
        Message::new("tools/call"),
        Message::call("t", json!([])),
        Message::new("tools/list").id(1.5),
        Message::task("tasks/update", "t"),
    ] {
        assert!(
            schema::request(message.json()).is_err(),
            "{}",
            message.json()
        );
    }
}

/// What a client says on a pipe, in both eras.
fn said() -> Vec<Value> {
    vec![
        Message::new("tools/list").id("modern").json().clone(),
        Message::call("t", json!({}))
            .id("told")
            .progress("p")
            .json()
            .clone(),
        initialize(LATEST, &json!({})),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": "older", "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": "loose", "method": "tools/call", "params": { "name": "t", "arguments": {} } }),
    ]
}

fn begun() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0,
        "result": {
            "protocolVersion": LATEST, "capabilities": {},
            "serverInfo": { "name": "n", "version": "1" },
        },
    })
}

fn heard(came: &[Value]) -> Result<Vec<String>, String> {
    let lines = |messages: &[Value]| {
        messages
            .iter()
            .map(|message| format!("{message}\n"))
            .collect::<String>()
    };
    judge_lines(&lines(&said()), &lines(came))
}

fn older(id: &str, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn told_of(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[test]
fn right_messages_of_a_pipe_pass() {
    let progress = told_of(
        "notifications/progress",
        &json!({ "progressToken": "p", "progress": 1 }),
    );
    let changed = told_of("notifications/tools/list_changed", &json!({}));
    let refused = json!({ "jsonrpc": "2.0", "error": { "code": -32700, "message": "m" } });
    let roots = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    let called = older("loose", &json!({ "content": [] }));
    let listed = older("older", &json!({ "tools": [] }));
    let methods = heard(&[progress, begun(), changed, refused, roots, called, listed]).unwrap();
    assert_eq!(methods.len(), said().len());
}

#[test]
fn wrong_messages_of_a_pipe_do_not() {
    let changed = told_of("notifications/tools/list_changed", &json!({}));
    let roots = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    let task = json!({ "taskId": "t", "status": "working", "ttl": 1, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" });
    for came in [
        // Before there is a session.
        vec![changed],
        vec![roots],
        vec![told_of(
            "notifications/message",
            &json!({ "level": "info", "data": 1 }),
        )],
        // Within one.
        vec![
            begun(),
            told_of(
                "notifications/progress",
                &json!({ "progressToken": "q", "progress": 1 }),
            ),
        ],
        vec![begun(), told_of("notifications/tasks/status", &task)],
        vec![begun(), told_of("notifications/no_such", &json!({}))],
        vec![begun(), older("older", &json!({}))],
        vec![
            begun(),
            older("older", &json!({ "tools": [], "resultType": "complete" })),
        ],
        vec![begun(), older("unasked", &json!({}))],
        // An answer of the wrong era, each way.
        vec![begun(), older("modern", &json!({ "tools": [] }))],
        vec![
            begun(),
            json!({ "jsonrpc": "2.0", "id": "older", "error": { "code": -32021, "message": "m" } }),
        ],
    ] {
        assert!(heard(&came).is_err(), "{came:#?}");
    }
    // A request that is served was right itself.
    let wrong =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "arguments": [] } });
    let mut raw = wrong.to_string();
    raw.push('\n');
    let served = older("1", &json!({ "content": [] })).to_string();
    assert!(judge_lines(&raw, &served).is_err());
}
