//! The life of a session: which requests are of one, its beginning, what it is owed before it is ready and while it is in use, its
//! end.

use crate::servers::shared;
use longshore_tests::client::{META_VERSION, Message};
use longshore_tests::legacy::{EARLIER, LATEST, Raw, Session, asks_all, initialize};
use longshore_tests::server::{FIXTURES, HOSTILE, Server, VERSION_A};
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

#[test]
fn l02_a_handshake_with_a_dead_id_begins_a_new_session() {
    let server = shared();
    let raw = Raw::post(&initialize(LATEST, &json!({})));
    let reply = raw.header("Mcp-Session-Id", "long-gone").send(&server);
    assert_eq!(reply.status(), 200);
    let id = reply.head.header("mcp-session-id").unwrap();
    assert_ne!(id, "long-gone");
    let raw = Raw::post(&ping()).header("Mcp-Session-Id", id);
    assert_eq!(raw.send(&server).status(), 200);
}

#[test]
fn l04_sessions_end() {
    let server = Server::start(
        &[FIXTURES],
        "[sessions]\nsessions_max = 3\nsessions_per_client_max = 3\n",
    );
    let status = |session: &Session<'_>| session.raw(&ping()).send(&server).status();
    let deleted = Session::begin(&server, LATEST, &json!({}));
    assert_eq!(deleted.delete(), 204);
    assert_eq!((status(&deleted), deleted.delete()), (404, 404));
    // Beyond the cap the one goes that was idle for longest.
    let sessions: Vec<_> = (0..4)
        .map(|_| Session::begin(&server, LATEST, &json!({})))
        .collect();
    assert_eq!(status(&sessions[0]), 404);
    assert_eq!(status(&sessions[3]), 200);
}

#[test]
fn l04_an_idle_session_ends_and_one_in_use_does_not() {
    let server = Server::start(&[FIXTURES], "[sessions]\nidle_ms = 1000\n");
    let status = |session: &Session<'_>| session.raw(&ping()).send(&server).status();
    let used = Session::begin(&server, LATEST, &json!({}));
    let listening = used.listen();
    wait_for("an idle session to end", PATIENCE, || {
        let beginner = Session::begin(&server, LATEST, &json!({}));
        thread::sleep(std::time::Duration::from_millis(1_500));
        (status(&beginner) == 404).then_some(())
    });
    // One that someone listens to is not idle.
    assert_eq!(status(&used), 200);
    drop(listening);
}

#[test]
fn nothing_is_told_before_the_client_is_ready() {
    let server = Server::start(&[FIXTURES], "");
    let mut begun = Raw::post(&initialize(LATEST, &json!({}))).send(&server);
    begun.message().unwrap();
    let id = begun.head.header("mcp-session-id").unwrap().to_owned();
    let of = |raw: Raw| raw.header("Mcp-Session-Id", &id).send(&server);
    let mut stream = of(Raw::new("GET"));
    assert_eq!(stream.status(), 200);
    // Another session is told.
    let other = Session::begin(&server, LATEST, &json!({}));
    let mut told = other.listen();
    let method = "notifications/tools/list_changed";
    thread::scope(|scope| {
        let first = scope.spawn(|| stream.message().unwrap());
        server.home.install(VERSION_A);
        assert_eq!(told.message().unwrap()["method"], method);
        for _ in 0..50 {
            let pong = of(Raw::post(&ping())).message().unwrap();
            assert_eq!(pong["result"], json!({}));
        }
        assert!(!first.is_finished());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(of(Raw::post(&ready)).status(), 202);
        // What changed meanwhile is told now.
        assert_eq!(first.join().unwrap()["method"], method);
    });
}

#[test]
fn p37_headers_of_arguments_are_of_the_other_era() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let region = json!({ "region": "eu" });
    let params = json!({ "name": "mirrored", "arguments": region });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    for raw in [
        session.raw(&message),
        session.raw(&message).header("Mcp-Param-Region", "us"),
    ] {
        let mut reply = raw.send(&server);
        let response = reply.message().unwrap();
        assert_eq!(
            (reply.status(), &response["result"]["structuredContent"]),
            (200, &region)
        );
    }
}

#[test]
fn l05_the_shapes_are_those_of_the_version_that_was_agreed_on() {
    let server = Server::start(&[HOSTILE], "");
    let earlier = Session::begin(&server, EARLIER, &json!({}));
    let later = Session::begin(&server, LATEST, &json!({}));
    for (method, member) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
        let has_icons = |session: &Session<'_>, header: &str| {
            let raw = session.raw(&list).header("MCP-Protocol-Version", header);
            let listed = raw.send(&server).message().unwrap();
            let mut entries = listed["result"][member].as_array().unwrap().iter();
            entries.any(|entry| entry.get("icons").is_some())
        };
        for header in [EARLIER, LATEST] {
            let icons = (has_icons(&earlier, header), has_icons(&later, header));
            assert_eq!(icons, (false, true), "{method} {header}");
        }
    }
}
