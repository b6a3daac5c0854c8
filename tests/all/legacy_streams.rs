//! The streams of older clients over HTTP: what comes on them, and what becomes of it when a connection is lost.

use crate::servers::shared;
use longshore_tests::legacy::{EARLIER, LATEST, Raw, Session, asks_all};
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
fn a_cancelled_call_withdraws_its_question() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &asks_all());
    let mut incoming = session.open(5, "tools/call", call("ask_one", json!({})));
    let asked = incoming.message().unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
    assert_eq!(session.tell(&cancel), 202);
    let withdrawn = incoming.message().unwrap();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    assert_eq!(incoming.message(), None);
    // Its answer was on its way: it is taken and left alone.
    let late = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
    assert_eq!(session.tell(&late), 202);
    // One that was answered is not withdrawn.
    let answered = |_: &str, _: &Value| json!({ "result": { "action": "accept", "content": { "number": 7 } } });
    let (response, others) = session.request("tools/call", call("ask_one", json!({})), answered);
    assert_eq!(text(&response), "the number is 7");
    let is_question = |other: &Value| other["method"] == "elicitation/create";
    assert!(others.iter().all(is_question), "{others:#?}");
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
