//! Schemas of plugins that make more work than there is time for: each refuses its own call, and holds up no other.

use longshore_tests::client::Message;
use longshore_tests::server::{SCHEMAS, Server, VERSION_A};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A server that waits for one of these checks waits for ever.
const PROMPT: Duration = Duration::from_secs(5);

/// How often others are asked meanwhile.
const ROUNDS: usize = 20;

/// The checks that a server makes apart just now.
fn checks(server: &Server) -> usize {
    let parent = format!("PPid:\t{}", server.pid());
    let is_check = |process: &Path| {
        let read = |name: &str| fs::read_to_string(process.join(name)).unwrap_or_default();
        read("cmdline").contains("check-schema")
            && read("status").lines().any(|line| line == parent)
    };
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter(|process| is_check(&process.as_ref().unwrap().path()))
        .count()
}

fn assert_limit(error: &Value, tool: &str, limit: &str, value: u64) {
    let expected = json!({
        "reason": "limit", "plugin": "schemas", "tool": tool, "limit": limit, "value": value,
    });
    assert_eq!(error["code"], -32603, "{error}");
    assert_eq!(error["data"], expected);
    let message = error["message"].as_str().unwrap();
    let words = format!("exceeded its limit {limit} = {value}");
    assert!(message.contains(&words), "{message}");
}

fn expression(levels: usize, last: &Value) -> Value {
    let deep = (0..levels).fold(last.clone(), |left, level| {
        let kind = format!("kind {}", level % 20);
        json!({ "kind": kind, "left": left, "right": { "kind": "kind 0" } })
    });
    json!({ "expression": deep })
}

#[test]
fn a_check_without_end_holds_up_no_other_and_ends_with_its_caller() {
    let config = "[plugins.schemas.limits]\nschema_cpu_s = 3600";
    let mut server = Server::start(&[SCHEMAS, VERSION_A], config);
    let call = Message::call("double", json!({})).bytes(server.address());
    let mut callers = [server.connect(), server.connect(), server.connect()];
    for caller in &mut callers {
        caller.write(&call).unwrap();
    }
    wait_for("a check", PATIENCE, || (checks(&server) > 0).then_some(()));
    for _ in 0..ROUNDS {
        let tools = within("a list", PROMPT, || server.tools());
        assert!(tools.contains(&"double".to_owned()));
        let other = within("another plugin", PROMPT, || {
            server.call("version", json!({}))
        });
        assert_eq!(other.text(), "a");
        let same = within("another tool", PROMPT, || server.call("fine", json!({})));
        assert_eq!(same.text(), "called");
        // The others wait for their turn.
        assert_eq!(checks(&server), 1);
    }
    drop(callers);
    wait_for("the end of the checks", PATIENCE, || {
        (checks(&server) == 0).then_some(())
    });
    server.check_alive();
}

#[test]
fn a_check_that_takes_too_long_refuses_its_call() {
    let mut server = Server::start(&[SCHEMAS], "");
    let reply = server.call("double", json!({}));
    assert_limit(reply.error(), "double", "schema_cpu_s", 1);
    let message = reply.error_text();
    assert!(
        message.contains("plugins.schemas.limits.schema_cpu_s"),
        "{message}"
    );
    server.check_alive();
}

#[test]
fn a_result_is_checked_with_the_same_limit_as_a_call_and_as_a_task() {
    let config = "[plugins.schemas.limits]\nschema_cpu_s = 2";
    let server = Server::start(&[SCHEMAS], config);
    let plain = server.call("output", json!({}));
    assert_limit(plain.error(), "output", "schema_cpu_s", 2);
    let config = "[plugins.schemas.tools.output]\ntask_support = \"required\"";
    let server = Server::start(&[SCHEMAS], config);
    let task = server.call_task("output", json!({}));
    let task = task.wait("failed");
    assert_limit(&task["error"], "output", "schema_cpu_s", 1);
}

#[test]
fn a_task_whose_result_is_being_checked_can_be_cancelled() {
    let config = "
[tasks]
grace_ms = 100
[plugins.schemas.limits]
schema_cpu_s = 3600
[plugins.schemas.tools.output]
task_support = \"required\"
";
    let server = Server::start(&[SCHEMAS], config);
    let task = server.call_task("output", json!({}));
    task.cancel().result();
    within("the end", PATIENCE, || task.wait("cancelled"));
}

#[test]
fn a_schema_that_cannot_be_compiled_refuses_its_calls() {
    let mut server = Server::start(&[SCHEMAS], "");
    let reply = server.call("look_through", json!({}));
    let limit = reply.error()["data"]["limit"].as_str().unwrap_or_default();
    let value = match limit {
        "schema_memory_bytes" => 536_870_912,
        _ => 1,
    };
    assert!(
        ["schema_cpu_s", "schema_memory_bytes"].contains(&limit),
        "{:?}",
        reply.error()
    );
    assert_limit(reply.error(), "look_through", limit, value);
    server.check_alive();
}

#[test]
fn odd_schemas_that_are_good_go_on_to_work() {
    let mut server = Server::start(&[SCHEMAS], "");
    let good = [
        ("chain", json!({})),
        ("expression", json!({})),
        ("expression", expression(40, &json!({ "kind": "kind 7" }))),
    ];
    for (tool, arguments) in good {
        assert_eq!(server.call(tool, arguments).text(), "called", "{tool}");
    }
    let wrong = [
        ("chain", json!({ "a": 1 })),
        ("expression", json!({ "expression": 1 })),
        ("expression", expression(5, &json!({ "kind": "kind 99" }))),
    ];
    for (tool, arguments) in wrong {
        let reply = server.call(tool, arguments);
        assert_eq!(reply.result()["isError"], true, "{tool}");
        let told = reply.text();
        assert!(
            told.contains(tool) && told.contains("input schema"),
            "{told}"
        );
    }
    server.check_alive();
}
