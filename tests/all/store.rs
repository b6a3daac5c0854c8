//! `longshore store`, as an operator uses it: look, back up, move to the other database.

use crate::command::run;
use longshore_tests::client::accept;
use longshore_tests::server::{FIXTURES, Home, Server, binary};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn store(home: &Home, command: &str, more: &[&str]) -> Output {
    let mut process = Command::new(binary());
    process.args(["store", command, "--config"]);
    process.arg(home.config()).arg("--data").arg(home.data());
    run(process.args(more))
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", out(output), err(output));
    out(output)
}

/// What it says of its failure.
fn fails(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", out(output));
    let said = err(output);
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// Tasks that wait for an answer, and one that has ended.
struct Tasks {
    asking: Vec<String>,
    ended: String,
}

impl Tasks {
    fn make(server: &Server) -> Self {
        let asks = |_| {
            let task = server.call_task("ask_one", json!({}));
            task.wait("input_required");
            task.id
        };
        let ended = server.call_task("sleep_required", json!({ "ms": 1 }));
        ended.wait_text();
        Self {
            asking: (0..3).map(asks).collect(),
            ended: ended.id,
        }
    }

    /// All are as they were; one of those that wait is answered, and goes on.
    fn check(&mut self, server: &Server) {
        assert_eq!(server.task(&self.ended).wait_text(), "slept 1 ms");
        for id in &self.asking {
            server.task(id).wait("input_required");
        }
        let id = self.asking.pop().unwrap();
        let task = server.task(&id);
        task.answer("number", accept(json!({ "number": 7 })));
        assert_eq!(task.wait_text(), "the number is 7");
    }
}

fn config(engine: &str) -> String {
    format!("[store]\nengine = \"{engine}\"\n")
}

fn tasks_folder(home: &Home) -> PathBuf {
    home.data().join("tasks")
}

/// Writes all tasks into a file, as `longshore store export > FILE` does.
fn export(home: &Home) -> PathBuf {
    let file = home.path().join("tasks.jsonl");
    fs::write(&file, succeeds(&store(home, "export", &[]))).unwrap();
    file
}

#[test]
fn tasks_move_to_the_other_database_and_back() {
    let mut server = Server::start(&[FIXTURES], &config("sled"));
    let mut tasks = Tasks::make(&server);
    for (old, new) in [("sled", "redb"), ("redb", "sled")] {
        let (_, home) = server.terminate();
        home.configure(&config(new));
        let refused = fails(&run(&mut home.command()));
        for part in ["made with", old, new, "store export", "store import"] {
            assert!(refused.contains(part), "no {part} in {refused}");
        }
        // As it says.
        let file = export(&home);
        let refused = fails(&store(&home, "import", &[file.to_str().unwrap()]));
        assert!(refused.contains("store.engine"), "{refused}");
        fs::rename(tasks_folder(&home), home.path().join(old)).unwrap();
        let said = succeeds(&store(&home, "import", &[file.to_str().unwrap()]));
        assert!(said.contains("4 tasks"), "{said}");
        assert!(tasks_folder(&home).join(new).join("db").is_file());
        server = Server::start_in(home);
        tasks.check(&server);
    }
}

#[test]
fn a_cut_export_leaves_nothing_behind() {
    let server = Server::start(&[FIXTURES], "");
    let mut tasks = Tasks::make(&server);
    let (_, home) = server.terminate();
    let whole = export(&home);
    let text = fs::read_to_string(&whole).unwrap();
    fs::rename(tasks_folder(&home), home.path().join("old")).unwrap();
    let first_three: Vec<&str> = text.lines().take(3).collect();
    let wrong_count = text.replace("\"tasks\":4", "\"tasks\":5");
    assert_ne!(wrong_count, text);
    for damaged in [first_three.join("\n") + "\n", wrong_count, String::new()] {
        let file = home.path().join("damaged.jsonl");
        fs::write(&file, damaged).unwrap();
        let said = fails(&store(&home, "import", &[file.to_str().unwrap()]));
        assert!(said.contains("line "), "{said}");
        assert!(!tasks_folder(&home).exists());
    }
    succeeds(&store(&home, "import", &[whole.to_str().unwrap()]));
    tasks.check(&Server::start_in(home));
}

#[test]
fn a_store_is_looked_at_while_no_server_runs() {
    let config = "[plugins.fixtures.tools.external_id]\ntask_support = \"required\"\n";
    let server = Server::start(&[FIXTURES], config);
    let tasks = Tasks::make(&server);
    let named = server.call_task("external_id", json!({ "id": "job-17" }));
    named.wait("completed");
    let named = named.id;
    let pid = server.pid().to_string();
    for (command, more) in [
        ("check", &[][..]),
        ("export", &[]),
        ("export", &["--damaged"]),
        ("find", &["--external-id", "x"]),
    ] {
        let said = fails(&store(&server.home, command, more));
        let told = said.contains("in use") && said.contains(&pid);
        assert!(told, "{command}: {said}");
    }
    // Killed, not stopped: what it left is whole all the same.
    let home = server.kill();
    let said = succeeds(&store(&home, "check", &[]));
    let summary = ["5 tasks", "3 of them unfinished", "0 damaged"];
    assert!(summary.iter().all(|part| said.contains(part)), "{said}");
    let text = fs::read_to_string(export(&home)).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 7);
    let ended = lines.iter().find(|line| line["id"] == *tasks.ended);
    assert_eq!(ended.unwrap()["about"]["status"], "completed");
    assert_eq!(ended.unwrap()["about"]["tool"], "sleep_required");
    let found = succeeds(&store(&home, "find", &["--external-id", "job-17"]));
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["id"], *named);
    assert_eq!(found["externalId"], "job-17");
    let said = fails(&store(&home, "find", &["--external-id", "job"]));
    assert!(said.contains("no task has the external id"), "{said}");
    let again = home.path().join("tasks.jsonl");
    let said = fails(&store(&home, "import", &[again.to_str().unwrap()]));
    assert!(said.contains("already holds"), "{said}");
}

