//! The folder of the plugins is followed: what changes there shows soon, and a bad file does no harm.

use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Server, VERSION_A, VERSION_B, component};
use longshore_tests::wait::{PATIENCE, Watch, wait_for};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// A change must show within this time. It has been compiled before by another test, or it is this small.
const BOUND: Duration = Duration::from_secs(3);

fn bytes(path: &str) -> Vec<u8> {
    fs::read(component(path)).unwrap()
}

/// Compiles these components into the shared cache, so that a bound measures the server and not the compiler.
fn warm(components: &[&str]) {
    drop(Server::start(components, ""));
}

fn wait_for_tool(server: &Server, tool: &str, there: bool) {
    wait_for(&format!("{tool} to be {there}"), BOUND, || {
        let listed = server.tools().iter().any(|name| name == tool);
        (listed == there).then_some(())
    });
}

fn wait_for_version(server: &Server, version: &str) {
    wait_for(&format!("version {version}"), BOUND, || {
        (server.call("version", json!({})).text() == version).then_some(())
    });
}

#[test]
fn a_new_file_is_served_a_replaced_one_changes_a_removed_one_goes() {
    warm(&[VERSION_A, VERSION_B]);
    let server = Server::start(&[], "");
    assert_eq!(server.tools(), Vec::<String>::new());
    server.home.install_as("v.wasm", &bytes(VERSION_A));
    wait_for_tool(&server, "version", true);
    wait_for_version(&server, "a");
    for version in ["b", "a", "b"] {
        server
            .home
            .install_as("v.wasm", &bytes(&format!("guests/versions/{version}.wasm")));
        wait_for_version(&server, version);
    }
    fs::remove_file(server.home.plugins().join("v.wasm")).unwrap();
    wait_for_tool(&server, "version", false);
    let reply = server.call("version", json!({}));
    assert_eq!((reply.status(), reply.code()), (200, -32602));
}

#[test]
fn names_that_collide_are_told_once() {
    warm(&[FIXTURES, VERSION_A]);
    let server = Server::start(&[FIXTURES, VERSION_A], "");
    let told = |of: &str| {
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains(of));
        lines.filter(|line| line.contains("left out")).count()
    };
    let wait = |of: &str| wait_for(of, PATIENCE, || (told(of) > 0).then_some(()));
    for name in ["b", "c", "d", "e"] {
        server
            .home
            .install_as(&format!("{name}.wasm"), &bytes(VERSION_A));
        wait(&format!("plugin={name} "));
    }
    // Of many only how many.
    server.home.install_as("zz.wasm", &bytes(FIXTURES));
    wait("many entries");
    server.home.install_as("f.wasm", &bytes(VERSION_A));
    wait("plugin=f ");
    for name in ["b", "c", "d", "e", "f"] {
        assert_eq!(told(&format!("plugin={name} ")), 1, "{name}");
    }
    assert_eq!(told("another plugin has one of that name"), 5);
    assert_eq!(told("many entries"), 1);
}

/// A plain call, a task that runs and one that waits: all finish on the version that began them, whatever becomes of its file.
fn check_running_calls(change: impl FnOnce(&Server)) {
    warm(&[FIXTURES, VERSION_A]);
    let server = Server::start(&[FIXTURES], "");
    let filter = json!({ "toolsListChanged": true });
    let mut told =
        server.stream(&Message::new("subscriptions/listen").param("notifications", filter));
    told.message().unwrap().unwrap();
    let task = server.call_task("sleep_required", json!({ "ms": 2_000 }));
    let asking = server.call_task("ask_one", json!({}));
    asking.wait("input_required");
    let steps = json!({ "steps": [1, 2], "ms": 1_000 });
    let mut plain = server.stream(&Message::call("progress", steps).progress(1));
    // It has begun.
    plain.message().unwrap().unwrap();
    change(&server);
    let message = told.message().unwrap().unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    wait_for_tool(&server, "sleep", false);
    assert_eq!(server.call("sleep", json!({ "ms": 0 })).code(), -32602);
    let mut last = Value::Null;
    while let Some(message) = plain.message().unwrap() {
        last = message;
    }
    assert_eq!(last["result"]["content"][0]["text"], "2 steps", "{last:#}");
    assert_eq!(task.wait_text(), "slept 2000 ms");
    let number = json!({ "action": "accept", "content": { "number": 1 } });
    asking.answer("number", number);
    assert_eq!(asking.wait_text(), "the number is 1");
}

#[test]
fn w05_running_calls_finish_on_a_version_that_is_replaced() {
    check_running_calls(|server| server.home.install_as("fixtures.wasm", &bytes(VERSION_A)));
}

#[test]
fn w05_running_calls_finish_on_a_version_that_is_removed() {
    check_running_calls(|server| {
        fs::remove_file(server.home.plugins().join("fixtures.wasm")).unwrap();
    });
}

#[test]
fn a_task_finishes_on_its_version_after_a_restart_too() {
    warm(&[FIXTURES, VERSION_A]);
    let server = Server::start(&[FIXTURES], "[tasks]\nlinger_ms = 0\n");
    let asking = server.call_task("ask_one", json!({}));
    asking.wait("input_required");
    let id = asking.id;
    server.home.install_as("fixtures.wasm", &bytes(VERSION_A));
    wait_for_tool(&server, "version", true);
    let server = Server::start_in(server.kill());
    let number = json!({ "action": "accept", "content": { "number": 2 } });
    server.task(&id).answer("number", number);
    assert_eq!(server.task(&id).wait_text(), "the number is 2");
}

