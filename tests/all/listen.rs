//! Streams of notifications.

use crate::servers::shared;
use longshore_tests::client::{Message, Stream, accept};
use longshore_tests::schema;
use longshore_tests::server::{FIXTURES, Server, Task, VERSION_A, component};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(filter: Value) -> Message {
    Message::new("subscriptions/listen").param("notifications", filter)
}

/// Opens a stream; what is granted.
fn open(server: &Server, message: &Message) -> (Stream, Value) {
    let mut stream = server.stream(message);
    assert_eq!(stream.head.status(), 200);
    let first = next(&mut stream);
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][SUBSCRIPTION], message.json()["id"]);
    (stream, first["params"]["notifications"].clone())
}

fn next(stream: &mut Stream) -> Value {
    stream.message().unwrap().expect("the stream goes on")
}

/// Says that a list or a resource has changed.
fn notify(server: &Server, list: &str, uri: &str) {
    let named = if list.is_empty() {
        json!({ "uri": uri })
    } else {
        json!({ "list": list })
    };
    let reply = server.call("notify", named);
    assert_eq!(reply.result()["isError"], Value::Null, "{reply:?}");
}

fn follow<'a>(server: &'a Server, tasks: &[&Task<'a>]) -> Stream {
    let ids: Vec<_> = tasks.iter().map(|task| task.id.as_str()).collect();
    let (stream, granted) = open(server, &listen(json!({ "taskIds": ids })).tasks().id("s"));
    assert_eq!(granted, json!({ "taskIds": ids }));
    stream
}

/// Reads until the task has this status; what is said of it then, without the name of the stream.
fn until(stream: &mut Stream, status: &str) -> Value {
    loop {
        let mut message = next(stream);
        assert_eq!(message["method"], "notifications/tasks");
        if message["params"]["status"] == status {
            let params = message["params"].as_object_mut().unwrap();
            assert_eq!(params.remove("_meta"), Some(json!({ SUBSCRIPTION: "s" })));
            return message["params"].take();
        }
    }
}

/// What `tasks/get` says, as a notification says it.
fn said(task: &Task<'_>) -> Value {
    let mut got = task.get();
    let members = got.as_object_mut().unwrap();
    members.remove("resultType");
    members.remove("_meta");
    got
}

#[test]
fn p32_the_acknowledgement_says_what_is_granted() {
    let server = shared();
    let filter = json!({
        "toolsListChanged": true, "promptsListChanged": false, "resourcesListChanged": true,
        "resourceSubscriptions": ["fixture://plain", "fixture://no/such", "fixture://file/x"],
        "taskIds": ["junk", "0000000000000000000000000000000000000000"], "unknown": true,
    });
    let big: u64 = 9_007_199_254_740_993;
    let (stream, granted) = open(&server, &listen(filter).tasks().id(big));
    let expected = json!({
        "toolsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["fixture://plain", "fixture://file/x"], "taskIds": [],
    });
    assert_eq!(granted, expected);
    assert_eq!(stream.head.header("x-accel-buffering"), Some("no"));
    stream.close();
    for nothing in [json!({}), json!({ "unknown": true })] {
        let (_stream, granted) = open(&server, &listen(nothing));
        assert_eq!(granted, json!({}));
    }
}

