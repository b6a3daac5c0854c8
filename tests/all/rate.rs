//! Callers that call tools too often: who has none left, and what that does not touch.

use crate::grants::{folder_grant, notes, yes};
use longshore_tests::client::{Message, Reply};
use longshore_tests::server::{FIXTURES, HOSTILE, Server};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::fs;

fn stats(arguments: Value) -> Message {
    Message::call("stats", arguments)
}

fn is_rated(reply: &Reply) -> bool {
    reply.response()["error"]["data"]["reason"] == "rate"
}

/// What an earlier rung refuses, it refuses whether there are calls left or not.
fn check_earlier_rungs(server: &Server) {
    let sent = |message: &Message| {
        let reply = server.send(message);
        (reply.status(), reply.code())
    };
    assert_eq!(sent(&Message::call("no_such", json!({}))), (200, -32602));
    let sleep = Message::call("sleep_required", json!({ "ms": 1 }));
    assert_eq!(sent(&sleep), (400, -32021));
    let text = json!({ "text": "x" });
    let junk = stats(text.clone()).param("requestState", "junk");
    assert_eq!(sent(&junk), (200, -32602));
    let junk = stats(text).param("inputResponses", json!({ "a": 7 }));
    assert_eq!(sent(&junk.malformed()), (200, -32602));
    for bad in [stats(json!({ "text": 7 })), stats(json!({})).tasks()] {
        assert_eq!(server.send(&bad).result()["isError"], true);
    }
}

#[test]
fn the_rate_is_the_last_rung_and_what_others_refuse_does_not_count() {
    let server = Server::start(&[FIXTURES], "[limits]\ncalls_per_minute = 1\n");
    let good = stats(json!({ "text": "x" }));
    check_earlier_rungs(&server);
    server.send(&good).result();
    check_earlier_rungs(&server);
    let refused = server.send(&good);
    assert_eq!((refused.status(), refused.code()), (200, -32603));
    assert!(is_rated(&refused), "{refused:?}");
    // As a task too; and nothing but calls of tools is counted.
    assert!(is_rated(&server.send(&good.tasks())));
    let greet = Message::new("prompts/get").param("name", "greet");
    let greet = greet.param("arguments", json!({ "name": "Ada" }));
    for other in [
        greet,
        Message::new("resources/read").param("uri", "fixture://plain"),
        Message::new("tools/list"),
    ] {
        server.send(&other).result();
    }
}

/// A call that waits in memory is not lost by a round that comes too early.
#[test]
fn a_round_that_came_too_early_can_come_again() {
    // Five at once, then one in two seconds.
    const PER_MINUTE: u32 = 30;
    let outer = notes();
    let limits = format!("[limits]\ncalls_per_minute = {PER_MINUTE}\n");
    let config = limits + &folder_grant(outer.path(), true);
    let server = Server::start(&[HOSTILE], &config);
    let file = outer.path().join("notes/once.txt");
    // The machine may be slow enough for a call to come free in time; then it is tried again.
    wait_for("a round that comes too early", PATIENCE, || {
        let _ = fs::remove_file(&file);
        let arguments = json!({ "path": "/notes/once.txt", "text": "written" });
        let call = Message::call("write_then_ask", arguments).asks();
        let begun = wait_for("a call", PATIENCE, || {
            let reply = server.send(&call);
            (!is_rated(&reply)).then_some(reply)
        });
        let next = yes(&call, begun.result());
        while !is_rated(&server.call("env", json!({}))) {}
        let early = is_rated(&server.send(&next));
        let done = early.then(|| {
            wait_for("its turn", PATIENCE, || {
                let reply = server.send(&next);
                (!is_rated(&reply)).then_some(reply)
            })
        })?;
        assert!(done.text().contains("written"), "{done:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "written\n");
        Some(())
    });
}
