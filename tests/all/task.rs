//! Cases of the life of a task.

use crate::servers::shared;
use longshore_tests::client::{Message, accept, answer, decline};
use longshore_tests::server::{FIXTURES, Server, Task};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::process::Command;
use std::thread;
use std::time::Duration;

fn without_meta(mut task: Value) -> Value {
    task.as_object_mut().unwrap().remove("_meta");
    task
}

/// Cancel and update are acknowledged or refused, and change nothing.
fn check_final(task: &Task<'_>) {
    let before = task.get();
    task.cancel();
    task.update(json!({}));
    task.update(answer("number", accept(json!({ "number": 1 }))));
    task.cancel();
    assert_eq!(task.get(), before);
}

#[test]
fn t01_terminal_is_terminal() {
    let server = shared();
    let completed = server.call_task("sleep_required", json!({ "ms": 1 }));
    completed.wait("completed");
    check_final(&completed);
    let failed = server.call_task("protocol_error_job", json!({}));
    failed.wait("failed");
    check_final(&failed);
    let cancelled = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    cancelled.cancel().result();
    cancelled.wait("cancelled");
    check_final(&cancelled);
}

#[test]
fn t03_unknown_ids() {
    let server = shared();
    let unknown = "0123456789abcdef0123456789abcdef01234567";
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let message = Message::task(method, unknown).param("inputResponses", json!({}));
        let reply = server.send(&message);
        assert_eq!((reply.status(), reply.code()), (200, -32602), "{method}");
    }
}

#[test]
fn t06_the_same_task_in_a_new_process() {
    let server = Server::start(&[FIXTURES], "");
    let done = server.call_task("sleep_required", json!({ "ms": 1 }));
    let finished = without_meta(done.wait("completed"));
    let asking = server.call_task("ask_one", json!({}));
    let asked = without_meta(asking.wait("input_required"));
    let working = server.call_task("sleep_required", json!({ "ms": 1_500 }));
    assert_eq!(working.get()["status"], "working");
    let ids = [done.id, asking.id, working.id];

    let (status, home) = within("the end", Duration::from_secs(5), || server.terminate());
    assert!(status.success(), "{status}");
    let server = Server::start_in(home);
    let [done, asking, working] = ids.map(|id| server.task(&id));
    assert_eq!(without_meta(done.get()), finished);
    assert_eq!(
        without_meta(asking.get())["inputRequests"],
        asked["inputRequests"]
    );
    asking.answer("number", accept(json!({ "number": 5 })));
    assert_eq!(asking.wait_text(), "the number is 5");
    assert_eq!(working.wait_text(), "slept 1500 ms");
}

#[test]
fn t07_killed_in_the_middle_of_a_run() {
    let server = Server::start(&[FIXTURES], "");
    let long = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let short = server.call_task("sleep_required", json!({ "ms": 1_000 }));
    let asking = server.call_task("ask2", json!({}));
    asking.answer("name", accept(json!({ "name": "Ada" })));
    let ids = [long.id, short.id, asking.id];
    let server = Server::start_in(server.kill());
    let [long, short, asking] = ids.map(|id| server.task(&id));
    // It really goes on: it can finish, and it can be cancelled.
    assert_eq!(short.wait_text(), "slept 1000 ms");
    assert_eq!(long.get()["status"], "working");
    long.cancel().result();
    long.wait("cancelled");
    asking.answer("color", accept(json!({ "color": "blue" })));
    assert_eq!(asking.wait_text(), "Ada likes blue");
}