/// Changes bytes all over the part of a file that is in use.
fn damage(file: &Path) {
    let bytes = fs::read(file).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let opened = fs::OpenOptions::new().write(true).open(file).unwrap();
    for place in (4_000..used).step_by(500) {
        let flipped = [bytes[place] ^ 0x55];
        opened.write_all_at(&flipped, place as u64).unwrap();
    }
}

#[test]
fn a_damaged_store_is_named_and_never_taken_for_an_empty_one() {
    for engine in ["redb", "sled"] {
        let server = Server::start(&[FIXTURES], &config(engine));
        Tasks::make(&server);
        let (_, home) = server.terminate();
        damage(&tasks_folder(&home).join(engine).join("db"));
        let start = fails(&run(&mut home.command()));
        let check = fails(&store(&home, "check", &[]));
        let folder = tasks_folder(&home).display().to_string();
        for said in [start, check] {
            for part in ["damaged", &folder, "put back a copy", "--damaged"] {
                assert!(said.contains(part), "{engine}: no {part} in {said}");
            }
        }
    }
}

#[test]
fn no_store_is_no_empty_store() {
    let home = Home::new(&[], "");
    for command in ["check", "export"] {
        let said = fails(&store(&home, command, &[]));
        assert!(said.contains("no store was ever made there"), "{said}");
    }
    assert!(!tasks_folder(&home).exists(), "looking makes nothing");
    let missing = home.path().join("missing.jsonl");
    let said = fails(&store(&home, "import", &[missing.to_str().unwrap()]));
    assert!(said.contains("missing.jsonl"), "{said}");
    let cut = home.path().join("cut.jsonl");
    fs::write(&cut, "{\"export\":\"longshore tasks\",\"version\":1}\n").unwrap();
    let said = fails(&store(&home, "import", &[cut.to_str().unwrap()]));
    assert!(said.contains("line 2 of the export"), "{said}");
}
