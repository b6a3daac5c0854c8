//! One plugin, or one crowd of tasks, must not take what all need.

use longshore_tests::client::{Message, accept, answer};
use longshore_tests::server::{FIXTURES, HOSTILE, Server, VERSION_A};
use longshore_tests::wait::{wait_for, within};
use serde_json::json;
use std::thread;
use std::time::Duration;

/// What a call takes that finds a slot, on a machine with much to do.
const PROMPT: Duration = Duration::from_secs(5);

/// A server with so many slots, whose hostile sleepers are tasks.
fn slots(components: &[&str], count: u32) -> Server {
    let config = format!(
        "[limits]\nconcurrent_runs = {count}\n[plugins.hostile.tools.sleep_for_ever]\ntask_support = \"required\"\n"
    );
    Server::start(components, &config)
}

#[test]
fn one_plugin_does_not_take_all_the_slots() {
    let server = slots(&[HOSTILE, VERSION_A], 4);
    for _ in 0..8 {
        server.call_task("sleep_for_ever", json!({}));
    }
    within("another plugin's call", PROMPT, || {
        assert_eq!(server.call("version", json!({})).text(), "a");
    });
}

#[test]
fn a_plugin_is_listed_while_the_slots_are_taken() {
    let server = slots(&[HOSTILE], 1);
    server.call_task("sleep_for_ever", json!({}));
    server.home.install(VERSION_A);
    wait_for("the new tool", PROMPT, || {
        server.tools().contains(&"version".to_owned()).then_some(())
    });
}

#[test]
fn guests_that_wait_for_answers_leave_slots_to_calls() {
    let config = "[limits]\nconcurrent_runs = 4\n[tasks]\nlinger_ms = 30000\n";
    let server = Server::start(&[FIXTURES], config);
    let tasks: Vec<_> = (0..8)
        .map(|_| server.call_task("ask_one", json!({})))
        .collect();
    for task in &tasks {
        task.wait("input_required");
    }
    within("a call", PROMPT, || {
        assert_eq!(server.call("echo", json!({ "text": "hi" })).text(), "hi");
    });
    for task in &tasks {
        task.answer("number", accept(json!({ "number": 7 })));
        task.wait("completed");
    }
}

#[test]
fn running_tasks_have_a_budget_in_bytes() {
    let server = Server::start(&[FIXTURES], "[tasks]\nrunning_bytes_max = 200000\n");
    let call = || {
        let arguments = json!({ "ms": 60_000 });
        let message = Message::call("sleep_required", arguments).tasks();
        // What the body holds counts, whatever it is.
        let padding = "x".repeat(60_000);
        server.send(&message.edit(|message| {
            message["params"]["_meta"]["baggage"] = padding[..8_000].into();
            message["params"]["arguments"]["padding"] = padding.clone().into();
        }))
    };
    let mut taken = Vec::new();
    let refused = loop {
        let reply = call();
        if reply.response().get("error").is_some() {
            break reply;
        }
        taken.push(reply.task_id().to_owned());
        assert!(taken.len() < 10, "there is no budget");
    };
    assert_eq!(refused.error()["data"]["reason"], "busy", "{refused:?}");
    assert!(taken.len() >= 2, "{}", taken.len());
    // What was taken is not lost, and makes room when it ends.
    for id in &taken {
        server.task(id).cancel().result();
        server.task(id).wait("cancelled");
    }
    wait_for("room", PROMPT, || {
        call().response().get("result").is_some().then_some(())
    });
}

#[test]
fn an_answer_that_would_fill_the_record_is_refused() {
    let server = Server::start(&[FIXTURES], "");
    let task = server.call_task("ask2", json!({}));
    task.wait("input_required");
    let large = answer("name", accept(json!({ "name": "x".repeat(200_000) })));
    let reply = task.update(large);
    assert_eq!(reply.code(), -32602, "{reply:?}");
    assert!(
        reply.error_text().contains("131072"),
        "{}",
        reply.error_text()
    );
    task.answer("name", accept(json!({ "name": "Ada" })));
}

#[test]
fn an_expired_task_is_not_seen_as_it_was_after_a_restart() {
    let server = Server::start(&[FIXTURES], "[tasks]\nttl_ms = 1000\n");
    let id = server.call_task("ask_one", json!({})).id;
    let home = server.kill();
    // Its time passes while nothing runs; there is nothing to wait for but that.
    thread::sleep(Duration::from_millis(1_100));
    let server = Server::start_in(home);
    assert_eq!(server.task(&id).get()["status"], "failed");
}