#[test]
fn lists_that_are_empty_can_be_followed() {
    let server = Server::start(&[VERSION_A], "");
    let declared = || {
        let reply = server.send(&Message::new("server/discover"));
        reply.result()["capabilities"].clone()
    };
    let before = declared();
    assert!(before.get("prompts").is_none() && before.get("resources").is_none());
    let filter = json!({ "promptsListChanged": true, "resourcesListChanged": true });
    let (mut stream, granted) = open(&server, &listen(filter.clone()));
    assert_eq!(granted, filter);
    server.home.install(FIXTURES);
    let mut told = [(); 2].map(|()| next(&mut stream)["method"].as_str().unwrap().to_owned());
    told.sort_unstable();
    let lists = ["prompts", "resources"].map(|list| format!("notifications/{list}/list_changed"));
    assert_eq!(told, lists);
    let after = declared();
    assert_eq!(after["prompts"], json!({ "listChanged": true }));
    assert_eq!(after["resources"]["listChanged"], true);
    for (method, member) in [("prompts/list", "prompts"), ("resources/list", "resources")] {
        let reply = server.send(&Message::new(method));
        assert!(!reply.result()[member].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_client_that_reads_no_stream_is_refused() {
    let server = shared();
    let reply = server.send(&listen(json!({})).header("Accept", "application/json"));
    assert_eq!((reply.status(), reply.code()), (406, -32600));
}

#[test]
fn who_takes_anything_takes_a_stream() {
    let server = shared();
    let filter = json!({ "toolsListChanged": true });
    let all = || listen(filter.clone());
    for message in [
        all().header("Accept", "*/*"),
        all().header("Accept", "application/json, */*;q=0.1"),
        all().no_header("Accept"),
    ] {
        let (stream, granted) = open(&server, &message);
        assert_eq!(granted, filter);
        stream.close();
        // What is wrong has its status all the same.
        let wrong = message.param("notifications", 7).malformed();
        assert_eq!(server.send(&wrong).code(), -32602);
    }
}

#[test]
fn each_stream_gets_only_what_it_asked_for() {
    let server = shared();
    let filter = |list: &str| json!({ list: true });
    let (mut tools, _) = open(&server, &listen(filter("toolsListChanged")).id("t"));
    let (mut prompts, _) = open(&server, &listen(filter("promptsListChanged")).id("p"));
    let (mut resources, _) = open(&server, &listen(filter("resourcesListChanged")).id("r"));
    for list in ["tools", "prompts", "resources"] {
        notify(&server, list, "");
    }
    for (stream, list, id) in [
        (&mut tools, "tools", "t"),
        (&mut prompts, "prompts", "p"),
        (&mut resources, "resources", "r"),
    ] {
        let message = next(stream);
        assert_eq!(
            message["method"],
            format!("notifications/{list}/list_changed")
        );
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION], id);
    }
}

#[test]
fn a_resource_that_changed_is_told_to_those_who_follow_it() {
    let server = shared();
    let filter = json!({ "resourceSubscriptions": ["fixture://plain"] });
    let (mut stream, _) = open(&server, &listen(filter));
    notify(&server, "", "fixture://bytes");
    // A plugin speaks for its own resources only.
    notify(&server, "", "test://static-text");
    notify(&server, "", "fixture://plain");
    let message = next(&mut stream);
    assert_eq!(message["method"], "notifications/resources/updated");
    assert_eq!(message["params"]["uri"], "fixture://plain");
}

/// Reads what is told of a burst, until the list is as it shall be: how often that was.
fn told_until(server: &Server, stream: &mut Stream, id: &str, list: &[String]) -> usize {
    let mut told = 0;
    loop {
        let message = next(stream);
        assert_eq!(message["method"], "notifications/tools/list_changed");
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION], id);
        told += 1;
        if server.tools() == list {
            return told;
        }
    }
}

#[test]
fn p33_a_burst_of_files_is_few_notifications_and_the_list_is_new() {
    let names = || (0..50).map(|number| format!("v{number}"));
    let prefix = |name: String| format!("[plugins.{name}]\nprefix = \"{name}.\"\n");
    let config: String = names().map(prefix).collect();
    let server = Server::start(&[FIXTURES], &config);
    let before = server.tools();
    let mut after: Vec<_> = names().map(|name| format!("{name}.version")).collect();
    after.extend(before.clone());
    after.sort_unstable();
    let filter = json!({ "toolsListChanged": true });
    let mut streams = ["a", "b"].map(|id| (id, open(&server, &listen(filter.clone()).id(id)).0));
    let bytes = fs::read(component(VERSION_A)).unwrap();
    for name in names() {
        server.home.install_as(&format!("{name}.wasm"), &bytes);
    }
    for (id, stream) in &mut streams {
        let told = told_until(&server, stream, id, &after);
        assert!((1..=5).contains(&told), "{told}");
    }
    // The same file again changes nothing.
    server.home.install_as("v0.wasm", &bytes);
    wait_for("all to be loaded", PATIENCE, || {
        (server.log().matches("serving the plugin").count() >= 51).then_some(())
    });
    for name in names() {
        fs::remove_file(server.home.plugins().join(format!("{name}.wasm"))).unwrap();
    }
    for (id, stream) in &mut streams {
        let told = told_until(&server, stream, id, &before);
        assert!((1..=5).contains(&told), "{told}");
    }
}

