//! Cases of files: what lies in the directory of plugins and is none, or not one that can be served.

use longshore_tests::server::{Home, Server, VERSION_A, VERSION_B, binary, component, variant};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn served(server: &Server) -> usize {
    let (_, ready) = server.get("/readyz");
    let ready: Value = serde_json::from_str(&ready).unwrap();
    ready["plugins"].as_array().unwrap().len()
}

#[test]
fn h06_a_damaged_file_is_one_refusal() {
    const PIECES: usize = 64;
    const FLIPPED: usize = 256;
    let mut server = Server::start(&[VERSION_B], "[log]\nlevel = \"warn\"\n");
    let good = fs::read(component(VERSION_A)).unwrap();
    for piece in 0..PIECES {
        let cut = &good[..good.len() * piece / PIECES];
        server.home.install_as(&format!("cut-{piece:02}.wasm"), cut);
    }
    for byte in 0..FLIPPED {
        let mut flipped = good.clone();
        flipped[byte] ^= 0xff;
        let name = format!("flip-{byte:03}.wasm");
        server.home.install_as(&name, &flipped);
    }
    wait_for("each to be served or refused", 4 * PATIENCE, || {
        (server.refused().len() + served(&server) == PIECES + FLIPPED + 1).then_some(())
    });
    let reasons = server.refused();
    for piece in 0..PIECES {
        let reason = &reasons[&format!("cut-{piece:02}")];
        assert!(!reason.contains("panicked"), "{reason}");
    }
    assert!(
        reasons["cut-00"].contains("no WebAssembly file"),
        "{reasons:?}"
    );
    assert!(!server.log().contains("panicked"));
    assert_eq!(server.call("version", json!({})).text(), "b");
    server.check_alive();
}

#[test]
fn h06_what_is_no_component_file_is_not_opened_or_not_read() {
    let server = Server::start(&[VERSION_B], "");
    let plugins = server.home.plugins();
    server.home.install_as("text.wasm", b"#!/bin/sh\necho no\n");
    fs::create_dir(plugins.join("folder.wasm")).unwrap();
    mkfifoat(CWD, plugins.join("pipe.wasm"), Mode::from_raw_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("loop.wasm", plugins.join("loop.wasm")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", plugins.join("device.wasm")).unwrap();
    let zeros = fs::File::create(server.home.path().join("zeros")).unwrap();
    zeros.set_len(1 << 30).unwrap();
    fs::rename(server.home.path().join("zeros"), plugins.join("zeros.wasm")).unwrap();
    let reasons = wait_for("the refusals", PATIENCE, || {
        let reasons = server.refused();
        ["pipe", "device", "text", "zeros"]
            .iter()
            .all(|name| reasons.contains_key(*name))
            .then_some(reasons)
    });
    for (name, word) in [
        ("text", "no WebAssembly"),
        ("pipe", "not a regular file"),
        ("device", "not a regular file"),
        ("zeros", "1073741824 bytes; at most 67108864"),
    ] {
        assert!(reasons[name].contains(word), "{name}: {reasons:?}");
    }
    within("a call beside them", Duration::from_secs(1), || {
        assert_eq!(server.call("version", json!({})).text(), "b");
    });
}

#[test]
fn h07_h08_a_refusal_names_the_remedy() {
    for (name, words) in [
        ("core", ["core module", "a component is needed"]),
        ("empty", ["does not export", "longshore:plugin@0.1"]),
        (
            "next-version",
            ["longshore:plugin@0.1", "longshore:plugin/tools@0.2.0"],
        ),
        (
            "import-next",
            ["longshore:plugin/log in version 0.2.0", "0.1 is offered"],
        ),
        (
            "import-wasi-next",
            [
                "wasi:clocks/monotonic-clock in version 0.3.0",
                "0.2 is offered",
            ],
        ),
    ] {
        let path = component(&format!("guests/hostile/{name}.wasm"));
        let output = Command::new(binary())
            .args(["plugin", "check"])
            .arg(path)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}");
        let said = String::from_utf8(output.stderr).unwrap();
        for word in words {
            assert!(said.contains(word), "{name}: no {word} in {said}");
        }
    }
}

#[test]
fn h23_of_two_plugins_with_one_tool_the_first_by_name_has_it() {
    let answers = |server: &Server| {
        let tools = server.tools();
        assert_eq!(tools, ["version"], "a name is listed once");
        server.call("version", json!({})).text().to_owned()
    };
    for order in [[VERSION_A, VERSION_B], [VERSION_B, VERSION_A]] {
        let server = Server::start(&[order[0]], "");
        server.home.install(order[1]);
        wait_for("both to be served", PATIENCE, || {
            (served(&server) == 2).then_some(())
        });
        assert_eq!(answers(&server), "a", "{order:?}");
        let (_, ready) = server.get("/readyz");
        let ready: Value = serde_json::from_str(&ready).unwrap();
        assert!(
            ready["plugins"][1]["left_out"]
                .to_string()
                .contains("version"),
            "{ready:#}"
        );
        // The same after a restart, and the other's turn when it is gone.
        let server = Server::start_in(server.kill());
        assert_eq!(answers(&server), "a");
        fs::remove_file(server.home.plugins().join("a.wasm")).unwrap();
        wait_for("the other", PATIENCE, || {
            (answers(&server) == "b").then_some(())
        });
    }
}

#[test]
fn w10_folders_may_lie_on_other_file_systems() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let home = Arc::new(Home::new(&[VERSION_A], ""));
    let config = format!("compile_cache_dir = {:?}\n", memory.path().join("cache"));
    fs::write(home.config(), config).unwrap();
    // The data beside the plugins, the cache elsewhere; then the other way round.
    let server = Server::start_in(home.clone());
    assert_eq!(server.call("version", json!({})).text(), "a");
    drop(server);
    std::os::unix::fs::symlink(memory.path(), home.path().join("other")).unwrap();
    let config = format!("compile_cache_dir = {:?}\n", home.path().join("cache"));
    fs::write(home.config(), config).unwrap();
    fs::remove_dir_all(home.data()).unwrap();
    std::os::unix::fs::symlink(memory.path(), home.data()).unwrap();
    let server = Server::start_in(home);
    assert_eq!(server.call("version", json!({})).text(), "a");
    server.home.install(VERSION_B);
    wait_for("the new file", PATIENCE, || {
        (served(&server) == 2).then_some(())
    });
}

