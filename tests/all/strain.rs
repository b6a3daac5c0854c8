//! Cases of many, and of much at once: the server answers others meanwhile, and holds no more afterwards than before.

use longshore_tests::client::{Message, VERSION};
use longshore_tests::machine::{cpu_ticks, descriptors, resident_bytes};
use longshore_tests::schema;
use longshore_tests::server::{FIXTURES, HOSTILE, Home, Server, VERSION_A, VERSION_B, component};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::task::JoinSet;

const BUSY: &str = "[tasks]\ngrace_ms = 200\n[plugins.hostile.limits]\nwall_time_ms = 4000\n\
                    [plugins.hostile.tools.sleep]\ntask_support = \"required\"\n";

#[test]
fn h02_busy_guests_do_not_stop_the_server() {
    let cores = thread::available_parallelism().unwrap().get();
    check_busy(&Server::start(&[HOSTILE, VERSION_A], BUSY), cores);
}

#[test]
fn h02_busy_guests_do_not_stop_the_server_on_one_core() {
    let home = Arc::new(Home::new(&[HOSTILE, VERSION_A], BUSY));
    check_busy(&Server::start_on_one_core(home).settled(), 1);
}

fn check_busy(server: &Server, cores: usize) {
    let task = server.call_task("sleep", json!({ "ms": 60_000 }));
    thread::scope(|scope| {
        let spinners: Vec<_> = (0..4 * cores)
            .map(|_| scope.spawn(|| server.call("spin", json!({}))))
            .collect();
        let soon = Duration::from_secs(1);
        for _ in 0..3 {
            within("discover", soon, || {
                server.send(&Message::new("server/discover"))
            });
            within("tools/list", soon, || server.tools());
            within("tasks/get", soon, || task.get());
            within("another plugin", soon, || server.call("version", json!({})));
        }
        server
            .home
            .install_as("a.wasm", &fs::read(component(VERSION_B)).unwrap());
        wait_for("the replaced plugin", PATIENCE, || {
            (server.call("version", json!({})).text() == "b").then_some(())
        });
        within("tasks/cancel", soon, || {
            task.cancel().result();
            task.wait("cancelled")
        });
        for spinner in spinners {
            let reply = spinner.join().unwrap();
            assert_eq!(reply.error()["data"]["limit"], "wall_time_ms", "{reply:?}");
        }
    });
}

#[test]
fn h09_memory_is_bounded_by_limit_and_concurrency() {
    let mut server = Server::start(
        &[HOSTILE],
        "[plugins.hostile.limits]\nmemory_bytes = 16777216\n",
    );
    let before = resident_bytes(server.pid());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let reply = server.call("grow", json!({ "mib": 4_000 }));
                assert!(reply.text().starts_with("refused after"), "{reply:?}");
            });
        }
    });
    let after = resident_bytes(server.pid());
    assert!(
        after < before + 8 * (16 << 20) + (32 << 20),
        "{before} to {after}"
    );
    server.check_alive();
}

#[test]
fn h12_a_log_that_nobody_reads_holds_nothing_up() {
    let home = Home::new(&[HOSTILE, VERSION_A], "");
    let mut child = home
        .command()
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended");
        if let Some((_, rest)) = line.split_once("listening on http://") {
            break rest.split('/').next().unwrap().parse().unwrap();
        }
    };
    let call = |tool: &str, arguments: Value| {
        let mut connection = longshore_tests::client::Connection::open(address).unwrap();
        connection
            .exchange(&Message::call(tool, arguments))
            .unwrap()
    };
    // A pipe holds 64 KiB; each of these writes more than that, and nobody reads.
    for _ in 0..4 {
        let reply = within("a flood", Duration::from_secs(5), || {
            call("spew", json!({ "n": 5_000 }))
        });
        assert!(reply.text().starts_with("wrote"), "{reply:?}");
    }
    within("a call", Duration::from_secs(1), || {
        assert_eq!(call("version", json!({})).text(), "a");
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn h12_a_line_of_a_guest_is_one_line_of_the_log() {
    let server = Server::start(&[HOSTILE], "");
    server.call("forge", json!({}));
    server.call("log_flood", json!({ "n": 3 }));
    wait_for("the lines", PATIENCE, || {
        server.log().contains("line 2").then_some(())
    });
    for line in server.log().lines() {
        assert!(!line.contains('\u{1b}') && !line.contains('\0'), "{line:?}");
        let forged = ["{\"jsonrpc\"", "HTTP/1.1", "event: ", "forged line"];
        assert!(
            !forged.iter().any(|start| line.starts_with(start)),
            "{line}"
        );
        if line.contains("forged") {
            assert!(line.contains("plugin=hostile"), "{line}");
        }
    }
}

#[test]
fn h13_h24_values_arrive_exactly_or_not_at_all() {
    let server = Server::start(&[HOSTILE], "");
    let raw = |json: &str| server.call("raw_json", json!({ "json": json }));
    for exact in [
        r#"{"n":9007199254740993}"#,
        r#"{"n":18446744073709551615}"#,
        r#"{"n":-0.0}"#,
        r#"{"n":1e308}"#,
        r#"{"text":"\u0000"}"#,
        r#"{"text":"🦀 é 世界"}"#,
        r#"[1,2,{"a":null}]"#,
    ] {
        let reply = raw(exact);
        let text = reply.response().to_string();
        assert!(reply.result()["isError"].is_null(), "{text}");
        let sent: Value = serde_json::from_str(exact).unwrap();
        assert_eq!(reply.result()["structuredContent"], sent, "{exact}");
    }
    for wrong in [
        r#"{"n":NaN}"#,
        r#"{"n":Infinity}"#,
        r#"{"n":1"#,
        "",
        "nonsense",
        r#"{"text":"\ud800"}"#,
        r#"{"a":1}{"b":2}"#,
        "\u{0}",
    ] {
        let reply = raw(wrong);
        let failed = reply.response().get("error").is_some() || reply.result()["isError"] == true;
        assert!(failed, "{wrong}: {reply:?}");
    }
    let deep = server.call("raw_json", json!({ "json": "[", "times": 10_000 }));
    assert!(deep.response().get("error").is_some(), "{deep:?}");
    let key = format!("{{\"{}\":1}}", "k".repeat(1 << 20));
    let reply = raw(&key);
    let structured = reply.result()["structuredContent"].as_object().unwrap();
    assert_eq!(structured.keys().next().unwrap().len(), 1 << 20);
}

#[test]
fn h19_endless_recursion_at_once() {
    let mut server = Server::start(&[HOSTILE], "");
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let reply = server.call("recurse", json!({}));
                assert_eq!(reply.error()["data"]["limit"], "stack_bytes", "{reply:?}");
            });
        }
    });
    server.check_alive();
}

