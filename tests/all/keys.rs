//! The keys that seal what clients carry between rounds: made here or given by the operator, shared, and followed by others.

use crate::grants::refused_start_in;
use longshore_tests::client::{Message, accept, answer};
use longshore_tests::server::{FIXTURES, Home, Server};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn call() -> Message {
    Message::call("ask_one", json!({})).asks()
}

/// The state of a call that asked.
fn sealed(server: &Server) -> Value {
    let asked = server.send(&call());
    let state = asked.result()["requestState"].clone();
    // Not one that is a name in one server's memory.
    let text = state.as_str().unwrap();
    assert!(text.len() > 100 && !text.contains('.'), "{text}");
    state
}

/// Whether a server goes on with a call of this state.
fn opens(server: &Server, state: &Value) -> bool {
    let answers = answer("number", accept(json!({ "number": 7 })));
    let next = call().param("inputResponses", answers);
    let reply = server.send(&next.param("requestState", state.clone()));
    if reply.response().get("error").is_some() {
        assert_eq!((reply.status(), reply.code()), (200, -32602));
        assert!(reply.error_text().contains("requestState"), "{reply:?}");
        return false;
    }
    assert_eq!(reply.text(), "the number is 7");
    true
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A file with a key: another one for each name.
fn key(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("{name:.<32}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn config(keys: &[&PathBuf]) -> String {
    format!("state_key_files = {keys:?}\n")
}

fn restart(server: Server, config: &str) -> Server {
    let (_, home) = server.terminate();
    home.configure(config);
    Server::start_in(home).settled()
}

#[test]
fn a_key_is_made_for_its_user_alone_and_one_before_it_still_opens() {
    let server = Server::start(&[FIXTURES], "");
    let folder = server.home.data().join("keys");
    let (now, former) = (folder.join("state.key"), folder.join("state.former.key"));
    assert_eq!((mode(&folder), mode(&now)), (0o700, 0o600));
    assert_eq!(fs::read(&now).unwrap().len(), 32);
    let first = sealed(&server);
    let server = restart(server, "");
    assert!(opens(&server, &first));
    let rotate = |server: Server| {
        fs::rename(&now, &former).unwrap();
        restart(server, "")
    };
    let server = rotate(server);
    assert_eq!(mode(&now), 0o600);
    assert!(opens(&server, &first));
    let second = sealed(&server);
    let server = rotate(server);
    assert!(!opens(&server, &first) && opens(&server, &second));
}

#[test]
fn servers_with_one_key_take_each_others_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let one = key(folder.path(), "one.key");
    let shared = [(); 2].map(|()| Server::start(&[FIXTURES], &config(&[&one])));
    let apart = Server::start(&[FIXTURES], "");
    for (asked, next) in [(0, 1), (1, 0)] {
        let state = sealed(&shared[asked]);
        assert!(opens(&shared[next], &state) && !opens(&apart, &state));
    }
    assert!(!opens(&shared[0], &sealed(&apart)));
    // The data folder has no key that nobody needs.
    assert!(!shared[0].home.data().join("keys/state.key").exists());
}

#[test]
fn two_keys_at_a_time_let_one_follow_another() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, three] = ["one", "two", "three"].map(|name| key(folder.path(), name));
    let server = Server::start(&[FIXTURES], &config(&[&one]));
    let first = sealed(&server);
    // It is known before it is used.
    let server = restart(server, &config(&[&one, &two]));
    let still_first = sealed(&server);
    let server = restart(server, &config(&[&two, &one]));
    assert!(opens(&server, &first) && opens(&server, &still_first));
    let second = sealed(&server);
    let server = restart(server, &config(&[&three, &two]));
    assert!(!opens(&server, &first) && opens(&server, &second));
}

#[test]
fn a_key_that_is_none_stops_the_start_and_the_error_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&[], "");
    let with = |name: &str, bytes: usize, mode: u32| {
        let path = key(folder.path(), name);
        fs::write(&path, vec![7; bytes]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let good = with("good", 32, 0o640);
    let missing = folder.path().join("missing");
    for (keys, words) in [
        (vec![&missing], "No such file"),
        (vec![&good, &missing], "No such file"),
        (vec![&with("short", 31, 0o600)], "only 31"),
        (vec![&with("empty", 0, 0o600)], "only 0"),
        (vec![&with("long", 33, 0o600)], "there are more"),
        (vec![&with("open", 32, 0o644)], "chmod 600"),
        (vec![&folder.path().to_owned()], "not a regular file"),
        (vec![&good, &good], "two different ones"),
        (vec![&good, &missing, &good], "two different ones"),
    ] {
        home.configure(&config(&keys));
        let said = refused_start_in(&home);
        assert!(
            said.contains(words) && said.contains("state_key_files"),
            "{said}"
        );
        assert!(
            said.contains(keys.last().unwrap().to_str().unwrap()),
            "{said}"
        );
    }
    home.configure(&config(&[&good]));
    Server::start_in(Arc::new(home)).settled();
}

#[test]
fn a_plugin_cannot_be_granted_the_folder_of_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&[], "");
    let keys = config(&[&key(folder.path(), "state.key")]);
    // Who may put another link in its place says which key it is.
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("state.key"), &link).unwrap();
    for (keys, folder) in [(keys, folder.path()), (config(&[&link]), links.path())] {
        home.configure(&format!(
            "{keys}[plugins.a.grants]\ndirectories = [{{ host = {folder:?}, guest = \"/x\", write = true }}]"
        ));
        let said = refused_start_in(&home);
        assert!(said.contains("must not be granted"), "{said}");
    }
}
