//! The command line and the configuration: what an operator does wrong is told by name.

use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Home, Server, VERSION_A, binary, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) fn run(command: &mut Command) -> Output {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_for("the command to end", PATIENCE, || child.try_wait().unwrap());
    child.wait_with_output().unwrap()
}

fn plugin(arguments: &[&str]) -> Output {
    run(Command::new(binary()).arg("plugin").args(arguments))
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

#[test]
fn settings_of_what_is_not_there_are_told() {
    let server = Server::start(
        &[VERSION_A],
        "[plugins.a.tools.versoin]\non_crash = \"rerun\"\n[plugins.a.tools.version]\ntask_support = \"optional\"\n[plugins.b]\nprefix = \"b.\"\n",
    );
    for words in [
        "does not have (names stand there without their prefix): plugins.a.tools.versoin",
        "a plugin that is not there: plugins.b",
    ] {
        wait_for(words, PATIENCE, || {
            server.log().contains(words).then_some(())
        });
    }
    assert!(
        !server.log().contains("plugins.a.tools.version "),
        "{}",
        server.log()
    );
}

#[test]
fn check_accepts_a_plugin() {
    let output = plugin(&["check", component(VERSION_A).to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn check_refuses_what_is_none_and_says_why() {
    for (name, word) in [
        ("core", "core module"),
        ("empty", "longshore:plugin"),
        ("unknown-import", "import"),
        ("trap-list", "trap"),
        ("next-version", "longshore:plugin"),
    ] {
        let path = component(&format!("guests/hostile/{name}.wasm"));
        let output = plugin(&["check", path.to_str().unwrap()]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(word), "{name}: no {word} in {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    let output = plugin(&["check", "/no/such/file.wasm"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("/no/such/file.wasm"),
        "{}",
        text(&output)
    );
}

#[test]
fn check_takes_several_and_says_of_each_what_it_is() {
    let (good, bad) = (component(VERSION_A), component("guests/hostile/core.wasm"));
    let output = run(Command::new(binary()).args(["plugin", "check"]).args([
        &bad,
        &good,
        Path::new("/no/such/file.wasm"),
    ]));
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, format!("{}: good, 1 tools\n", good.display()));
    let complaint = String::from_utf8(output.stderr).unwrap();
    for word in ["core.wasm", "core module", "/no/such/file.wasm"] {
        assert!(complaint.contains(word), "{word}: {complaint}");
    }
    let output = run(Command::new(binary())
        .args(["plugin", "check"])
        .args([&good, &good]));
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn inspect_shows_a_description_of_several_lines() {
    let mut component = fs::read(component(VERSION_A)).unwrap();
    let line = b"Says which version of the plugin answers.";
    let at = component.windows(line.len()).position(|text| text == line);
    component[at.unwrap() + 4] = b'\n';
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), component).unwrap();
    let output = plugin(&["inspect", file.path().to_str().unwrap()]);
    let line = String::from_utf8_lossy(line);
    assert!(text(&output).contains(&*line), "{}", text(&output));
}

#[test]
fn what_is_no_address_is_told_what_one_looks_like() {
    for address in ["nowhere", "localhost:7777", "127.0.0.1", ":1"] {
        check_refused(
            &format!("listen = {address:?}"),
            &["listen is", address, "127.0.0.1:7777"],
        );
        let output = run(Command::new(binary()).args(["serve", "--listen", address]));
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output).contains("127.0.0.1:7777"),
            "{}",
            text(&output)
        );
    }
}

#[test]
fn inspect_tells_what_there_is() {
    let path = component(FIXTURES);
    let output = plugin(&["inspect", "--json", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tools = told["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("ask_first")), "{names:?}");
    assert_eq!(told["completes"], true);
    let people = plugin(&["inspect", path.to_str().unwrap()]);
    assert!(people.status.success());
    assert_eq!(told["wants"]["answers"], true);
    for word in [
        "[plugins.fixtures.grants]",
        "ask = [",
        "ask_first",
        "ask_prompt",
        "fixture://plain",
        "fixture://seen/{ms}",
    ] {
        assert!(text(&people).contains(word), "{word}");
    }
}

/// A server with these settings must end at once, with a failure that says this.
fn check_refused(config: &str, words: &[&str]) {
    let home = Home::new(&[], config);
    let output = run(&mut home.command());
    let said = text(&output);
    assert!(!output.status.success(), "{config}: {said}");
    let file = home.config();
    assert!(said.contains(file.to_str().unwrap()), "{config}: {said}");
    for word in words {
        assert!(said.contains(word), "{config}: no {word} in {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_bad_setting_is_named() {
    check_refused("no_such_key = 1", &["no_such_key"]);
    check_refused("[tasks]\ngrace = 1", &["grace"]);
    check_refused("[tasks]\ngrace_ms = \"long\"", &["grace_ms"]);
    check_refused("[no_such_table]", &["no_such_table"]);
    check_refused("[plugins.x.limits]\nfule = 1", &["fule"]);
    check_refused("[plugins.x.limits]\nfuel = 0", &["fuel"]);
    check_refused(
        "[plugins.x.tools.y]\ntask_support = \"maybe\"",
        &["task_support", "maybe"],
    );
    check_refused("not TOML", &["longshore.toml"]);
}

#[test]
fn a_missing_config_is_named() {
    let output = run(Command::new(binary()).args(["serve", "--config", "/no/such.toml"]));
    assert!(!output.status.success());
    assert!(text(&output).contains("/no/such.toml"), "{}", text(&output));
}

#[test]
fn s03_a_second_server_on_one_data_folder_is_refused() {
    let mut server = Server::start(&[VERSION_A], "");
    let output = run(&mut server.home.command());
    let said = text(&output);
    assert!(!output.status.success(), "{said}");
    let data = server.home.data();
    assert!(
        said.contains("in use") && said.contains(data.to_str().unwrap()),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    server.check_alive();
    assert_eq!(server.call("version", json!({})).text(), "a");
    // A lock that nobody holds any more blocks nobody.
    let server = Server::start_in(server.kill());
    assert_eq!(server.call("version", json!({})).text(), "a");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = Server::start(&[VERSION_A], "");
    let home = Home::new(&[], "");
    let address = server.address().to_string();
    let mut command = Command::new(binary());
    command
        .args(["serve", "--listen", &address])
        .arg("--config")
        .arg(home.config());
    command
        .arg("--plugins")
        .arg(home.plugins())
        .arg("--data")
        .arg(home.data());
    let output = run(&mut command);
    assert!(!output.status.success());
    let said = text(&output);
    for word in [&address, "another program", "--listen 127.0.0.1:0"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn both_signals_end_it_well_with_work_under_way() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start(&[FIXTURES], "");
        let task = server.call_task("sleep_required", json!({ "ms": 60_000 }));
        let id = task.id.clone();
        server.signal(signal);
        let (status, home) = server.terminate();
        assert!(status.success(), "{status}");
        // It was shut down, not cancelled.
        let server = Server::start_in(home);
        assert_eq!(server.task(&id).get()["status"], "working");
    }
}

#[test]
fn standard_output_stays_empty() {
    let home = Home::new(&[VERSION_A, "guests/hostile/core.wasm"], "no_such_key = 1");
    let output = run(&mut home.command());
    assert_eq!(output.stdout, b"");
}

#[test]
fn a_plain_call_under_way_is_answered_before_the_end() {
    let server = Server::start(&[FIXTURES], "");
    let mut connection = server.connect();
    let call = Message::call("sleep", json!({ "ms": 500 }));
    connection.write(&call.bytes(server.address())).unwrap();
    // The call has to be in before the signal: a second request on another connection is behind it.
    server.call("sleep", json!({ "ms": 50 }));
    let (status, _) = server.terminate();
    assert!(status.success(), "{status}");
    assert_eq!(
        connection.reply("tools/call").unwrap().text(),
        "slept 500 ms"
    );
}

/// Stops it, and looks at what it said.
fn check_clean_stop(server: Server) {
    let log = server.log_handle();
    let (status, _) = server.terminate();
    assert!(status.success(), "{status}");
    assert!(!log.text().contains("ERROR"), "{}", *log.text());
}

#[test]
fn a_clean_stop_logs_no_error() {
    check_clean_stop(Server::start(&[FIXTURES], ""));
    let server = Server::start(&[FIXTURES], "");
    server
        .call_task("sleep_required", json!({ "ms": 1 }))
        .wait("completed");
    server
        .call_task("ask_one", json!({}))
        .wait("input_required");
    check_clean_stop(server);
}
