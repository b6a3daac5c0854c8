//! `longshore stdio`: both eras over two pipes.

use longshore_tests::client::Message;
use longshore_tests::era::judge_lines;
use longshore_tests::legacy::{EARLIER, LATEST, asks_all};
use longshore_tests::server::{FIXTURES, Home, Server, VERSION_A};
use longshore_tests::stdio::StdioServer;
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// How soon an idle server ends, and one with a call that goes on.
pub(crate) const IDLE_END: Duration = Duration::from_secs(2);
pub(crate) const BUSY_END: Duration = Duration::from_secs(5);

pub(crate) fn modern(id: impl Into<Value>, message: &Message) -> Value {
    message.clone().id(id).json().clone()
}

pub(crate) fn discover(id: impl Into<Value>) -> Value {
    modern(id, &Message::new("server/discover"))
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    modern(id, &Message::call(tool, arguments))
}

pub(crate) fn request(id: i64, method: &str, params: impl Into<Value>) -> Value {
    let params = params.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(crate) fn cancel(id: impl Into<Value>) -> Value {
    let id = id.into();
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

pub(crate) fn text(response: &Value) -> &str {
    let text = response["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {response:#}"))
}

pub(crate) fn alive(server: &mut StdioServer) {
    let (response, _) = server.exchange(&discover("alive"));
    assert!(response["result"].is_object(), "{response:#}");
}

#[test]
fn p04_one_bad_byte_ends_nothing() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.write(b"\xff\xfe\n");
    let error = server.message();
    assert_eq!(error["error"]["code"], -32700, "{error:#}");
    assert!(error.get("id").is_none());
    let whole = call(7, "echo", json!({ "text": "X" })).to_string();
    let (before, behind) = whole.split_once('X').unwrap();
    server.write(&[before.as_bytes(), b"\xc3\x28", behind.as_bytes(), b"\n"].concat());
    assert_eq!(server.message()["error"]["code"], -32700);
    alive(&mut server);
}

#[test]
fn p05_every_bad_line_is_answered_and_blank_ones_are_not() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.write(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":}\n");
    assert_eq!(server.message()["error"]["code"], -32700);
    for (line, code) in [
        ("7", -32600),
        ("[]", -32600),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
        ),
        ("{}", -32600),
    ] {
        server.write(format!("{line}\n").as_bytes());
        assert_eq!(server.message()["error"]["code"], code, "{line}");
    }
    server.write(b"\n  \n\r\n");
    server.write(format!("{}\r\n", discover(6)).as_bytes());
    assert_eq!(server.message()["id"], 6);
    let long = call(8, "echo", json!({ "text": "x".repeat(5 << 20) }));
    server.send(&long);
    let refused = server.message();
    assert_eq!(refused["error"]["code"], -32600, "{refused:#}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("bytes")
    );
    alive(&mut server);
}

#[test]
fn p06_deep_nests_are_answered_once() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    for levels in [100, 5_000, 200_000] {
        for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
            let nest = format!("{}1{}", open.repeat(levels), close.repeat(levels));
            let line = call(1, "echo_json", json!({ "a": "NEST" })).to_string();
            server.write(line.replace("\"NEST\"", &nest).as_bytes());
            server.write(b"\n");
            let response = server.message();
            let code = response["error"]["code"].as_i64();
            assert!(
                response.get("result").is_some() || code == Some(-32700),
                "{response:#}"
            );
            let id = format!("{{\"jsonrpc\":\"2.0\",\"id\":{nest},\"method\":\"ping\"}}\n");
            server.write(id.as_bytes());
            assert!(server.message()["error"]["code"].is_i64());
        }
    }
    alive(&mut server);
}