#[test]
fn the_name_of_a_job_elsewhere_is_kept_found_and_told_again() {
    let config = "[plugins.fixtures.tools.external_id]\ntask_support = \"required\"\n";
    let server = Server::start(&[FIXTURES], config);
    let arguments = json!({ "id": "job-17", "ms": 60_000 });
    let task = server.call_task("external_id", arguments);
    let id = task.id.clone();
    // It is on the disk before the guest goes on to what it does under that name.
    wait_for("its progress", PATIENCE, || {
        let task = task.get();
        assert_eq!(task["status"], "working");
        (task["statusMessage"] == "before None, after Some(\"job-17\")").then_some(())
    });
    let named = |line: &&str| line.contains(&id) && line.contains("job-17");
    // The log is written beside the work.
    wait_for("the line of the log", PATIENCE, || {
        (server.log().lines().filter(named).count() == 1).then_some(())
    });
    let home = server.kill();
    let mut find = Command::new(longshore_tests::server::binary());
    find.args(["store", "find", "--external-id", "job-17", "--config"]);
    find.arg(home.config()).arg("--data").arg(home.data());
    let found = find.output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(found.contains(&id), "{found}");
    // The run that follows is told what the one before said.
    let server = Server::start_in(home);
    let task = server.task(&id);
    wait_for("its progress", PATIENCE, || {
        let task = task.get();
        let told = "before Some(\"job-17\"), after Some(\"job-17\")";
        (task["statusMessage"] == told).then_some(())
    });
    task.cancel().result();
}

#[test]
fn t09_results_are_neither_dropped_nor_eaten() {
    let server = shared();
    let makers: Vec<_> = (0..4)
        .map(|maker| thread::spawn(move || make_many(maker, 250)))
        .collect();
    let ids: Vec<_> = makers
        .into_iter()
        .flat_map(|maker| maker.join().unwrap())
        .collect();
    assert_eq!(ids.len(), 1_000);
    let pollers: Vec<_> = (0..2)
        .map(|_| {
            let ids = ids.clone();
            thread::spawn(move || collect(&ids))
        })
        .collect();
    let mut seen = pollers.into_iter().map(|poller| poller.join().unwrap());
    let (one, two) = (seen.next().unwrap(), seen.next().unwrap());
    assert_eq!(one, two);
    assert_eq!(
        server.task(&ids[0].0).wait_text(),
        format!("slept {} ms", ids[0].1)
    );
}

/// Tasks that end in 0 to 5 ms: id and time.
fn make_many(maker: usize, count: usize) -> Vec<(String, usize)> {
    let mut connection = shared().0.connect();
    let one = |n| {
        let ms = (maker + n) % 6;
        let message = Message::call("sleep_required", json!({ "ms": ms })).tasks();
        (
            connection.exchange(&message).unwrap().task_id().to_owned(),
            ms,
        )
    };
    (0..count).map(one).collect()
}

/// The results, each read three times.
fn collect(ids: &[(String, usize)]) -> Vec<Value> {
    let mut connection = shared().0.connect();
    let mut results = Vec::new();
    for (id, ms) in ids {
        let mut get = || {
            connection
                .exchange(&Message::task("tasks/get", id))
                .unwrap()
                .result()
                .clone()
        };
        let task = wait_for("completed", PATIENCE, || {
            let task = get();
            (task["status"] == "completed").then_some(task)
        });
        assert_eq!(
            task["result"]["content"][0]["text"],
            format!("slept {ms} ms")
        );
        assert_eq!(task, get());
        assert_eq!(task, get());
        results.push(task["result"].clone());
    }
    results
}

