//! Plain calls and lists: what a client gets that knows nothing of tasks.

use crate::servers::shared;
use longshore_tests::client::{Connection, META_LOG_LEVEL, Message, Stream, TASKS};
use longshore_tests::server::{FIXTURES, HOSTILE, Server};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn discover_says_what_is_served() {
    let reply = shared().send(&Message::new("server/discover"));
    let result = reply.result();
    assert_eq!(result["capabilities"]["extensions"][TASKS], json!({}));
    assert!(result["capabilities"]["tools"].is_object());
}

#[test]
fn the_list_comes_in_pages_of_one_order() {
    let server = Server::start(&[FIXTURES], "[lists]\npage_size = 7\n");
    let pages = || {
        let mut names = Vec::new();
        let mut cursor = None;
        loop {
            let list = Message::new("tools/list");
            let list = match cursor.take() {
                Some(cursor) => list.param("cursor", cursor),
                None => list,
            };
            let page = server.send(&list).result().clone();
            let tools = page["tools"].as_array().unwrap();
            assert!((1..=7).contains(&tools.len()));
            names.extend(
                tools
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap().to_owned()),
            );
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => return names,
            }
        }
    };
    let first = pages();
    assert_eq!(first, pages());
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), first.len());
    assert!(first.len() > 20, "{first:?}");
}

#[test]
fn every_kind_of_content_arrives() {
    let reply = shared().call("every_content", json!({}));
    let result = reply.result();
    let kinds: Vec<_> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(
        kinds,
        [
            "text",
            "image",
            "audio",
            "resource_link",
            "resource",
            "resource",
            // The copy of the structured content.
            "text"
        ]
    );
    assert_eq!(result["content"][0]["text"], "plain \u{0}\u{1F6A2} text");
    assert_eq!(result["content"][1]["data"], "AAH+/w==");
    assert!(
        result
            .as_object()
            .unwrap()
            .contains_key("structuredContent")
    );
    assert_eq!(result["structuredContent"], Value::Null);
    assert_eq!(result["_meta"]["example.com/key"], 1);
}

#[test]
fn structured_content_is_exact_and_has_a_text() {
    let server = shared();
    let value = json!({
        "big": 18_446_744_073_709_551_615_u64, "past": 9_007_199_254_740_993_i64, "float": 1e308,
        "nul": "\u{0}", "ship": "\u{1F6A2}", "nothing": null, "list": [], "deep": { "a": [1, { "b": false }] },
    });
    let reply = server.call("echo_json", value.clone());
    assert_eq!(reply.result()["structuredContent"], value);
    let stats = server.call("stats", json!({ "text": "two words" }));
    assert_eq!(
        stats.result()["structuredContent"],
        json!({ "characters": 9, "words": 2 })
    );
    let text: Value = serde_json::from_str(stats.text()).unwrap();
    assert_eq!(text, stats.result()["structuredContent"]);
}

#[test]
fn a_failed_tool_is_a_result() {
    let reply = shared().call("fail", json!({ "text": "it broke" }));
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.result()["isError"], true);
    assert!(reply.text().contains("it broke"));
}

#[test]
fn bad_arguments_are_a_failed_result_that_names_them() {
    let reply = shared().call("echo", json!({ "text": 7 }));
    assert_eq!(reply.result()["isError"], true);
    assert!(reply.text().contains("text"), "{}", reply.text());
}

#[test]
fn p17_progress_comes_under_the_clients_token_and_rises() {
    let server = shared();
    for token in [
        json!("abc"),
        json!(7),
        json!(""),
        json!(9_007_199_254_740_993_i64),
    ] {
        let arguments = json!({ "steps": [1, 2, 3], "total": 3, "ms": 60 });
        let reply = server.send(&Message::call("progress", arguments).progress(token.clone()));
        assert_eq!(reply.head.header("content-type"), Some("text/event-stream"));
        assert_eq!(reply.text(), "3 steps");
        let reports = reply.notifications("notifications/progress");
        assert_eq!(reports.len(), 3);
        assert!(
            reports
                .iter()
                .all(|report| report["progressToken"] == token)
        );
        let values: Vec<_> = reports
            .iter()
            .map(|report| report["progress"].as_f64().unwrap())
            .collect();
        assert_eq!(values, [1.0, 2.0, 3.0]);
        assert_eq!(reports[0]["total"].as_f64(), Some(3.0));
        assert_eq!(reports[0]["message"], "at 1");
    }
}

