//! Cases of guests: those that wait, trap, or use up a limit.

use longshore_tests::client::Reply;
use longshore_tests::server::{HOSTILE, Server, VERSION_A};
use longshore_tests::wait::within;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

/// These tools are tasks here, so that they can be cancelled.
const AS_TASKS: &str = "
[tasks]
grace_ms = 300
[plugins.hostile.tools.sleep]
task_support = \"required\"
[plugins.hostile.tools.sleep_for_ever]
task_support = \"required\"
";

#[test]
fn h01_a_waiting_guest_is_cancelled() {
    let server = Server::start(&[HOSTILE], AS_TASKS);
    for (tool, arguments) in [
        ("sleep", json!({ "ms": 60_000 })),
        ("sleep_for_ever", json!({})),
    ] {
        let task = server.call_task(tool, arguments);
        thread::sleep(Duration::from_millis(200));
        within(tool, Duration::from_secs(1), || {
            task.cancel().result();
            task.wait("cancelled")
        });
    }
}

#[test]
fn h01_a_waiting_guest_ends_at_its_time_limit() {
    let server = Server::start(&[HOSTILE], "[plugins.hostile.limits]\nwall_time_ms = 500\n");
    for (tool, arguments) in [
        ("sleep", json!({ "ms": 60_000 })),
        ("sleep_for_ever", json!({})),
    ] {
        let bound = Duration::from_millis(500 + 1_000 + 100);
        let reply = within(tool, bound, || server.call(tool, arguments));
        check_limit(&reply, "wall_time_ms", 500);
    }
    // Its standard input is closed: nothing to wait for.
    assert_eq!(server.call("read_stdin", json!({})).text(), "0 bytes");
}

/// The error names the limit, its value and the plugin, for a program and for a person.
fn check_limit(reply: &Reply, limit: &str, value: u64) {
    assert_eq!((reply.status(), reply.code()), (200, -32603), "{reply:?}");
    let error = reply.error();
    assert_eq!(error["data"]["reason"], "limit", "{error:#}");
    assert_eq!(error["data"]["limit"], limit, "{error:#}");
    assert_eq!(error["data"]["value"], value, "{error:#}");
    let text = reply.error_text();
    for word in [limit, &value.to_string(), "hostile"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn h03_a_trap_is_one_failed_call() {
    let mut server = Server::start(&[HOSTILE, VERSION_A], "");
    let before = server.tools();
    let mut texts = BTreeSet::new();
    for _ in 0..20 {
        let reply = server.call("trap", json!({}));
        assert_eq!((reply.status(), reply.code()), (200, -32603));
        assert_eq!(reply.error()["data"]["reason"], "trap");
        texts.insert(reply.error_text().to_owned());
        assert_eq!(server.call("burn", json!({ "millions": 0 })).text(), "1");
        assert_eq!(server.call("version", json!({})).text(), "a");
    }
    assert_eq!(texts.len(), 1, "the text is not stable: {texts:?}");
    let text = texts.pop_first().unwrap();
    assert!(text.contains("hostile") && text.contains("trap"), "{text}");
    assert_eq!(server.tools(), before);
    server.check_alive();
}

#[test]
fn h03_a_trap_spares_the_others_of_its_plugin() {
    let mut server = Server::start(&[HOSTILE], "");
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                assert_eq!(
                    server.call("sleep", json!({ "ms": 500 })).text(),
                    "slept 500 ms"
                );
            });
        }
        for _ in 0..20 {
            let reply = server.call("trap_after", json!({ "n": 1 }));
            assert_eq!(reply.error()["data"]["reason"], "trap");
        }
        for tool in ["exit", "no_result", "recurse"] {
            assert_eq!(server.call(tool, json!({})).code(), -32603, "{tool}");
        }
    });
    server.check_alive();
}

#[test]
fn h18_out_of_fuel_says_so() {
    for fuel in [1, 10_000, 10_000_000, 1_000_000_000] {
        let config = format!("[plugins.hostile.limits]\nfuel = {fuel}\n");
        let mut server = Server::start(&[HOSTILE, VERSION_A], &config);
        if server.tools().len() == 1 {
            // Too little even to tell its tools: the plugin is refused, and that says so too.
            let (_, ready) = server.get("/readyz");
            for word in ["hostile", "fuel", &fuel.to_string()] {
                assert!(ready.contains(word), "no {word} in {ready}");
            }
            assert!(fuel <= 10_000);
        } else {
            check_limit(&server.call("spin", json!({})), "fuel", fuel);
        }
        assert_eq!(server.call("version", json!({})).text(), "a");
        server.check_alive();
    }
}