#[test]
fn h21_timers_at_their_edges() {
    let config = "[tasks]\ngrace_ms = 200\n[plugins.hostile.tools.clock_edges]\ntask_support = \"required\"\n";
    let mut server = Server::start(&[HOSTILE], config);
    let near = server.call_task("clock_edges", json!({ "far": false }));
    assert_eq!(near.wait_text(), "all fired");
    let far = server.call_task("clock_edges", json!({ "far": true }));
    thread::sleep(Duration::from_millis(100));
    within("the cancellation", Duration::from_secs(1), || {
        far.cancel().result();
        far.wait("cancelled")
    });
    server.check_alive();
}

#[test]
fn h22_more_calls_than_slots_wait_or_are_told() {
    let config = "[limits]\nconcurrent_runs = 8\nqueued_calls = 32\n";
    let mut server = Server::start(&[FIXTURES, VERSION_A], config);
    let (mut slept, mut busy) = (0, 0);
    thread::scope(|scope| {
        let crowd: Vec<_> = (0..200)
            .map(|_| scope.spawn(|| server.call("sleep", json!({ "ms": 300 }))))
            .collect();
        within("a call of another plugin", Duration::from_secs(2), || {
            assert_eq!(server.call("version", json!({})).text(), "a");
        });
        for call in crowd {
            let reply = call.join().unwrap();
            match reply.response().get("error") {
                None => slept += 1,
                Some(error) => {
                    assert_eq!(error["data"]["reason"], "busy", "{reply:?}");
                    busy += 1;
                }
            }
        }
    });
    assert!(
        slept >= 8 && slept + busy == 200,
        "{slept} slept, {busy} were told"
    );
    server.check_alive();
}

/// Calls all at once on one connection: those that slept, and those that were told to come again.
async fn crowd(address: SocketAddr, calls: u32) -> (u32, u32) {
    let stream = tokio::net::TcpStream::connect(address).await;
    let (mut client, connection) = h2::client::handshake(stream.unwrap()).await.unwrap();
    tokio::spawn(connection);
    let call = Message::call("sleep", json!({ "ms": 500 }));
    let mut waiting = Vec::new();
    for _ in 0..calls {
        let request = http::Request::post(format!("http://{address}/mcp"))
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", VERSION)
            .header("Mcp-Method", call.method())
            .header("Mcp-Name", "sleep");
        client = client.ready().await.unwrap();
        let request = request.body(()).unwrap();
        let (response, mut body) = client.send_request(request, false).unwrap();
        let sent = body.send_data(call.json().to_string().into(), true);
        sent.unwrap();
        waiting.push(tokio::spawn(async {
            let mut body = response.await.unwrap().into_body();
            let mut answer = Vec::new();
            while let Some(piece) = body.data().await {
                let piece = piece.unwrap();
                let _ = body.flow_control().release_capacity(piece.len());
                answer.extend(piece);
            }
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            schema::reply("tools/call", &answer).unwrap();
            answer
        }));
    }
    let (mut slept, mut busy) = (0, 0);
    for answer in waiting {
        let answer = answer.await.unwrap();
        match answer.get("error") {
            None => slept += 1,
            Some(error) => {
                assert_eq!(error["data"]["reason"], "busy", "{answer:#}");
                busy += 1;
            }
        }
    }
    (slept, busy)
}

