//! A plugin is replaced a hundred times, in every way, while its tools are called without a pause. No call fails; each is
//! answered by a version that was served while it went on; tasks end on the version that began them, also after a restart; and
//! nothing of the former versions stays.

use crate::{StopAtEnd, alone};
use longshore_tests::client::{Connection, Message, accept, answer, text_of};
use longshore_tests::machine::open_files;
use longshore_tests::save::{Way, way};
use longshore_tests::server::{Home, Server, Task, marked};
use longshore_tests::wait::{PATIENCE, Watch, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::Duration;

const SWAPS: usize = 100;

/// Versions that come again and again. Every tenth is a new one, and has to be compiled under the load.
const POOL: usize = 8;

/// Between two calls of one client.
const PAUSE: Duration = Duration::from_millis(5);

/// A file may be gone for so long and yet be on its way to be replaced; one that stays away longer is removed.
const GAP: Duration = Duration::from_millis(40);

/// Compiled components that may stay mapped: the one that is served, and those of the last lists, for who reads them page by page.
const MAPPED_MAX: usize = 5;

/// Ways to replace, one after the other. The last two come twice, for the first time only makes the link.
const WAYS: [&str; 8] = [
    "rename",
    "write slowly",
    "write into",
    "delete, hard link",
    "flip link",
    "flip folder",
    "flip folder",
    "rename over link",
];

fn number_of(swap: usize) -> usize {
    if swap % 10 == 9 {
        1_000 + swap
    } else {
        swap % POOL
    }
}

/// What the swaps have come to, for all who call.
struct Swaps {
    marks: Vec<String>,
    /// The last that was begun.
    begun: AtomicUsize,
    /// The last that is listed.
    listed: AtomicUsize,
    /// Those in which the file was away for too long.
    gaps: Mutex<Vec<usize>>,
    over: AtomicBool,
    calls: AtomicUsize,
}

impl Swaps {
    /// Calls, and sees to it that the answer is of a version that was served meanwhile. `None`: the file was away.
    fn call(&self, connection: &mut Connection, bytes: &[u8]) -> Option<(Value, Vec<String>)> {
        let from = self.listed.load(Ordering::SeqCst);
        let reply = exchange(connection, "tools/call", bytes);
        let to = self.begun.load(Ordering::SeqCst);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(result) = reply.get("result") {
            return Some((result.clone(), self.marks[from..=to].to_vec()));
        }
        let gaps = self.gaps.lock().unwrap();
        let was_away = gaps.iter().any(|gap| (from..=to).contains(gap));
        assert!(was_away && reply["error"]["code"] == -32602, "{reply}");
        None
    }

    fn call_plain(&self, server: &Server) {
        let bytes = Message::call("mark", json!({})).bytes(server.address());
        let mut connection = server.connect();
        while !self.over.load(Ordering::Relaxed) {
            if let Some((result, served)) = self.call(&mut connection, &bytes) {
                let text = text_of(&result);
                assert!(served.iter().any(|mark| mark == text), "{text}: {served:?}");
            }
            sleep(PAUSE);
        }
    }

    fn call_tasks(&self, server: &Server) {
        let call = Message::call("mark_later", json!({})).tasks();
        let bytes = call.bytes(server.address());
        let mut connection = server.connect();
        while !self.over.load(Ordering::Relaxed) {
            let Some((result, served)) = self.call(&mut connection, &bytes) else {
                continue;
            };
            let id = result["taskId"].as_str().unwrap();
            let poll = Message::task("tasks/get", id).bytes(server.address());
            let text = wait_for("a task", PATIENCE, || {
                sleep(10 * PAUSE);
                let task = &exchange(&mut connection, "tasks/get", &poll)["result"];
                assert!(["working", "completed"].contains(&task["status"].as_str().unwrap()));
                (task["status"] == "completed").then(|| text_of(&task["result"]).to_owned())
            });
            assert!(served.contains(&text), "{text}: {served:?}");
        }
    }

    /// Replaces the plugin, and waits until that is told and listed.
    fn swap(&self, server: &Server, swap: usize, told: &mut longshore_tests::client::Stream) {
        let (mark, bytes) = marked(number_of(swap));
        let Way {
            is_gapless, save, ..
        } = way(WAYS[swap % WAYS.len()]);
        let path = server.home.plugins().join("p.wasm");
        self.begun.store(swap, Ordering::SeqCst);
        // Who is told of a failure in the meantime waits for what this says.
        let mut gaps = self.gaps.lock().unwrap();
        let watch = Watch::start();
        save(&path, &bytes);
        if !is_gapless && watch.elapsed() > GAP {
            gaps.push(swap);
        }
        drop(gaps);
        loop {
            let message = told.message().unwrap().unwrap();
            assert_eq!(message["method"], "notifications/tools/list_changed");
            let described = description(server);
            if described.as_deref() == Some(&mark) {
                break;
            }
            // What was away for long is told twice: that it went, and that it came.
            let told_once = is_gapless && self.gaps.lock().unwrap().is_empty();
            assert!(!told_once, "told too early, or twice: {described:?}");
        }
        self.listed.store(swap, Ordering::SeqCst);
    }
}

fn exchange(connection: &mut Connection, method: &str, bytes: &[u8]) -> Value {
    connection.write(bytes).unwrap();
    connection.reply(method).unwrap().response().clone()
}

fn description(server: &Server) -> Option<String> {
    let reply = server.send(&Message::new("tools/list"));
    let text = reply.result()["tools"][0]["description"].as_str();
    text.map(str::to_owned)
}

/// A task that is expected to end with a mark.
type Expected = (String, String);

fn begin(server: &Server, tool: &str, mark: &str) -> Expected {
    (server.call_task(tool, json!({})).id, mark.to_owned())
}

fn check(task: &Task<'_>, mark: &str) {
    assert_eq!(task.wait_text(), mark);
}

fn answer_all(server: &Server, waiting: &[Expected]) {
    for (id, mark) in waiting {
        let task = server.task(id);
        let given = answer("confirm", accept(json!({ "confirm": true })));
        task.update(given).result();
        check(&task, mark);
    }
}

#[test]
fn a_hundred_swaps_under_load_fail_no_call_and_leave_nothing_behind() {
    let _alone = alone();
    let home = Home::new(&[], "");
    home.configure_apart("[tasks]\nlinger_ms = 0\n");
    home.install_as("p.wasm", &marked(number_of(0)).1);
    let server = Server::start_in(Arc::new(home)).settled();
    let swaps = Swaps {
        marks: (0..=SWAPS).map(|swap| marked(number_of(swap)).0).collect(),
        begun: AtomicUsize::new(0),
        listed: AtomicUsize::new(0),
        gaps: Mutex::default(),
        over: AtomicBool::new(false),
        calls: AtomicUsize::new(0),
    };
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    let mut memory = 0;
    let listen = Message::new("subscriptions/listen");
    let listen = listen.param("notifications", json!({ "toolsListChanged": true }));
    let mut told = server.stream(&listen);
    told.message().unwrap().unwrap();
    let files = server.descriptors();
    let watch = Watch::start();
    thread::scope(|scope| {
        for client in 0..5 {
            let (swaps, server) = (&swaps, &server);
            scope.spawn(move || match client {
                0..3 => swaps.call_plain(server),
                _ => swaps.call_tasks(server),
            });
        }
        let _stop = StopAtEnd(&swaps.over);
        for swap in 1..=SWAPS {
            let mark = &swaps.marks[swap - 1];
            running.push(begin(&server, "mark_later", mark));
            waiting.push(begin(&server, "mark_asked", mark));
            server.task(&waiting[swap - 1].0).wait("input_required");
            swaps.swap(&server, swap, &mut told);
            if swap == SWAPS / 3 {
                memory = server.memory_bytes();
            }
        }
    });
    report(&swaps, watch.elapsed());
    for (id, mark) in &running {
        check(&server.task(id), mark);
    }
    answer_all(&server, &waiting[..SWAPS / 2]);
    check_nothing_is_left(&server, files, memory);

    // The rest after a restart, when there is no file at all.
    let last = &swaps.marks[SWAPS];
    let begun: Vec<_> = (0..5).map(|_| begin(&server, "mark_later", last)).collect();
    fs::remove_file(server.home.plugins().join("p.wasm")).unwrap();
    let server = Server::start_in(server.kill()).settled();
    assert_eq!(server.tools(), Vec::<String>::new());
    answer_all(&server, &waiting[SWAPS / 2..]);
    for (id, mark) in &begun {
        check(&server.task(id), mark);
    }
}

fn check_nothing_is_left(server: &Server, files: usize, memory: u64) {
    // What is mapped is open too.
    let compiled = || {
        let (mut names, mut others) = (BTreeSet::new(), 0);
        for file in open_files(server.pid()) {
            if file.extension().is_some_and(|ending| ending == "cwasm") {
                names.insert(file);
            } else {
                others += 1;
            }
        }
        (names.len(), others)
    };
    wait_for("former versions to be let go", PATIENCE, || {
        (compiled().0 <= MAPPED_MAX).then_some(())
    });
    wait_for("open files to be as before", PATIENCE, || {
        (compiled().1 < files).then_some(())
    });
    let grown = server.memory_bytes().saturating_sub(memory);
    say(&format!("{grown} bytes more than {memory}"));
    assert!(grown < 16 << 20, "{grown} bytes more than {memory}");
}

fn report(swaps: &Swaps, taken: Duration) {
    let calls = swaps.calls.load(Ordering::Relaxed);
    let gaps = swaps.gaps.lock().unwrap().len();
    say(&format!(
        "{SWAPS} swaps and {calls} calls in {taken:?}; {gaps} times the file was away for long"
    ));
    // A load that is none would prove nothing.
    assert!(calls > 10 * SWAPS, "{calls} calls");
}

#[allow(clippy::print_stdout, reason = "seen with --nocapture")]
fn say(text: &str) {
    println!("{text}");
}
