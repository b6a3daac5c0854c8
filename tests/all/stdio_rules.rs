//! The rules of single messages hold on `longshore stdio` too: the ladder without headers and statuses, batches, and what a
//! session is owed before it is ready.

use crate::grants::{folder_grant, notes};
use crate::ladder::{CONFIG, Expected, rows_of_messages};
use crate::stdio::{alive, call, modern, request};
use longshore_tests::client::Message;
use longshore_tests::legacy::{EARLIER, LATEST, initialize};
use longshore_tests::server::{CONFORMANCE, FIXTURES, HOSTILE, VERSION_A};
use longshore_tests::stdio::StdioServer;
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::fmt::Write as _;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The rungs that are not about headers, nor about what they say of the era.
const RUNGS: [&str; 12] = [
    "7", "8", "9", "12", "14", "16", "17", "18", "19", "20", "22", "23",
];

fn first_of(rungs: &str) -> &str {
    rungs.split(['+', ':']).next().unwrap()
}

/// What came, if it is not what was expected.
fn fault(server: &mut StdioServer, line: &[u8], expected: Expected) -> Option<String> {
    server.write(line);
    server.write(b"\n");
    if let Expected::Status(202) = expected {
        // An answer would be taken for that of the next row.
        return None;
    }
    let response = server.message();
    let code = response["error"]["code"].as_i64().unwrap_or_default();
    let text = response["error"]["message"].as_str().unwrap_or_default();
    let as_wished = match expected {
        Expected::Status(_) | Expected::Stranger => panic!("{expected:?} is of HTTP"),
        Expected::Error(_, wished) => code == wished,
        Expected::Says(_, wished, word) => code == wished && text.contains(word),
        Expected::Failed => response["result"]["isError"] == true,
        Expected::Good => response["result"]["isError"] != true && code == 0,
    };
    (!as_wished).then(|| response.to_string())
}

#[test]
fn the_ladder_is_the_same_without_its_headers() {
    let mut server = StdioServer::start(&[FIXTURES, CONFORMANCE], CONFIG);
    let (mut faults, mut seen) = (String::new(), Vec::new());
    for (rungs, message, expected) in rows_of_messages() {
        let first = first_of(rungs);
        // The failed calls of the last rung need no header.
        if !RUNGS.contains(&first) && first != "24" {
            continue;
        }
        seen.push(first);
        if let Some(got) = fault(&mut server, &message.text(), expected) {
            let _ = writeln!(faults, "rung {rungs}: not {expected:?}, but {got}");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    for rung in RUNGS {
        assert!(seen.contains(&rung), "no row of rung {rung}");
    }
    alive(&mut server);
}

#[test]
fn the_last_rung_is_admission() {
    let config = "[limits]\nconcurrent_runs = 1\nqueued_calls = 0\n";
    let mut server = StdioServer::start(&[FIXTURES], config);
    let long = Message::call("sleep_required", json!({ "ms": 60_000 })).tasks();
    let task = server.exchange(&modern("long", &long)).0;
    assert_eq!(task["result"]["resultType"], "task", "{task:#}");
    let full = wait_for("the one slot to be taken", PATIENCE, || {
        let reply = server.exchange(&call(1, "ver", json!({}))).0;
        reply.get("error").cloned()
    });
    assert_eq!(
        (&full["code"], &full["data"]["reason"]),
        (&json!(-32603), &json!("busy"))
    );
    let bad = server.exchange(&call(2, "stats", json!({ "text": 7 }))).0;
    assert_eq!(bad["result"]["isError"], true, "{bad:#}");
}

/// Nobody could send such headers here.
#[test]
fn p37_arguments_are_not_wanted_in_headers_where_there_are_none() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    let region = json!({ "region": "eu" });
    let reply = server.exchange(&call(1, "mirrored", region.clone())).0;
    assert_eq!(reply["result"]["structuredContent"], region, "{reply:#}");
    server.initialize(LATEST, &json!({}));
    let params = json!({ "name": "mirrored", "arguments": region });
    let reply = server.exchange(&request(2, "tools/call", params)).0;
    assert_eq!(reply["result"]["structuredContent"], region, "{reply:#}");
}

#[test]
fn p08_nothing_of_a_batch_is_done() {
    let outer = notes();
    let grant = folder_grant(outer.path(), true);
    let mut server = StdioServer::start(&[HOSTILE], &grant);
    let write = |name: &str| json!({ "path": format!("/notes/{name}"), "text": "x" });
    let params = |name: &str| json!({ "name": "write", "arguments": write(name) });
    let batches = |server: &mut StdioServer| {
        let modern = json!([call(1, "write", write("a")), call(2, "write", write("b"))]);
        let older = [
            request(1, "tools/call", params("a")),
            request(2, "tools/call", params("b")),
        ];
        for batch in [modern, json!(older), json!([]), json!([1])] {
            server.write(format!("{batch}\n").as_bytes());
            let refused = server.message();
            assert_eq!(refused["error"]["code"], -32600, "{refused:#}");
            assert!(refused.get("id").is_none(), "{refused:#}");
        }
    };
    batches(&mut server);
    server.initialize(EARLIER, &json!({}));
    batches(&mut server);
    // Calls are served in turn enough: what was begun before this one has written by its end.
    let alone = server
        .exchange(&request(3, "tools/call", params("alone")))
        .0;
    assert_eq!(
        alone["result"]["content"][0]["text"], "written",
        "{alone:#}"
    );
    let written = |name: &str| outer.path().join("notes").join(name).exists();
    assert_eq!(
        [written("alone"), written("a"), written("b")],
        [true, false, false]
    );
}

#[test]
fn nothing_is_told_before_the_client_is_ready() {
    let mut server = StdioServer::start(&[FIXTURES], "");
    server.exchange(&initialize(LATEST, &json!({})));
    // One of the other era, which is told.
    let listen = Message::new("subscriptions/listen");
    let listen = listen.param("notifications", json!({ "toolsListChanged": true }));
    server.send(&modern("l", &listen));
    let granted = server.message();
    assert_eq!(granted["params"]["_meta"][SUBSCRIPTION], "l", "{granted:#}");
    server.home.install(VERSION_A);
    let told = server.message();
    assert_eq!(told["params"]["_meta"][SUBSCRIPTION], "l", "{told:#}");
    let is_older = |message: &Value| message["params"]["_meta"][SUBSCRIPTION].is_null();
    for id in 0..50 {
        let (pong, others) = server.exchange(&request(id, "ping", json!({})));
        assert_eq!(pong["result"], json!({}));
        assert!(!others.iter().any(is_older), "{others:#?}");
    }
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    // What changed meanwhile is told now.
    let told = wait_for("the change", PATIENCE, || {
        Some(server.message()).filter(is_older)
    });
    assert_eq!(
        told["method"], "notifications/tools/list_changed",
        "{told:#}"
    );
}
