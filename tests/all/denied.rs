//! What a denial tells the operator: a line that works, and takes nothing away that was granted.

use crate::grants::{folder_grant, notes, refusal};
use longshore_tests::origin::{Origin, authority};
use longshore_tests::server::{HOSTILE, Server};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::fs;

/// The lines of the log that would allow what was denied since the last look, in their order.
fn told_lines(server: &Server, from: &mut usize, count: usize) -> Vec<String> {
    wait_for("the lines", PATIENCE, || {
        let log = server.log();
        let told = log.split("[plugins.hostile.grants]: ").skip(1 + *from);
        let line = |rest: &str| rest.lines().next().unwrap().replace(" plugin=hostile", "");
        let lines: Vec<_> = told.map(line).collect();
        (lines.len() >= count).then(|| {
            *from += lines.len();
            lines
        })
    })
}

#[test]
fn what_is_told_works_and_takes_nothing_away() {
    let outer = notes();
    let notes = outer.path().join("notes");
    let more = outer.path().join("more");
    fs::create_dir(&more).unwrap();
    fs::write(more.join("file"), "more").unwrap();
    let origin = Origin::start();
    let there = format!("http://127.0.0.1:{}/there", origin.port());
    let config = format!(
        "directories = [{{ host = {notes:?}, guest = \"/notes\" }}]\n\
         hosts = [\"http://b.test:81\"]\n"
    );
    let mut server = Server::start(&[HOSTILE], &format!("[plugins.hostile.grants]\n{config}"));
    for (tool, arguments, key) in [
        ("cat", json!({ "path": "/more/file" }), "directories"),
        ("ls", json!({ "path": "/more" }), "directories"),
        (
            "write",
            json!({ "path": "/more/new", "text": "x" }),
            "directories",
        ),
        (
            "cat",
            json!({ "path": "/notes/../more/file" }),
            "directories",
        ),
        (
            "write",
            json!({ "path": "/notes/new", "text": "x" }),
            "directories",
        ),
        (
            "write",
            json!({ "path": "/notes/folder/new", "text": "x" }),
            "directories",
        ),
        ("send", json!({ "url": there }), "hosts"),
    ] {
        let told = refusal(&server, tool, arguments.clone());
        assert!(
            told.contains(&format!("plugins.hostile.grants.{key}")),
            "{told}"
        );
        let lines = told_lines(&server, &mut 0, 1);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line = lines[0].replace("/some/folder", more.to_str().unwrap());
        // As an operator would: it takes the place of the line with its key.
        let kept = config.lines().filter(|line| !line.starts_with(key));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        let (_, home) = server.terminate();
        home.configure(&format!("[plugins.hostile.grants]\n{kept}{line}\n"));
        server = Server::start_in(home).settled();
        if arguments["path"] == "/notes/../more/file" {
            // That way leads nowhere whatever is granted, but the place can be had.
            assert_eq!(
                server.call("cat", json!({ "path": "/more/file" })).text(),
                "more"
            );
        } else {
            let reply = server.call(tool, arguments);
            assert_eq!(reply.result()["isError"], Value::Null, "{reply:?}");
        }
        assert_eq!(
            server
                .call("cat", json!({ "path": "/notes/note.txt" }))
                .text(),
            "a note"
        );
        let (_, home) = server.terminate();
        home.configure(&format!("[plugins.hostile.grants]\n{config}"));
        server = Server::start_in(home).settled();
    }
}

#[test]
fn all_that_was_granted_stands_in_the_line() {
    let server = Server::start(
        &[HOSTILE],
        &format!(
            "[plugins.hostile.grants]\nhosts = [{{ url = \"https://a.test\", addresses = [\"10.0.0.0/8\"], ca_file = {:?} }}, \"http://b.test:81\"]\n",
            authority()
        ),
    );
    refusal(&server, "send", json!({ "url": "https://c.test" }));
    let lines = told_lines(&server, &mut 0, 1);
    let told: toml::Table = lines[0].parse().unwrap();
    let hosts = told["hosts"].as_array().unwrap();
    assert_eq!(hosts[0]["addresses"][0].as_str(), Some("10.0.0.0/8"));
    assert_eq!(hosts[0]["ca_file"].as_str(), authority().to_str());
    assert_eq!(hosts[1].as_str(), Some("http://b.test:81"));
    assert_eq!(hosts[2].as_str(), Some("https://c.test"));
}

#[test]
fn what_no_grant_can_allow_is_told_too() {
    let outer = notes();
    let server = Server::start(&[HOSTILE], &folder_grant(outer.path(), false));
    let told = refusal(&server, "connect", json!({ "address": "127.0.0.1:9" }));
    assert!(
        told.contains("The plugin hostile was denied a TCP socket"),
        "{told}"
    );
    assert!(told.contains("no grant opens sockets"), "{told}");
    let told = refusal(&server, "connect", json!({ "address": "db.test:5432" }));
    assert!(
        told.contains("was denied a look-up of the host db.test"),
        "{told}"
    );
    wait_for("the operator's line", PATIENCE, || {
        let log = server.log();
        log.contains("no grant opens sockets, only hosts for HTTP requests")
            .then_some(())
    });

    let mut seen = 0;
    for (path, words, guest) in [
        (
            "/notes/../secret.txt",
            "reading /secret.txt",
            "/some/folder",
        ),
        (
            "/notes/folder/../../../etc/passwd",
            "reading /etc/passwd",
            "/etc",
        ),
        (
            "/notes/absolute",
            "reading /notes/absolute, a link that leads out",
            "/some/folder",
        ),
        ("/passwd", "reading /passwd", "/some/folder"),
    ] {
        let told = refusal(&server, "cat", json!({ "path": path }));
        assert!(told.contains(words), "{path}: {told}");
        let line = told_lines(&server, &mut seen, 1).remove(0);
        let line: toml::Table = line.parse().unwrap();
        let folders = line["directories"].as_array().unwrap();
        assert_eq!(folders[0]["guest"].as_str(), Some("/notes"), "{folders:?}");
        assert_eq!(folders[1]["guest"].as_str(), Some(guest), "{folders:?}");
    }
}