#[test]
fn h18_four_ends_have_four_texts() {
    let limits = |limits: &str| format!("{AS_TASKS}[plugins.hostile.limits]\n{limits}\n");
    let fuel = Server::start(&[HOSTILE], &limits("fuel = 100000000"));
    let time = Server::start(&[HOSTILE], &limits("wall_time_ms = 400"));
    let memory = Server::start(&[HOSTILE], &limits("memory_bytes = 16777216"));
    let fuel = fuel.call("spin", json!({}));
    check_limit(&fuel, "fuel", 100_000_000);
    let time = time.call("spin", json!({}));
    check_limit(&time, "wall_time_ms", 400);
    check_memory(&memory, 16_777_216);

    let task = memory.call_task("sleep_for_ever", json!({}));
    task.cancel().result();
    let cancelled = task.wait("cancelled");
    let said = cancelled["statusMessage"].as_str().unwrap_or_default();
    assert!(![fuel.error_text(), time.error_text()].contains(&said));
    assert_ne!(fuel.error_text(), time.error_text());
}

/// Either the guest sees that it gets no more, or its call ends with a clear error.
fn check_memory(server: &Server, value: u64) {
    let reply = server.call("grow", json!({ "mib": 4_000 }));
    match reply.response().get("error") {
        Some(_) => check_limit(&reply, "memory_bytes", value),
        None => assert!(reply.text().starts_with("refused after "), "{reply:?}"),
    }
    assert_eq!(
        server.call("grow", json!({ "mib": 2 })).text(),
        "took 2 MiB"
    );
}

#[test]
fn h18_a_trap_does_not_evade_the_budget() {
    let config = "[plugins.hostile.limits]\nfuel = 300000000\n";
    let mut server = Server::start(&[HOSTILE], config);
    for _ in 0..100 {
        let reply = server.call("burn", json!({ "millions": 1, "trap": true }));
        assert_eq!(reply.error()["data"]["reason"], "trap");
    }
    let reply = server.call("burn", json!({ "millions": 1_000, "trap": true }));
    check_limit(&reply, "fuel", 300_000_000);
    server.check_alive();
}

#[test]
fn a_result_over_its_limit_is_a_clear_error() {
    let mut server = Server::start(
        &[HOSTILE],
        "[plugins.hostile.limits]\nresult_bytes = 2097152\n",
    );
    let reply = server.call("big", json!({ "mib": 1 }));
    assert_eq!(reply.text().len(), 1 << 20);
    check_limit(
        &server.call("big", json!({ "mib": 8 })),
        "result_bytes",
        2_097_152,
    );
    server.check_alive();
}

#[test]
fn results_that_are_wrong_are_errors_that_name_the_tool() {
    let mut server = Server::start(&[HOSTILE], "");
    let failure = |tool: &str| -> String {
        let reply = server.call(tool, json!({}));
        if reply.response().get("error").is_some() {
            return reply.error_text().to_owned();
        }
        assert_eq!(reply.result()["isError"], true, "{tool}: {reply:?}");
        reply.text().to_owned()
    };
    // The guest is told, and may tell it in its own words.
    for tool in ["bad_json", "bad_meta"] {
        assert!(!failure(tool).is_empty());
    }
    // Against what the tool has declared, or nothing at all.
    for tool in ["wrong_shape", "no_structure", "no_result"] {
        let text = failure(tool);
        assert!(text.contains(tool), "{tool}: {text}");
    }
    // What stands is the first result.
    for tool in ["complete_twice", "complete_then_trap", "complete_then_fail"] {
        let reply = server.call(tool, json!({}));
        assert_eq!(reply.result()["isError"], Value::Null, "{tool}");
    }
    server.check_alive();
}

#[test]
fn a_media_type_that_is_none_does_not_get_out() {
    let server = Server::start(&[HOSTILE], "");
    let reply = server.call("bad_media", json!({}));
    let response = reply.response();
    let failed = response.get("error").is_some() || response["result"]["isError"] == true;
    assert!(failed, "{response:#}");
    assert!(
        !response
            .to_string()
            .contains("\"mimeType\":\"no media type"),
        "{response:#}"
    );
}

#[test]
fn a_guest_raises_only_the_errors_that_it_may() {
    let server = Server::start(&[HOSTILE], "");
    for (raised, sent) in [
        (-32602, -32602),
        (-32603, -32603),
        (7, 7),
        (-32769, -32769),
        (-31999, -31999),
        (-32020, -32603),
        (-32021, -32603),
        (-32700, -32603),
        (-32002, -32603),
    ] {
        let reply = server.call("rpc_error", json!({ "code": raised, "data": "{\"a\":1}" }));
        assert_eq!((reply.status(), reply.code()), (200, sent), "{raised}");
        assert!(
            reply.error_text().contains("raised on purpose"),
            "{reply:?}"
        );
        if raised == sent {
            assert_eq!(reply.error()["data"], json!({ "a": 1 }));
        } else {
            assert!(
                reply.error()["data"]
                    .to_string()
                    .contains(&raised.to_string()),
                "{reply:?}"
            );
        }
    }
}

#[test]
fn a_guest_sees_nothing_of_the_machine() {
    let server = Server::start(&[HOSTILE], "");
    let reply = server.call("env", json!({}));
    let seen = &reply.result()["structuredContent"];
    assert_eq!(seen["vars"], json!([]), "{seen:#}");
    assert!(
        seen["root"]["Err"].is_string() || seen["root"].is_string() || seen["root"] == json!([]),
        "{seen:#}"
    );
    let text = reply.response().to_string();
    assert!(!text.contains("longshore-"), "{text}");
}
