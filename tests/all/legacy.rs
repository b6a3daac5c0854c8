//! Clients of the versions that begin with a handshake, over HTTP.

use crate::request::check_no_id;
use crate::servers::shared;
use longshore_tests::client::Message;
use longshore_tests::legacy::{EARLIER, LATEST, Raw, Session, asks_all, initialize};
use longshore_tests::server::{FIXTURES, Server};
use serde_json::{Value, json};

fn call(tool: &str, arguments: impl Into<Value>) -> Value {
    let arguments = arguments.into();
    json!({ "name": tool, "arguments": arguments })
}

fn text(response: &Value) -> &str {
    let text = response["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {response:#}"))
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
fn who_never_says_that_it_is_ready_is_told_so() {
    let server = shared();
    let begun = Raw::post(&initialize(LATEST, &asks_all())).send(&server);
    let id = begun.head.header("mcp-session-id").unwrap();
    let params = call("ask_one", json!({}));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let raw = Raw::post(&message).header("Mcp-Session-Id", id);
    let response = raw.send(&server).message().unwrap();
    assert!(
        response.to_string().contains("notifications/initialized"),
        "{response:#}"
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
    let said = lost.message().unwrap();
    assert_eq!(
        (lost.status(), &said["error"]["code"]),
        (400, &json!(-32600))
    );
    check_no_id(&said);
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
