//! A client that is not Rust: the TypeScript one, with its package for tasks. What it does is in `typescript/client.test.mjs`;
//! a tap or a relay lets the schemas judge what both say.

use crate::servers::tapped;
use longshore_tests::relay::Relay;
use longshore_tests::server::{CONFORMANCE, FIXTURES};
use longshore_tests::tap::Tap;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// If its tests take longer one of them hangs, in milliseconds.
const TESTS_MS_MAX: u32 = 120_000;

/// Runs the client's tests against this server; all must pass.
fn run(server: &Value) {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = ours.parent().unwrap().join("target/typescript");
    assert!(
        installed.join("node").is_file(),
        "there is no {}: run `cargo xtask clients`",
        installed.display()
    );
    // Modules are found beside the file that needs them.
    let folder = tempfile::tempdir().unwrap();
    symlink(
        installed.join("node_modules"),
        folder.path().join("node_modules"),
    )
    .unwrap();
    let script = folder.path().join("client.test.mjs");
    fs::copy(ours.join("typescript/client.test.mjs"), &script).unwrap();
    let output = Command::new(installed.join("node"))
        .args(["--test", &format!("--test-timeout={TESTS_MS_MAX}")])
        .arg(script)
        .env("SERVER", server.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
}

/// The methods that must have been called.
const METHODS: [&str; 10] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/get",
    "resources/read",
    "completion/complete",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

fn check_heard(heard: &[String]) {
    for method in METHODS {
        assert!(
            heard.iter().any(|one| one == method),
            "no {method} in {heard:?}"
        );
    }
    assert!(!heard.iter().any(|one| one == "initialize"), "{heard:?}");
}

#[test]
fn modern_over_http() {
    let server = tapped();
    let tap = Tap::before(server.address());
    run(&json!({ "url": format!("http://{}/mcp", tap.address()) }));
    check_heard(&tap.judge());
}

#[test]
fn modern_over_stdio() {
    let relay = Relay::new(&[FIXTURES, CONFORMANCE]);
    let command = relay.command();
    run(&json!({ "command": command[0], "args": command[1..] }));
    check_heard(&relay.judge());
}
