//! Lists page by page: a client that began with one list gets all of it, whatever changes meanwhile.

use longshore_tests::client::Message;
use longshore_tests::server::{CONFORMANCE, FIXTURES, Home, SCHEMAS, Server, VERSION_A, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

const SMALL_PAGES: &str = "[lists]\npage_size = 5\n";

fn page(server: &Server, cursor: Option<&Value>) -> (Vec<String>, Option<Value>) {
    let mut message = Message::new("tools/list");
    if let Some(cursor) = cursor {
        message = message.param("cursor", cursor.clone());
    }
    let reply = server.send(&message);
    let tools = reply.result()["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let names = tools.iter().map(name).collect();
    (names, reply.result().get("nextCursor").cloned())
}

/// All pages from here on.
fn rest(server: &Server, mut cursor: Option<Value>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(at) = cursor {
        let (names, next) = page(server, Some(&at));
        all.extend(names);
        cursor = next;
    }
    all
}

fn all(server: &Server) -> Vec<String> {
    let (mut names, cursor) = page(server, None);
    names.extend(rest(server, cursor));
    names
}

#[test]
fn the_pages_of_a_list_are_of_one_list() {
    let server = Server::start(&[FIXTURES], SMALL_PAGES);
    let before = all(&server);
    let (first, cursor) = page(&server, None);
    server.home.install(CONFORMANCE);
    let after = wait_for("the new tools", PATIENCE, || {
        let now = all(&server);
        (now.len() > before.len()).then_some(now)
    });
    // Another change: the list of the cursor is not even the last but one.
    server.home.install(VERSION_A);
    wait_for("the other new tool", PATIENCE, || {
        (all(&server).len() == after.len() + 1).then_some(())
    });
    assert_eq!([first, rest(&server, cursor)].concat(), before);
}

#[test]
fn a_cursor_is_good_after_a_restart_unless_the_list_has_changed() {
    let server = Server::start(&[FIXTURES], SMALL_PAGES);
    let before = all(&server);
    let (first, cursor) = page(&server, None);
    let (_, home) = server.terminate();
    let server = Server::start_in(home);
    let cursor = cursor.unwrap();
    assert_eq!(
        [first, rest(&server, Some(cursor.clone()))].concat(),
        before
    );
    let (_, home) = server.terminate();
    home.install(VERSION_A);
    let server = Server::start_in(home);
    let refused = server.send(&Message::new("tools/list").param("cursor", cursor));
    assert_eq!((refused.status(), refused.code()), (200, -32602));
    assert!(refused.error_text().contains("changed"), "{refused:?}");
}

#[test]
fn a_page_of_large_entries_is_shorter() {
    // Each lists some 60 KiB.
    const COPIES: usize = 30;
    const BYTES_MAX: usize = (1 << 20) + 1_000;
    let copies = || (0..COPIES).map(|copy| format!("copy{copy}"));
    let prefix = |copy: String| format!("[plugins.{copy}]\nprefix = \"{copy}.\"\n");
    let config: String = copies().map(prefix).collect();
    let home = Arc::new(Home::new(&[], &config));
    let component = fs::read(component(SCHEMAS)).unwrap();
    copies().for_each(|copy| home.install_as(&format!("{copy}.wasm"), &component));
    let server = Server::start_in(home).settled();
    let mut names = BTreeSet::new();
    let (mut pages, mut cursor) = (0, None);
    loop {
        let mut message = Message::new("tools/list");
        if let Some(cursor) = cursor {
            message = message.param("cursor", cursor);
        }
        let reply = server.send(&message);
        assert!(reply.body.len() < BYTES_MAX, "{} bytes", reply.body.len());
        let tools = reply.result()["tools"].as_array().unwrap();
        assert!(!tools.is_empty());
        names.extend(tools.iter().map(|tool| tool["name"].to_string()));
        pages += 1;
        cursor = reply.result().get("nextCursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names.len(), COPIES * 6);
    assert!(pages > 1);
}