#[test]
fn w10_a_folder_that_cannot_be_used_is_named() {
    let home = Home::new(&[VERSION_A], "");
    let file = home.path().join("a-file");
    fs::write(&file, "x").unwrap();
    fs::write(home.config(), format!("compile_cache_dir = {file:?}\n")).unwrap();
    let output = home.command().output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a-file"), "{said}");
}

/// Size of what is in a compile cache, in bytes.
fn cached_bytes(home: &Home) -> u64 {
    let files = fs::read_dir(home.cache()).unwrap();
    // One may go at that moment.
    let sizes = files.filter_map(|file| Some(file.unwrap().metadata().ok()?.len()));
    sizes.sum()
}

/// Has all that is in a compile cache been used two hours ago.
fn age(home: &Home) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms() - 7_200_000);
    for file in fs::read_dir(home.cache()).unwrap() {
        let file = fs::File::open(file.unwrap().path()).unwrap();
        file.set_modified(then).unwrap();
    }
}

#[allow(clippy::disallowed_methods, reason = "the times of files are real")]
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_millis().try_into().unwrap()
}

fn compiled(server: &Server) -> usize {
    server.log().matches("compiling a component").count()
}

#[test]
fn the_compile_cache_lets_go_of_what_is_not_needed_when_it_is_full() {
    let home = Home::new(&[VERSION_A], "");
    home.configure_apart("compile_cache_bytes_max = 1\nhistory_versions = 1\n");
    let one = variant(VERSION_B, "one");
    home.install_as("b.wasm", &one);
    let server = Server::start_in(Arc::new(home)).settled();
    let home = server.home.clone();
    home.install_as("b.wasm", &variant(VERSION_B, "two"));
    wait_for("the third version", PATIENCE, || {
        (server.log().matches("serving the plugin").count() == 3).then_some(())
    });
    drop(server);
    // What a crash has left, and what nobody has used for long.
    fs::write(home.cache().join(".1f.partial"), vec![0; 10_000]).unwrap();
    age(&home);
    let before = cached_bytes(&home);
    let server = Server::start_in(home.clone()).settled();
    wait_for("what is not needed to go", PATIENCE, || {
        (cached_bytes(&home) < before - 10_000).then_some(())
    });
    // What is served was there, and stays.
    assert_eq!((served(&server), compiled(&server)), (2, 0));
    let server = Server::start_in(server.kill()).settled();
    assert_eq!((served(&server), compiled(&server)), (2, 0));
    // All that is lost is time.
    home.install_as("b.wasm", &one);
    wait_for("the first again", PATIENCE, || {
        (server.log().matches("serving the plugin").count() == 3).then_some(())
    });
    assert_eq!(compiled(&server), 1);
}