#[test]
fn a_task_is_told_as_get_says_it() {
    let server = shared();
    let task = server.call_task("ask2", json!({}));
    let mut stream = follow(&server, &[&task]);
    // It may have asked before the stream was there, or after.
    let asked = until(&mut stream, "input_required");
    assert_eq!(asked, said(&task));
    task.answer("name", accept(json!({ "name": "Ada" })));
    task.answer("color", accept(json!({ "color": "red" })));
    let done = until(&mut stream, "completed");
    assert_eq!(done, said(&task));
    assert_eq!(done["result"]["resultType"], "complete");
}

#[test]
fn failed_and_cancelled_tasks_are_told() {
    let server = shared();
    let lost = server.call_task("protocol_error_job", json!({}));
    let dropped = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let mut failing = follow(&server, &[&lost]);
    let mut cancelled = follow(&server, &[&dropped]);
    assert_eq!(until(&mut failing, "failed"), said(&lost));
    dropped.cancel().result();
    assert_eq!(until(&mut cancelled, "cancelled"), said(&dropped));
}

#[test]
fn a_task_that_has_ended_is_told_once_and_at_once() {
    let server = Server::start(&[FIXTURES], "");
    let task = server.call_task("sleep_required", json!({ "ms": 0 }));
    task.wait("completed");
    let mut stream = follow(&server, &[&task]);
    assert_eq!(until(&mut stream, "completed"), said(&task));
    // Nothing more of it, whatever is done to it: the next message is the end of the stream.
    task.cancel().result();
    let ending = std::thread::spawn(move || next(&mut stream));
    let (status, _) = server.terminate();
    assert!(status.success());
    assert_eq!(ending.join().unwrap()["id"], "s");
}

#[test]
fn a_burst_is_told_to_a_slow_reader_as_its_last_state() {
    let server = shared();
    let steps: Vec<_> = (1..=50).collect();
    let arguments = json!({ "steps": steps, "ms": 10 });
    let task = server.call_task("progress", arguments);
    let mut stream = follow(&server, &[&task]);
    task.wait("completed");
    let mut told = 1;
    while next(&mut stream)["params"]["status"] != "completed" {
        told += 1;
    }
    assert!(told <= steps.len(), "{told}");
}

#[test]
fn many_tasks_on_one_stream() {
    let server = shared();
    let tasks: Vec<_> = (0..20)
        .map(|_| server.call_task("sleep_required", json!({ "ms": 50 })))
        .collect();
    let mut stream = follow(&server, &tasks.iter().collect::<Vec<_>>());
    let mut open: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
    while !open.is_empty() {
        let message = next(&mut stream);
        if message["params"]["status"] == "completed" {
            let id = message["params"]["taskId"].as_str().unwrap();
            let place = open.iter().position(|other| other == id);
            open.remove(place.expect("each is told once"));
        }
    }
}

/// How soon a server ends that was told to, whatever is open.
const STOP: Duration = Duration::from_secs(5);

#[test]
fn p31_a_stop_ends_each_stream_with_its_result() {
    let server = Server::start(&[FIXTURES], "");
    let task = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let streams: Vec<_> = (0..10)
        .map(|number| {
            let filter = json!({ "toolsListChanged": true, "taskIds": [task.id] });
            open(&server, &listen(filter).tasks().id(number)).0
        })
        .collect();
    let id = task.id;
    let readers: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            std::thread::spawn(move || {
                let last = next(&mut stream);
                assert_eq!(stream.message().unwrap(), None);
                last
            })
        })
        .collect();
    let (status, home) = within("the end", STOP, || server.terminate());
    assert!(status.success());
    for (number, reader) in readers.into_iter().enumerate() {
        let last = reader.join().unwrap();
        assert_eq!(last["id"], number);
        assert_eq!(last["result"]["_meta"][SUBSCRIPTION], number);
    }
    // The stop was no cancellation.
    let server = Server::start_in(home);
    assert_eq!(server.task(&id).get()["status"], "working");
}

