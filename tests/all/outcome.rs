//! How calls end: the same at once and as a task, and which of the two a client gets.

use crate::servers::shared;
use longshore_tests::client::Message;
use longshore_tests::server::{HOSTILE, Server};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::collections::HashSet;

const SMALL: &str = "[plugins.hostile.limits]\nfuel = 500000000\nmemory_bytes = 16777216\n";

/// How each of these ends: the same at once and as a task.
const ENDS: [(&str, &str, &str); 11] = [
    ("env", "{}", "completed"),
    ("rpc_error", r#"{"code":-32603}"#, "failed"),
    ("rpc_error", r#"{"code":7,"data":"{\"a\":1}"}"#, "failed"),
    ("rpc_error", r#"{"code":-32020}"#, "failed"),
    (
        "rpc_error",
        r#"{"code":-32603,"data":"{\"reason\":\"limit\",\"plugin\":\"other\"}"}"#,
        "failed",
    ),
    (
        "rpc_error",
        r#"{"code":7,"data":"{\"_meta\":{\"dev.mcp/x\":1,\"example.com/k\":2}}"}"#,
        "failed",
    ),
    ("no_result", "{}", "failed"),
    ("trap", "{}", "failed"),
    ("spin", "{}", "failed"),
    ("recurse", "{}", "failed"),
    ("grow_then_ask", r#"{"mib":100}"#, "failed"),
];

#[test]
fn t17_a_call_and_a_task_end_the_same() {
    let mut config = SMALL.to_owned();
    let tools: HashSet<_> = ENDS
        .iter()
        .map(|(tool, ..)| tool)
        .chain([&"grow"])
        .collect();
    for tool in tools {
        config += &format!("[plugins.hostile.tools.{tool}]\ntask_support = \"required\"\n");
    }
    let now = Server::start(&[HOSTILE], SMALL);
    let later = Server::start(&[HOSTILE], &config);
    let grow = ("grow", r#"{"mib":4000}"#, "completed");
    for (tool, arguments, end) in ENDS.into_iter().chain([grow]) {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let plain = now.call(tool, arguments.clone());
        let task = later.call_task(tool, arguments).wait(end);
        if end == "completed" {
            assert_eq!(
                &task["result"]["content"],
                &plain.result()["content"],
                "{tool}"
            );
            assert_eq!(
                task["result"]["isError"],
                plain.result()["isError"],
                "{tool}"
            );
        } else {
            assert_eq!(plain.status(), 200, "{tool}");
            assert_eq!(&task["error"], plain.error(), "{tool}");
            let limit = match tool {
                "spin" => json!("fuel"),
                "grow_then_ask" => json!("memory_bytes"),
                "recurse" => json!("stack_bytes"),
                _ => Value::Null,
            };
            assert_eq!(task["error"]["data"]["limit"], limit, "{tool}");
            // The guest does not say who failed, nor why.
            let plugin = &task["error"]["data"]["plugin"];
            assert!(plugin.is_null() || plugin == "hostile", "{task:#}");
            let reserved = &task["error"]["data"]["_meta"]["dev.mcp/x"];
            assert_eq!(reserved, &Value::Null, "{task:#}");
        }
    }
}

#[test]
fn t17_tool_errors_are_results_in_both_ways() {
    let server = shared();
    let task = server.call_task("failing_job", json!({}));
    let result = task.wait("completed")["result"].clone();
    assert_eq!(result["isError"], true);
    // What never ran is no task: bad arguments and unknown tools are answered at once.
    let call = Message::call("sleep_required", json!({ "ms": "x" })).tasks();
    assert_eq!(server.send(&call).result()["isError"], true);
    let call = Message::call("no_such", json!({})).tasks();
    assert_eq!(server.send(&call).code(), -32602);
    let plain = Message::call("no_such", json!({}));
    assert_eq!(
        server.send(&plain).error(),
        server.send(&plain.clone().tasks()).error()
    );
}

#[test]
fn a_tool_that_is_quick_enough_answers_at_once() {
    let server = shared();
    let quick = server.send(&Message::call("echo", json!({ "text": "x" })).tasks());
    assert_eq!(quick.text(), "x");
    let slow = server.send(&Message::call("sleep", json!({ "ms": 800 })).tasks());
    assert_eq!(server.task(slow.task_id()).wait_text(), "slept 800 ms");
    let forbidden = server.send(&Message::call("sleep_forbidden", json!({ "ms": 400 })).tasks());
    assert_eq!(forbidden.text(), "slept 400 ms");
    // Its result stands though it runs on.
    let early = server.send(&Message::call("early", json!({ "ms": 50 })).tasks());
    assert_eq!(early.text(), "early");
}

#[test]
fn a_client_without_the_extension_waits_for_an_optional_tool() {
    let reply = shared().call("sleep", json!({ "ms": 400 }));
    assert_eq!(reply.text(), "slept 400 ms");
}

/// What a client sees of the task until it is gone, each state once.
fn states(server: &Server, id: &str) -> Vec<String> {
    let mut seen = Vec::new();
    wait_for("the task to be gone", PATIENCE, || {
        let reply = server.send(&Message::task("tasks/get", id));
        let now = match reply.response().get("error") {
            Some(error) => error["code"].to_string(),
            None => {
                let task = reply.result();
                if task["status"] == "failed" {
                    assert_eq!(task["error"]["code"], -32603);
                    assert_eq!(task["error"]["data"]["reason"], "expired");
                }
                task["status"].as_str().unwrap().to_owned()
            }
        };
        if seen.last() != Some(&now) {
            seen.push(now.clone());
        }
        (now == "-32602").then_some(())
    });
    seen
}

#[test]
fn t04_a_task_that_expires_fails_stops_and_is_gone_for_good() {
    let config = "[tasks]\nttl_ms = 2000\nkeep_ms = 1500\ngrace_ms = 100\n[limits]\nconcurrent_runs = 1\n[plugins.hostile.tools.sleep]\ntask_support = \"required\"\n";
    for restarted in [false, true] {
        let mut server = Server::start(&[HOSTILE], config);
        let id = server.call_task("sleep", json!({ "ms": 60_000 })).id;
        if restarted {
            server = Server::start_in(server.kill());
        }
        let seen = states(&server, &id);
        // A slow machine may miss one, but there is no way back.
        let mut order = ["working", "failed", "-32602"].iter();
        assert!(
            seen.iter().all(|now| order.any(|due| due == now)),
            "{seen:?}"
        );
        // Its guest left the only slot there is.
        server.call("env", json!({})).result();
        let told = |line: &&str| line.contains(&id) && line.contains("time to live");
        let told = || server.log().lines().filter(told).count();
        if !restarted {
            // The log is written beside the work; what was not written yet, a kill takes with it.
            wait_for("the line of the log", PATIENCE, || {
                (told() > 0).then_some(())
            });
        }
        assert!(told() <= 1, "{}", server.log());
        let server = Server::start_in(server.kill());
        assert_eq!(states(&server, &id), ["-32602"]);
    }
}
