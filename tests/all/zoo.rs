//! The zoo: plugins that misbehave, each in its own way. Each is contained, with its own message, and the server is as it was.

use longshore_tests::client::{Message, Reply, accept, answer};
use longshore_tests::machine::{descriptors, resident_bytes};
use longshore_tests::server::{HOSTILE, Server, VERSION_A, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// Small, so that the zoo is quick.
const LIMITS: &str = "
[log]
level = \"off\"
[tasks]
grace_ms = 200
[plugins.hostile.limits]
fuel = 2000000000
wall_time_ms = 800
memory_bytes = 67108864
result_bytes = 1048576
host_call_bytes = 4194304
questions = 4
";

/// Components that cannot be served: their file, and words of the reason.
const REFUSED: [(&str, &[&str]); 25] = [
    (
        "core",
        &[
            "core module",
            "a component is needed",
            "wasm-tools component new",
        ],
    ),
    ("divide-init", &["trapped", "integer divide by zero"]),
    (
        "empty",
        &["does not export", "longshore:plugin@0.1", "no interface"],
    ),
    ("grow-list", &["limits.memory_bytes = 268435456"]),
    ("grow-memory-init", &["limits.memory_bytes = 268435456"]),
    ("grow-table-init", &["limits.table_elements = 20000"]),
    (
        "huge-memory",
        &["memory", "4294967296", "exceeds the limit"],
    ),
    (
        "huge-table",
        &["table", "100000000", "exceeds the limit of 20000"],
    ),
    (
        "import-next",
        &[
            "imports",
            "longshore:plugin/log in version 0.2.0",
            "0.1 is offered",
        ],
    ),
    (
        "import-wasi-next",
        &[
            "wasi:clocks/monotonic-clock in version 0.3.0-rc",
            "0.2 is offered",
        ],
    ),
    (
        "long-list",
        &["trapped", "list pointer/length out of bounds"],
    ),
    (
        "many-instances",
        &["201 core module instances", "maximum of 16"],
    ),
    ("many-memories", &["memories count exceeds limit"]),
    (
        "next-version",
        &["does not export", "it exports longshore:plugin/tools@0.2.0"],
    ),
    ("outside-init", &["trapped", "out of bounds memory access"]),
    ("random-list", &["limits.random_bytes = 1048576"]),
    ("recurse-init", &["limits.stack_bytes = 524288"]),
    ("recurse-list", &["limits.stack_bytes = 524288"]),
    ("spin-init", &["no answer within 5s"]),
    ("spin-list", &["no answer within 5s"]),
    ("trap-init", &["trapped", "unreachable"]),
    ("trap-list", &["trapped", "unreachable"]),
    (
        "unknown-import",
        &[
            "imports what this host does not offer",
            "longshore:plugin/teleport",
        ],
    ),
    ("wild-call-init", &["trapped", "uninitialized element"]),
    (
        "wild-list",
        &["trapped", "list pointer/length out of bounds"],
    ),
];

/// How a call of the plugin `hostile` ends.
enum End {
    /// An error that names this limit.
    Limit(&'static str),
    /// An error for this reason, with this in its text.
    Failed(&'static str, &'static str),
    /// An error of the tool, with this in its text.
    Tool(&'static str),
    /// A result, with this in it: the guest was told no, or the host bore it.
    Borne(&'static str),
}

use End::{Borne, Failed, Limit, Tool};

/// Tools, arguments, and how it ends.
const CALLED: [(&str, &str, End); 51] = [
    ("spin", "{}", Limit("fuel")),
    ("poll_flood", "{}", Limit("wall_time_ms")),
    ("recurse", "{}", Limit("stack_bytes")),
    ("grow", r#"{"mib":4000}"#, Borne("refused after")),
    ("big", r#"{"mib":2}"#, Limit("result_bytes")),
    ("big", r#"{"mib":64}"#, Limit("memory_bytes")),
    ("sleep", r#"{"ms":60000}"#, Limit("wall_time_ms")),
    ("sleep_for_ever", "{}", Limit("wall_time_ms")),
    ("clock_edges", r#"{"far":true}"#, Limit("wall_time_ms")),
    ("clock_edges", r#"{"far":false}"#, Borne("all fired")),
    ("handle_flood", "{}", Limit("handles")),
    ("log_big", r#"{"mib":6}"#, Limit("host_call_bytes")),
    ("random_flood", r#"{"mib":2}"#, Limit("random_bytes")),
    ("random_flood", r#"{"mib":1048576}"#, Limit("random_bytes")),
    ("field_flood", "{}", Limit("http_field_bytes")),
    (
        "poll_none",
        "{}",
        Failed("trap", "an empty list was polled"),
    ),
    ("trap", "{}", Failed("trap", "unreachable")),
    ("trap_after", r#"{"n":3}"#, Failed("trap", "unreachable")),
    (
        "burn",
        r#"{"millions":1,"trap":true}"#,
        Failed("trap", "unreachable"),
    ),
    ("exit", r#"{"code":0}"#, Failed("trap", "exit")),
    ("exit", r#"{"code":1}"#, Failed("trap", "exit")),
    ("no_result", "{}", Failed("no_result", "without a result")),
    ("complete_twice", "{}", Borne("the first result")),
    ("complete_then_trap", "{}", Borne("the first result")),
    ("complete_then_fail", "{}", Borne("the first result")),
    ("complete_then_spin", "{}", Borne("the first result")),
    ("bad_json", "{}", Failed("raised", "structured-content")),
    (
        "deep_json",
        r#"{"levels":10000}"#,
        Failed("raised", "structured-content"),
    ),
    (
        "bad_meta",
        "{}",
        Failed("raised", "meta is not a JSON object"),
    ),
    ("bad_media", "{}", Tool("not valid")),
    ("wrong_shape", "{}", Tool("does not fit the output schema")),
    ("no_structure", "{}", Tool("no structured content")),
    (
        "rpc_error",
        r#"{"code":-32020}"#,
        Failed("raised", "raised on purpose"),
    ),
    ("spew", r#"{"n":20000}"#, Borne("wrote 20000 lines to each")),
    ("log_flood", r#"{"n":100000}"#, Borne("logged 100000 lines")),
    ("log_bad_json", "{}", Borne("logged")),
    (
        "progress_flood",
        r#"{"n":100000}"#,
        Borne("reported 100000 times"),
    ),
    ("progress_bad", "{}", Borne("reported")),
    (
        "notify_flood",
        r#"{"n":100000}"#,
        Borne("notified 100000 times"),
    ),
    ("external_id_bad", "{}", Borne("4 of 4 refused")),
    ("forge", "{}", Borne("forged nothing")),
    ("read_stdin", "{}", Borne("0 bytes")),
    ("question_none", "{}", Borne("Invalid")),
    (
        "question_many",
        r#"{"n":17}"#,
        Failed("raised", "questions can be asked at once"),
    ),
    ("question_name", "{}", Borne("invalid")),
    ("question_schema", "{}", Borne("invalid")),
    ("question_url", "{}", Borne("invalid")),
    (
        "cat",
        r#"{"path":"/etc/passwd"}"#,
        Tool("was denied reading /etc/passwd"),
    ),
    (
        "write",
        r#"{"path":"/etc/x","text":"x"}"#,
        Tool("was denied writing /etc/x"),
    ),
    (
        "send",
        r#"{"url":"http://169.254.169.254/"}"#,
        Tool("was denied an HTTP request to http://169.254.169.254"),
    ),
    (
        "connect",
        r#"{"address":"127.0.0.1:1"}"#,
        Tool("was denied a TCP socket"),
    ),
];

fn check(tool: &str, reply: &Reply, end: &End) {
    let response = reply.response().to_string();
    match end {
        Limit(limit) => {
            let data = &reply.error()["data"];
            assert_eq!(data["reason"], "limit", "{tool}: {response}");
            assert_eq!(data["limit"], *limit, "{tool}: {response}");
            assert_eq!(data["plugin"], "hostile", "{tool}: {response}");
            assert!(data["value"].is_u64(), "{tool}: {response}");
            let text = reply.error_text();
            for word in [tool, "hostile", limit, &data["value"].to_string()] {
                assert!(text.contains(word), "{tool}: no {word} in {text}");
            }
        }
        Failed(reason, text) => {
            assert_eq!(reply.code(), -32603, "{tool}: {response}");
            // An error that the guest chose itself has the data that the guest gave.
            let data = &reply.error()["data"]["reason"];
            assert!(data == reason || *reason == "raised", "{tool}: {response}");
            assert!(reply.error_text().contains(text), "{tool}: {response}");
        }
        Tool(text) => {
            assert_eq!(reply.result()["isError"], true, "{tool}: {response}");
            assert!(response.contains(text), "{tool}: no {text} in {response}");
        }
        Borne(text) => {
            assert_eq!(reply.result()["isError"], Value::Null, "{tool}: {response}");
            assert!(
                reply.text().contains(text),
                "{tool}: no {text} in {response}"
            );
        }
    }
}

/// What is told of it, without what differs from call to call.
fn told(reply: &Reply) -> String {
    reply.response().to_string()
}

fn call_all(server: &Server) {
    for (tool, arguments, end) in &CALLED {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let call = Message::call(tool, arguments).asks();
        let first = server.send(&call);
        check(tool, &first, end);
        // A message is stable, or no program can tell one failure from another. How much memory was got may differ.
        if !matches!(end, Borne(_)) {
            assert_eq!(told(&server.send(&call)), told(&first), "{tool}");
        }
        assert_eq!(
            server.call("version", json!({})).text(),
            "a",
            "after {tool}"
        );
    }
}

fn load_all(server: &Server) {
    for (name, _) in REFUSED {
        server.home.install(&format!("guests/hostile/{name}.wasm"));
    }
    let reasons = wait_for("all to be refused", PATIENCE, || {
        let reasons = server.refused();
        (reasons.len() == REFUSED.len()).then_some(reasons)
    });
    for ((name, words), (of, reason)) in REFUSED.iter().zip(&reasons) {
        assert_eq!(name, of);
        for word in *words {
            assert!(reason.contains(word), "{name}: no {word} in {reason}");
        }
        fs::remove_file(server.home.plugins().join(format!("{name}.wasm"))).unwrap();
    }
    wait_for("all to be gone", PATIENCE, || {
        server.refused().is_empty().then_some(())
    });
}

#[test]
fn the_zoo_leaves_the_server_as_it_was() {
    let mut server = Server::start(&[HOSTILE, VERSION_A], LIMITS);
    // Once before, so that what is made at the first use is there.
    server.call("grow", json!({ "mib": 16 }));
    load_all(&server);
    call_all(&server);
    let pid = server.pid();
    let (memory, files) = (resident_bytes(pid), descriptors(pid));
    load_all(&server);
    call_all(&server);
    server.check_alive();
    assert_eq!(server.pid(), pid);
    wait_for("the descriptors to be back", PATIENCE, || {
        (descriptors(pid) <= files).then_some(())
    });
    let after = resident_bytes(pid);
    assert!(
        after < memory + (64 << 20),
        "{} MiB more",
        (after - memory) >> 20
    );
    let kinds: BTreeSet<_> = CALLED
        .iter()
        .map(|(tool, ..)| *tool)
        .chain(REFUSED.iter().map(|(name, _)| *name))
        .collect();
    assert!(kinds.len() >= 40, "{}", kinds.len());
}

#[test]
fn a_question_flood_ends_at_its_limit() {
    let server = Server::start(&[HOSTILE], LIMITS);
    let call = Message::call("question_flood", json!({ "n": 100 })).asks();
    let mut reply = server.send(&call);
    for _ in 0..4 {
        let asked = reply.result();
        let key = asked["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let answers = answer(key, accept(json!({ "confirm": true })));
        let next = call.clone().param("inputResponses", answers);
        reply = server.send(&next.param("requestState", asked["requestState"].clone()));
    }
    check("question_flood", &reply, &Limit("questions"));
}

#[test]
fn a_replay_that_goes_another_way_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    fs::write(&file, "one").unwrap();
    let path = folder.path();
    let config = format!(
        "[tasks]\nlinger_ms = 0\n[plugins.hostile.grants]\ndirectories = [{{ host = {path:?}, guest = \"/d\" }}]\n"
    );
    let server = Server::start(&[HOSTILE], &config);
    let call = Message::call("cat_then_ask", json!({ "path": "/d/text" })).asks();
    let asked = server.send(&call).result().clone();
    let answers = answer("text", accept(json!({ "confirm": true, "text": true })));
    let next = call.param("inputResponses", answers);
    let next = next.param("requestState", asked["requestState"].clone());
    fs::write(&file, "two").unwrap();
    let reply = server.send(&next);
    check(
        "cat_then_ask",
        &reply,
        &Failed("diverged", "something else than it did before"),
    );
    wait_for("the operator's line", PATIENCE, || {
        server.log().contains("reason=diverged").then_some(())
    });
    // Nothing was written, so the state is still good once the file is as it was.
    fs::write(&file, "one").unwrap();
    let reply = server.send(&next);
    assert!(reply.response().get("error").is_none(), "{reply:?}");
}

#[test]
fn a_compiler_that_meets_its_limits_is_one_refused_plugin() {
    let server = Server::start(&[], "[limits]\ncompile_memory_bytes = 67108864\n");
    // What was compiled once is not compiled again; a section that means nothing makes it another component.
    let mut bytes = fs::read(component(VERSION_A)).unwrap();
    let unlike = server.home.path().to_str().unwrap().as_bytes().to_vec();
    let length = u8::try_from(unlike.len() + 2).unwrap();
    bytes.extend([&[0, length, 1, b'x'], unlike.as_slice()].concat());
    server.home.install_as("costly.wasm", &bytes);
    let reason = wait_for("the refusal", PATIENCE, || server.refused().pop_first());
    assert_eq!(reason.0, "costly");
    assert!(reason.1.contains("does not compile"), "{reason:?}");
}

#[test]
fn a_plugin_whose_work_is_not_counted_ends_at_its_time() {
    let config = "[tasks]\ngrace_ms = 100\n[plugins.hostile]\nunmetered = true\n[plugins.hostile.limits]\nfuel = 1\nwall_time_ms = 500\n";
    let server = Server::start(&[HOSTILE, VERSION_A], config);
    check(
        "spin",
        &server.call("spin", json!({})),
        &Limit("wall_time_ms"),
    );
    check(
        "recurse",
        &server.call("recurse", json!({})),
        &Limit("stack_bytes"),
    );
    check(
        "trap",
        &server.call("trap", json!({})),
        &Failed("trap", "unreachable"),
    );
    let reply = server.call("burn", json!({ "millions": 1 }));
    assert!(reply.result()["isError"].is_null(), "{reply:?}");
    assert_eq!(server.call("version", json!({})).text(), "a");
}
