//! One plugin, or one crowd of tasks, must not take what all need.

use longshore_tests::archive;
use longshore_tests::client::{Message, accept, answer, text_of};
use longshore_tests::legacy::{LATEST, Session, asks_all};
use longshore_tests::server::{FIXTURES, HOSTILE, Home, Server, VERSION_A, variant};
use longshore_tests::wait::{wait_for, within};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

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
fn waiting_guests_have_a_budget_in_bytes() {
    const MIB: u64 = 1 << 20;
    let config = "[tasks]\nlinger_ms = 600000\nwaiting_bytes_max = 67108864\n";
    let server = Server::start(&[HOSTILE], config);
    // What is made at first use stays.
    server.call("grow", json!({ "mib": 24 }));
    let before = server.memory_bytes();
    // 240 MiB in all.
    let tasks: Vec<_> = (0..10)
        .map(|_| server.call_task("grow_then_ask", json!({ "mib": 24 })))
        .collect();
    for task in &tasks {
        task.wait("input_required");
    }
    wait_for("guests to leave memory", PROMPT, || {
        let grown = server.memory_bytes().saturating_sub(before);
        (grown < 120 * MIB).then_some(())
    });
    // Those that left and those that stayed go on alike.
    for task in &tasks {
        let key = task.wait_questions().remove(0);
        task.answer(&key, accept(json!({ "confirm": true })));
        assert_eq!(task.wait_text(), "true: 24 MiB, true");
    }
}

/// A server with two plugins, `hostile` and `other`, each of which may write into this folder, as `/d`, and has room for one call
/// that waits in memory: a guest has a stack of 1 MiB, so two take more than its half.
fn with_little_room(path: &Path) -> Server {
    let grants = format!("directories = [{{ host = {path:?}, guest = \"/d\", write = true }}]");
    let config = format!(
        "[tasks]\nwaiting_bytes_max = 4000000\n[plugins.other]\nprefix = \"other.\"\n\
         [plugins.hostile.grants]\n{grants}\n[plugins.other.grants]\n{grants}\n"
    );
    let home = Home::new(&[HOSTILE], &config);
    home.install_as("other.wasm", &variant(HOSTILE, "other"));
    Server::start_in(Arc::new(home)).settled()
}

#[test]
fn a_call_that_cannot_leave_memory_fails_if_there_is_no_room() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let server = with_little_room(path);
    let arguments = |file: &str| json!({ "path": format!("/d/{file}"), "text": "written" });
    let first = server.call_task("write_then_ask", arguments("first"));
    let key = first.wait_questions().remove(0);
    let second = server.call_task("write_then_ask", arguments("second"));
    let failed = second.wait("failed");
    assert_eq!(failed["error"]["data"]["reason"], "no_room", "{failed:#}");
    let message = failed["error"]["message"].as_str().unwrap();
    for word in ["tasks.waiting_bytes_max = 4000000", "the plugin hostile"] {
        assert!(message.contains(word), "no {word} in {message}");
    }
    assert!(path.join("second").exists(), "it was honest about that");

    // Plain calls have as much again.
    let plain = |file: &str| {
        let call = Message::call("write_then_ask", arguments(file)).asks();
        server.send(&call)
    };
    assert_eq!(plain("third").result()["resultType"], "input_required");
    let refused = plain("fourth");
    assert_eq!(refused.error(), &failed["error"]);

    first.answer(&key, accept(json!({ "confirm": true })));
    assert_eq!(first.wait_text(), "true: written\n");
    let fifth = server.call_task("write_then_ask", arguments("fifth"));
    fifth.wait("input_required");
}

#[test]
fn one_plugin_does_not_take_all_the_room_of_waiting_calls() {
    let folder = TempDir::new().unwrap();
    let server = with_little_room(folder.path());
    let arguments = |file: &str| json!({ "path": format!("/d/{file}"), "text": "written" });
    let session = Session::begin(&server, LATEST, &asks_all());
    let params = |tool: &str, file: &str| json!({ "name": tool, "arguments": arguments(file) });
    let yes = || accept(json!({ "confirm": true }));

    // The first plugin takes all that it may, in tasks and in plain calls.
    let call = Message::call("write_then_ask", arguments("greedy")).asks();
    let task = server.call_task("write_then_ask", arguments("greedy"));
    task.wait("input_required");
    server
        .call_task("write_then_ask", arguments("greedy"))
        .wait("failed");
    assert_eq!(server.send(&call).result()["resultType"], "input_required");
    assert_eq!(server.send(&call).error()["data"]["reason"], "no_room");

    // The other one finds its own.
    let other = server.call_task("other.write_then_ask", arguments("task"));
    other.answer(&other.wait_questions().remove(0), yes());
    assert_eq!(other.wait_text(), "true: written\n");
    let (response, _) = session.request(
        "tools/call",
        params("other.write_then_ask", "session"),
        |_, _| json!({ "result": yes() }),
    );
    let text = &response["result"]["content"][0]["text"];
    assert_eq!(text, "true: written\n", "{response:#}");
    let call = Message::call("other.write_then_ask", arguments("plain")).asks();
    let asked = server.send(&call).result().clone();
    let key = asked["inputRequests"].as_object().unwrap().keys().next();
    let next = call.param("inputResponses", answer(key.unwrap(), yes()));
    let next = next.param("requestState", asked["requestState"].clone());
    assert_eq!(server.send(&next).text(), "true: written\n");
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
    let data = &refused.error()["data"];
    assert_eq!(data["reason"], "busy", "{refused:?}");
    assert_eq!(data["limit"], "tasks.running_bytes_max", "{refused:?}");
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
fn s05_a_store_of_many_ended_tasks_opens_soon_in_little_memory() {
    let home = Arc::new(Home::new(&[FIXTURES], "[tasks]\nttl_ms = 86400000\n"));
    let ids = archive::fill(&home, 20_000);
    let server = within("the start", PROMPT, || {
        let server = Server::start_in(home);
        server.send(&Message::new("server/discover")).result();
        server
    });
    for id in ids.iter().step_by(500) {
        let task = server.task(id).get();
        assert_eq!(text_of(&task["result"]), "slept 0 ms");
    }
    let most = server.memory_bytes_at_most();
    assert!(most < 256 << 20, "{most} bytes");
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
