//! Clients of the versions that begin with a handshake, over HTTP.

use crate::servers::shared;
use longshore_tests::client::Message;
use longshore_tests::legacy::{EARLIER, LATEST, Raw, Session, asks_all, initialize};
use longshore_tests::server::{FIXTURES, Server, VERSION_A};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};

fn call(tool: &str, arguments: impl Into<Value>) -> Value {
    let arguments = arguments.into();
    json!({ "name": tool, "arguments": arguments })
}

fn text(response: &Value) -> &str {
    let text = response["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {response:#}"))
}

fn nothing_asked(method: &str, _: &Value) -> Value {
    panic!("asked {method}")
}

#[test]
fn the_handshake_settles_one_of_two_versions() {
    let server = shared();
    for revision in [EARLIER, LATEST] {
        let session = Session::begin(&server, revision, &json!({}));
        let told = &session.initialized["capabilities"];
        let named = ["tools", "prompts", "resources", "completions", "logging"];
        for name in named {
            assert!(told[name].is_object(), "{told:#}");
        }
        // The tasks of these versions are others, and none are offered.
        assert!(told.get("tasks").is_none() && told.get("extensions").is_none());
        assert_eq!(session.result("ping", json!({})), json!({}));
    }
    for other in ["2026-07-28", "2025-03-26", "2024-11-05", "1900-01-01"] {
        let mut reply = Raw::post(&initialize(other, &json!({}))).send(&server);
        let message = reply.message().unwrap();
        assert_eq!(message["result"]["protocolVersion"], LATEST, "{other}");
    }
}

#[test]
fn a_handshake_that_is_not_right_begins_nothing() {
    let server = shared();
    let whole = initialize(LATEST, &json!({}));
    for (path, value) in [
        ("protocolVersion", json!(7)),
        ("protocolVersion", Value::Null),
        ("capabilities", json!([])),
        ("capabilities", Value::Null),
    ] {
        let mut wrong = whole.clone();
        wrong["params"][path] = value;
        let mut reply = Raw::post(&wrong).send(&server);
        let message = reply.message().unwrap();
        assert_eq!(
            (reply.status(), &message["error"]["code"]),
            (400, &json!(-32602))
        );
        let said = message["error"]["message"].as_str().unwrap();
        assert!(said.contains(path), "{said}");
        assert!(reply.head.header("mcp-session-id").is_none());
    }
}

#[test]
fn every_list_and_read_has_the_shape_of_its_version() {
    let server = shared();
    for revision in [EARLIER, LATEST] {
        let session = Session::begin(&server, revision, &json!({}));
        let tools = session.result("tools/list", json!({}));
        let tools = tools["tools"].as_array().unwrap();
        assert!(tools.len() > 10);
        let icons = tools.iter().any(|tool| tool.get("icons").is_some());
        assert!(revision == LATEST || !icons);
        session.result("prompts/list", json!({}));
        session.result("resources/list", json!({}));
        session.result("resources/templates/list", json!({}));
        let read = session.result("resources/read", json!({ "uri": "fixture://plain" }));
        assert!(read["contents"][0]["text"].is_string());
        let greet = json!({ "name": "greet", "arguments": { "name": "Ada" } });
        assert!(session.result("prompts/get", greet)["messages"].is_array());
        let complete = json!({
            "ref": { "type": "ref/prompt", "name": "greet" },
            "argument": { "name": "name", "value": "" },
        });
        session.result("completion/complete", complete);
        let every = session.result("tools/call", call("every_content", json!({})));
        assert!(every["content"].as_array().unwrap().len() > 3);
        let wrong = json!({ "cursor": "nowhere" });
        assert_eq!(session.error("tools/list", wrong)["code"], -32602);
    }
}

#[test]
fn structured_content_comes_with_its_text() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let object = session.result("tools/call", call("echo_json", json!({ "a": 1 })));
    assert_eq!(object["structuredContent"], json!({ "a": 1 }));
    assert_eq!(object["content"][0]["text"], r#"{"a":1}"#);
}

