//! What older clients and plain calls have over HTTP, they have over standard input and output too.

use crate::servers::shared;
use longshore_tests::client::Message;
use longshore_tests::legacy::{EARLIER, LATEST, asks_all};
use longshore_tests::server::{FIXTURES, Server};
use longshore_tests::stdio::StdioServer;
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::time::Duration;

fn request(id: i64, method: &str, params: impl Into<Value>) -> Value {
    let params = params.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn call(id: i64, tool: &str, arguments: impl Into<Value>) -> Value {
    let arguments = arguments.into();
    request(
        id,
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
}

fn cancel(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// A server with a session of this version.
fn session(revision: &str) -> StdioServer {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.initialize(revision, &asks_all());
    server
}

#[test]
fn an_older_client_is_asked_in_every_way() {
    for revision in [LATEST, EARLIER] {
        let mut server = session(revision);
        server.send(&call(1, "ask_all", json!({})));
        let response = loop {
            let message = server.message();
            let result = match message["method"].as_str() {
                Some("roots/list") => json!({ "roots": [{ "uri": "file:///r" }] }),
                Some("sampling/createMessage") => json!({
                    "role": "assistant", "model": "m", "content": { "type": "text", "text": "hi" },
                }),
                Some("elicitation/create") if message["params"]["mode"] == "url" => {
                    json!({ "action": "accept" })
                }
                Some("elicitation/create") => {
                    json!({ "action": "accept", "content": { "name": "Ada" } })
                }
                None => break message,
                other => panic!("{other:?}"),
            };
            server.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        };
        let text = response["result"]["content"][0]["text"].as_str();
        // The earlier version has no questions with an address.
        let expected = match revision {
            LATEST => Some("Ada; opened; hi; file:///r"),
            _ => None,
        };
        if expected.is_some() {
            assert_eq!(text, expected, "{response:#}");
        } else {
            let told = response["error"]["message"].as_str().or(text);
            assert!(
                told.is_some_and(|told| told.contains("url")),
                "{response:#}"
            );
        }
    }
}

#[test]
fn an_older_client_hears_progress_logs_and_changes() {
    for revision in [LATEST, EARLIER] {
        let mut server = session(revision);
        let set = request(1, "logging/setLevel", json!({ "level": "warning" }));
        assert_eq!(server.exchange(&set).0["result"], json!({}));
        let log = |level: &str| json!({ "level": level, "text": "x" });
        let (_, others) = server.exchange(&call(2, "log", log("info")));
        assert_eq!(others, [] as [Value; 0]);
        let (_, others) = server.exchange(&call(3, "log", log("error")));
        assert_eq!(others[0]["method"], "notifications/message", "{others:#?}");

        let mut progress = call(4, "progress", json!({ "steps": [1, 2], "ms": 100 }));
        progress["params"]["_meta"] = json!({ "progressToken": "p" });
        let (_, others) = server.exchange(&progress);
        let tokens: Vec<_> = others
            .iter()
            .map(|one| &one["params"]["progressToken"])
            .collect();
        assert_eq!(tokens, ["p", "p"], "{others:#?}");

        let follow =
            |method: &str, id: i64| request(id, method, json!({ "uri": "fixture://plain" }));
        server.exchange(&follow("resources/subscribe", 5));
        server.send(&call(6, "notify", json!({ "uri": "fixture://plain" })));
        let updated = wait_for("the update", PATIENCE, || {
            let message = server.message();
            (message["method"] == "notifications/resources/updated").then_some(message)
        });
        assert_eq!(updated["params"], json!({ "uri": "fixture://plain" }));
        server.exchange(&follow("resources/unsubscribe", 7));
        for list in ["prompts", "resources"] {
            server.send(&call(8, "notify", json!({ "list": list })));
            let changed = format!("notifications/{list}/list_changed");
            wait_for(&changed, PATIENCE, || {
                let message = server.message();
                assert_ne!(message["method"], "notifications/resources/updated");
                (message["method"] == changed.as_str()).then_some(())
            });
        }
    }
}

/// One slot: the guest of the cancelled call is gone when the next one has its answer.
#[test]
fn a_modern_call_is_cancelled_by_its_id() {
    let config = "[limits]\nconcurrent_runs = 1\n[tasks]\ngrace_ms = 0\n";
    let mut server = StdioServer::start(&[FIXTURES], config);
    server.send(Message::call("spin", json!({})).id(7).json());
    server.send(&cancel(7));
    let echo = Message::call("echo", json!({ "text": "next" })).id(8);
    let echo = echo.json().clone();
    // Nothing more is said of the other.
    let (response, others) = within("the next call", Duration::from_secs(20), || {
        server.exchange(&echo)
    });
    assert_eq!(
        response["result"]["content"][0]["text"], "next",
        "{response:#}"
    );
    assert_eq!(others, [] as [Value; 0]);
}

/// Over HTTP an id says nothing of who had it: to go away is what cancels a call there.
#[test]
fn p15_over_http_no_notification_ends_a_modern_call() {
    let server = shared();
    let sleep = Message::call("sleep", json!({ "ms": 500 })).id(77);
    let mut connection = server.connect();
    connection.write(&sleep.bytes(server.address())).unwrap();
    let cancel = Message::new("notifications/cancelled").param("requestId", 77);
    assert_eq!(server.send(&cancel.notification()).status(), 202);
    assert_eq!(
        connection.reply("tools/call").unwrap().text(),
        "slept 500 ms"
    );
}

/// The context is kept with the task, and a run that is made again after a crash is told the same.
#[test]
fn trace_context_is_kept_with_a_task() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let server = Server::start(&[FIXTURES], "[tasks]\nlinger_ms = 0\n");
    let ask = Message::call("ask_ctx", json!({}))
        .meta("traceparent", parent)
        .tasks()
        .asks();
    let id = server.send(&ask).task_id().to_owned();
    server.task(&id).wait("input_required");
    let server = Server::start_in(server.kill());
    let task = server.task(&id);
    task.answer(
        "number",
        longshore_tests::client::accept(json!({ "number": 1 })),
    );
    let done = task.wait("completed");
    let trace = &done["result"]["structuredContent"]["trace"];
    assert_eq!(trace, &json!([["traceparent", parent]]), "{done:#}");
}
