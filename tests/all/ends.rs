//! What the operator's log says of calls that come to no result, and of what was denied: whose they are, and why.

use longshore_tests::client::{Connection, Message};
use longshore_tests::server::{FIXTURES, HOSTILE, Server, token};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};

const ENDED: &str = "a call came to no result: ";
const REFUSED: &str = "a request was refused: ";

/// The lines of the log that hold this, once there are so many.
fn lines(server: &Server, part: &str, count: usize) -> Vec<String> {
    wait_for(&format!("{count} lines with {part}"), PATIENCE, || {
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains(part));
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        (lines.len() >= count).then_some(lines)
    })
}

/// The one line that holds this and all of those.
fn check_line(server: &Server, part: &str, words: &[&str]) {
    let lines = lines(server, part, 1);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for word in words {
        assert!(lines[0].contains(word), "{word}: {lines:#?}");
    }
}

fn version(server: &Server) -> String {
    let (_, ready) = server.get("/readyz");
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let version = ready["plugins"][0]["version"].as_str().unwrap();
    format!("version={version}")
}

const LIMITED: &str = "[plugins.hostile.limits]\nfuel = 500000000\nresult_bytes = 1000\nwall_time_ms = 3000\n\
                       [plugins.hostile.tools.spin]\ntask_support = \"required\"\n[tasks]\ngrace_ms = 50\n";

#[test]
fn a_call_that_the_host_ends_is_one_line_of_the_log() {
    let server = Server::start(&[HOSTILE], LIMITED);
    let version = version(&server);
    // What a plugin says itself is no line.
    for (tool, arguments) in [
        ("rpc_error", json!({ "code": -32603 })),
        (
            "rpc_error",
            json!({ "code": -32603, "data": "{\"reason\":\"trap\",\"plugin\":\"other\"}" }),
        ),
        ("rpc_error", json!({ "code": 7 })),
        ("cat", json!({ "path": "/nothing" })),
        ("env", json!({})),
    ] {
        server.call(tool, arguments);
    }
    for (tool, arguments, reason, limit) in [
        ("trap", json!({}), "trap", None),
        ("no_result", json!({}), "no_result", None),
        (
            "recurse",
            json!({}),
            "limit",
            Some("limit=stack_bytes value=524288"),
        ),
        (
            "big",
            json!({ "mib": 1 }),
            "limit",
            Some("limit=result_bytes value=1000"),
        ),
        (
            "sleep",
            json!({ "ms": 60_000 }),
            "limit",
            Some("limit=wall_time_ms value=3000"),
        ),
    ] {
        let error = server.call(tool, arguments).error().clone();
        assert_eq!(error["data"]["reason"], reason, "{error:#}");
        let (subject, reason) = (format!("subject={tool} "), format!("reason={reason}"));
        let words = [
            "WARN",
            ENDED,
            "plugin=hostile ",
            &version,
            "kind=tool",
            &reason,
        ];
        check_line(&server, &subject, &words);
        check_line(&server, &subject, &[limit.unwrap_or("")]);
    }
    // A task from its beginning, and one that a call became.
    for (tool, arguments, reason) in [
        ("spin", json!({}), "reason=limit limit=fuel value=500000000"),
        ("trap_after", json!({ "n": 20 }), "reason=trap"),
    ] {
        let task = server.call_task(tool, arguments);
        task.wait("failed");
        let (subject, id) = (format!("subject={tool} "), format!("task={} ", task.id));
        check_line(
            &server,
            &id,
            &[ENDED, "plugin=hostile ", &version, &subject, reason],
        );
    }
    let told = lines(&server, ENDED, 7);
    assert_eq!(told.len(), 7, "{told:#?}");
}

#[test]
fn a_flood_of_ends_is_a_few_lines_and_a_number() {
    const CALLS: u64 = 60;
    let server = Server::start(&[HOSTILE], "");
    let mut connection = Connection::open(server.address()).unwrap();
    for _ in 0..CALLS {
        let reply = connection.exchange(&Message::call("trap", json!({})));
        reply.unwrap().error();
    }
    // Of another reason there is a line all the same.
    server.call("recurse", json!({}));
    check_line(&server, "limit=stack_bytes", &[ENDED]);
    check_told_or_counted(&server, "reason=trap", ENDED, CALLS);
}

/// So many ends were told, each in a line of its own with `told`, or counted, in not many lines.
fn check_told_or_counted(server: &Server, reason: &str, told: &str, count: u64) {
    let left_out = |line: &str| {
        let number = line.split_once("left_out=").map(|(_, rest)| rest);
        let number = number.and_then(|rest| rest.split_whitespace().next());
        number.map_or(0, |number| number.parse::<u64>().unwrap())
    };
    let lines = wait_for("all to be told or counted", PATIENCE, || {
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains(reason));
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        let told = lines.iter().filter(|line| line.contains(told)).count() as u64;
        let counted: u64 = lines.iter().map(|line| left_out(line)).sum();
        (told + counted == count).then_some(lines)
    });
    assert!(
        lines.iter().any(|line| line.contains("left_out=")),
        "{lines:#?}"
    );
    assert!(lines.len() < 40, "{lines:#?}");
}