#[test]
fn t12_ids_cannot_be_guessed() {
    let makers: Vec<_> = (0..4)
        .map(|_| thread::spawn(|| make_many(0, 500)))
        .collect();
    let ids: Vec<_> = makers
        .into_iter()
        .flat_map(|maker| maker.join().unwrap())
        .collect();
    let ids: Vec<_> = ids.into_iter().map(|(id, _)| id).collect();
    for id in &ids {
        assert_eq!(id.len(), 40, "{id}");
        assert!(
            id.bytes().all(|byte| b"0123456789abcdef".contains(&byte)),
            "{id}"
        );
    }
    // Neither a time nor a counter: no two share even their first 40 or their last 40 bits.
    assert_eq!(
        ids.iter().map(|id| &id[..10]).collect::<HashSet<_>>().len(),
        ids.len()
    );
    assert_eq!(
        ids.iter().map(|id| &id[30..]).collect::<HashSet<_>>().len(),
        ids.len()
    );
    // Every bit is set in about half of them: 6.7 deviations for 2,000 ids.
    for bit in 0..160 {
        let is_set = |id: &&String| {
            let digit = char::from(id.as_bytes()[bit / 4]).to_digit(16);
            digit.unwrap() >> (bit % 4) & 1 == 1
        };
        let set = ids.iter().filter(is_set).count();
        assert!(
            (850..=1_150).contains(&set),
            "bit {bit} is set in {set} of {}",
            ids.len()
        );
    }
}

#[test]
fn t14_answers_that_do_not_fit() {
    let server = shared();
    let task = server.call_task("ask_all", json!({}));
    assert_eq!(task.wait_questions().len(), 4);
    let outstanding = || task.wait_questions();

    task.update(answer("no_such", decline())).result();
    task.update(json!({})).result();
    assert_eq!(outstanding().len(), 4);

    // A value that is no response: nothing of it is taken.
    for wrong in [json!(7), Value::Null, json!("accept"), json!([])] {
        let both = json!({ "page": { "action": "accept" }, "name": wrong });
        let message = Message::task("tasks/update", &task.id).param("inputResponses", both);
        let reply = server.send(&message.malformed());
        assert_eq!((reply.status(), reply.code()), (200, -32602));
        assert_eq!(outstanding().len(), 4);
    }

    // Off-schema: that key stays, the other is taken.
    let both = json!({ "page": { "action": "accept" }, "name": accept(json!({ "name": 5 })) });
    task.update(both).result();
    let left = outstanding();
    assert!(
        left.contains(&"name".to_owned()) && !left.contains(&"page".to_owned()),
        "{left:?}"
    );
    // Of another kind than was asked.
    task.update(answer("name", json!({ "roots": [] }))).result();
    assert!(outstanding().contains(&"name".to_owned()));

    task.update(answer("name", accept(json!({ "name": "first" }))))
        .result();
    task.update(answer("name", accept(json!({ "name": "second" }))))
        .result();
    assert_eq!(outstanding().len(), 2);
    let model = json!({
        "role": "assistant", "model": "m", "content": { "type": "text", "text": "hello" },
    });
    task.update(answer("sampling", model)).result();
    task.update(answer(
        "roots",
        json!({ "roots": [{ "uri": "file:///a" }] }),
    ))
    .result();
    assert_eq!(task.wait_text(), "first; opened; hello; file:///a");
}

#[test]
fn t14_of_two_answers_at_once_one_wins() {
    let server = shared();
    for _ in 0..10 {
        let task = server.call_task("ask2", json!({}));
        task.wait_questions();
        thread::scope(|scope| {
            for name in ["Ada", "Bob"] {
                let task = &task;
                scope.spawn(move || {
                    task.update(answer("name", accept(json!({ "name": name }))))
                        .result();
                });
            }
        });
        task.answer("color", accept(json!({ "color": "red" })));
        let text = task.wait_text();
        assert!(
            ["Ada likes red", "Bob likes red"].contains(&text.as_str()),
            "{text}"
        );
    }
}