#[test]
fn errors_have_the_codes_of_their_era() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let missing = json!({ "uri": "fixture://nowhere" });
    let error = session.error("resources/read", missing.clone());
    assert_eq!(
        (&error["code"], &error["data"]["uri"]),
        (&json!(-32002), &missing["uri"])
    );
    let modern = server.send(&Message::new("resources/read").param("uri", "fixture://nowhere"));
    assert_eq!(modern.code(), -32602);
    assert_eq!(
        session.error("tools/call", call("nowhere", json!({})))["code"],
        -32602
    );
    for unknown in [
        "no/such",
        "server/discover",
        "subscriptions/listen",
        "tasks/get",
        "tasks/list",
    ] {
        assert_eq!(
            session.error(unknown, json!({}))["code"],
            -32601,
            "{unknown}"
        );
    }
    let bad = session.result("tools/call", call("sleep", json!({ "ms": "long" })));
    assert_eq!(bad["isError"], true);
}

#[test]
fn l01_an_unknown_session_is_404() {
    let server = Server::start(&[FIXTURES], "");
    let before = Session::begin(&server, LATEST, &json!({}));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(before.raw(&ping).send(&server).status(), 200);
    let id = before.id;
    let (_, home) = server.terminate();
    let server = Server::start_in(home);
    for unknown in [id.as_str(), "0123456789abcdef0123456789abcdef", "", "a b"] {
        let named = |raw: Raw| raw.header("Mcp-Session-Id", unknown).send(&server).status();
        assert_eq!(named(Raw::post(&ping)), 404, "{unknown:?}");
        assert_eq!(named(Raw::new("GET")), 404, "{unknown:?}");
        assert_eq!(named(Raw::new("DELETE")), 404, "{unknown:?}");
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(named(Raw::post(&told)), 404, "{unknown:?}");
    }
    assert_eq!(Raw::post(&ping).send(&server).status(), 400);
    let older = Raw::post(&ping).header("MCP-Protocol-Version", LATEST);
    assert_eq!(older.send(&server).status(), 400);
    for verb in ["GET", "DELETE", "PUT"] {
        let refused = Raw::new(verb).send(&server);
        assert_eq!(
            (refused.status(), refused.head.header("allow")),
            (405, Some("POST"))
        );
    }
}

#[test]
fn l02_a_handshake_with_a_dead_id_begins_a_new_session() {
    let server = shared();
    let raw = Raw::post(&initialize(LATEST, &json!({})));
    let reply = raw.header("Mcp-Session-Id", "long-gone").send(&server);
    assert_eq!(reply.status(), 200);
    assert_ne!(reply.head.header("mcp-session-id"), Some("long-gone"));
}

#[test]
fn l04_sessions_end() {
    let server = Server::start(
        &[FIXTURES],
        "[sessions]\nidle_ms = 1000\nsessions_max = 3\nsessions_per_client_max = 3\n",
    );
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let status = |session: &Session<'_>| session.raw(&ping).send(&server).status();
    let deleted = Session::begin(&server, LATEST, &json!({}));
    assert_eq!(deleted.delete(), 204);
    assert_eq!((status(&deleted), deleted.delete()), (404, 404));
    // Beyond the cap the one goes that was idle for longest.
    let sessions: Vec<_> = (0..4)
        .map(|_| Session::begin(&server, LATEST, &json!({})))
        .collect();
    assert_eq!(status(&sessions[0]), 404);
    assert_eq!(status(&sessions[3]), 200);
    // One that someone listens to is not idle, and is not ended.
    let listening = sessions[3].listen();
    wait_for("an idle session to end", PATIENCE, || {
        let beginner = Session::begin(&server, LATEST, &json!({}));
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        (status(&beginner) == 404).then_some(())
    });
    assert_eq!(status(&sessions[3]), 200);
    drop(listening);
}

