//! The judge can say no: without this, a judge that lets everything through would not be noticed.

use longshore_tests::client::Message;
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
