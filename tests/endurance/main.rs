//! What goes on for long: many calls, many streams, many polls leave nothing behind and push nobody out.
//!
//! A binary of its own, for these tests take all of the machine, and others have bounds of time. One after the other for the
//! same reason.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where it cannot go on, and says where that was"
)]

mod swaps;

use longshore_tests::client::{Connection, Message, Reply, accept};
use longshore_tests::http::Head;
use longshore_tests::legacy::{LATEST, Raw, Session, asks_all, initialize};
use longshore_tests::server::{FIXTURES, Server};
use longshore_tests::wait::{PATIENCE, Watch, Witness, wait_for};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// One test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has nothing to say about the next one.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls one after the other on one connection.
fn call(server: &Server, times: usize) {
    let bytes = Message::call("ver", json!({})).bytes(server.address());
    let mut connection = server.connect();
    connection.write(&bytes).unwrap();
    let first = connection.reply("tools/call").unwrap();
    assert_eq!(first.status(), 200);
    for _ in 1..times {
        connection.write(&bytes).unwrap();
        let (head, body) = connection.plain_reply().unwrap();
        assert_eq!(head.status(), 200);
        assert!(body == first.body, "{}", String::from_utf8_lossy(&body));
    }
}

/// Opens streams and leaves them, some before they have said anything.
fn listen(server: &Server, times: usize) {
    let task = server.call_task("ask_one", json!({}));
    let filter = json!({
        "toolsListChanged": true, "resourceSubscriptions": ["fixture://plain"], "taskIds": [task.id],
    });
    let message = Message::new("subscriptions/listen").param("notifications", filter);
    let message = message.tasks();
    for turn in 0..times {
        // The place of one that has just left may not be free yet.
        let mut stream = wait_for("a place", PATIENCE, || {
            let stream = server.stream(&message);
            let kind = stream.head.header("content-type").unwrap();
            (kind == "text/event-stream").then_some(stream)
        });
        if turn % 2 == 0 {
            stream.message().unwrap().unwrap();
        }
        stream.close();
    }
    task.answer("number", accept(json!({ "number": 1 })));
    task.wait_text();
}

#[test]
fn p31_calls_and_streams_leave_nothing_behind() {
    let _alone = alone();
    let mut server = Server::start(&[FIXTURES], "");
    // What is made at first use stays: threads, caches, pages of the allocator.
    call(&server, 1_000);
    listen(&server, 100);
    let settled = || {
        let idle = server.descriptors();
        wait_for("open files to settle", PATIENCE, || {
            let now = server.descriptors();
            (now <= idle).then_some(now)
        })
    };
    let (files, memory) = (settled(), server.memory_bytes());
    call(&server, 5_000);
    listen(&server, 500);
    wait_for("open files to be as before", PATIENCE, || {
        (server.descriptors() <= files).then_some(())
    });
    let grown = server.memory_bytes().saturating_sub(memory);
    assert!(grown < 4 << 20, "{grown} bytes more than {memory}");
    server.check_alive();
}

#[test]
fn l04_sessions_that_nobody_ends_leave_nothing_behind() {
    let _alone = alone();
    let settings = "[sessions]\nsessions_max = 200\nsessions_per_client_max = 200\n";
    let mut server = Server::start(&[FIXTURES], settings);
    let begin = |times: usize| {
        let raw = Raw::post(&initialize(LATEST, &asks_all()));
        for _ in 0..times {
            let mut begun = raw.send(&server);
            assert_eq!(begun.status(), 200);
            assert!(begun.head.header("mcp-session-id").is_some());
            begun.message().unwrap();
        }
    };
    // As many as there may be, and some that had to go for others.
    begin(400);
    let (files, memory) = (server.descriptors(), server.memory_bytes());
    begin(2_000);
    wait_for("open files to be as before", PATIENCE, || {
        (server.descriptors() <= files).then_some(())
    });
    let grown = server.memory_bytes().saturating_sub(memory);
    assert!(grown < 2 << 20, "{grown} bytes more than {memory}");
    server.check_alive();
}

