//! Cases of single requests: ids, bodies that are none, sizes, batches, notifications.

use crate::grants::{folder_grant, notes};
use crate::servers::shared;
use longshore_tests::client::Message;
use longshore_tests::legacy::{LATEST, Session};
use longshore_tests::server::{FIXTURES, HOSTILE, Server};
use longshore_tests::wait::{Watch, wait_for, within};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::time::Duration;

#[test]
fn p01_ids_are_echoed_exactly() {
    let server = shared();
    for id in [
        json!(1),
        json!("1"),
        json!("init-1"),
        json!(""),
        json!(-7),
        json!(0),
        json!(9_007_199_254_740_993_i64),
    ] {
        let reply = server.send(&Message::new("tools/list").id(id.clone()));
        assert_eq!(reply.response()["id"], id);
        let error = server.send(&Message::new("no/such").id(id.clone()));
        assert_eq!(error.response()["id"], id);
    }
}

#[test]
fn p01_an_id_of_any_other_type_is_refused() {
    let server = shared();
    for id in [json!(1.5), json!(true), json!([1]), json!({"a": 1})] {
        let reply = server.send(&Message::new("tools/list").id(id.clone()).malformed());
        assert_eq!((reply.status(), reply.code()), (400, -32600), "{id}");
        check_no_id(reply.response());
    }
}

pub(crate) fn check_no_id(response: &Value) {
    let id = response.get("id");
    assert!(id.is_none_or(Value::is_null), "invented: {response:#}");
}