#[test]
fn l05_both_eras_side_by_side() {
    let server = shared();
    let session = Session::begin(&server, EARLIER, &asks_all());
    for _ in 0..3 {
        server.send(&Message::new("server/discover")).result();
        assert_eq!(
            session.result("tools/call", call("echo", json!({ "text": "old" })))["content"][0]["text"],
            "old"
        );
        // What the handshake declared is not known of modern requests.
        let refused = server.call("ask_one", json!({}));
        assert_eq!(refused.code(), -32021);
        // A modern request that names a session is a modern request.
        let stray =
            Message::call("echo", json!({ "text": "new" })).header("Mcp-Session-Id", &session.id);
        let reply = server.send(&stray);
        assert_eq!(reply.text(), "new");
        assert!(reply.head.header("mcp-session-id").is_none());
        let stray = Message::new("initialize").header("Mcp-Session-Id", &session.id);
        assert_eq!(server.send(&stray.malformed()).status(), 404);
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let version = |version: &str| {
        let raw = session.raw(&ping).header("MCP-Protocol-Version", version);
        let mut reply = raw.send(&server);
        (
            reply.status(),
            reply.message().unwrap()["error"]["code"].clone(),
        )
    };
    assert_eq!(version("2026-07-28"), (400, json!(-32602)));
    assert_eq!(version("1900-01-01"), (400, json!(-32022)));
    // The version of the session holds.
    assert_eq!(version(LATEST), (200, Value::Null));
}

#[test]
fn l06_no_task_is_ever_seen_there() {
    let server = shared();
    let capabilities = json!({
        "tasks": { "requests": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    let session = Session::begin(&server, LATEST, &capabilities);
    let mut required = call("sleep_required", json!({ "ms": 300 }));
    required["task"] = json!({ "ttl": 60_000 });
    assert_eq!(
        session.result("tools/call", required)["content"][0]["text"],
        "slept 300 ms"
    );
    let listed = session.result("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool.get("execution").is_none()));
}

#[test]
fn a_question_is_a_request_of_the_server() {
    let server = shared();
    for revision in [EARLIER, LATEST] {
        let session = Session::begin(&server, revision, &asks_all());
        let mut modes = Vec::new();
        let (response, asked) =
            session.request("tools/call", call("ask2", json!({})), |method, params| {
                assert_eq!(method, "elicitation/create");
                modes.push(params.get("mode").cloned());
                let schema = &params["requestedSchema"]["properties"];
                let content = if schema.get("name").is_some() {
                    json!({ "name": "Ada" })
                } else {
                    json!({ "color": "blue" })
                };
                json!({ "result": { "action": "accept", "content": content } })
            });
        assert_eq!((text(&response), asked.len()), ("Ada likes blue", 2));
        let mode = (revision == LATEST).then(|| json!("form"));
        assert_eq!(modes, [mode.clone(), mode]);
    }
}

#[test]
fn whatever_comes_of_a_question_reaches_the_guest() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &asks_all());
    let ask = |reply: Value| {
        let answer = |_: &str, _: &Value| reply.clone();
        session
            .request("tools/call", call("ask_one", json!({})), answer)
            .0
    };
    let accept = |content: Value| json!({ "result": { "action": "accept", "content": content } });
    assert_eq!(
        text(&ask(accept(json!({ "number": 4 })))),
        "the number is 4"
    );
    assert_eq!(
        text(&ask(json!({ "result": { "action": "decline" } }))),
        "declined"
    );
    assert_eq!(
        text(&ask(json!({ "result": { "action": "cancel" } }))),
        "cancelled"
    );
    // What does not fit is asked for again, but not for ever.
    for unfit in [accept(json!({ "number": "four" })), json!({ "result": 7 })] {
        let mut asked = 0;
        let (response, _) = session.request("tools/call", call("ask_one", json!({})), |_, _| {
            asked += 1;
            unfit.clone()
        });
        assert!(
            response.to_string().contains("no answer fits"),
            "{response:#}"
        );
        assert_eq!(asked, 3);
        let mut tries = vec![accept(json!({ "number": 5 })), unfit.clone()];
        let (response, _) = session.request("tools/call", call("ask_one", json!({})), |_, _| {
            tries.pop().unwrap()
        });
        assert_eq!(text(&response), "the number is 5");
    }
    let response = ask(json!({ "error": { "code": -1, "message": "the user is away" } }));
    assert!(
        response.to_string().contains("the user is away"),
        "{response:#}"
    );
}

#[test]
fn questions_of_all_kinds_at_once() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &asks_all());
    let (response, asked) = session.request("tools/call", call("ask_all", json!({})), |method, params| {
        let result = match (method, params["mode"].as_str()) {
            ("elicitation/create", Some("form")) => json!({ "action": "accept", "content": { "name": "Ada" } }),
            ("elicitation/create", _) => {
                assert!(params["elicitationId"].is_string(), "{params:#}");
                json!({ "action": "accept" })
            }
            ("sampling/createMessage", _) => json!({
                "role": "assistant", "model": "m", "content": { "type": "text", "text": "hello" },
            }),
            _ => json!({ "roots": [{ "uri": "file:///work" }] }),
        };
        json!({ "result": result })
    });
    assert_eq!(
        (text(&response), asked.len()),
        ("Ada; opened; hello; file:///work", 4)
    );
}

#[test]
fn prompts_and_resources_ask_too() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &asks_all());
    let name = |_: &str, _: &Value| json!({ "result": { "action": "accept", "content": { "name": "Ada" } } });
    let (prompt, asked) = session.request("prompts/get", json!({ "name": "ask_prompt" }), name);
    assert!(prompt["result"]["messages"].is_array(), "{prompt:#}");
    assert_eq!(asked.len(), 2);
    let (read, _) = session.request("resources/read", json!({ "uri": "fixture://ask" }), name);
    assert!(read.to_string().contains("Ada"), "{read:#}");
}

