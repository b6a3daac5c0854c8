//! What plugins may reach: nothing that was not granted, and what was granted as it was granted. Every denial tells the caller
//! which plugin wanted what, and the operator what to write.

use longshore_tests::client::{Message, accept, answer, decline};
use longshore_tests::origin::Origin;
use longshore_tests::server::{FIXTURES, HOSTILE, Home, Server};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A folder with a file, a folder, and ways out.
pub(crate) fn notes() -> TempDir {
    let outer = tempfile::tempdir().unwrap();
    let notes = outer.path().join("notes");
    fs::create_dir_all(notes.join("folder")).unwrap();
    fs::write(outer.path().join("secret.txt"), "outside").unwrap();
    fs::write(notes.join("note.txt"), "a note").unwrap();
    symlink(outer.path().join("secret.txt"), notes.join("absolute")).unwrap();
    symlink("../secret.txt", notes.join("relative")).unwrap();
    symlink("/", notes.join("slash")).unwrap();
    symlink("note.txt", notes.join("inside")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        notes.join("pipe"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    outer
}

pub(crate) fn folder_grant(outer: &Path, write: bool) -> String {
    let notes = outer.join("notes");
    format!(
        "[plugins.hostile.grants]\ndirectories = [{{ host = {notes:?}, guest = \"/notes\", write = {write} }}]\n"
    )
}

/// The text of a tool's own error.
pub(crate) fn refusal(server: &Server, tool: &str, arguments: Value) -> String {
    let reply = server.call(tool, arguments);
    if reply.response().get("error").is_some() {
        return reply.error_text().to_owned();
    }
    assert_eq!(reply.result()["isError"], true, "{reply:?}");
    let content = reply.result()["content"].as_array().unwrap();
    let texts = content.iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The caller is told `words`, the operator the line to write.
fn check_denied(server: &Server, told: &str, words: &[&str], line: &str) {
    for word in words.iter().chain(&["hostile", "plugins.hostile.grants."]) {
        assert!(told.contains(word), "no {word} in {told}");
    }
    wait_for(line, PATIENCE, || server.log().contains(line).then_some(()));
}

#[test]
fn h17_a_refused_file_explains_itself() {
    let server = Server::start(&[HOSTILE], "");
    let told = refusal(&server, "cat", json!({ "path": "/etc/passwd" }));
    let line =
        "[plugins.hostile.grants]: directories = [{ host = \"/some/folder\", guest = \"/etc\" }]";
    check_denied(
        &server,
        &told,
        &["reading /etc/passwd", "grants.directories"],
        line,
    );
    let home = server.home.path().to_str().unwrap().to_owned();
    assert!(!told.contains(&home), "{told}");

    let told = refusal(&server, "write", json!({ "path": "/tmp/x", "text": "x" }));
    check_denied(
        &server,
        &told,
        &["writing /tmp/x"],
        "guest = \"/tmp\", write = true }]",
    );
    let told = refusal(&server, "ls", json!({ "path": "/" }));
    assert!(told.contains("was denied reading /"), "{told}");
}

#[test]
fn h17_a_refused_host_explains_itself() {
    let server = Server::start(&[HOSTILE], "");
    let told = refusal(
        &server,
        "send",
        json!({ "url": "https://api.test/v1?key=1" }),
    );
    let line = "[plugins.hostile.grants]: hosts = [\"https://api.test\"]";
    check_denied(
        &server,
        &told,
        &["an HTTP request to https://api.test", "grants.hosts"],
        line,
    );
}

#[test]
fn a_folder_can_be_read_and_not_left() {
    let outer = notes();
    let server = Server::start(&[HOSTILE], &folder_grant(outer.path(), false));
    let cat = |path: &str| server.call("cat", json!({ "path": path }));
    assert_eq!(cat("/notes/note.txt").text(), "a note");
    assert_eq!(cat("/notes/folder/../note.txt").text(), "a note");
    assert_eq!(cat("/notes/inside").text(), "a note");
    let names = server.call("ls", json!({ "path": "/notes" }));
    let names = names.result()["structuredContent"]["names"]
        .as_array()
        .unwrap();
    assert_eq!(names.len(), 7, "{names:?}");
    for path in [
        "/notes/../secret.txt",
        "/notes/folder/../../secret.txt",
        "/notes/absolute",
        "/notes/relative",
        "/notes/slash/etc/passwd",
        "/notes/slash",
        "/notes2",
        "/notes/./../../etc/passwd",
        "/proc/self/environ",
        "/dev/stdin",
        "/",
        "secret.txt",
        "../secret.txt",
        "//etc/passwd",
        "/notes//etc/../../secret.txt",
        "/notes/pipe",
    ] {
        let told = refusal(&server, "cat", json!({ "path": path }));
        assert!(
            !told.contains("outside") && !told.contains("root:"),
            "{path}: {told}"
        );
    }
}

#[test]
fn a_folder_that_may_be_read_is_not_changed() {
    let outer = notes();
    let listing = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let folder = outer.path().join("notes");
    let before = listing(&folder);
    let server = Server::start(&[HOSTILE], &folder_grant(outer.path(), false));
    let tried = server.call("change", json!({ "path": "/notes" }));
    for (way, outcome) in tried.result()["structuredContent"].as_object().unwrap() {
        assert!(outcome["Err"].is_string(), "{way}: {outcome}");
    }
    assert_eq!(listing(&folder), before);
    assert_eq!(
        fs::read_to_string(folder.join("note.txt")).unwrap(),
        "a note"
    );
    let told = refusal(&server, "write", json!({ "path": "/notes/x", "text": "x" }));
    let line = format!("directories = [{{ host = {folder:?}, guest = \"/notes\", write = true }}]");
    check_denied(
        &server,
        &told,
        &["writing /notes/x, which it may only read"],
        &line,
    );
    assert!(!told.contains(folder.to_str().unwrap()), "{told}");
}

#[test]
fn a_folder_that_may_be_written_is_changed() {
    let outer = notes();
    let server = Server::start(&[HOSTILE], &folder_grant(outer.path(), true));
    let tried = server.call("change", json!({ "path": "/notes" }));
    let tried = &tried.result()["structuredContent"];
    for way in ["write", "append", "mkdir", "rename", "rmdir"] {
        assert_eq!(tried[way]["Ok"], Value::Null, "{tried:#}");
        assert!(tried[way].get("Err").is_none(), "{way}: {tried:#}");
    }
    assert_eq!(
        fs::read_to_string(outer.path().join("notes/new")).unwrap(),
        "x"
    );
    refusal(
        &server,
        "write",
        json!({ "path": "/notes/relative", "text": "x" }),
    );
    assert_eq!(
        fs::read_to_string(outer.path().join("secret.txt")).unwrap(),
        "outside"
    );
}

/// Starts a server that must not start; what it says.
fn refused_start(components: &[&str], config: &str) -> String {
    let home = Home::new(components, config);
    refused_start_in(&home)
}

pub(crate) fn refused_start_in(home: &Home) -> String {
    let mut command: Command = home.command();
    let command = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let ended = wait_for("the server to refuse", PATIENCE, || {
        child.try_wait().unwrap()
    });
    assert!(!ended.success());
    String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
}

#[test]
fn what_must_not_be_granted_is_refused_at_the_start() {
    let directory = |host: &str| {
        format!(
            "[plugins.a.grants]\ndirectories = [{{ host = {host:?}, guest = \"/x\", write = true }}]"
        )
    };
    for (config, words) in [
        (
            directory("/no/such/folder"),
            ["plugins.a.grants.directories", "/no/such/folder"],
        ),
        (
            directory("/"),
            ["plugins.a.grants.directories", "must not be granted"],
        ),
        (
            "[plugins.a.grants]\nenvironment = [\"*\"]".to_owned(),
            ["plugins.a.grants.environment", "exact name"],
        ),
        (
            "[plugins.a.grants]\nenvironment = [\"AWS_*\"]".to_owned(),
            ["plugins.a.grants.environment", "exact name"],
        ),
        (
            "[plugins.a.grants]\nhosts = [\"*\"]".to_owned(),
            ["plugins.a.grants.hosts", "\"*\""],
        ),
        (
            "[plugins.a.grants]\nhosts = [\"https://*.test\"]".to_owned(),
            ["plugins.a.grants.hosts", "*.test"],
        ),
        (
            "[plugins.a.grants]\nhosts = [\"https://a.test/path\"]".to_owned(),
            ["plugins.a.grants.hosts", "no path"],
        ),
        (
            "[plugins.a.grants]\nhosts = [{ url = \"https://a.test\", addresses = [\"all\"] }]"
                .to_owned(),
            ["plugins.a.grants.hosts", "\"all\""],
        ),
        (
            "[plugins.a.grants]\nsecrets = { KEY = { env = \"LONGSHORE_TESTS_NOT_SET\" } }"
                .to_owned(),
            ["plugins.a.grants.secrets.KEY", "LONGSHORE_TESTS_NOT_SET"],
        ),
        (
            "[plugins.a.grants]\nsecrets = { KEY = \"in-the-file\" }".to_owned(),
            ["plugins.a.grants.secrets.KEY", "must be { env"],
        ),
        (
            "[plugins.a.grants]\nask = [\"everything\"]".to_owned(),
            ["ask", "everything"],
        ),
        (
            "[plugins.a.grants]\nnetwork = true".to_owned(),
            ["network", "unknown"],
        ),
    ] {
        let said = refused_start(&[], &config);
        for word in words {
            assert!(said.contains(word), "no {word} in {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
        // A secret that was written where it must not be is not told on.
        assert!(!said.contains("in-the-file"), "{said}");
    }
}

#[test]
fn a_plugin_cannot_be_granted_what_it_could_grant_itself_more_by() {
    let home = Home::new(&[], "");
    fs::create_dir_all(home.data().join("keys")).unwrap();
    let whole = home.path().to_owned();
    for (folder, write) in [
        (home.data(), false),
        (home.data().join("keys"), false),
        (whole.clone(), false),
        (home.plugins(), true),
        (whole, true),
    ] {
        home.configure(&format!(
            "[plugins.a.grants]\ndirectories = [{{ host = {folder:?}, guest = \"/x\", write = {write} }}]"
        ));
        let said = refused_start_in(&home);
        assert!(said.contains("must not be granted"), "{said}");
    }
}

#[test]
fn h14_only_granted_variables_are_seen() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), "s3cr3t-value\n").unwrap();
    let server = Server::start(
        &[HOSTILE, FIXTURES],
        &format!(
            "[log]\nlevel = \"debug\"\n[plugins.hostile.grants]\nenvironment = [\"PATH\", \"LONGSHORE_TESTS_NOT_SET\"]\n\
             settings = {{ UNITS = \"metric\", COUNT = 3 }}\nsecrets = {{ KEY = {{ file = {:?} }} }}\n",
            secret.path()
        ),
    );
    let seen = server.call("env", json!({}));
    let seen = seen.result()["structuredContent"]["vars"]
        .as_array()
        .unwrap()
        .clone();
    let value = |name: &str| {
        seen.iter()
            .find(|pair| pair[0] == name)
            .map(|pair| pair[1].clone())
    };
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!(value("UNITS").unwrap(), "metric");
    assert_eq!(value("COUNT").unwrap(), "3");
    assert_eq!(value("KEY").unwrap(), "s3cr3t-value");
    assert!(!value("PATH").unwrap().as_str().unwrap().is_empty());

    // Printed, it is not in the log.
    let told = server.call("print_variable", json!({ "name": "KEY" }));
    assert_eq!(told.text(), "printed 12 characters");
    wait_for("the lines", PATIENCE, || {
        server.log().contains("logged [secret]").then_some(())
    });
    let log = server.log();
    assert!(log.contains("again: [secret][secret]"), "{log}");
    assert!(!log.contains("s3cr3t-value"), "{log}");
}

#[test]
fn asking_the_client_can_be_withheld() {
    let server = Server::start(
        &[FIXTURES],
        "[plugins.fixtures.grants]\nask = [\"roots\"]\n",
    );
    let reply = server.send(&Message::call("ask_one", json!({})).asks());
    let told = reply.response().to_string();
    assert!(told.contains("asking the client (elicitation)"), "{told}");
    assert!(told.contains("plugins.fixtures.grants.ask"), "{told}");
    let line =
        "[plugins.fixtures.grants]: ask = [\\\"elicitation\\\", \\\"roots\\\"]".replace('\\', "");
    wait_for("the line", PATIENCE, || {
        server.log().contains(&line).then_some(())
    });
}

/// The state of a call that asks.
fn asked(server: &Server, call: &Message) -> Value {
    let asked = server.send(call).result().clone();
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    asked
}

pub(crate) fn yes(call: &Message, asked: &Value) -> Message {
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let answers = answer(key, accept(json!({ "confirm": true })));
    let next = call.clone().param("inputResponses", answers);
    next.param("requestState", asked["requestState"].clone())
}

#[test]
fn an_effect_happens_once_though_the_call_asks() {
    for linger in ["", "[tasks]\nlinger_ms = 0\n"] {
        let outer = notes();
        let config = format!("{linger}{}", folder_grant(outer.path(), true));
        let server = Server::start(&[HOSTILE], &config);
        let arguments = json!({ "path": "/notes/once.txt", "text": "written" });
        let call = Message::call("write_then_ask", arguments.clone()).asks();
        let asked = asked(&server, &call);
        let file = outer.path().join("notes/once.txt");
        assert_eq!(fs::read_to_string(&file).unwrap(), "written\n");
        let next = yes(&call, &asked);
        assert!(server.send(&next).text().contains("written"), "{asked:#}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "written\n");
        // It was parked in memory, for a single use.
        assert_eq!(server.send(&next).code(), -32602);

        let task = server.call_task("write_then_ask", arguments);
        let key = task.wait_questions().remove(0);
        task.answer(&key, decline());
        wait_for("the task to end", PATIENCE, || {
            let status = task.get()["status"].clone();
            ["completed", "failed"]
                .iter()
                .any(|end| status == *end)
                .then_some(())
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), "written\nwritten\n");
    }
}

#[test]
fn a_call_with_an_effect_is_not_run_again_after_a_crash() {
    let outer = notes();
    let server = Server::start(&[HOSTILE], &folder_grant(outer.path(), true));
    let arguments = json!({ "path": "/notes/once.txt", "text": "written" });
    let task = server.call_task("write_then_ask", arguments);
    task.wait_questions();
    let id = task.id;
    let server = Server::start_in(server.kill());
    let failed = server.task(&id).wait("failed");
    assert_eq!(
        failed["error"]["data"]["reason"], "interrupted",
        "{failed:#}"
    );
    let text = fs::read_to_string(outer.path().join("notes/once.txt")).unwrap();
    assert_eq!(text, "written\n");
}

#[test]
fn a_state_is_good_for_the_same_grants_only() {
    let config = |setting: &str| {
        format!("[plugins.fixtures.grants]\nsettings = {{ UNITS = \"{setting}\" }}\n")
    };
    let home = Arc::new(Home::new(&[FIXTURES], &config("metric")));
    let server = Server::start_in(home.clone());
    let call = Message::call("ask_one", json!({})).asks();
    let first = asked(&server, &call);
    let answers = |asked: &Value| {
        let answers = answer("number", accept(json!({ "number": 7 })));
        let next = call.clone().param("inputResponses", answers);
        next.param("requestState", asked["requestState"].clone())
    };
    let server = Server::start_in(server.kill());
    assert_eq!(server.send(&answers(&first)).text(), "the number is 7");
    home.configure(&config("imperial"));
    let server = Server::start_in(server.kill());
    let refused = server.send(&answers(&first));
    assert_eq!(refused.error()["data"]["reason"], "diverged", "{refused:?}");
    assert!(
        refused
            .error_text()
            .contains("grants the plugin fixtures has changed"),
        "{refused:?}"
    );
}

#[test]
fn sockets_are_never_granted() {
    let origin = Origin::start();
    let server = Server::start(&[HOSTILE], "");
    let address = format!("127.0.0.1:{}", origin.port());
    refusal(&server, "connect", json!({ "address": address }));
    refusal(&server, "connect", json!({ "address": "localhost:1" }));
    refusal(&server, "listen", json!({}));
    assert!(origin.requests().is_empty());
}

#[test]
fn an_effect_of_a_task_that_runs_is_not_done_again_after_a_crash() {
    // Before the call became a task, and after.
    for support in ["optional", "required"] {
        let outer = notes();
        let required =
            format!("[plugins.hostile.tools.write_and_wait]\ntask_support = \"{support}\"\n");
        let config = format!("{}{required}", folder_grant(outer.path(), true));
        let server = Server::start(&[HOSTILE], &config);
        let arguments = json!({ "path": "/notes/once.txt", "ms": 60_000 });
        let id = server.call_task("write_and_wait", arguments).id;
        let file = outer.path().join("notes/once.txt");
        wait_for("the effect", PATIENCE, || {
            fs::read_to_string(&file)
                .is_ok_and(|text| text == "once\n")
                .then_some(())
        });
        let server = Server::start_in(server.kill());
        let failed = server.task(&id).wait("failed");
        assert_eq!(
            failed["error"]["data"]["reason"], "interrupted",
            "{support}: {failed:#}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "once\n", "{support}");
    }
}

#[test]
fn what_a_run_writes_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let config = format!(
        "[plugins.hostile.limits]\nwritten_bytes = 1000\n[plugins.hostile.grants]\n\
         directories = [{{ host = {path:?}, guest = \"/d\", write = true }}]\n"
    );
    let server = Server::start(&[HOSTILE], &config);
    let write = |name: &str, bytes: usize| {
        let text = "x".repeat(bytes);
        server.call(
            "write",
            json!({ "path": format!("/d/{name}"), "text": text }),
        )
    };
    // Each run has its own bytes.
    for name in ["a", "b"] {
        assert_eq!(write(name, 1_000).text(), "written");
    }
    let reply = write("c", 1_001);
    assert_eq!(reply.result()["isError"], true, "{reply:?}");
    let told = reply.response().to_string();
    for word in [
        "hostile",
        "written_bytes = 1000",
        "plugins.hostile.limits.written_bytes",
    ] {
        assert!(told.contains(word), "no {word} in {told}");
    }
    let written = fs::metadata(path.join("c")).unwrap().len();
    assert!(written <= 1_000, "{written} bytes were written");
    // Bytes that replace others count too, and so does a file that is stretched.
    let reply = server.call(
        "rewrite",
        json!({ "path": "/d/a", "text": "x".repeat(600) }),
    );
    assert!(
        reply
            .response()
            .to_string()
            .contains("written_bytes = 1000"),
        "{reply:?}"
    );
    let reply = server.call("stretch", json!({ "path": "/d/a", "bytes": 1_u64 << 40 }));
    assert!(
        reply
            .response()
            .to_string()
            .contains("written_bytes = 1000"),
        "{reply:?}"
    );
}