/// What `/readyz` says of the files that are refused: names and reasons.
fn refused(server: &Server) -> Vec<(String, String)> {
    let text = wait_for("the server to be ready", PATIENCE, || {
        let (status, text) = server.get("/readyz");
        (status == 200).then_some(text)
    });
    let ready: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(ready["ready"], true, "{text}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |file: &Value| (text(&file["name"]), text(&file["reason"]));
    ready["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(of)
        .collect()
}

fn is_refused(server: &Server, name: &str) -> bool {
    refused(server)
        .iter()
        .any(|(known, reason)| known == name && !reason.is_empty())
}

#[test]
fn w06_a_bad_file_leaves_the_old_one_serving() {
    warm(&[VERSION_A, VERSION_B]);
    let mut server = Server::start(&[VERSION_A], "");
    let good = bytes(VERSION_B);
    for (what, bad) in [
        ("a core module", bytes("guests/hostile/core.wasm")),
        ("an empty component", bytes("guests/hostile/empty.wasm")),
        ("nothing", Vec::new()),
        ("text", b"hello".to_vec()),
        ("a part", good[..100].to_vec()),
        ("a larger part", good[..good.len() / 2].to_vec()),
        ("an endless start", bytes("guests/hostile/spin-init.wasm")),
        ("an endless list", bytes("guests/hostile/spin-list.wasm")),
    ] {
        server.home.install_as("a.wasm", &bad);
        wait_for(&format!("/readyz to name {what}"), PATIENCE, || {
            is_refused(&server, "a").then_some(())
        });
        assert_eq!(server.call("version", json!({})).text(), "a", "{what}");
        server.home.install_as("a.wasm", &bytes(VERSION_A));
        wait_for(&format!("{what} to be forgotten"), BOUND, || {
            refused(&server).is_empty().then_some(())
        });
    }
    server.home.install_as("a.wasm", &good);
    wait_for_version(&server, "b");
    server.check_alive();
}

#[test]
fn w07_broken_plugins_at_the_start_do_not_keep_the_others_away() {
    let bad = [
        "core",
        "empty",
        "trap-list",
        "unknown-import",
        "wrong-type",
        "trap-init",
    ];
    let paths: Vec<_> = bad
        .iter()
        .map(|name| format!("guests/hostile/{name}.wasm"))
        .collect();
    let mut components: Vec<_> = paths.iter().map(String::as_str).collect();
    components.push(VERSION_A);
    let mut server = Server::start(&components, "");
    assert_eq!(server.call("version", json!({})).text(), "a");
    assert_eq!(server.tools(), ["version"]);
    for name in bad {
        assert!(
            is_refused(&server, name),
            "{name} is not in {:?}",
            refused(&server)
        );
        assert!(server.log().contains(name), "{name} is not in the log");
    }
    server.check_alive();
}

#[test]
fn h04_an_endless_start_does_not_block_the_others() {
    let mut server = Server::start(&[VERSION_A], "");
    for name in ["spin-init", "spin-list", "recurse-init"] {
        server.home.install(&format!("guests/hostile/{name}.wasm"));
    }
    let watch = Watch::start();
    while watch.elapsed() < Duration::from_secs(2) {
        assert_eq!(server.call("version", json!({})).text(), "a");
    }
    for name in ["spin-init", "spin-list", "recurse-init"] {
        wait_for(
            &format!("{name} to be refused"),
            Duration::from_secs(30),
            || is_refused(&server, name).then_some(()),
        );
    }
    assert_eq!(server.tools(), ["version"]);
    server.check_alive();
}

#[test]
fn h23_two_plugins_with_one_name_of_a_tool() {
    let server = Server::start(&[VERSION_A], "");
    server.home.install_as("z.wasm", &bytes(VERSION_B));
    wait_for("the loser to be named", BOUND, || {
        server.log().contains("plugin=z").then_some(())
    });
    let tools = server.tools();
    assert_eq!(
        tools.iter().filter(|tool| *tool == "version").count(),
        1,
        "{tools:?}"
    );
    assert_eq!(server.call("version", json!({})).text(), "a");
    wait_for("/readyz to name the loser", BOUND, || {
        let (_, text) = server.get("/readyz");
        let said: Value = serde_json::from_str(&text).unwrap();
        let plugins = said["plugins"].as_array().unwrap();
        let loser = plugins.iter().find(|plugin| plugin["name"] == "z")?;
        let left_out = &loser["left_out"][0];
        (loser["tools"] == 0 && left_out["name"] == "version").then_some(())
    });
}

#[test]
fn health_and_readiness() {
    let server = Server::start(&[VERSION_A], "");
    let (status, _) = server.get("/healthz");
    assert_eq!(status, 200);
    assert_eq!(refused(&server), []);
    let list = server.send(&Message::new("tools/list"));
    assert_eq!(list.result()["tools"][0]["name"], "version");
    assert_ne!(list.result()["tools"][0].get("inputSchema"), None::<&Value>);
}

#[test]
fn settings_of_a_plugin_that_is_not_there_are_named() {
    let config =
        "[plugins.fixtuers.limits]\nfuel = 1000\n[plugins.fixtures.limits]\nquestions = 9\n";
    let server = Server::start(&[FIXTURES], config);
    wait_for("word of the plugin that is not there", PATIENCE, || {
        server.log().contains("plugins.fixtuers").then_some(())
    });
    assert!(!server.log().contains("plugins.fixtures "));
}