#[test]
fn what_was_not_declared_is_not_asked() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let error = session.error("tools/call", call("ask_one", json!({})));
    assert_eq!(error["code"], -32603, "{error:#}");
    assert!(error["data"]["requiredCapabilities"]["elicitation"].is_object());
    // Who takes JSON only cannot be asked, and is told why. Who takes anything can.
    let able = Session::begin(&server, LATEST, &asks_all());
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("ask_one", json!({})) });
    let raw = able.raw(&message).header("Accept", "application/json");
    let response = raw.send(&server).message().unwrap();
    assert_eq!(response["error"]["code"], -32603, "{response:#}");
    assert_eq!(response["error"]["data"]["reason"], "not_a_stream");
    let anything = able.raw(&message).header("Accept", "*/*").send(&server);
    let decline = |_: &str, _: &Value| json!({ "result": { "action": "decline" } });
    assert_eq!(
        text(&able.finish("tools/call", anything, decline).0),
        "declined"
    );
}

#[test]
fn who_calls_is_ready_though_it_never_said_so() {
    let server = shared();
    let begun = Raw::post(&initialize(LATEST, &asks_all())).send(&server);
    let id = begun.head.header("mcp-session-id").unwrap().to_owned();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("ask_one", json!({})) });
    let raw = Raw::post(&message).header("Mcp-Session-Id", &id);
    assert_eq!(
        raw.send(&server).message().unwrap()["method"],
        "elicitation/create"
    );
}

#[test]
fn a_form_has_the_fields_of_its_version() {
    let server = shared();
    for (revision, fields) in [(EARLIER, false), (LATEST, true)] {
        let session = Session::begin(&server, revision, &asks_all());
        let mut asked = false;
        session.request("tools/call", call("ask_form", json!({})), |_, _| {
            asked = true;
            json!({ "result": { "action": "decline" } })
        });
        // The form has a choice of several, which only the later version knows.
        assert_eq!(asked, fields);
    }
}

#[test]
fn a_client_that_does_not_answer_is_not_waited_for() {
    let server = Server::start(&[FIXTURES], "[limits]\ninput_time_ms = 400\n");
    let session = Session::begin(&server, LATEST, &asks_all());
    let mut incoming = session.open(1, "tools/call", call("ask_one", json!({})));
    let asked = incoming.message().unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let cancelled = incoming.message().unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    let response = incoming.message().unwrap();
    assert!(
        response.to_string().contains("did not answer"),
        "{response:#}"
    );
    // An answer that comes too late is taken and left alone.
    let late = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
    assert_eq!(session.tell(&late), 202);
}

#[test]
fn progress_and_log_messages_come_before_the_result() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let mut wanted = call("progress", json!({ "steps": [1.0, 2.0, 3.0], "ms": 60 }));
    wanted["_meta"] = json!({ "progressToken": "abc" });
    let (response, others) = session.request("tools/call", wanted, nothing_asked);
    assert_eq!(text(&response), "3 steps");
    let told: Vec<_> = others
        .iter()
        .map(|other| &other["params"]["progress"])
        .collect();
    assert_eq!(told, [1.0, 2.0, 3.0]);
    assert!(
        others
            .iter()
            .all(|other| other["params"]["progressToken"] == "abc")
    );
    // Nothing is logged before a level was set, and then only from there on.
    let log = |level: &str| {
        let params = call("log", json!({ "level": level, "text": "x" }));
        session.request("tools/call", params, nothing_asked).1.len()
    };
    assert_eq!(log("emergency"), 0);
    session.result("logging/setLevel", json!({ "level": "warning" }));
    assert_eq!((log("notice"), log("warning"), log("error")), (0, 1, 1));
    assert_eq!(
        session.error("logging/setLevel", json!({ "level": "loud" }))["code"],
        -32602
    );
}