#[test]
fn a_denial_tells_its_task_and_its_principal() {
    let (token, lines) = token("alice");
    let config = "[plugins.hostile.tools.ls]\ntask_support = \"required\"\n";
    let server = Server::start(&[HOSTILE], &format!("{config}{lines}"));
    let send = |message: Message| {
        let message = message.header("Authorization", &format!("Bearer {token}"));
        server.send(&message)
    };
    send(Message::call("cat", json!({ "path": "/plain/file" })));
    check_line(&server, "denied reading /plain/file", &["principal=alice"]);
    send(Message::call("trap", json!({})));
    check_line(&server, ENDED, &["principal=alice", "subject=trap"]);
    for (tool, arguments, wish) in [
        ("ls", json!({ "path": "/task" }), "denied reading /task"),
        (
            "cat",
            json!({ "path": "/later/file", "after_ms": 2_000 }),
            "denied reading /later/file",
        ),
    ] {
        let reply = send(Message::call(tool, arguments).tasks());
        let id = format!("task={}", reply.task_id());
        check_line(&server, wish, &[&id, "principal=alice", "plugin=hostile"]);
    }
}

#[test]
fn a_denial_of_a_server_without_tokens_names_nobody() {
    let server = Server::start(&[HOSTILE], "");
    server.call("cat", json!({ "path": "/plain/file" }));
    let told = lines(&server, "denied reading /plain/file", 1);
    let named = ["principal=", "task="]
        .iter()
        .any(|name| told[0].contains(name));
    assert!(!named, "{told:?}");
}

#[test]
fn who_is_refused_as_busy_is_told_what_is_full() {
    let config = "[limits]\nconcurrent_runs = 1\nqueued_calls = 0\n[tasks]\nopen_per_principal_max = 1\n\
                  [subscriptions]\nstreams_per_client_max = 1\n";
    let server = Server::start(&[FIXTURES], config);
    let task = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let full = wait_for("the one slot to be taken", PATIENCE, || {
        let reply = server.call("ver", json!({}));
        let error = reply.response().get("error").cloned();
        error.filter(|error| error["data"]["reason"] == "busy")
    });
    let expected = json!({
        "reason": "busy", "plugin": "fixtures", "tool": "ver", "limit": "queued_calls", "value": 0,
    });
    assert_eq!(full["data"], expected);
    let words = [
        "plugin=fixtures ",
        "subject=ver ",
        "limit=queued_calls value=0",
    ];
    let told = lines(&server, "reason=busy", 1);
    assert!(words.iter().all(|word| told[0].contains(word)), "{told:?}");

    let call = Message::call("sleep_required", json!({ "ms": 1 })).tasks();
    let full = server.send(&call).error()["data"].clone();
    let expected = json!({
        "reason": "open_tasks", "plugin": "fixtures", "tool": "sleep_required",
        "limit": "tasks.open_per_principal_max", "value": 1,
    });
    assert_eq!(full, expected);
    task.cancel().result();

    let listen = Message::new("subscriptions/listen");
    let listen = listen.param("notifications", json!({ "toolsListChanged": true }));
    let stream = server.stream(&listen);
    let full = server.send(&listen).error()["data"].clone();
    let expected = json!({
        "reason": "busy", "limit": "subscriptions.streams_per_client_max", "value": 1,
    });
    assert_eq!(full, expected);
    check_line(
        &server,
        "limit=subscriptions.streams_per_client_max",
        &["reason=busy"],
    );
    stream.close();
}

#[test]
fn who_calls_too_often_is_a_line_that_names_the_plugin() {
    let server = Server::start(&[FIXTURES], "[limits]\ncalls_per_minute = 1\n");
    server.call("ver", json!({})).result();
    let refused = server.call("ver", json!({}));
    let mut data = refused.error()["data"].clone();
    assert!(
        data["retryAfterMs"]
            .take()
            .as_u64()
            .is_some_and(|wait_ms| wait_ms <= 60_000)
    );
    let expected = json!({
        "reason": "rate", "plugin": "fixtures", "tool": "ver", "limit": "calls_per_minute", "value": 1,
        "retryAfterMs": null,
    });
    assert_eq!(data, expected);
    let words = [
        ENDED,
        "plugin=fixtures ",
        "subject=ver ",
        "limit=calls_per_minute value=1",
    ];
    check_line(&server, "reason=rate", &words);
}

#[test]
fn who_is_not_let_in_is_a_line_of_the_log() {
    let (token, lines) = token("alice");
    let server = Server::start(&[FIXTURES], &lines);
    let list = || Message::new("tools/list");
    let wrong = format!("Bearer {token}x");
    for (message, status, reason, words) in [
        (list(), 401, "reason=no_token", "a token is needed"),
        (
            list().header("Authorization", &wrong),
            401,
            "reason=unknown_token",
            "not Bearer with a token",
        ),
        (
            list().header("Origin", "https://evil.example"),
            403,
            "reason=foreign",
            "https://evil.example",
        ),
    ] {
        assert_eq!(server.send(&message).status(), status);
        check_line(&server, reason, &["WARN", REFUSED, "peer=127.0.0.1", words]);
    }
    assert!(!server.log().contains(&token));
}

#[test]
fn a_flood_of_strangers_is_a_few_lines_and_a_number() {
    const STRANGERS: u64 = 60;
    let (_, lines) = token("alice");
    let server = Server::start(&[FIXTURES], &lines);
    let mut connection = Connection::open(server.address()).unwrap();
    for _ in 0..STRANGERS {
        let reply = connection.exchange(&Message::new("tools/list"));
        assert_eq!(reply.unwrap().status(), 401);
    }
    check_told_or_counted(&server, "reason=no_token", REFUSED, STRANGERS);
}
