//! Edges of the wire: what few clients send, and what they are answered then.

use crate::servers::shared;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_tests::client::{Message, accept, answer};
use longshore_tests::legacy::{EARLIER, LATEST, Session};
use longshore_tests::server::{FIXTURES, Server, VERSION_A};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Cursor;
use std::thread;
use std::time::Duration;

fn read(uri: &str) -> Message {
    let header = format!("=?base64?{}?=", STANDARD.encode(uri));
    let read = Message::new("resources/read").param("uri", uri);
    read.header("Mcp-Name", &header)
}

#[test]
fn a_round_may_be_written_anew() {
    let server = shared();
    let call = Message::call("ask_again", json!({ "times": 2 })).asks();
    let asked = server.send(&call).result().clone();
    let name = answer("name", accept(json!({ "name": "x" })));
    let next = call
        .param("inputResponses", name)
        .param("requestState", asked["requestState"].clone());
    let text = next.json().to_string();
    for anew in [r#"{ "times" : 2 }"#, r#"{"tim\u0065s":2}"#] {
        let changed = text.replace(r#"{"times":2}"#, anew);
        assert_ne!(text, changed);
        let reply = server.send(&next.clone().body(changed));
        assert_eq!(reply.result()["resultType"], "input_required", "{anew}");
    }
    let other = text.replace(r#"{"times":2}"#, r#"{"times":3}"#);
    assert_eq!(server.send(&next.body(other)).code(), -32602);
}

/// HTTP/2 has no body that a client would not read: one after HEAD breaks the stream.
#[tokio::test]
async fn p14_the_answer_to_head_has_no_body() {
    let server = Server::start(&[VERSION_A], "");
    let stream = tokio::net::TcpStream::connect(server.address()).await;
    let stream = stream.unwrap();
    let (client, connection) = h2::client::Builder::new()
        .handshake::<_, Cursor<String>>(stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    for (authority, status) in [(server.address().to_string(), 405), ("evil".into(), 403)] {
        let head = http::Request::head(format!("http://{authority}/mcp"));
        let (response, _) = client.send_request(head.body(()).unwrap(), true).unwrap();
        let mut response = response.await.unwrap();
        assert_eq!(response.status(), status);
        let length = response.headers()["content-length"].to_str().unwrap();
        assert!(length.parse::<u64>().unwrap() > 0);
        assert!(response.body_mut().data().await.is_none());
    }
    let (head, body) = {
        let mut connection = server.connect();
        let head = Message::new("tools/list").verb("HEAD");
        connection.write(&head.bytes(server.address())).unwrap();
        (connection.head().unwrap(), connection.has_answer())
    };
    assert_eq!((head.status(), body), (405, false));
}

#[test]
fn what_is_no_uri_is_no_resource() {
    let server = Server::start(&[FIXTURES], "");
    let wrong = ["é", "{x}", "<x>", "[x]", "a|b", "😀", "\u{202e}", "a b"]
        .map(|end| format!("fixture://file/{end}"));
    for uri in &wrong {
        let reply = server.send(&read(uri).malformed());
        assert_eq!((reply.status(), reply.code()), (200, -32602), "{uri}");
        assert_eq!(reply.error()["data"]["uri"], uri.as_str());
    }
    let listen = Message::new("subscriptions/listen")
        .param("notifications", json!({ "resourceSubscriptions": wrong }));
    let mut stream = server.stream(&listen.malformed());
    let granted = stream.message().unwrap().unwrap();
    let granted = &granted["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(granted, &json!([]));
    let session = Session::begin(&server, LATEST, &json!({}));
    let refused = session.error("resources/subscribe", json!({ "uri": wrong[0] }));
    assert_eq!(refused["code"], -32002);
    // No guest was asked, and none is blamed.
    assert!(!server.log().contains("invalid_result"), "{}", server.log());
    let escaped = server.send(&read("fixture://file/%C3%A9"));
    assert!(escaped.result()["contents"].is_array());
}

#[test]
fn p13_an_unknown_version_is_told_all_that_are_served() {
    let server = shared();
    let discovered = server.send(&Message::new("server/discover"));
    let all = discovered.result()["supportedVersions"].clone();
    let list = |version: &str| {
        let list = Message::new("tools/list").header("MCP-Protocol-Version", version);
        let list = list.meta("io.modelcontextprotocol/protocolVersion", version);
        let reply = server.send(&list);
        assert_eq!((reply.status(), reply.code()), (400, -32022), "{version}");
        reply.error()["data"]["supported"].clone()
    };
    assert_eq!(list("1900-01-01"), all);
    assert_eq!(list("2099-01-01"), all);
    // One that is served by a handshake only is not served here.
    assert_eq!(list(LATEST), json!([all[0]]));
    assert_eq!(list(EARLIER), json!([all[0]]));
}

#[test]
fn progress_is_an_update_of_its_task() {
    let server = shared();
    let steps = json!({ "steps": [1, 2, 3], "ms": 300 });
    let task = server.call_task("progress", steps);
    let mut seen: Vec<(Value, String)> = Vec::new();
    wait_for("the end of the task", PATIENCE, || {
        let view = task.get();
        let at = view["lastUpdatedAt"].as_str().unwrap().to_owned();
        if seen
            .last()
            .is_none_or(|(said, _)| *said != view["statusMessage"])
        {
            seen.push((view["statusMessage"].clone(), at));
        }
        (view["status"] == "completed").then_some(())
    });
    assert!(seen.len() >= 3, "{seen:?}");
    // As texts: they are of one length.
    let is_later = |one: &(Value, String), next: &(Value, String)| one.1 < next.1;
    assert!(seen.is_sorted_by(is_later), "{seen:?}");
}

#[test]
fn l06_a_call_that_is_cancelled_early_is_an_empty_stream() {
    let server = shared();
    let session = Session::begin(&server, LATEST, &json!({}));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
    let mut incoming = thread::scope(|scope| {
        let call = json!({ "name": "sleep", "arguments": { "ms": 60_000 } });
        let waiting = scope.spawn(|| session.open(9, "tools/call", call));
        // Nothing says that the call has arrived; until then there is nothing to cancel.
        wait_for("the end of the call", PATIENCE, || {
            assert_eq!(session.tell(&cancel), 202);
            waiting.is_finished().then_some(())
        });
        waiting.join().unwrap()
    });
    assert_eq!((incoming.status(), incoming.is_stream()), (200, true));
    assert_eq!(incoming.message(), None);
}

#[test]
fn calls_that_a_stop_cuts_off_are_told_so() {
    let server = Server::start(&[FIXTURES], "[http]\ndrain_ms = 100\n");
    let sleep = Message::call("sleep_forbidden", json!({ "ms": 60_000 }));
    let mut plain = server.connect();
    plain.write(&sleep.bytes(server.address())).unwrap();
    let session = Session::begin(&server, LATEST, &json!({}));
    let call = json!({ "name": "sleep", "arguments": { "ms": 60_000 } });
    let mut older = session.open(1, "tools/call", call);
    let steps: Vec<u32> = (1..200).collect();
    let progress = Message::call("progress", json!({ "steps": steps, "ms": 300 }));
    let mut stream = server.stream(&progress.progress("p"));
    stream.message().unwrap().expect("the call goes on");
    server.signal(Signal::TERM);
    let reply = plain.reply("tools/call").unwrap();
    assert_eq!(reply.error()["data"]["reason"], "shutting_down");
    let last = older.message().unwrap();
    assert_eq!(last["error"]["data"]["reason"], "shutting_down");
    let last = loop {
        let message = stream.message().unwrap().expect("a last word");
        if message.get("id").is_some() {
            break message;
        }
    };
    assert_eq!(last["error"]["data"]["reason"], "shutting_down");
    assert!(server.terminate().0.success());
}

/// A client that sends a large body looks for the answer when it has sent it.
#[test]
fn an_early_refusal_reaches_a_client_that_still_sends() {
    let server = Server::start(&[VERSION_A], "");
    let large = |bytes: usize| Message::new("tools/list").body(vec![b' '; bytes]);
    for (message, status) in [
        (large(3 << 20).header("Content-Type", "text/plain"), 415),
        (large(3 << 20).header("Accept", "text/plain"), 406),
        (large(3 << 20).header("Origin", "http://evil.example"), 403),
        (large(3 << 20).verb("PUT"), 405),
        (large(6 << 20), 413),
    ] {
        let bytes = message.bytes(server.address());
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = bytes.split_at(end.unwrap() + 4);
        let mut connection = server.connect();
        connection.write(head).unwrap();
        // The answer is there, and not a byte of the body was sent.
        let (head, _) = connection.plain_reply().unwrap();
        assert_eq!(head.status(), status);
        for piece in body.chunks(100_000) {
            connection.write(piece).unwrap();
        }
    }
}

/// Whoever has a name of its own for this address, as a page of a browser may, learns nothing of the plugins.
#[test]
fn p35_a_stranger_is_told_only_whether_the_server_is_ready() {
    let server = Server::start(&[VERSION_A], "");
    let ask = |host: &str| {
        let mut connection = server.connect();
        let request = format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\n\r\n");
        connection.write(request.as_bytes()).unwrap();
        let (head, body) = connection.plain_reply().unwrap();
        let said: Value = serde_json::from_slice(&body).unwrap();
        (head.status(), said)
    };
    assert_eq!(ask("evil.example"), (200, json!({ "ready": true })));
    let (status, said) = ask(&server.address().to_string());
    assert_eq!((status, &said["plugins"][0]["name"]), (200, &json!("a")));
}

/// A client that asks before it sends is not invited to send what nobody reads.
#[test]
fn p07_who_asks_before_sending_is_told_at_once() {
    let server = Server::start(&[VERSION_A], "");
    for (host, bytes, status) in [("evil.example", 3_000_000, 403), ("", 60_000_000, 413)] {
        let own = server.address().to_string();
        let host = if host.is_empty() { &own } else { host };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {bytes}\r\nExpect: 100-continue\r\n\r\n"
        );
        let mut connection = server.connect();
        connection.write(request.as_bytes()).unwrap();
        let (head, _) = connection.plain_reply().unwrap();
        assert_eq!(head.status(), status);
    }
}

/// A body that never ends does not hold up the stop.
#[test]
fn a_refused_body_does_not_hold_up_the_stop() {
    let server = Server::start(&[VERSION_A], "[http]\ndrain_ms = 60000\n");
    let put = Message::new("tools/list").verb("PUT");
    let put = put.header("Content-Length", "1000000").body("x");
    let mut connection = server.connect();
    connection.write(&put.bytes(server.address())).unwrap();
    assert_eq!(connection.plain_reply().unwrap().0.status(), 405);
    let ended = within("the stop", Duration::from_secs(4), || server.terminate().0);
    assert!(ended.success());
}

#[test]
fn a_listed_resource_has_nothing_to_complete() {
    let server = shared();
    let complete = |uri: &str| {
        let reference = json!({ "type": "ref/resource", "uri": uri });
        let message = Message::new("completion/complete")
            .param("ref", reference)
            .param("argument", json!({ "name": "x", "value": "" }));
        server.send(&message)
    };
    let none = complete("fixture://plain");
    assert_eq!(none.result()["completion"]["values"], json!([]));
    assert_eq!(complete("fixture://nowhere").code(), -32602);
}

#[test]
fn answers_that_cannot_be_read_are_told_why() {
    let server = shared();
    for (answers, told) in [
        (
            r#"{"number":{"content":{"number":1e999}}}"#,
            "cannot be read",
        ),
        (r#"{"number":{"content":"\ud83d"}}"#, "cannot be read"),
        ("[]", "is not an object"),
    ] {
        let text = Message::call("ask_one", json!({}))
            .asks()
            .param("inputResponses", "HERE");
        let body = text.json().to_string().replace("\"HERE\"", answers);
        let refused = server.send(&text.body(body));
        assert_eq!((refused.status(), refused.code()), (200, -32602));
        assert!(refused.error_text().contains(told), "{refused:?}");
    }
}

#[test]
fn integers_may_have_a_fraction_of_zero() {
    let server = shared();
    let call = Message::call("sleep", json!({ "ms": 10.0 }));
    assert_eq!(server.send(&call).text(), "slept 10 ms");
    let call = Message::call("mirrored", json!({ "count": 42 }));
    for (header, status) in [
        ("42", 200),
        ("42.0", 200),
        ("42.", 400),
        ("41.99999999999999999999", 400),
        ("42.000000000000001", 400),
    ] {
        let reply = server.send(&call.clone().header("Mcp-Param-Count", header));
        assert_eq!(reply.status(), status, "{header}");
    }
}

#[test]
fn lists_and_reads_are_kept_apart() {
    let settings = "[lists]\nttl_ms = 7\ncache_scope = \"public\"\n[resources]\nttl_ms = 9\n";
    let server = Server::start(&[FIXTURES], settings);
    let kept = |message: &Message| {
        let result = server.send(message).result().clone();
        (result["ttlMs"].clone(), result["cacheScope"].clone())
    };
    for method in ["server/discover", "tools/list", "resources/list"] {
        assert_eq!(kept(&Message::new(method)), (json!(7), json!("public")));
    }
    assert_eq!(kept(&read("fixture://plain")), (json!(9), json!("private")));
}

#[test]
fn a_message_with_a_member_twice_is_refused_by_its_id() {
    let server = shared();
    for (twice, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/list"}"#,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/list","a":1,"a":1}"#,
            json!("x"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"id":7,"method":"tools/list"}"#,
            Value::Null,
        ),
    ] {
        let reply = server.send(&Message::new("tools/list").body(twice));
        assert_eq!((reply.status(), reply.code()), (400, -32600), "{twice}");
        assert_eq!(reply.response()["id"], id, "{twice}");
    }
}