#[test]
fn a_lost_connection_ends_nothing_and_the_rest_is_got_on_another() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let mut wanted = call(
        "progress",
        json!({ "steps": [1.0, 2.0, 3.0, 4.0], "ms": 150 }),
    );
    wanted["_meta"] = json!({ "progressToken": 7 });
    let mut first = session.open(9, "tools/call", wanted);
    assert_eq!(first.message().unwrap()["params"]["progress"], 1.0);
    let last = first.last_id.clone().unwrap();
    first.close();
    let (response, others) = session.finish("tools/call", session.resume(&last), nothing_asked);
    assert_eq!((text(&response), &response["id"]), ("4 steps", &json!(9)));
    let told: Vec<_> = others
        .iter()
        .map(|other| &other["params"]["progress"])
        .collect();
    assert_eq!(told, [2.0, 3.0, 4.0]);
    // Also when all is over.
    let again = session.finish("tools/call", session.resume(&last), nothing_asked);
    assert_eq!(again.0, response);
    for gone in ["999-0", "nonsense"] {
        assert_eq!(session.resume(gone).status(), 400, "{gone}");
    }
}

#[test]
fn a_silent_call_can_be_come_back_to() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let incoming = session.open(9, "tools/call", call("sleep", json!({ "ms": 1500 })));
    assert!(incoming.is_stream());
    // The first event says that there is a stream; older clients cannot read one without a message.
    let earlier = Session::begin(&server, EARLIER, &json!({}));
    let mut unprimed = earlier.open(9, "tools/call", call("sleep", json!({ "ms": 600 })));
    assert_eq!(
        unprimed.message().unwrap()["result"]["content"][0]["text"],
        "slept 600 ms"
    );
    assert_eq!(
        unprimed.last_id.as_deref().map(|id| id.ends_with("-0")),
        Some(true)
    );
    let (response, _) = session.finish("tools/call", incoming, nothing_asked);
    assert_eq!(text(&response), "slept 1500 ms");
}

#[test]
fn a_cancelled_call_ends_without_a_response() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let mut incoming = session.open(5, "tools/call", call("sleep", json!({ "ms": 60_000 })));
    let cancel = |id: Value| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    // Another id, though it looks the same.
    assert_eq!(session.tell(&cancel(json!("5"))), 202);
    assert_eq!(session.tell(&cancel(json!(99))), 202);
    // While it is served its id is taken.
    let mut twin = session.open(5, "ping", json!({}));
    assert_eq!(twin.message().unwrap()["error"]["code"], -32600);
    assert_eq!(session.tell(&cancel(json!(5))), 202);
    assert_eq!(incoming.message(), None);
    session.result("ping", json!({}));
}

#[test]
fn the_end_of_a_session_ends_its_calls() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let mut incoming = session.open(5, "tools/call", call("sleep", json!({ "ms": 60_000 })));
    let mut listening = session.listen();
    assert_eq!(session.delete(), 204);
    assert_eq!(incoming.message(), None);
    assert_eq!(listening.message(), None);
}

#[test]
fn changes_are_told_on_the_stream_of_the_session() {
    let server = Server::start(&[FIXTURES, VERSION_A], "");
    let session = Session::begin(&server, LATEST, &json!({}));
    let mut listening = session.listen();
    session.result("resources/subscribe", json!({ "uri": "fixture://plain" }));
    let updated = |uri: &str| session.result("tools/call", call("notify", json!({ "uri": uri })));
    updated("fixture://bytes");
    updated("fixture://plain");
    let told = listening.message().unwrap();
    session.judge("", &told);
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"], json!({ "uri": "fixture://plain" }));
    session.result("resources/unsubscribe", json!({ "uri": "fixture://plain" }));
    updated("fixture://plain");
    std::fs::remove_file(server.home.plugins().join("a.wasm")).unwrap();
    let told = listening.message().unwrap();
    assert_eq!(
        told["method"], "notifications/tools/list_changed",
        "{told:#}"
    );
    // A later stream takes over; what it missed comes first.
    let last = listening.last_id.clone().unwrap();
    let mut newer = session.resume(&last);
    assert_eq!(listening.message(), None);
    session.result("resources/subscribe", json!({ "uri": "fixture://plain" }));
    updated("fixture://plain");
    assert_eq!(
        newer.message().unwrap()["method"],
        "notifications/resources/updated"
    );
    let missing = session.error("resources/subscribe", json!({ "uri": "fixture://nowhere" }));
    assert_eq!(missing["code"], -32002);
}

