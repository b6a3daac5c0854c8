//! `longshore stdio` ends when its client is gone, whatever goes on, and closes its store.

use crate::stdio::{BUSY_END, IDLE_END, alive, call, discover, modern, text};
use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Home};
use longshore_tests::stdio::StdioServer;
use longshore_tests::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::{Child, Stdio};
use std::time::Duration;

/// It ends well, and in time.
fn ends(mut child: Child, bound: Duration) {
    let status = wait_for("the server to end", bound, || child.try_wait().unwrap());
    assert!(status.success());
}

#[test]
fn p26_the_end_of_input_is_the_end() {
    // Nothing was ever said.
    let home = Home::new(&[FIXTURES], "");
    let idle = home
        .subcommand("stdio")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    ends(idle, BUSY_END);
    let mut session = StdioServer::start(&[FIXTURES], "");
    alive(&mut session);
    session.close_input();
    assert!(session.ended_within(IDLE_END).success());
    for tool in ["spin", "sleep"] {
        let mut busy = StdioServer::start(&[FIXTURES], "");
        alive(&mut busy);
        busy.send(&call(1, tool, json!({ "ms": 60_000 })));
        busy.close_input();
        assert!(busy.ended_within(BUSY_END).success(), "{tool}");
    }
}

#[test]
fn p26_what_was_asked_last_is_answered() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.send(&call(1, "sleep", json!({ "ms": 300 })));
    server.close_input();
    assert_eq!(text(&server.message()), "slept 300 ms");
    assert!(server.ended_within(IDLE_END).success());
}

#[test]
fn p26_a_call_that_takes_too_long_then_is_told_so_and_a_task_is_made() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.send(&call(1, "sleep", json!({ "ms": 60_000 })));
    let task = Message::call("sleep", json!({ "ms": 60_000 })).tasks();
    server.send(&modern(2, &task));
    server.close_input();
    let made = server.message();
    assert_eq!(made["result"]["resultType"], "task", "{made:#}");
    let cut_off = server.message();
    assert_eq!(
        cut_off["error"]["data"]["reason"], "shutting_down",
        "{cut_off:#}"
    );
    assert!(server.ended_within(BUSY_END).success());
}

#[test]
fn p26_a_stream_is_closed_in_order_at_the_end() {
    for by_signal in [false, true] {
        let mut server = StdioServer::start(&[FIXTURES], "");
        let listen = Message::new("subscriptions/listen");
        server.send(&modern(
            "l",
            &listen.param("notifications", json!({ "toolsListChanged": true })),
        ));
        server.message();
        if by_signal {
            let pid = Pid::from_raw(server.pid().try_into().unwrap()).unwrap();
            kill_process(pid, Signal::TERM).unwrap();
        } else {
            server.close_input();
        }
        let cancelled = server.message();
        assert_eq!(
            cancelled["method"], "notifications/cancelled",
            "{cancelled:#}"
        );
        assert_eq!(cancelled["params"]["requestId"], "l");
        let closing = server.message();
        assert_eq!(closing["result"]["resultType"], "complete", "{closing:#}");
        assert!(server.ended_within(IDLE_END).success());
    }
}

#[test]
fn p26_a_reader_that_is_gone_is_the_end() {
    let home = Home::new(&[FIXTURES], "");
    let mut command = home.subcommand("stdio");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("{}\n", discover(1)).as_bytes()).unwrap();
    ends(child, BUSY_END);
}

#[test]
fn p26_a_client_that_reads_nothing_does_not_hold_the_server() {
    for by_signal in [false, true] {
        let home = Home::new(&[FIXTURES], "");
        let mut command = home.subcommand("stdio");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let lines = "{bad\n".repeat(4_000);
        std::io::Write::write_all(&mut input, lines.as_bytes()).unwrap();
        if by_signal {
            let pid = Pid::from_child(&child);
            // Signals are followed once the server is up: it has begun to answer then.
            let mut first = [0];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
            kill_process(pid, Signal::TERM).unwrap();
        } else {
            drop(input);
        }
        ends(child, BUSY_END);
    }
}

#[test]
fn p26_the_store_is_closed_in_order() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    let call = Message::call("sleep_required", json!({ "ms": 60_000 })).tasks();
    let made = server.exchange(&modern(1, &call)).0;
    server.close_input();
    assert!(server.ended_within(BUSY_END).success());
    let mut later = StdioServer::start_in(server.home.clone());
    let id = made["result"]["taskId"].as_str().unwrap();
    let get = modern(2, &Message::task("tasks/get", id));
    let task = later.exchange(&get).0;
    assert_eq!(task["result"]["status"], "working", "{task:#}");
    for server in [&server, &later] {
        let log = server.log();
        assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
    }
}
