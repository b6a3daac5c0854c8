//! The process is killed right after a handle was read, again and again: what was handed out is there, and goes on.

use longshore_tests::client::{Message, accept, decline};
use longshore_tests::server::{FIXTURES, Server};
use serde_json::json;
use std::sync::Arc;
use std::thread;

const ROUNDS: usize = 50;

/// A promise that was made to a client: the id, and the text that its task must end with.
type Handle = (String, String);

/// Hands out some tasks on connections of their own, all at once.
fn hand_out(server: &Server, round: usize) -> Vec<Handle> {
    let quick = round % 7;
    let calls = [
        (
            "sleep_required",
            json!({ "ms": quick }),
            format!("slept {quick} ms"),
        ),
        (
            "sleep_required",
            json!({ "ms": 150 }),
            "slept 150 ms".to_owned(),
        ),
        ("ask_one", json!({}), format!("the number is {round}")),
    ];
    thread::scope(|scope| {
        let workers = calls.map(|(tool, arguments, text)| {
            scope.spawn(move || (server.call_task(tool, arguments).id, text))
        });
        workers.map(|worker| worker.join().unwrap()).into()
    })
}

#[test]
fn every_handle_resolves_after_a_kill() {
    let mut server = Server::start(&[FIXTURES], "");
    let mut handles: Vec<Handle> = Vec::new();
    for round in 0..ROUNDS {
        let new = hand_out(&server, round);
        server = Server::start_in(server.kill());
        // All of this round, and one of a round before.
        let older = handles.get(round * 31 % handles.len().max(1));
        for (id, _) in new.iter().chain(older) {
            server.task(id).get();
        }
        handles.extend(new);
    }
    for (id, text) in &handles {
        let task = server.task(id);
        if let Some(number) = text.strip_prefix("the number is ") {
            let number: u64 = number.parse().unwrap();
            task.answer("number", accept(json!({ "number": number })));
        }
        assert_eq!(task.wait_text(), *text);
    }
    assert_eq!(handles.len(), 3 * ROUNDS);
}

#[test]
fn what_was_acknowledged_before_a_kill_stands() {
    let mut server = Server::start(&[FIXTURES], "[tasks]\ngrace_ms = 5000\n");
    for round in 0..10 {
        let answered = server.call_task("ask2", json!({})).id;
        let cancelled = server
            .call_task("sleep_required", json!({ "ms": 60_000 }))
            .id;
        let declined = server.call_task("ask_one", json!({})).id;
        let name = format!("name {round}");
        server
            .task(&answered)
            .answer("name", accept(json!({ "name": name })));
        server.task(&declined).answer("number", decline());
        server.task(&cancelled).cancel().result();
        server = Server::start_in(server.kill());

        let task = server.task(&answered);
        // The answer is spent: the next one for its key changes nothing.
        task.update(json!({ "name": accept(json!({ "name": "other" })) }))
            .result();
        task.answer("color", accept(json!({ "color": "red" })));
        assert_eq!(task.wait_text(), format!("{name} likes red"));
        assert_eq!(server.task(&declined).wait_text(), "declined");
        server.task(&cancelled).wait("cancelled");
    }
}

#[test]
fn a_plain_call_that_was_cut_off_leaves_nothing_behind() {
    let server = Server::start(&[FIXTURES], "");
    let mut connection = server.connect();
    let call = Message::call("sleep", json!({ "ms": 60_000 }));
    connection.write(&call.bytes(server.address())).unwrap();
    let home = server.kill();
    assert!(connection.reply("tools/call").is_err());
    let mut server = Server::start_in(Arc::clone(&home));
    server.check_alive();
}
