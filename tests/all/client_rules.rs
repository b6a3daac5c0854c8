//! What published clients reject in the messages of a server, a test for each, on the messages as they come. The schemas admit
//! some of it, and some clients hide the cause: a breach here is a client that fails for no reason it can tell.

use crate::servers::shared;
use longshore_tests::client::{Message, Stream, TASKS, accept, answer};
use longshore_tests::server::{FIXTURES, Server, Task};
use serde_json::{Value, json};

/// Something that a server says of a task, and where.
type Said = (String, Value);

/// A task of each state, with what its handle and `tasks/get` say.
fn lives(server: &Server) -> Vec<(Task<'_>, Vec<Said>)> {
    let long = json!({ "ms": 60_000 });
    let short = json!({ "ms": 1 });
    [
        ("working", "sleep_required", long.clone()),
        ("input_required", "ask_one", json!({})),
        ("completed", "sleep_required", short),
        ("failed", "protocol_error_job", json!({})),
        ("cancelled", "sleep_required", long),
    ]
    .into_iter()
    .map(|(status, tool, arguments)| {
        let reply = server.send(&Message::call(tool, arguments).tasks().asks());
        let task = server.task(reply.task_id());
        if status == "cancelled" {
            task.cancel().result();
        }
        let got = task.wait(status);
        let said = vec![
            (format!("the handle of {tool}"), reply.result().clone()),
            (format!("tasks/get, {status}"), got),
        ];
        (task, said)
    })
    .collect()
}

/// What a stream says of a task first, unless it only works.
fn told(server: &Server, task: &Task<'_>) -> Value {
    let filter = json!({ "taskIds": [task.id] });
    let message = Message::new("subscriptions/listen").param("notifications", filter);
    let mut stream = server.stream(&message.tasks());
    next(&mut stream);
    let told = next(&mut stream);
    assert_eq!(told["method"], "notifications/tasks");
    told["params"].clone()
}

fn next(stream: &mut Stream) -> Value {
    stream.message().unwrap().unwrap()
}

/// All that is said of tasks: handles, `tasks/get` in each state, notifications.
fn all_said(server: &Server) -> Vec<Said> {
    let mut all = Vec::new();
    for (task, said) in lives(server) {
        if said[1].1["status"] == "working" {
            task.cancel().result();
        } else {
            all.push((
                format!("notification of {}", said[1].0),
                told(server, &task),
            ));
        }
        all.extend(said);
    }
    assert_eq!(all.len(), 14);
    all
}

/// One right request of each method that has no task.
fn requests() -> Vec<Message> {
    let reference = json!({ "type": "ref/prompt", "name": "greet" });
    vec![
        Message::new("server/discover"),
        Message::new("tools/list"),
        Message::new("prompts/list"),
        Message::new("resources/list"),
        Message::new("resources/templates/list"),
        Message::new("resources/read").param("uri", "fixture://plain"),
        Message::call("ver", json!({})),
        Message::call("fail", json!({ "text": "x" })),
        Message::call("ask_one", json!({})).asks(),
        Message::new("prompts/get")
            .param("name", "greet")
            .param("arguments", json!({ "name": "Ada" })),
        Message::new("completion/complete")
            .param("ref", reference)
            .param("argument", json!({ "name": "name", "value": "" })),
    ]
}

#[test]
fn every_result_has_a_type() {
    let server = shared();
    for request in requests() {
        let reply = server.send(&request);
        let kind = &reply.result()["resultType"];
        let asks = reply.result().get("inputRequests").is_some();
        let expected = if asks { "input_required" } else { "complete" };
        assert_eq!(kind, expected, "{}", request.json());
    }
}

#[test]
fn a_completed_task_has_a_result_with_a_type() {
    let server = shared();
    for (place, said) in all_said(&server) {
        if said["status"] == "completed" {
            assert_eq!(said["result"]["resultType"], "complete", "{place}");
        }
    }
}

#[test]
fn what_may_be_kept_says_how_long_and_by_whom() {
    let server = shared();
    for request in requests() {
        let reply = server.send(&request);
        let result = reply.result();
        let kept = matches!(request.method(), "server/discover" | "resources/read")
            || request.method().ends_with("/list");
        assert_eq!(result["ttlMs"].is_u64(), kept, "{}", request.json());
        assert_eq!(result["cacheScope"].is_string(), kept, "{}", request.json());
    }
}