#[test]
fn l04_idle_sessions_give_back_what_they_took() {
    let _alone = alone();
    let server = Server::start(&[FIXTURES], "[sessions]\nidle_ms = 1000\n");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let status = |session: &Session<'_>| session.raw(&ping).send(&server).status();
    // Many sessions, none of which is deleted, until all have ended; what the server has then.
    let round = || {
        let begin = || Session::begin(&server, LATEST, &asks_all());
        let sessions: Vec<_> = (0..2_000).map(|_| begin()).collect();
        wait_for("the sessions to end", PATIENCE, || {
            // Asking it keeps a session alive: only one that was not asked shows.
            let last = sessions.last()?;
            thread::sleep(Duration::from_millis(1_500));
            (status(last) == 404).then_some(())
        });
        assert_eq!(status(&sessions[0]), 404);
        server.memory_bytes()
    };
    // The first takes what the allocator keeps, and so does one with more sessions at once than those before. What is left behind
    // is more with each.
    let mut known = round();
    let files = server.descriptors();
    let mut grown = Vec::new();
    while grown.iter().all(|bytes| *bytes >= 2 << 20) {
        assert!(grown.len() < 4, "{grown:?} bytes more, up to {known}");
        let now = round();
        grown.push(now.saturating_sub(known));
        known = now;
    }
    wait_for("open files to be as before", PATIENCE, || {
        (server.descriptors() <= files).then_some(())
    });
}

/// Tasks, and bytes of the result of each. All of them for each stream would be a third of a gigabyte.
const LARGE_TASKS: usize = 30;
const LARGE_BYTES: usize = 1 << 20;
const UNREAD_STREAMS: usize = 10;

#[test]
fn streams_that_nobody_reads_cost_little_and_miss_no_end() {
    let _alone = alone();
    let config = "[plugins.fixtures.tools.echo]\ntask_support = \"required\"\n";
    let server = Server::start(&[FIXTURES], config);
    let text = "x".repeat(LARGE_BYTES);
    let make = || server.call_task("echo", json!({ "text": text }));
    make().wait("completed");
    // They wait for their turn, and end while the streams are open.
    let tasks: Vec<_> = (0..LARGE_TASKS).map(|_| make()).collect();
    let ids: Vec<_> = tasks.iter().map(|task| task.id.as_str()).collect();
    let filter = Message::new("subscriptions/listen").tasks();
    let filter = filter.param("notifications", json!({ "taskIds": ids }));
    let before = server.memory_bytes();
    let mut streams: Vec<_> = (0..UNREAD_STREAMS)
        .map(|_| server.stream(&filter))
        .collect();
    for task in &tasks {
        task.wait("completed");
    }
    let grown = server.memory_bytes().saturating_sub(before);
    assert!(grown < 100 << 20, "{grown} bytes more than {before}");
    // One that reads at last hears of each.
    let mut open: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
    let mut late = streams.pop().unwrap();
    while !open.is_empty() {
        let message = late.message().unwrap().expect("the stream goes on");
        if message["params"]["status"] == "completed" {
            open.retain(|id| message["params"]["taskId"] != id.as_str());
        }
    }
}

/// Size and time of last change of all files of the data folder.
fn files_of(server: &Server) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![server.home.data()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), (about.len(), about.modified().unwrap()));
            }
        }
    }
    found
}

/// Polls a task once; the reply, not yet judged. A server may refuse for a while, if it says for how long.
fn poll(connection: &mut Connection, bytes: &[u8]) -> (Head, Vec<u8>) {
    connection.write(bytes).unwrap();
    let (head, body) = connection.plain_reply().unwrap();
    match head.status() {
        200 => {}
        429 => assert!(head.header("retry-after").is_some()),
        other => panic!("a poll got {other}"),
    }
    (head, body)
}