#[test]
fn p34_the_frames_of_a_stream() {
    let arguments = json!({ "steps": [1, 2], "ms": 60 });
    let reply = shared().send(&Message::call("progress", arguments).progress("t"));
    assert_eq!(reply.head.header("x-accel-buffering"), Some("no"));
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let frames: Vec<_> = text
        .split("\n\n")
        .filter(|frame| frame.contains("data:"))
        .collect();
    assert_eq!(frames.len(), reply.messages.len());
    for frame in frames {
        assert!(
            frame.lines().any(|line| line == "event: message"),
            "{frame}"
        );
        assert_eq!(frame.matches("data:").count(), 1, "{frame}");
    }
    // Nothing comes after the response.
    assert_eq!(
        reply
            .messages
            .iter()
            .filter(|message| message.get("id").is_some())
            .count(),
        1
    );
    assert!(reply.response().get("id").is_some());
}

#[test]
fn progress_that_falls_is_left_out() {
    let server = shared();
    let arguments = json!({ "steps": [5, 3, 5, 6], "ms": 60 });
    let reply = server.send(&Message::call("progress", arguments).progress("t"));
    let reports = reply.notifications("notifications/progress");
    let values: Vec<_> = reports
        .iter()
        .map(|report| report["progress"].as_f64().unwrap())
        .collect();
    assert_eq!(values, [5.0, 6.0]);
}

#[test]
fn p17_without_a_token_there_is_no_progress_and_no_stream() {
    let reply = shared().call("progress", json!({ "steps": [1, 2], "ms": 1 }));
    assert_eq!(reply.head.header("content-type"), Some("application/json"));
    assert_eq!(reply.messages.len(), 1);
}

#[test]
fn an_early_error_keeps_its_status_though_progress_was_wanted() {
    let message = Message::call("sleep_required", json!({ "ms": 1 })).progress("t");
    let reply = shared().send(&message);
    assert_eq!((reply.status(), reply.code()), (400, -32021));
}

#[test]
fn log_messages_come_from_the_level_that_was_asked_for() {
    let server = shared();
    let log = |level: &str, wanted: Option<&str>| {
        let arguments = json!({ "level": level, "text": "hello", "logger": "here" });
        let message = Message::call("log", arguments);
        let message = match wanted {
            Some(wanted) => message.meta(META_LOG_LEVEL, wanted),
            None => message,
        };
        server.send(&message)
    };
    let of_guest = |reply: &longshore_tests::client::Reply| -> Vec<Value> {
        let all = reply.notifications("notifications/message");
        all.into_iter()
            .filter(|params| params["logger"] == "here")
            .cloned()
            .collect()
    };
    let reply = log("warning", Some("info"));
    let messages = of_guest(&reply);
    assert_eq!(messages.len(), 1, "{reply:#?}");
    assert_eq!(messages[0]["level"], "warning");
    assert_eq!(messages[0]["data"], "hello");
    assert_eq!(of_guest(&log("debug", Some("info"))), Vec::<Value>::new());
    let quiet = log("emergency", None);
    assert_eq!(quiet.messages.len(), 1);
    assert_eq!(quiet.text(), "logged");
}

/// One slot and no queue: whether a call has ended shows in whether the next one is let in.
const ONE_SLOT: &str = "[limits]\nconcurrent_runs = 1\nqueued_calls = 0\n";

fn is_taken(server: &Server, tool: &str) -> bool {
    let reply = server.call(tool, json!({}));
    let error = reply.response().get("error");
    error.is_some_and(|error| error["data"]["reason"] == "busy")
}

/// What a client takes: each is another way of answering.
const ACCEPTS: [&str; 2] = ["application/json", "application/json, text/event-stream"];