#[test]
fn messages_that_want_no_answer_get_none() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    for method in [
        "notifications/cancelled",
        "notifications/roots/list_changed",
        "notifications/no_such",
    ] {
        assert_eq!(
            session.tell(&json!({ "jsonrpc": "2.0", "method": method })),
            202
        );
    }
    assert_eq!(
        session.tell(&json!({ "jsonrpc": "2.0", "id": 77, "result": {} })),
        202
    );
    let mut lost = Raw::post(&json!({ "jsonrpc": "2.0", "id": 77, "result": {} })).send(&server);
    assert_eq!(lost.status(), 400);
    assert_eq!(lost.message().unwrap()["error"]["code"], -32600);
    let mut batch = session
        .raw(&json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]))
        .send(&server);
    assert_eq!(
        (
            batch.status(),
            batch.message().unwrap()["error"]["code"].clone()
        ),
        (400, json!(-32600))
    );
    let accept = session
        .with_headers(Raw::new("GET"))
        .header("Accept", "application/json");
    assert_eq!(accept.send(&server).status(), 406);
}

#[test]
fn clients_that_never_answer_hold_no_slots() {
    // Four slots, of which one may be held by who waits for an answer.
    let server = Server::start(&[FIXTURES], "[limits]\nconcurrent_runs = 4\n");
    let session = Session::begin(&server, LATEST, &asks_all());
    let mut waiting = Vec::new();
    for id in 0..12 {
        let mut incoming = session.open(id, "tools/call", call("ask_one", json!({})));
        assert_eq!(incoming.message().unwrap()["method"], "elicitation/create");
        waiting.push(incoming);
    }
    let echo = server.call("echo", json!({ "text": "served" }));
    assert_eq!(echo.text(), "served");
    // Those that left memory go on where they were.
    for incoming in waiting.drain(..6) {
        incoming.close();
    }
    let mut late = session.open(99, "tools/call", call("ask_one", json!({})));
    let asked = late.message().unwrap();
    let result = json!({ "action": "accept", "content": { "number": 8 } });
    assert_eq!(
        session.tell(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })),
        202
    );
    assert_eq!(text(&late.message().unwrap()), "the number is 8");
}

#[test]
fn streams_of_sessions_are_counted_with_all_others() {
    let server = Server::start(&[FIXTURES], "[subscriptions]\nstreams_per_client_max = 3\n");
    let sessions: Vec<_> = (0..4)
        .map(|_| Session::begin(&server, LATEST, &json!({})))
        .collect();
    let open: Vec<_> = sessions[..3].iter().map(Session::listen).collect();
    let refused = sessions[3].with_headers(Raw::new("GET")).send(&server);
    assert_eq!(refused.status(), 503);
    drop(open);
    wait_for("a place for a stream", PATIENCE, || {
        let raw = sessions[3].with_headers(Raw::new("GET"));
        (raw.send(&server).status() == 200).then_some(())
    });
}

#[test]
fn a_version_that_is_none_is_refused_whatever_is_sent() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    for version in ["1900-01-01", "2025-03-26", "2026-07-28", "x"] {
        for raw in [
            session.raw(&ready),
            session.raw(&answer),
            session.with_headers(Raw::new("GET")),
            session.with_headers(Raw::new("DELETE")),
        ] {
            let refused = raw.header("MCP-Protocol-Version", version).send(&server);
            assert_eq!(refused.status(), 400, "{version}");
        }
    }
    session.result("ping", json!({}));
}

#[test]
fn only_what_was_said_can_be_come_back_to() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let mut listening = session.listen();
    let incoming = session.open(3, "tools/call", call("sleep", json!({ "ms": 1_000 })));
    for beyond in ["0-500", "1-500", "1-18446744073709551615", "+1-+0", "2-0"] {
        assert_eq!(session.resume(beyond).status(), 400, "{beyond}");
    }
    let (response, _) = session.finish("tools/call", incoming, nothing_asked);
    assert_eq!(text(&response), "slept 1000 ms");
    session.result("resources/subscribe", json!({ "uri": "fixture://plain" }));
    session.result(
        "tools/call",
        call("notify", json!({ "uri": "fixture://plain" })),
    );
    assert_eq!(
        listening.message().unwrap()["method"],
        "notifications/resources/updated"
    );
}