#[test]
fn h22_two_thousand_calls_at_once_of_one_client() {
    // As many on each as a connection takes.
    const CONNECTIONS: u32 = 20;
    const CALLS: u32 = 100;
    let mut server = Server::start(&[FIXTURES, VERSION_A], "");
    let before = resident_bytes(server.pid());
    let (slept, busy) = thread::scope(|scope| {
        let told = scope.spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let address = server.address();
            runtime.block_on(async {
                let mut crowds = JoinSet::new();
                for _ in 0..CONNECTIONS {
                    crowds.spawn(crowd(address, CALLS));
                }
                let told = crowds.join_all().await.into_iter();
                told.fold((0, 0), |(slept, busy), told| {
                    (slept + told.0, busy + told.1)
                })
            })
        });
        for _ in 0..10 {
            within("a call of another client", Duration::from_secs(2), || {
                assert_eq!(server.call("version", json!({})).text(), "a");
            });
        }
        let grown = resident_bytes(server.pid()).saturating_sub(before);
        assert!(grown < 256 << 20, "{} MiB more", grown >> 20);
        told.join().unwrap()
    });
    assert_eq!(slept + busy, CONNECTIONS * CALLS);
    assert!(slept >= 128, "{slept} slept, {busy} were told");
    server.check_alive();
}

#[test]
fn p29_a_client_that_goes_away_stops_the_work() {
    let server = Server::start(&[HOSTILE], "");
    for (tool, arguments) in [
        ("spin", json!({})),
        ("poll_flood", json!({})),
        ("sleep", json!({ "ms": 60_000 })),
    ] {
        for progress in [false, true] {
            let mut call = Message::call(tool, arguments.clone());
            if progress {
                call = call.progress("p");
            }
            let mut connection = server.connect();
            connection.write(&call.bytes(server.address())).unwrap();
            thread::sleep(Duration::from_millis(300));
            connection.close();
            within("the end of the guest", Duration::from_secs(2), || {
                wait_for("an idle server", PATIENCE, || {
                    let before = cpu_ticks(server.pid());
                    thread::sleep(Duration::from_millis(200));
                    // A spinning guest takes twenty in this time.
                    (cpu_ticks(server.pid()) < before + 8).then_some(())
                });
            });
        }
    }
}

/// Calls of each kind: results, traps, limits, cancellations, clients that go away.
fn mixed(server: &Server, number: usize) {
    match number % 6 {
        0 => assert_eq!(
            server.call("trap", json!({})).error()["data"]["reason"],
            "trap"
        ),
        1 => assert_eq!(
            server.call("grow", json!({ "mib": 2 })).text(),
            "took 2 MiB"
        ),
        2 => assert_eq!(
            server.call("no_result", json!({})).error()["data"]["reason"],
            "no_result"
        ),
        3 => {
            let task = server.call_task("sleep", json!({ "ms": 60_000 }));
            task.cancel().result();
        }
        4 => {
            let mut connection = server.connect();
            let call = Message::call("sleep_for_ever", json!({}));
            connection.write(&call.bytes(server.address())).unwrap();
            connection.close();
        }
        _ => assert_eq!(server.call("burn", json!({ "millions": 0 })).text(), "1"),
    }
}

/// Lists that were replaced are kept for a minute, and with them the compiled files of their plugins.
const LET_GO: Duration = Duration::from_secs(90);

/// Calls in the test, beside a quarter of them that come before.
const CALLS: usize = 12_000;

#[test]
fn many_calls_leave_nothing_behind() {
    let config = "[log]\nlevel = \"off\"\n[tasks]\ngrace_ms = 50\nttl_ms = 2000\nkeep_ms = 500\n\
                  [plugins.hostile.tools.sleep]\ntask_support = \"required\"\n";
    let mut server = Server::start(&[HOSTILE, VERSION_A], config);
    let reload = |round: usize| {
        let version = [VERSION_A, VERSION_B][round % 2];
        server
            .home
            .install_as("a.wasm", &fs::read(component(version)).unwrap());
    };
    let round = |calls: usize| {
        thread::scope(|scope| {
            for worker in 0..4 {
                let server = &server;
                scope.spawn(move || {
                    for number in 0..calls / 4 {
                        mixed(server, number + worker);
                    }
                });
            }
            for number in 0..calls / 300 {
                reload(number);
                thread::sleep(Duration::from_millis(20));
            }
        });
    };
    // First what is made once: slots, caches, the store's.
    round(CALLS / 4);
    let pid = server.pid();
    let settled = || {
        thread::sleep(Duration::from_secs(3));
        (resident_bytes(pid), descriptors(pid))
    };
    let (memory, files) = settled();
    round(CALLS);
    wait_for("the descriptors to be back", LET_GO, || {
        (descriptors(pid) <= files + 2).then_some(())
    });
    let (after, _) = settled();
    assert!(
        after < memory + memory / 10 + (32 << 20),
        "{} MiB, then {} MiB",
        memory >> 20,
        after >> 20
    );
    server.check_alive();
}
