//! Pipes in the place of files: none is waited for, and each is told by its name, or is made anew where nothing is lost by it.

use crate::command::run;
use longshore_tests::server::{HOSTILE, Home, Server, VERSION_A};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::json;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A pipe that nobody writes, whatever was there before.
fn pipe_at(path: &Path) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

fn is_pipe(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().file_type().is_fifo()
}

/// The start ends, and says which file it is.
fn check_refused(home: &Home, path: &Path) {
    let output = run(&mut home.command());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}: {said}", path.display());
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(
        said.contains(name) && said.contains("regular file"),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
}

/// A home as a server with these settings left it.
fn used(config: &str) -> Arc<Home> {
    let home = Home::new(&[VERSION_A], "");
    home.configure_apart(config);
    Server::start_in(Arc::new(home)).settled().terminate().1
}

/// With a pipe in the place of this file the start is refused. Then the file is as it was.
fn check_refused_with_pipe(home: &Home, path: &Path) {
    let kept = fs::read(path).ok();
    pipe_at(path);
    check_refused(home, path);
    fs::remove_file(path).unwrap();
    if let Some(kept) = kept {
        fs::write(path, kept).unwrap();
    }
}

#[test]
fn the_start_waits_for_no_pipe_of_the_task_store() {
    for (engine, files) in [
        ("redb", vec!["lock", "mark", "format"]),
        ("sled", vec!["sled/conf", "sled/snap.0000000000000001"]),
    ] {
        let home = used(&format!("[store]\nengine = \"{engine}\"\n"));
        for file in files {
            check_refused_with_pipe(&home, &home.data().join("tasks").join(file));
        }
        // A new folder, with nothing but the pipe.
        fs::remove_dir_all(home.data()).unwrap();
        let database = home.data().join("tasks").join(engine).join("db");
        pipe_at(&database);
        check_refused(&home, &database);
    }
}

#[test]
fn the_start_waits_for_no_pipe_of_the_keys_and_the_history() {
    let home = used("");
    for path in [
        home.data().join("keys/state.key"),
        home.data().join("keys/state.former.key"),
        home.data().join("components/history.json"),
        home.cache().join("mac.key"),
    ] {
        check_refused_with_pipe(&home, &path);
    }
    let pipe = home.path().join("secret");
    pipe_at(&pipe);
    for grant in [
        format!("secrets = {{ KEY = {{ file = {pipe:?} }} }}"),
        format!("hosts = [{{ url = \"https://a.test\", ca_file = {pipe:?} }}]"),
    ] {
        home.configure(&format!("[plugins.a.grants]\n{grant}\n"));
        check_refused(&home, &pipe);
    }
}

/// The files of a folder with this ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let ends = |path: &PathBuf| path.extension().is_some_and(|is| is == ending);
    let found: Vec<_> = paths.filter(ends).collect();
    assert!(!found.is_empty(), "{ending}");
    found
}

#[test]
fn pipes_in_the_place_of_what_can_be_made_again_are_replaced() {
    let mut home = used("");
    for (folder, ending) in [
        (home.cache(), "cwasm"),
        (home.cache(), "mac"),
        (home.data().join("components"), "wasm"),
    ] {
        let pipes = files(&folder, ending);
        pipes.iter().for_each(|path| pipe_at(path));
        let server = Server::start_in(home).settled();
        assert_eq!(server.call("version", json!({})).text(), "a");
        for path in pipes {
            assert!(!is_pipe(&path), "{}", path.display());
        }
        home = server.terminate().1;
    }
}

#[test]
fn a_pipe_that_came_in_the_place_of_a_granted_folder_is_not_opened() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("notes");
    fs::create_dir(&folder).unwrap();
    let grant = format!("directories = [{{ host = {folder:?}, guest = \"/notes\" }}]");
    let server = Server::start(&[HOSTILE], &format!("[plugins.hostile.grants]\n{grant}\n"));
    fs::remove_dir(&folder).unwrap();
    pipe_at(&folder);
    let reply = server.call("ls", json!({ "path": "/notes" }));
    assert_eq!(reply.code(), -32603, "{reply:?}");
    wait_for("the word of it", PATIENCE, || {
        let told = server.log().contains("a granted folder cannot be opened");
        told.then_some(())
    });
}