#[test]
fn all_pages_of_a_list_are_kept_alike() {
    let settings = "[lists]\npage_size = 2\nttl_ms = 5\ncache_scope = \"public\"\n";
    let server = Server::start(&[FIXTURES], settings);
    for method in ["tools/list", "prompts/list", "resources/list"] {
        let mut message = Message::new(method);
        for _ in 0..2 {
            let page = server.send(&message).result().clone();
            assert_eq!(page["ttlMs"], 5, "{method}");
            assert_eq!(page["cacheScope"], "public", "{method}");
            message = Message::new(method).param("cursor", page["nextCursor"].clone());
        }
    }
}

#[test]
fn tasks_get_is_complete_and_only_the_handle_is_a_task() {
    let server = shared();
    for (_, said) in lives(&server) {
        let kinds = [&said[0].1["resultType"], &said[1].1["resultType"]];
        assert_eq!(kinds, ["task", "complete"], "{said:#?}");
    }
}

#[test]
fn acknowledgements_have_a_type() {
    let server = shared();
    let task = server.call_task("ask_one", json!({}));
    for ack in [
        task.update(answer("number", accept(json!({ "number": 1 })))),
        task.cancel(),
    ] {
        assert_eq!(ack.result()["resultType"], "complete");
    }
}

#[test]
fn a_task_says_its_times_in_whole_numbers() {
    let server = shared();
    for (place, said) in all_said(&server) {
        // A client takes null as well, but nothing else, and not nothing.
        for name in ["ttlMs", "pollIntervalMs"] {
            assert!(said[name].is_u64(), "{place}: {name} is {}", said[name]);
        }
    }
}

#[test]
fn a_task_is_flat_and_says_when_it_was_made() {
    let server = shared();
    for (place, said) in all_said(&server) {
        for name in ["taskId", "status", "createdAt", "lastUpdatedAt"] {
            assert!(said[name].is_string(), "{place}: {name}");
        }
        assert_eq!(said.get("task"), None, "{place}");
    }
}

#[test]
fn what_a_task_lacks_is_left_out_and_not_null() {
    let server = shared();
    for (place, said) in all_said(&server) {
        let members = said.as_object().unwrap();
        let null = members.iter().find(|(_, value)| value.is_null());
        assert_eq!(null, None, "{place}");
    }
}

#[test]
fn the_extension_is_declared_without_settings() {
    let server = shared();
    let reply = server.send(&Message::new("server/discover"));
    let extensions = &reply.result()["capabilities"]["extensions"];
    assert_eq!(extensions, &json!({ TASKS: {} }));
    assert_eq!(reply.result()["capabilities"].get("tasks"), None);
}

#[test]
fn whether_a_tool_makes_tasks_is_not_in_its_definition() {
    let server = shared();
    let reply = server.send(&Message::new("tools/list"));
    for tool in reply.result()["tools"].as_array().unwrap() {
        for name in ["execution", "taskSupport", "asksFirst"] {
            assert_eq!(tool.get(name), None, "{tool:#}");
        }
    }
}

#[test]
fn elicitation_without_a_mode_means_forms() {
    let server = shared();
    let call = Message::call("ask_one", json!({})).capability("elicitation", json!({}));
    for message in [call.clone(), call.tasks()] {
        let reply = server.send(&message);
        let asked = match reply.result()["resultType"].as_str() {
            Some("task") => server.task(reply.task_id()).wait("input_required"),
            _ => reply.result().clone(),
        };
        let request = &asked["inputRequests"]["number"]["params"];
        assert_eq!(request["mode"], "form", "{asked:#}");
    }
}

#[test]
fn an_id_is_a_number_or_a_string_also_of_a_stream() {
    let server = shared();
    for id in [json!(7), json!("listen:0"), json!("")] {
        let filter = json!({ "toolsListChanged": true });
        let message = Message::new("subscriptions/listen").param("notifications", filter);
        let mut stream = server.stream(&message.id(id.clone()));
        let named = &next(&mut stream)["params"]["_meta"];
        assert_eq!(named["io.modelcontextprotocol/subscriptionId"], id);
    }
}
