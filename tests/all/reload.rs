//! The start, and what changes when files do: what is served is always a whole version.

use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Home, Server, VERSION_A, VERSION_B, component, variant};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A change of a file must show within this time.
const BOUND: Duration = Duration::from_secs(3);

/// A list that never ends: it takes five seconds until it is given up.
const ENDLESS: &str = "guests/hostile/spin-list.wasm";

fn bytes(path: &str) -> Vec<u8> {
    fs::read(component(path)).unwrap()
}

fn readiness(server: &Server) -> (u16, Value) {
    let (status, text) = server.get("/readyz");
    (status, serde_json::from_str(&text).unwrap())
}

fn is_refused(server: &Server, name: &str) -> bool {
    let (_, said) = readiness(server);
    let refused = said["refused"].as_array().unwrap();
    refused.iter().any(|file| file["name"] == name)
}

fn wait_for_version(server: &Server, version: &str) {
    wait_for(&format!("version {version}"), BOUND, || {
        let reply = server.call("version", json!({}));
        let text = &reply.response()["result"]["content"][0]["text"];
        (text == version).then_some(())
    });
}

/// How often a plugin was put in its place.
fn times_served(server: &Server) -> usize {
    server.log().matches("serving the plugin").count()
}

#[test]
fn good_plugins_serve_while_an_endless_one_is_looked_at() {
    let server = Server::start_in(Arc::new(Home::new(&[VERSION_A, ENDLESS], "")));
    within("server/discover", Duration::from_secs(1), || {
        server.send(&Message::new("server/discover")).result();
    });
    assert_eq!(server.call("version", json!({})).text(), "a");
    let (status, said) = readiness(&server);
    assert_eq!((status, &said["first_look_over"]), (503, &json!(false)));
    assert_eq!(server.tools(), ["version"]);
    wait_for("the server to be ready", PATIENCE, || {
        let (status, said) = readiness(&server);
        (status == 200 && said["first_look_over"] == true).then_some(())
    });
    assert!(is_refused(&server, "spin-list"));
}

#[test]
fn a_call_of_what_is_not_there_waits_for_the_first_look_and_no_longer() {
    let server = Server::start_in(Arc::new(Home::new(&[VERSION_A, ENDLESS], "")));
    let reply = server.call("nothing", json!({}));
    assert_eq!(reply.code(), -32602);
    assert!(is_refused(&server, "spin-list"), "it did not wait");
    within("a later call", Duration::from_secs(1), || {
        assert_eq!(server.call("nothing", json!({})).code(), -32602);
    });
}

#[test]
fn a_call_waits_for_a_tool_that_is_compiled() {
    let home = Home::new(&[], "");
    // Nobody has compiled this one before.
    let never_seen = variant(VERSION_A, home.path().to_str().unwrap());
    home.install_as("v.wasm", &never_seen);
    let server = Server::start_in(Arc::new(home));
    assert_eq!(server.call("version", json!({})).text(), "a");
    assert_eq!(server.tools(), ["version"]);
}

#[test]
fn w08_no_change_is_no_reload_and_an_old_time_hides_none() {
    let server = Server::start(&[VERSION_A], "");
    assert_eq!(server.call("version", json!({})).text(), "a");
    let path = server.home.plugins().join("a.wasm");
    let touched = Command::new("touch").arg(&path).status().unwrap();
    assert!(touched.success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(&path, bytes(VERSION_A)).unwrap();
    // A file that comes later is seen later.
    server
        .home
        .install_as("core.wasm", &bytes("guests/hostile/core.wasm"));
    wait_for("the later file", BOUND, || {
        is_refused(&server, "core").then_some(())
    });
    assert_eq!(times_served(&server), 1);
    let (a, b) = (bytes(VERSION_A), bytes(VERSION_B));
    assert_eq!(a.len(), b.len(), "the two versions must have one size");
    let old = server.home.path().join("old");
    fs::write(&old, b).unwrap();
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(then)
        .unwrap();
    fs::rename(old, &path).unwrap();
    wait_for_version(&server, "b");
    assert_eq!(times_served(&server), 2);
}

#[test]
fn h06_damaged_files_are_refused_one_by_one() {
    let mut server = Server::start(&[VERSION_A], "");
    let good = bytes(VERSION_A);
    for part in 1..16 {
        let cut = &good[..good.len() * part / 16];
        server.home.install_as(&format!("cut-{part}.wasm"), cut);
    }
    let mut flipped = good;
    flipped[9] ^= 0xff;
    server.home.install_as("flipped.wasm", &flipped);
    server.home.install_as("nothing.wasm", b"");
    let huge = fs::File::create(server.home.path().join("huge")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let plugins = server.home.plugins();
    fs::rename(server.home.path().join("huge"), plugins.join("huge.wasm")).unwrap();
    fs::create_dir(plugins.join("folder.wasm")).unwrap();
    let names = (1..16).map(|part| format!("cut-{part}"));
    for name in names.chain(["flipped", "nothing", "huge", "folder"].map(str::to_owned)) {
        wait_for(&format!("{name} to be refused"), PATIENCE, || {
            is_refused(&server, &name).then_some(())
        });
    }
    assert_eq!(server.tools(), ["version"]);
    server.check_alive();
}

#[test]
fn h23_a_prefix_tells_two_plugins_apart() {
    let config = "[plugins.b]\nprefix = \"other.\"\n[plugins.fixtures]\nprefix = \"f_\"\n";
    let server = Server::start(&[VERSION_A, VERSION_B, FIXTURES], config);
    let tools = server.tools();
    for name in ["version", "other.version", "f_echo"] {
        assert!(tools.iter().any(|tool| tool == name), "{name}: {tools:?}");
    }
    assert_eq!(server.call("version", json!({})).text(), "a");
    assert_eq!(server.call("other.version", json!({})).text(), "b");
    let task = server.call_task("f_sleep_required", json!({ "ms": 1 }));
    assert_eq!(task.wait_text(), "slept 1 ms");
    let prompts = server.send(&Message::new("prompts/list"));
    let name = &prompts.result()["prompts"][0]["name"];
    assert!(name.as_str().unwrap().starts_with("f_"), "{name}");
}

#[test]
fn h23_names_that_differ_a_little_are_two() {
    let config = "[plugins.a]\nprefix = \"v.\"\n[plugins.b]\nprefix = \"v_\"\n[plugins.c]\nprefix = \"V_\"\n";
    let home = Home::new(&[VERSION_A, VERSION_B], config);
    home.install_as("c.wasm", &bytes(VERSION_A));
    let server = Server::start_in(Arc::new(home)).settled();
    let names = [("V_version", "a"), ("v.version", "a"), ("v_version", "b")];
    for (name, version) in names {
        assert_eq!(server.call(name, json!({})).text(), version, "{name}");
    }
    assert_eq!(server.tools(), names.map(|(name, _)| name));
}

#[test]
fn an_author_reads_what_happens_in_the_terminal() {
    let home = Home::new(&[VERSION_A], "");
    let mut command = home.command();
    let command = command.arg("--dev").stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = lines
        .map_while(Result::ok)
        .find(|line| line.contains("serving the plugin"));
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told.expect("a line about the plugin");
    assert!(told.trim_start().starts_with("INFO"), "{told}");
    assert!(told.contains("plugin=a"), "{told}");
}
