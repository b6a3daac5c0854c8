//! Which version is served, by the word of whoever runs the server: over the command line, against the running server.

use longshore_tests::client::Message;
use longshore_tests::server::{
    FIXTURES, HOSTILE, Home, Server, VERSION_A, VERSION_B, binary, component, variant,
};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

fn bytes(path: &str) -> Vec<u8> {
    fs::read(component(path)).unwrap()
}

/// The version of these bytes, as the program names it.
fn version_of(path: &str) -> String {
    let output = Command::new(binary())
        .args(["plugin", "inspect", "--json"])
        .arg(component(path))
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    told["version"].as_str().unwrap().to_owned()
}

fn plugin(home: &Home, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("plugin").args(arguments).stdin(Stdio::null());
    command.arg("--config").arg(home.config());
    command.arg("--data").arg(home.data());
    command.output().unwrap()
}

/// An order that is carried out; what is said of it.
fn order(server: &Server, arguments: &[&str]) -> String {
    let output = plugin(&server.home, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// An order that is not; what is said of it.
fn refused(home: &Home, arguments: &[&str]) -> String {
    let output = plugin(home, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!error.contains("panicked"), "{error}");
    error
}

fn answers(server: &Server) -> String {
    server.call("version", json!({})).text().to_owned()
}

fn wait_for_version(server: &Server, version: &str) {
    wait_for(&format!("version {version}"), PATIENCE, || {
        let reply = server.call("version", json!({}));
        let text = &reply.response()["result"]["content"][0]["text"];
        (text == version).then_some(())
    });
}

/// Why a plugin's version is withheld, as `/readyz` says it, once it is.
fn withheld(server: &Server) -> Value {
    wait_for("a version to be withheld", PATIENCE, || {
        let (_, text) = server.get("/readyz");
        let said: Value = serde_json::from_str(&text).unwrap();
        let withheld = said["withheld"].as_array().unwrap().first();
        withheld.cloned()
    })
}

fn description(server: &Server) -> String {
    let reply = server.send(&Message::new("tools/list"));
    let text = &reply.result()["tools"][0]["description"];
    text.as_str().unwrap().to_owned()
}

/// A server that served version a and serves b now.
fn served_a_then_b() -> Server {
    let server = Server::start(&[VERSION_A], "");
    server.home.install_as("a.wasm", &bytes(VERSION_B));
    wait_for_version(&server, "b");
    server
}

#[test]
fn names_of_files_are_told_as_they_are_and_do_nothing_to_a_terminal() {
    let server = Server::start(&[], "");
    let plugins = server.home.plugins();
    server
        .home
        .install_as("red\u{1b}[31m.wasm", &bytes(VERSION_A));
    for name in [b"x\xff.wasm", b"x\xfe.wasm"] {
        let path = plugins.join(OsStr::from_bytes(name));
        fs::write(path, bytes(VERSION_B)).unwrap();
    }
    symlink("nowhere", plugins.join("link.wasm")).unwrap();
    let refused = wait_for("the refusals", PATIENCE, || {
        let refused = server.refused();
        (refused.len() == 3).then_some(refused)
    });
    assert!(
        refused["link"].contains("a link to nowhere, which is not there"),
        "{refused:?}"
    );
    for name in ["x\\xff", "x\\xfe"] {
        assert!(refused[name].contains("not UTF-8"), "{refused:?}");
    }
    wait_for("the plugin", PATIENCE, || {
        server.tools().contains(&"version".to_owned()).then_some(())
    });
    let list = order(&server, &["list"]);
    assert!(!list.contains('\u{1b}'), "{list:?}");
    assert!(list.contains("red\\u{1b}[31m"), "{list:?}");
    assert!(list.contains("link  not served"), "{list:?}");
}

#[test]
fn names_of_files_do_nothing_to_a_log_nor_to_a_line_that_is_told() {
    const NAME: &str = "a\u{202e}b\u{9b}c\nd";
    let server = Server::start(&[], "");
    let core = bytes("guests/hostile/core.wasm");
    server.home.install_as(&format!("{NAME}.wasm"), &core);
    wait_for("the refusal", PATIENCE, || server.refused().remove(NAME));
    server
        .home
        .install_as(&format!("{NAME}.wasm"), &bytes(HOSTILE));
    wait_for("the plugin", PATIENCE, || {
        server.tools().contains(&"cat".to_owned()).then_some(())
    });
    let told = server.call("cat", json!({ "path": "/some/where" }));
    let told = told.response().to_string();
    let log = wait_for("the denial", PATIENCE, || {
        let log = server.log();
        log.contains("denied reading").then_some(log)
    });
    for text in [
        &log,
        &told,
        &refused(&server.home, &["history", "x\u{202e}\u{1b}"]),
    ] {
        let seen =
            |character: char| character == '\n' || !"\u{202e}\u{9b}\u{1b}".contains(character);
        assert!(text.chars().all(seen), "{text:?}");
    }
    assert!(log.contains("plugin=a\\u{202e}b\\u{9b}c\\nd"), "{log}");
    // The key of the line is one that TOML reads as the name.
    let table = "[plugins.\"a\\u202eb\\u009bc\\nd\".grants]";
    assert!(log.contains(table), "{log}");
    let read: toml::Table = table.parse().unwrap();
    assert!(read["plugins"].get(NAME).is_some());
}

#[test]
fn a_link_is_as_the_file_that_it_leads_to() {
    let server = Server::start(&[], "");
    let file = server.home.path().join("elsewhere");
    symlink(&file, server.home.plugins().join("link.wasm")).unwrap();
    let refused = || wait_for("the refusal", PATIENCE, || server.refused().remove("link"));
    assert!(refused().contains("not there"));
    for version in [VERSION_A, VERSION_B] {
        fs::write(&file, bytes(version)).unwrap();
        wait_for("the plugin", PATIENCE, || {
            server.tools().contains(&"version".to_owned()).then_some(())
        });
        assert!(server.refused().is_empty());
        fs::remove_file(&file).unwrap();
        assert!(refused().contains("not there"));
        wait_for("the plugin to be gone", PATIENCE, || {
            server.tools().is_empty().then_some(())
        });
    }
}

#[test]
fn an_earlier_version_is_served_at_once_and_held() {
    let server = served_a_then_b();
    let said = order(&server, &["rollback", "a"]);
    assert!(said.contains(&version_of(VERSION_A)), "{said}");
    assert_eq!(answers(&server), "a");
    assert_eq!(withheld(&server)["why"], "rolled_back");
    let list = order(&server, &["list"]);
    assert!(list.contains("rolled back"), "{list}");
    // The same bytes again are no other version.
    server.home.install_as("a.wasm", &bytes(VERSION_B));
    server
        .home
        .install_as("later.wasm", &bytes("guests/hostile/core.wasm"));
    wait_for("the later file", PATIENCE, || {
        server
            .get("/readyz")
            .1
            .contains("core module")
            .then_some(())
    });
    assert_eq!(answers(&server), "a");
    let server = Server::start_in(server.kill()).settled();
    assert_eq!(answers(&server), "a");
    assert_eq!(withheld(&server)["version"], version_of(VERSION_B));
    let said = order(&server, &["approve", "a"]);
    assert!(said.contains(&version_of(VERSION_B)), "{said}");
    assert_eq!(answers(&server), "b");
    let (status, text) = server.get("/readyz");
    assert_eq!(
        (status, text.contains("rolled_back")),
        (200, false),
        "{text}"
    );
}

#[test]
fn yet_another_version_in_the_file_ends_the_hold() {
    let server = served_a_then_b();
    order(&server, &["rollback", "a", &version_of(VERSION_A)[..8]]);
    assert_eq!(answers(&server), "a");
    server
        .home
        .install_as("a.wasm", &variant(VERSION_B, "another"));
    wait_for_version(&server, "b");
    let history = order(&server, &["history", "a", "--json"]);
    let history: Value = serde_json::from_str(&history).unwrap();
    let by: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["by"])
        .collect();
    assert_eq!(by, ["file", "rollback", "file", "file"], "{history:#}");
    assert_eq!(history[0]["serving"], true);
    let marked = history.as_array().unwrap().iter();
    assert_eq!(marked.filter(|entry| entry["serving"] == true).count(), 1);
    let people = order(&server, &["history", "a"]);
    assert!(
        people.contains("serving") && people.contains("by rollback"),
        "{people}"
    );
}

#[test]
fn a_version_that_could_reach_more_waits_for_approval_too() {
    const PLAIN: &str = "guests/hostile/no-tools.wasm";
    const CURIOUS: &str = "guests/hostile/no-tools-environment.wasm";
    let server = Server::start(&[], "pin_definitions = true");
    server.home.install_as("a.wasm", &bytes(PLAIN));
    wait_for("the plugin", PATIENCE, || {
        let (_, ready) = server.get("/readyz");
        ready.contains("\"name\":\"a\"").then_some(())
    });
    server.home.install_as("a.wasm", &bytes(CURIOUS));
    let told = withheld(&server);
    assert_eq!(told["why"], "pinned", "{told}");
    let changes = json!(["the new use of environment variables"]);
    assert_eq!(told["changes"], changes);
    let shown = order(&server, &["approve", "a", "--show"]);
    assert!(shown.contains("environment variables"), "{shown}");
    order(&server, &["approve", "a"]);
    let (_, ready) = server.get("/readyz");
    assert!(!ready.contains("pinned"), "{ready}");
}

#[test]
fn changed_definitions_wait_for_approval_where_they_are_pinned() {
    let server = Server::start(&[VERSION_A], "pin_definitions = true");
    assert_eq!(answers(&server), "a");
    // What says the same of itself needs no approval.
    server.home.install_as("a.wasm", &bytes(VERSION_B));
    wait_for_version(&server, "b");
    let before = description(&server);
    let mut changed = bytes(VERSION_A);
    let at = changed
        .windows(10)
        .position(|text| text == b"Says which")
        .expect("the description is in the component");
    changed[at..at + 10].copy_from_slice(b"Tells what");
    server.home.install_as("a.wasm", &changed);
    let told = withheld(&server);
    assert_eq!(told["why"], "pinned", "{told}");
    assert_eq!(told["changes"], json!(["description of the tool version"]));
    assert_eq!(
        (answers(&server).as_str(), description(&server)),
        ("b", before.clone())
    );
    let server = Server::start_in(server.kill()).settled();
    assert_eq!(
        (answers(&server).as_str(), description(&server)),
        ("b", before.clone())
    );
    let shown = order(&server, &["approve", "a", "--show"]);
    assert!(
        shown.contains("- Says which") && shown.contains("+ Tells what"),
        "{shown}"
    );
    assert_eq!(answers(&server), "b", "to look is not to approve");
    let said = refused(&server.home, &["approve", "a", "0000"]);
    assert!(said.contains("changed meanwhile"), "{said}");
    order(&server, &["approve", "a"]);
    assert_eq!(answers(&server), "a");
    assert_eq!(
        description(&server),
        before.replace("Says which", "Tells what")
    );
    let server = Server::start_in(server.kill()).settled();
    assert_eq!(answers(&server), "a");
    // What comes or goes is a change too; and one plugin may have its own word.
    server.home.install_as("a.wasm", &bytes(FIXTURES));
    let told = withheld(&server)["changes"].to_string();
    assert!(
        told.contains("the tool version is gone") && told.contains("the new tool echo"),
        "{told}"
    );
    let home = server.kill();
    home.configure("pin_definitions = true\n[plugins.a]\npin_definitions = false");
    let server = Server::start_in(home);
    assert!(server.tools().contains(&"echo".to_owned()));
}

#[test]
fn a_bad_file_at_the_start_leaves_what_was_served_last() {
    let server = Server::start(&[VERSION_A], "");
    assert_eq!(answers(&server), "a");
    let home = server.kill();
    home.install_as("a.wasm", &bytes("guests/hostile/core.wasm"));
    let server = Server::start_in(home);
    assert_eq!(answers(&server), "a");
    let list = order(&server, &["list"]);
    assert!(
        list.contains("refused") && list.contains("1 tools"),
        "{list}"
    );
}

#[test]
fn an_order_that_cannot_be_carried_out_says_why() {
    let server = Server::start(&[VERSION_A], "");
    let core = bytes("guests/hostile/core.wasm");
    server.home.install_as("never.wasm", &core);
    wait_for("the refusal", PATIENCE, || {
        server.refused().contains_key("never").then_some(())
    });
    for (arguments, words) in [
        (&["rollback", "a"][..], "no earlier version"),
        (&["rollback", "nothing"], "no plugin nothing"),
        (&["rollback", "a", "ffff"], "no version ffff"),
        (&["rollback", "a", &version_of(VERSION_A)], "already"),
        (&["approve", "a"], "nothing to approve"),
        (&["approve", "a", "--show"], "no version of a is withheld"),
        (&["history", "nothing"], "no plugin nothing"),
        (
            &["history", "never"],
            "no version of never was ever served: the file that is there is refused, for it is a core module",
        ),
    ] {
        let said = refused(&server.home, arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert_eq!(answers(&server), "a");
    let home = server.kill();
    let said = refused(&home, &["list"]);
    let data = home.data();
    assert!(
        said.contains("no server runs") && said.contains(data.to_str().unwrap()),
        "{said}"
    );
}

#[test]
fn the_socket_is_for_this_user_and_takes_orders_only() {
    let mut server = Server::start(&[VERSION_A], "");
    let path = server.home.data().join("admin.sock");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let tell = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        // It may hang up before it has read all.
        let _ = stream.write_all(bytes);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    for bytes in [
        &b"hello\n"[..],
        b"{}\n",
        b"{\"order\":\"stop\"}\n",
        b"\xff\n",
    ] {
        let answer = tell(bytes);
        assert!(answer.contains("it is no order"), "{answer}");
    }
    let answer = tell(&[b'x'; 100_000]);
    assert!(
        answer.is_empty() || answer.contains("it is no order"),
        "{answer}"
    );
    server.check_alive();
    let (_, home) = server.terminate();
    assert!(
        !path.exists(),
        "the socket is left behind in {}",
        home.path().display()
    );
}

/// The components that are kept.
fn kept(server: &Server) -> BTreeSet<String> {
    let folder = fs::read_dir(server.home.data().join("components")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| Some(name.strip_suffix(".wasm")?.to_owned()))
        .collect()
}

#[test]
fn bytes_are_kept_for_tasks_and_the_history_and_no_longer() {
    let config = "history_versions = 1\n[limits]\ninput_time_ms = 1\n[tasks]\nlinger_ms = 0\n";
    let home = Home::new(&[], config);
    home.install_as("a.wasm", &bytes(FIXTURES));
    let server = Server::start_in(Arc::new(home)).settled();
    let asking = server.call_task("ask_one", json!({}));
    asking.wait("input_required");
    // Clients may read the pages of the last lists for a while, so there are some more.
    for number in 0..6 {
        let newer = variant(VERSION_A, &format!("number {number}"));
        server.home.install_as("a.wasm", &newer);
        wait_for("the newer version", PATIENCE, || {
            (server.log().matches("serving the plugin").count() == number + 2).then_some(())
        });
    }
    let fixtures = version_of(FIXTURES);
    wait_for("the first of them to be swept", PATIENCE, || {
        let kept = kept(&server);
        (kept.len() == 6 && kept.contains(&fixtures)).then_some(())
    });
    asking.answer(
        "number",
        json!({ "action": "accept", "content": { "number": 3 } }),
    );
    assert_eq!(asking.wait_text(), "the number is 3");
    wait_for("the version of the task to be swept", PATIENCE, || {
        (!kept(&server).contains(&fixtures)).then_some(())
    });
}