#[test]
fn p16_each_request_is_of_its_own_era_and_capabilities() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    // A probe first, as clients of both eras do.
    alive(&mut server);
    let before = server.exchange(&request(1, "tools/list", json!({}))).0;
    assert_eq!(before["error"]["code"], -32600, "{before:#}");
    assert_eq!(
        server.exchange(&request(2, "ping", json!({}))).0["result"],
        json!({})
    );
    server.initialize(EARLIER, &asks_all());
    let listed = server.exchange(&request(3, "tools/list", json!({}))).0;
    assert!(listed["result"]["tools"].is_array());
    assert!(listed["result"].get("resultType").is_none());
    let slow = Message::call("sleep", json!({ "ms": 400 }));
    for _ in 0..2 {
        let long = Message::call("sleep", json!({ "ms": 60_000 })).tasks();
        let task = server.exchange(&modern("t", &long)).0;
        assert_eq!(task["result"]["resultType"], "task", "{task:#}");
        assert_eq!(
            text(&server.exchange(&modern("p", &slow)).0),
            "slept 400 ms"
        );
        // What the handshake declared is not known of modern requests.
        let refused = server.exchange(&call("q", "ask_one", json!({}))).0;
        assert_eq!(refused["error"]["code"], -32021, "{refused:#}");
        let old = json!({ "name": "sleep_required", "arguments": { "ms": 1 } });
        assert_eq!(
            text(&server.exchange(&request(4, "tools/call", old)).0),
            "slept 1 ms"
        );
    }
}

#[test]
fn a_modern_client_has_tasks_rounds_progress_and_streams() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    let listen = Message::new("subscriptions/listen");
    let listen = modern(
        "l",
        &listen.param("notifications", json!({ "toolsListChanged": true })),
    );
    server.send(&listen);
    let granted = server.message();
    assert_eq!(
        granted["method"],
        "notifications/subscriptions/acknowledged"
    );
    let progress = Message::call("progress", json!({ "steps": [1.0, 2.0], "ms": 60 }));
    let (done, told) = server.exchange(&modern(2, &progress.meta("progressToken", 9)));
    assert_eq!((text(&done), told.len()), ("2 steps", 2));
    let asked = Message::call("ask_one", json!({})).capability("elicitation", json!({}));
    let round = server.exchange(&modern(3, &asked)).0["result"].clone();
    assert_eq!(round["resultType"], "input_required");
    let key = round["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let again = asked.param("requestState", round["requestState"].clone());
    let again = again.param(
        "inputResponses",
        json!({ key: { "action": "accept", "content": { "number": 3 } } }),
    );
    assert_eq!(
        text(&server.exchange(&modern(4, &again)).0),
        "the number is 3"
    );
    server.home.install(VERSION_A);
    let changed = server.message();
    assert_eq!(
        changed["method"], "notifications/tools/list_changed",
        "{changed:#}"
    );
    assert_eq!(
        changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "l"
    );
    // The client ends its stream: nothing more is said of it.
    server.send(&cancel("l"));
    std::fs::remove_file(server.home.plugins().join("a.wasm")).unwrap();
    wait_for("the plugin to go", PATIENCE, || {
        let list = modern("w", &Message::new("tools/list"));
        let (listed, others) = server.exchange(&list);
        assert!(others.is_empty(), "{others:#?}");
        let gone = !listed.to_string().contains("\"name\":\"version\"");
        gone.then_some(())
    });
    assert_eq!(server.message_within(Duration::from_millis(500)), None);
}

#[test]
fn an_older_client_is_asked_and_told() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.initialize(LATEST, &asks_all());
    server.send(&request(1, "tools/call", json!({ "name": "ask2" })));
    for content in [json!({ "name": "Ada" }), json!({ "color": "blue" })] {
        let asked = server.message();
        assert_eq!(asked["method"], "elicitation/create", "{asked:#}");
        let result = json!({ "action": "accept", "content": content });
        server.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    }
    assert_eq!(text(&server.message()), "Ada likes blue");
    server.home.install(VERSION_A);
    assert_eq!(
        server.message()["method"],
        "notifications/tools/list_changed"
    );
    // A cancelled call says nothing more,
    server.send(&request(
        2,
        "tools/call",
        json!({ "name": "sleep", "arguments": { "ms": 60_000 } }),
    ));
    server.send(&cancel(2));
    assert_eq!(
        server.exchange(&request(3, "ping", json!({}))).0["result"],
        json!({})
    );
    assert_eq!(server.message_within(Duration::from_millis(300)), None);
    // but that it wants no answer any more.
    server.send(&request(4, "tools/call", json!({ "name": "ask2" })));
    let asked = server.message();
    assert_eq!(asked["method"], "elicitation/create", "{asked:#}");
    server.send(&cancel(4));
    let withdrawn = server.message();
    assert_eq!(
        withdrawn["method"], "notifications/cancelled",
        "{withdrawn:#}"
    );
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let (pong, others) = server.exchange(&request(5, "ping", json!({})));
    assert_eq!((&pong["result"], others.len()), (&json!({}), 0));
}

