//! What a session is owed before it is ready, and while it is in use; and which requests are of one.

use crate::servers::shared;
use longshore_tests::client::{META_VERSION, Message};
use longshore_tests::legacy::{LATEST, Raw, Session, asks_all, initialize};
use longshore_tests::server::{FIXTURES, Server};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::thread;

fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" })
}

#[test]
fn nothing_is_asked_before_the_client_is_ready() {
    let server = shared();
    let mut begun = Raw::post(&initialize(LATEST, &asks_all())).send(&server);
    begun.message().unwrap();
    let id = begun.head.header("mcp-session-id").unwrap();
    let of = |message: &Value| Raw::post(message).header("Mcp-Session-Id", id);
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "ask_one", "arguments": {} },
    });
    // A stream is opened at once for who takes nothing else, so the call goes on when its head is there.
    let mut events = of(&call)
        .header("Accept", "text/event-stream")
        .send(&server);
    thread::scope(|scope| {
        let asked = scope.spawn(|| events.message().unwrap());
        for _ in 0..50 {
            assert_eq!(
                of(&ping()).send(&server).message().unwrap()["result"],
                json!({})
            );
        }
        assert!(!asked.is_finished());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(of(&ready).send(&server).status(), 202);
        assert_eq!(asked.join().unwrap()["method"], "elicitation/create");
    });
}

#[test]
fn l04_sessions_in_use_are_not_ended_for_others() {
    let settings = "[sessions]\nsessions_max = 2\nsessions_per_client_max = 2\n";
    let server = Server::start(&[FIXTURES], settings);
    let sessions = [(); 2].map(|()| Session::begin(&server, LATEST, &json!({})));
    let listening = sessions.each_ref().map(Session::listen);
    let another = || Raw::post(&initialize(LATEST, &json!({}))).send(&server);
    let mut full = another();
    assert_eq!(full.status(), 503);
    let said = full.message().unwrap();
    assert_eq!(said["error"]["data"]["reason"], "busy", "{said:#}");
    for session in &sessions {
        assert_eq!(session.result("ping", json!({})), json!({}));
    }
    for stream in listening {
        stream.close();
    }
    wait_for("room", PATIENCE, || {
        (another().status() == 200).then_some(())
    });
}

#[test]
fn the_message_tells_the_era_and_no_header_does() {
    let server = shared();
    // Not modern: it has no `_meta`.
    let modern_header = Raw::post(&initialize(LATEST, &json!({})))
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "initialize");
    let mut begun = modern_header.send(&server);
    assert_eq!(begun.status(), 200);
    assert!(begun.head.header("mcp-session-id").is_some());
    assert_eq!(
        begun.message().unwrap()["result"]["protocolVersion"],
        LATEST
    );
    // Not of the session that it names: it has one.
    let session = Session::begin(&server, LATEST, &json!({}));
    let list = Message::new("tools/list").header("Mcp-Session-Id", &session.id);
    let named = server.send(&list.clone().header("MCP-Protocol-Version", LATEST));
    assert_eq!((named.status(), named.code()), (400, -32020));
    let both = list
        .header("MCP-Protocol-Version", LATEST)
        .meta(META_VERSION, LATEST);
    let both = server.send(&both);
    assert_eq!((both.status(), both.code()), (400, -32022));
    assert_eq!(both.error()["data"]["requested"], LATEST);
}

#[test]
fn verbs_that_are_none_are_told_those_that_are() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    for (raw, allowed) in [
        (session.with_headers(Raw::new("PUT")), "GET, POST, DELETE"),
        (Raw::new("PUT"), "POST"),
        (Raw::new("GET"), "POST"),
        (Raw::new("DELETE"), "POST"),
    ] {
        let refused = raw.send(&server);
        assert_eq!(refused.status(), 405);
        assert_eq!(refused.head.header("allow"), Some(allowed));
    }
}