#[test]
fn p03_errors_never_invent_an_id() {
    let server = shared();
    for (body, code) in [
        (r#"{"jsonrpc":"2.0","id":"#, -32700),
        ("", -32700),
        (" ", -32700),
        ("[]", -32600),
        ("null", -32600),
        (r#""x""#, -32600),
        ("7", -32600),
        ("{}", -32600),
    ] {
        let reply = server.send(&Message::new("tools/list").body(body));
        assert_eq!((reply.status(), reply.code()), (400, code), "{body:?}");
        check_no_id(reply.response());
    }
}

#[test]
fn p08_batches_are_refused_and_nothing_runs() {
    let outer = notes();
    let server = Server::start(&[HOSTILE], &folder_grant(outer.path(), true));
    let write = |name: &str| json!({ "path": format!("/notes/{name}"), "text": "x" });
    let modern = |name: &str| Message::call("write", write(name)).json().clone();
    let params = |name: &str| json!({ "name": "write", "arguments": write(name) });
    let older = |name: &str| json!({ "jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params(name) });
    let batches = [
        json!([modern("a"), modern("b")]),
        json!([older("a"), older("b")]),
        json!([]),
        json!([1]),
    ];
    let session = Session::begin(&server, LATEST, &json!({}));
    for batch in &batches {
        let reply = server.send(&Message::new("tools/call").body(batch.to_string()));
        assert_eq!((reply.status(), reply.code()), (400, -32600), "{batch}");
        assert_eq!(reply.messages.len(), 1);
        check_no_id(reply.response());
        let mut reply = session.raw(batch).send(&server);
        let refused = reply.message().unwrap();
        assert_eq!(
            (reply.status(), &refused["error"]["code"]),
            (400, &json!(-32600)),
            "{batch}"
        );
        check_no_id(&refused);
    }
    // What was begun before this one has written by its end.
    assert_eq!(server.call("write", write("alone")).text(), "written");
    let alone = session.result("tools/call", params("older"));
    assert_eq!(alone["content"][0]["text"], "written");
    let written = |name: &str| outer.path().join("notes").join(name).exists();
    let names = ["alone", "older", "a", "b"];
    assert_eq!(names.map(written), [true, true, false, false]);
}

#[test]
fn p15_notifications_get_202_and_nothing_else() {
    let server = shared();
    let cancelled = Message::new("notifications/cancelled").param("requestId", 77);
    for message in [
        cancelled,
        Message::new("notifications/initialized"),
        Message::new("notifications/no_such"),
        // Rules of headers and `_meta` are for requests.
        Message::new("notifications/no_such")
            .no_param("_meta")
            .no_header("Mcp-Method"),
        Message::new("tools/list"),
    ] {
        let reply = server.send(&message.notification());
        assert_eq!(reply.status(), 202);
        assert_eq!(reply.body, b"");
    }
}

#[test]
fn p15_a_notification_runs_nothing() {
    let outer = notes();
    let server = Server::start(&[HOSTILE], &folder_grant(outer.path(), true));
    let write = |file: &str| {
        let arguments = json!({ "path": format!("/notes/{file}"), "text": "x" });
        Message::call("write", arguments)
    };
    for tasks in [false, true] {
        let message = write("never").notification();
        let message = if tasks { message.tasks() } else { message };
        let reply = server.send(&message);
        assert_eq!((reply.status(), &reply.body[..]), (202, &b""[..]));
    }
    // What came later has been done.
    assert_eq!(server.send(&write("later")).text(), "written");
    assert!(outer.path().join("notes/later").exists());
    assert!(!outer.path().join("notes/never").exists());
}

#[test]
fn who_takes_events_only_gets_them() {
    let server = shared();
    let list = Message::new("tools/list").header("Accept", "text/event-stream");
    let reply = server.send(&list);
    assert_eq!(reply.status(), 200);
    let kind = reply.head.header("content-type").unwrap();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    assert!(reply.result()["tools"].is_array());
}

const BODY_BYTES_MAX: usize = 1 << 20;

fn small() -> Server {
    let config = format!("[http]\nbody_bytes_max = {BODY_BYTES_MAX}\nbody_timeout_ms = 500\n");
    Server::start(&[FIXTURES], &config)
}

#[test]
fn p07_a_body_over_the_limit_is_refused_from_its_header() {
    let mut server = small();
    let before = server.memory_bytes();
    for length in ["67108864", "10737418240", "99999999999999999999999999"] {
        let message = Message::new("tools/list")
            .header("Content-Length", length)
            .body("{");
        let mut connection = server.connect();
        connection.write(&message.bytes(server.address())).unwrap();
        let reply = within(length, Duration::from_secs(1), || {
            connection.reply("tools/list")
        });
        let status = reply.unwrap().status();
        assert!([413, 400].contains(&status), "{length}: {status}");
    }
    check_grown(&server, before);
    server.check_alive();
}

/// Not by more than twice the limit, and what any request takes.
fn check_grown(server: &Server, before: u64) {
    let grown = server.memory_bytes().saturating_sub(before);
    let bound = 2 * BODY_BYTES_MAX as u64 + (8 << 20);
    assert!(grown < bound, "{grown} bytes more");
}

#[test]
fn p07_an_endless_body_is_refused_where_it_exceeds_the_limit() {
    // Time is not what it exceeds, also where the client gets little of it.
    let config = format!("[http]\nbody_bytes_max = {BODY_BYTES_MAX}\n");
    let mut server = Server::start(&[FIXTURES], &config);
    let before = server.memory_bytes();
    let message = Message::new("tools/list").no_header("Content-Length");
    let message = message.header("Transfer-Encoding", "chunked").body("");
    let mut connection = server.connect();
    connection.write(&message.bytes(server.address())).unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(1 << 16));
    let mut sent = 0;
    // The server may close the connection as soon as it has answered.
    while sent < 64 * BODY_BYTES_MAX && connection.write(chunk.as_bytes()).is_ok() {
        sent += 1 << 16;
        if connection.has_answer() {
            break;
        }
    }
    let reply = connection.reply("tools/list").unwrap();
    assert_eq!(reply.status(), 413);
    assert!(sent < 16 * BODY_BYTES_MAX, "only after {sent} bytes");
    check_grown(&server, before);
    server.check_alive();
}

#[test]
fn p07_a_trickle_is_closed_after_a_while() {
    let mut server = small();
    let message = Message::new("tools/list")
        .header("Content-Length", "1000")
        .body("{");
    let watch = Watch::start();
    let mut connection = server.connect();
    connection.write(&message.bytes(server.address())).unwrap();
    wait_for("the server to give up", Duration::from_secs(5), || {
        // What is written to a closed connection would take the answer with it.
        connection.has_answer().then_some(()).or_else(|| {
            connection.write(b" ").unwrap();
            None
        })
    });
    assert!(watch.elapsed() >= Duration::from_millis(400));
    assert_eq!(connection.reply("tools/list").unwrap().status(), 408);
    let end = connection.plain_reply().map(drop);
    assert_ne!(end.unwrap_err().kind(), ErrorKind::WouldBlock, "left open");
    server.check_alive();
}

#[test]
fn p07_a_huge_id_does_no_harm() {
    let mut server = small();
    let id = "x".repeat(4 << 20);
    let message = Message::new("tools/list").id(id);
    let bytes = message.bytes(server.address());
    let mut connection = server.connect();
    // It may be refused before all of it is there.
    let _ = connection.write(&bytes);
    let reply = connection.reply("tools/list").unwrap();
    assert_eq!(reply.status(), 413);
    assert!(reply.body.len() < 10_000);
    server.check_alive();
}

#[test]
fn a_body_just_within_the_limit_is_taken() {
    let server = small();
    let text = "x".repeat(BODY_BYTES_MAX - 1_000);
    assert_eq!(server.call("echo", json!({ "text": text })).text(), text);
}

/// Nests in the arguments, in a member that nobody knows, and as the id.
fn nested(nest: &str) -> [Message; 3] {
    let call = Message::call("echo_json", json!({}));
    let plain = call.json().to_string();
    [
        (
            r#""arguments":{}"#,
            format!(r#""arguments":{{"x":{nest}}}"#),
        ),
        (r#""id":1"#, format!(r#""id":1,"unknown":{nest}"#)),
        (r#""id":1"#, format!(r#""id":{nest}"#)),
    ]
    .map(|(that, this)| {
        assert!(plain.contains(that), "{plain}");
        call.clone().body(plain.replace(that, &this))
    })
}

#[test]
fn p06_deep_json_gets_one_answer() {
    let mut server = Server::start(&[FIXTURES], "");
    for levels in [50, 100, 200, 5_000, 200_000] {
        for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
            let nest = format!("{}1{}", open.repeat(levels), close.repeat(levels));
            for message in nested(&nest) {
                let what = format!("{levels} levels");
                let reply = within(&what, Duration::from_secs(1), || server.send(&message));
                assert_eq!(reply.messages.len(), 1, "{what}");
                if let Some(error) = reply.response().get("error") {
                    let code = error["code"].as_i64().unwrap();
                    assert!([-32700, -32600, -32602].contains(&code), "{error:#}");
                }
                assert!(reply.body.len() < 10_000, "{what} came back");
            }
        }
    }
    server.check_alive();
}

#[test]
fn requests_of_one_connection_are_answered_in_turn() {
    let server = shared();
    let mut connection = server.connect();
    for turn in 0..20 {
        let text = format!("turn {turn}");
        let message = Message::call("echo", json!({ "text": text })).id(turn);
        let reply = connection.exchange(&message).unwrap();
        assert_eq!(reply.response()["id"], turn);
        assert_eq!(reply.text(), text);
    }
}