/// What holds for each view of a task; the schemas have judged it already.
fn check_fields(task: &Value, earlier: Option<&Value>) {
    assert!(
        task["ttlMs"].is_u64() && task["pollIntervalMs"].is_u64(),
        "{task:#}"
    );
    let time = |task: &Value, name: &str| -> jiff::Timestamp {
        let text = task[name].as_str().unwrap();
        text.parse()
            .unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    assert!(
        time(task, "lastUpdatedAt") >= time(task, "createdAt"),
        "{task:#}"
    );
    if let Some(earlier) = earlier {
        assert_eq!(task["createdAt"], earlier["createdAt"]);
        assert!(time(task, "lastUpdatedAt") >= time(earlier, "lastUpdatedAt"));
    }
}

#[test]
fn t16_wire_fields() {
    let server = shared();
    let call = Message::call("ask_one", json!({})).tasks().asks();
    let created = server.send(&call).result().clone();
    check_fields(&created, None);
    let task = server.task(created["taskId"].as_str().unwrap());
    let asked = task.wait("input_required");
    check_fields(&asked, Some(&created));
    let ack = task.update(answer("number", accept(json!({ "number": 1 }))));
    assert_eq!(ack.result()["resultType"], "complete");
    assert_eq!(ack.result().as_object().unwrap().len(), 2, "{ack:#?}");
    let completed = task.wait("completed");
    check_fields(&completed, Some(&asked));
    assert_eq!(completed["result"]["resultType"], "complete");

    let failed = server.call_task("protocol_error_job", json!({}));
    let before = failed.get();
    let after = failed.wait("failed");
    check_fields(&after, Some(&before));
    assert!(after["statusMessage"].is_string(), "{after:#}");

    let cancelled = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let before = cancelled.get();
    let ack = cancelled.cancel();
    assert_eq!(ack.result().as_object().unwrap().len(), 2, "{ack:#?}");
    let after = cancelled.wait("cancelled");
    check_fields(&after, Some(&before));
    assert!(after["statusMessage"].is_string(), "{after:#}");
}

#[test]
fn t16_times_are_the_usual_ones_and_grow_where_they_must() {
    let server = Server::start(&[FIXTURES], "");
    let task = server.call_task("ask_one", json!({}));
    let young = task.get();
    assert_eq!(
        (&young["ttlMs"], &young["pollIntervalMs"]),
        (&json!(3_600_000), &json!(100))
    );
    wait_for("the task to be older", PATIENCE, || {
        (task.get()["pollIntervalMs"] == 500).then_some(())
    });
    // An ended task is kept for a while, however short its life was to be.
    let server = Server::start(&[FIXTURES], "[tasks]\nttl_ms = 20000\n");
    let task = server.call_task("sleep_required", json!({ "ms": 1 }));
    let ended = task.wait("completed");
    let time = |name: &str| -> jiff::Timestamp { ended[name].as_str().unwrap().parse().unwrap() };
    let age_ms = time("lastUpdatedAt").as_millisecond() - time("createdAt").as_millisecond();
    let kept_ms = ended["ttlMs"].as_i64().unwrap() - age_ms;
    assert!((600_000..660_000).contains(&kept_ms), "{ended:#}");
}

#[test]
fn t16_the_status_message_is_the_last_progress() {
    let server = shared();
    let arguments = json!({ "steps": [1, 2], "ms": 700 });
    let task = server.call_task("progress", arguments);
    for message in ["at 1", "at 2"] {
        wait_for(message, PATIENCE, || {
            let view = task.get();
            assert_ne!(view["status"], "completed");
            (view["statusMessage"] == message).then_some(())
        });
    }
    assert_eq!(task.wait_text(), "2 steps");
}

#[test]
fn t05_an_ended_task_at_its_expiry_is_only_deleted() {
    let server = Server::start(&[FIXTURES], "[tasks]\nttl_ms = 4000\nkeep_ms = 500\n");
    let task = server.call_task("sleep_required", json!({ "ms": 1 }));
    let ended = without_meta(task.wait("completed"));
    wait_for("the task to be gone", PATIENCE, || {
        let reply = server.send(&Message::task("tasks/get", &task.id));
        if reply.response().get("error").is_some() {
            assert_eq!((reply.status(), reply.code()), (200, -32602));
            return Some(());
        }
        assert_eq!(without_meta(reply.result().clone()), ended);
        None
    });
}