/// How many clients poll, and how long each waits in between.
const POLLERS: usize = 50;
const PAUSE: Duration = Duration::from_millis(50);

/// How many calls are made meanwhile, and how soon they have their answers.
const CALLS: usize = 300;
const SOON: Duration = Duration::from_millis(250);

/// Plain calls beside the polls: 99 of 100 are answered before each client has polled for a second, and soon.
fn call_beside(server: &Server, polls: &AtomicUsize) {
    let witness = Witness::start();
    let (mut overtaken, mut taken): (Vec<_>, Vec<_>) = (0..CALLS)
        .map(|_| {
            thread::sleep(PAUSE / 2);
            let (before, watch) = (polls.load(Ordering::Relaxed), Watch::start());
            assert!(!server.call("ver", json!({})).text().is_empty());
            (polls.load(Ordering::Relaxed) - before, watch.elapsed())
        })
        .unzip();
    let stalled = witness.longest_stall();
    overtaken.sort_unstable();
    taken.sort_unstable();
    let most = CALLS * 99 / 100;
    assert!(overtaken[most] < 20 * POLLERS, "{overtaken:?}");
    let told = format!(
        "{:?}; the machine stalled for {stalled:?} at most",
        taken[most]
    );
    assert!(taken[most] < SOON + stalled, "{told}");
}

#[test]
fn t15_a_polling_storm_pushes_nobody_out_and_writes_nothing() {
    let _alone = alone();
    let server = Server::start(&[FIXTURES], "");
    let waiting = server.call_task("ask_one", json!({}));
    let before = waiting.wait("input_required");
    let call = Message::call("sleep_required", json!({ "ms": 0 })).tasks();
    let call = call.bytes(server.address());
    let mut connection = server.connect();
    let mut create = || {
        connection.write(&call).unwrap();
        let reply = connection.reply("tools/call").unwrap();
        reply.task_id().to_owned()
    };
    let get = |id: &str| Message::task("tasks/get", id).bytes(server.address());
    let one = get(&waiting.id);
    let all: Vec<_> = (0..1_000).map(|_| get(&create())).collect();

    let (over, polls) = (AtomicBool::new(false), AtomicUsize::new(0));
    // To be judged when all is over: that is work too.
    let heard = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for poller in 0..POLLERS {
            let (one, all, over, polls, server) = (&one, &all, &over, &polls, &server);
            let heard = &heard;
            scope.spawn(move || {
                let mut connection = server.connect();
                for turn in 0.. {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let other = &all[(poller + turn * POLLERS) % all.len()];
                    let asked = if poller % 2 == 0 { one } else { other };
                    let (head, body) = poll(&mut connection, asked);
                    polls.fetch_add(1, Ordering::Relaxed);
                    heard.lock().unwrap().insert(body, head);
                    thread::sleep(PAUSE);
                }
            });
        }
        let _stop = StopAtEnd(&over);
        let polled = |count: usize| {
            let goal = polls.load(Ordering::Relaxed) + count;
            wait_for("polls", PATIENCE, || {
                (polls.load(Ordering::Relaxed) >= goal).then_some(())
            });
        };
        // What the tasks themselves have written is on the disk when the files no longer change.
        wait_for("the store to settle", PATIENCE, || {
            let before = files_of(&server);
            polled(500);
            (files_of(&server) == before).then_some(())
        });
        let stored = files_of(&server);
        call_beside(&server, &polls);
        polled(500);
        assert_eq!(files_of(&server), stored, "a read was written");
    });
    for (body, head) in heard.into_inner().unwrap() {
        Reply::new("tasks/get", head, body);
    }
    let after = waiting.get();
    for name in ["status", "lastUpdatedAt", "ttlMs", "inputRequests"] {
        assert_eq!(after[name], before[name]);
    }
}

/// Also when a test fails, or its threads would never be joined.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