/// A call that has the slot. It is made again if it came while the slot was looked at, which takes a call too.
fn take_slot(server: &Server, tool: &str, accept: &str) -> Connection {
    wait_for("a call with the slot", PATIENCE, || {
        let mut connection = server.connect();
        let message = Message::call(tool, json!({})).header("Accept", accept);
        connection.write(&message.bytes(server.address())).unwrap();
        wait_for("the slot to be taken, or not", PATIENCE, || {
            let refused = connection.has_answer();
            (refused || is_taken(server, "env")).then_some(!refused)
        })
        .then_some(connection)
    })
}

fn check_freed(server: &Server, tool: &str) {
    within("freeing the slot", Duration::from_secs(1), || {
        wait_for("the slot to be free", PATIENCE, || {
            (!is_taken(server, tool)).then_some(())
        });
    });
}

#[test]
fn p29_a_client_that_goes_away_ends_its_call() {
    let server = Server::start(&[HOSTILE], ONE_SLOT);
    for tool in ["spin", "sleep_for_ever", "poll_flood"] {
        for accept in ACCEPTS {
            take_slot(&server, tool, accept).close();
            check_freed(&server, "env");
            take_slot(&server, tool, accept).reset();
            check_freed(&server, "env");
        }
    }
}

#[test]
fn p29_a_client_that_goes_away_within_a_stream_ends_its_call() {
    for leave in [Stream::close, Stream::reset] {
        // A new one each time: the slot of the call that finds it free is free itself a moment after its answer.
        let server = Server::start(&[FIXTURES], ONE_SLOT);
        let arguments = json!({ "steps": [1, 2, 3], "ms": 60_000 });
        let message = Message::call("progress", arguments).progress("t");
        let mut stream = server.stream(&message);
        let first = stream.message().unwrap().unwrap();
        assert_eq!(first["params"]["progress"].as_f64(), Some(1.0));
        assert!(is_taken(&server, "ver"));
        leave(stream);
        check_freed(&server, "ver");
    }
}

#[test]
fn progress_and_logs_are_finite_and_few() {
    let server = Server::start(&[HOSTILE], "");
    let wild = server.send(&Message::call("progress_bad", json!({})).progress("t"));
    let reports = wild.notifications("notifications/progress");
    let values: Vec<_> = reports
        .iter()
        .map(|report| report["progress"].as_f64().unwrap())
        .collect();
    assert!(values.is_sorted_by(|one, next| one < next), "{values:?}");
    assert!(
        reports.iter().all(|report| report.get("total").is_none()),
        "{reports:?}"
    );
    assert_eq!(values.last(), Some(&6.0));

    let many = json!({ "n": 10_000 });
    let flood = server.send(&Message::call("progress_flood", many.clone()).progress("t"));
    let reports = flood.notifications("notifications/progress");
    assert!((1..1_000).contains(&reports.len()), "{}", reports.len());

    let flood = Message::call("log_flood", many).meta(META_LOG_LEVEL, "debug");
    let flood = server.send(&flood);
    let messages = flood.notifications("notifications/message");
    // limits.log_lines, and one that says so.
    assert!((1..=1_001).contains(&messages.len()), "{}", messages.len());
    let bad = Message::call("log_bad_json", json!({})).meta(META_LOG_LEVEL, "debug");
    server.send(&bad).result();
}

const TRACE_PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn trace_context_reaches_the_guest_of_a_call_and_of_a_task() {
    let trace = json!([
        ["traceparent", TRACE_PARENT],
        ["tracestate", "a=1"],
        ["baggage", "b=2"]
    ]);
    let seen = |result: &Value| result["structuredContent"]["trace"].clone();
    let call = Message::call("ctx", json!({}))
        .meta("traceparent", TRACE_PARENT)
        .meta("tracestate", "a=1")
        .meta("baggage", "b=2");
    assert_eq!(seen(shared().send(&call).result()), trace);
    let config = "[plugins.fixtures.tools.ctx]\ntask_support = \"required\"\n";
    let server = Server::start(&[FIXTURES], config);
    let reply = server.send(&call.tasks());
    let done = server.task(reply.task_id()).wait("completed");
    assert_eq!(seen(&done["result"]), trace);
}