#[test]
fn p24_an_id_means_one_request_at_a_time() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.send(&call(1, "sleep", json!({ "ms": 700 })));
    server.send(&call(1, "echo", json!({ "text": "twin" })));
    let refused = server.message();
    assert_eq!(refused["error"]["code"], -32600, "{refused:#}");
    assert_eq!(text(&server.message()), "slept 700 ms");
    assert_eq!(
        text(
            &server
                .exchange(&call(1, "echo", json!({ "text": "later" })))
                .0
        ),
        "later"
    );
}

#[test]
fn an_answer_is_for_the_question_that_it_was_given_to() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.initialize(LATEST, &asks_all());
    server.send(&request(10, "tools/call", json!({ "name": "ask_one" })));
    let former = server.message();
    assert_eq!(former["method"], "elicitation/create");
    // A response that is none is answered, but under no id: it could be taken for the answer to the client's own request.
    server.send(&json!({ "jsonrpc": "2.0", "id": former["id"], "result": {}, "error": {} }));
    let error = server.message();
    assert_eq!(error["error"]["code"], -32600);
    assert!(error.get("id").is_none(), "{error:#}");
    // Another session: its questions have other ids, so what comes late is taken for none of them.
    server.initialize(LATEST, &asks_all());
    server.send(&request(1, "tools/call", json!({ "name": "ask_one" })));
    let accept = |id: &Value, number: i64| {
        let result = json!({ "action": "accept", "content": { "number": number } });
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
    };
    let asked = loop {
        let next = server.message();
        if next["method"] == "elicitation/create" {
            break next;
        }
    };
    assert_ne!(asked["id"], former["id"]);
    server.send(&accept(&former["id"], 1));
    server.send(&accept(&asked["id"], 2));
    // The call of the session that is over is answered too, some time.
    let answer = loop {
        let next = server.message();
        if next["id"] == 1 {
            break next;
        }
        assert_eq!(next["id"], 10, "{next:#}");
    };
    assert_eq!(text(&answer), "the number is 2");
}

#[test]
fn s03_the_store_is_of_one_process() {
    let home = Arc::new(Home::new(&[FIXTURES], ""));
    let server = Server::start_in(home.clone());
    let task = server.call_task("sleep_required", json!({ "ms": 300 })).id;
    let second = home
        .subcommand("stdio")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!second.status.success());
    assert_eq!(second.stdout, b"");
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains("in use") && said.contains("data"), "{said}");
    // The first one is as well as before.
    server.task(&task).wait("completed");
    drop(server);
    let mut later = StdioServer::start_in(home);
    let get = modern(1, &Message::task("tasks/get", &task));
    assert_eq!(later.exchange(&get).0["result"]["status"], "completed");
}

#[test]
fn a_pipeline_is_answered() {
    let home = Home::new(&[FIXTURES], "");
    let path = home.path().join("input");
    let input = format!(
        "{}\n{}",
        discover(1),
        call(2, "echo", json!({ "text": "a" }))
    );
    std::fs::write(&path, &input).unwrap();
    let mut command: Command = home.subcommand("stdio");
    let output = command
        .stdin(std::fs::File::open(path).unwrap())
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    judge_lines(&input, &lines).unwrap();
    assert_eq!(
        (output.status.code(), lines.lines().count()),
        (Some(0), 2),
        "{lines}"
    );
}
