//! The ways in which people and tools write files, on a real file system, with events and without: what is served is the old
//! version or the new one, never anything else.

use longshore_tests::client::Message;
use longshore_tests::save::{Way, way, ways};
use longshore_tests::server::{Home, Server, VERSION_A, VERSION_B, component};
use longshore_tests::wait::{Watch, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// A change of a file must show within this time, also when nothing tells of it.
const BOUND: Duration = Duration::from_secs(10);

/// A file may be gone for so long and yet be on its way to be replaced.
const GAP: Duration = Duration::from_millis(40);

fn bytes(path: &str) -> Vec<u8> {
    fs::read(component(path)).unwrap()
}

/// Both versions, compiled before, so that a bound measures the server and not the compiler.
fn versions() -> [(&'static str, Vec<u8>); 2] {
    drop(Server::start(&[VERSION_A, VERSION_B], ""));
    [("b", bytes(VERSION_B)), ("a", bytes(VERSION_A))]
}

fn file(server: &Server) -> PathBuf {
    server.home.plugins().join("a.wasm")
}

/// Which version answers; none if there is no such tool.
fn answers(server: &Server) -> Option<String> {
    let reply = server.send(&Message::call("version", json!({})));
    if reply.response().get("error").is_some() {
        assert_eq!(reply.code(), -32602);
        return None;
    }
    let text = reply.text();
    assert!(["a", "b"].contains(&text), "{text}");
    Some(text.to_owned())
}

fn wait_for_version(server: &Server, version: Option<&str>, what: &str) {
    wait_for(&format!("{what} to show {version:?}"), BOUND, || {
        (answers(server).as_deref() == version).then_some(())
    });
}

/// Saves a file in this way, and sees it served: there is a version at every moment.
fn check(server: &Server, way: &Way, (version, bytes): &(&str, Vec<u8>)) {
    let watch = Watch::start();
    (way.save)(&file(server), bytes);
    let was_there = way.is_gapless || watch.elapsed() < GAP;
    wait_for(&format!("{} to show {version}", way.name), BOUND, || {
        let answer = answers(server);
        assert!(answer.is_some() || !was_there, "{}: a gap", way.name);
        (answer.as_deref() == Some(version)).then_some(())
    });
}

fn times(server: &Server, text: &str) -> usize {
    server.log().matches(text).count()
}

#[test]
fn w02_every_way_to_save_a_file() {
    let versions = versions();
    let server = Server::start(&[VERSION_A], "");
    for way in &ways() {
        for version in versions.iter().chain(&versions) {
            check(&server, way, version);
        }
    }
    assert_eq!(server.tools(), ["version"]);
    assert_eq!(times(&server, "refused"), 0, "{}", server.log());
}

/// Has the system give no events of changes to this server.
const NO_INSTANCES: &str = "echo 0 > /proc/sys/user/max_inotify_instances";
const NO_WATCHES: &str = "echo 0 > /proc/sys/user/max_inotify_watches";

#[test]
fn w04_without_events_every_change_is_found_all_the_same() {
    let versions = versions();
    for (limit, names) in [
        (
            NO_INSTANCES,
            &["rename", "write slowly", "delete, create"][..],
        ),
        (
            NO_WATCHES,
            &["write into", "flip folder", "replace behind link"],
        ),
    ] {
        let home = Arc::new(Home::new(&[VERSION_A], ""));
        let command = home.command_after(limit);
        let server = Server::start_by(home, command).settled();
        for (name, version) in names.iter().zip(versions.iter().cycle()) {
            check(&server, &way(name), version);
        }
        fs::remove_file(file(&server)).unwrap();
        wait_for_version(&server, None, "the removal");
        server.home.install(VERSION_B);
        wait_for_version(&server, Some("b"), "a new file");
        // It is said once, with what to do.
        assert_eq!(
            times(&server, "fs.inotify.max_user_"),
            1,
            "{}",
            server.log()
        );
    }
}

#[test]
fn w04_a_storm_of_other_files_hides_nothing() {
    // More than the system keeps for a reader that does not come: what is told after them is lost.
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let storm = kept.trim().parse::<usize>().unwrap().min(50_000) / 2;
    drop(versions());
    let home = Home::new(&[VERSION_A], "");
    home.install_as("z.wasm", &bytes(VERSION_B));
    let server = Server::start_in(Arc::new(home)).settled();
    wait_for_version(&server, Some("a"), "the first");
    server.signal(Signal::STOP);
    let junk = server.home.plugins().join("junk.txt");
    for _ in 0..storm {
        fs::write(&junk, "").unwrap();
        fs::remove_file(&junk).unwrap();
    }
    fs::remove_file(file(&server)).unwrap();
    server.signal(Signal::CONT);
    wait_for_version(&server, Some("b"), "the removal");
    server.home.install(VERSION_A);
    wait_for_version(&server, Some("a"), "a new file");
}

#[test]
fn w04_another_folder_under_the_same_name_is_followed() {
    let versions = versions();
    let server = Server::start(&[VERSION_A], "");
    let plugins = server.home.plugins();
    let aside = |name: &str, component: &str| {
        let folder = server.home.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.wasm"), bytes(component)).unwrap();
        folder
    };
    // It is taken away, and is a moment later another one.
    let second = aside("second", VERSION_B);
    fs::rename(&plugins, server.home.path().join("first")).unwrap();
    sleep(Duration::from_millis(100));
    assert_eq!(answers(&server).as_deref(), Some("a"));
    fs::rename(&second, &plugins).unwrap();
    wait_for_version(&server, Some("b"), "the second folder");
    check(&server, &way("rename"), &versions[1]);
    // It is a link that flips.
    let third = aside("third", VERSION_B);
    fs::rename(&plugins, &second).unwrap();
    std::os::unix::fs::symlink(&third, &plugins).unwrap();
    wait_for_version(&server, Some("b"), "the third folder");
    check(&server, &way("write over"), &versions[1]);
}

#[test]
fn w01_a_writer_that_dies_or_falls_asleep_leaves_the_old_version() {
    let [(_, b), (_, a)] = versions();
    let server = Server::start(&[VERSION_A], "");
    let is_refused = || server.refused().contains_key("a").then_some(());
    let begin = |name: &Path| {
        let mut half = fs::File::create(name).unwrap();
        half.write_all(&b[..b.len() / 2]).unwrap();
        half
    };
    drop(begin(&file(&server)));
    wait_for("the half file to be refused", BOUND, is_refused);
    assert_eq!(answers(&server).as_deref(), Some("a"));
    fs::write(file(&server), &a).unwrap();
    wait_for("that to be over", BOUND, || {
        server.refused().is_empty().then_some(())
    });
    // Another one rests for longer than anyone waits, and ends well.
    let mut asleep = begin(&file(&server));
    wait_for("the half file to be refused", BOUND, is_refused);
    assert_eq!(answers(&server).as_deref(), Some("a"));
    asleep.write_all(&b[b.len() / 2..]).unwrap();
    wait_for_version(&server, Some("b"), "the whole file");
    assert_eq!(times(&server, "the new file is refused"), 2, "each once");
}

#[test]
fn w01_a_slow_writer_is_waited_for() {
    let [(_, new), _] = versions();
    let server = Server::start(&[VERSION_A], "");
    let mut written = fs::File::create(file(&server)).unwrap();
    for piece in new.chunks(new.len() / 10 + 1) {
        written.write_all(piece).unwrap();
        let watch = Watch::start();
        while watch.elapsed() < Duration::from_millis(200) {
            assert!(answers(&server).is_some());
        }
    }
    drop(written);
    wait_for_version(&server, Some("b"), "the whole file");
    assert_eq!(times(&server, "refused"), 0, "{}", server.log());
}

#[test]
fn w10_a_folder_of_plugins_may_be_read_only_and_a_full_cache_is_named() {
    drop(versions());
    let home = Arc::new(Home::new(&[VERSION_A], ""));
    let plugins = home.plugins().display().to_string();
    let script = format!("mount --bind {plugins} {plugins}\nmount -o remount,bind,ro {plugins}");
    let command = home.command_after(&script);
    let server = Server::start_by(home, command).settled();
    assert_eq!(answers(&server).as_deref(), Some("a"));
    // As it is outside, it changes inside.
    server.home.install_as("a.wasm", &bytes(VERSION_B));
    wait_for_version(&server, Some("b"), "a read-only folder");

    let home = Arc::new(Home::new(&[VERSION_A], ""));
    home.configure_apart("");
    let cache = home.cache();
    fs::create_dir(&cache).unwrap();
    let script = format!("mount -t tmpfs -o size=64k none {}", cache.display());
    let command = home.command_after(&script);
    let server = Server::start_by(home, command).settled();
    let said: Value = serde_json::from_str(&server.get("/readyz").1).unwrap();
    let reason = said["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains(cache.to_str().unwrap()), "{reason}");
}