#[test]
fn p32_streams_are_bounded_and_places_come_back() {
    let settings = "[subscriptions]\nstreams_per_client_max = 3\nkeep_alive_ms = 20\n";
    let mut server = Server::start(&[VERSION_A], settings);
    let message = listen(json!({ "toolsListChanged": true }));
    let mut streams: Vec<_> = (0..3).map(|_| open(&server, &message).0).collect();
    let refused = server.send(&message);
    assert_eq!((refused.status(), refused.code()), (200, -32603));
    assert_eq!(refused.error()["data"]["reason"], "busy");
    streams.pop().unwrap().close();
    wait_for("the place of a client that went away", PATIENCE, || {
        let mut stream = server.stream(&message);
        let kind = stream.head.header("content-type").unwrap().to_owned();
        (kind == "text/event-stream").then(|| next(&mut stream))
    });
    for _ in 0..200 {
        let mut stream = server.stream(&message);
        if stream.head.header("content-type") == Some("text/event-stream") {
            next(&mut stream);
        }
        stream.close();
    }
    wait_for("all places to come back", PATIENCE, || {
        let stream = server.stream(&message);
        let kind = stream.head.header("content-type").unwrap().to_owned();
        stream.close();
        (kind == "text/event-stream").then_some(())
    });
    server.check_alive();
}

#[test]
fn p32_a_silent_stream_gets_comments() {
    let server = Server::start(&[VERSION_A], "[subscriptions]\nkeep_alive_ms = 20\n");
    let mut stream = server.stream(&listen(json!({ "toolsListChanged": true })));
    let mut text = String::new();
    while text.matches("\n\n").count() < 4 {
        text += &stream.piece().unwrap().expect("the stream goes on");
    }
    let events: Vec<_> = text.split("\n\n").collect();
    let (_, granted) = events[0].split_once("data: ").unwrap();
    schema::reply("subscriptions/listen", &granted.parse().unwrap()).unwrap();
    assert!(events[0].starts_with("event: message\n"), "{text}");
    assert!(
        events[1..4].iter().all(|event| event.starts_with(':')),
        "{text}"
    );
}

#[test]
fn t05_an_expired_task_is_told_as_failed_and_the_stream_goes_on() {
    let server = Server::start(&[FIXTURES], "[tasks]\nttl_ms = 3000\nkeep_ms = 1000\n");
    let asking = server.call_task("ask_one", json!({}));
    let working = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let filter = json!({ "toolsListChanged": true, "taskIds": [asking.id, working.id] });
    let (mut stream, _) = open(&server, &listen(filter).tasks());
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let told = next(&mut stream);
        let task = &told["params"];
        assert_ne!(task["status"], "cancelled", "{told:#}");
        if task["status"] == "failed" {
            assert_eq!(task["error"]["data"]["reason"], "expired", "{told:#}");
            ended.push(task["taskId"].clone());
        }
    }
    assert_ne!(ended[0], ended[1]);
    for task in [&asking, &working] {
        wait_for("the task to be gone", PATIENCE, || {
            let reply = server.send(&Message::task("tasks/get", &task.id));
            reply
                .response()
                .get("error")
                .map(|error| assert_eq!(error["code"], -32602))
        });
    }
    notify(&server, "tools", "");
    assert_eq!(
        next(&mut stream)["method"],
        "notifications/tools/list_changed"
    );
    let gone = json!({ "taskIds": [asking.id] });
    let (_stream, granted) = open(&server, &listen(gone).tasks());
    assert_eq!(granted, json!({ "taskIds": [] }));
}
