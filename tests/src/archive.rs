//! Many tasks that have ended, put into the store of a stopped server: made once by the server, then copied under other ids.

use crate::client::Message;
use crate::home::Home;
use crate::server::{Server, binary};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::process::Command;
use std::sync::Arc;

/// Size of the argument of each task, in bytes: with what else it has, it takes about 2 KiB.
const PADDING_BYTES: usize = 1_200;

/// Puts so many ended tasks into a home that has the fixtures and was not used yet, and returns their ids, in no order.
///
/// # Panics
/// If the server or one of its commands fails.
pub fn fill(home: &Arc<Home>, count: u64) -> Vec<String> {
    let server = Server::start_in(home.clone());
    let arguments = json!({ "ms": 0, "padding": "x".repeat(PADDING_BYTES) });
    let call = Message::call("sleep_required", arguments).tasks();
    let model = server.send(&call).task_id().to_owned();
    server.task(&model).wait("completed");
    server.terminate();
    let exported = store(home, &["export"]).output().unwrap();
    let exported = String::from_utf8(exported.stdout).unwrap();
    let lines: Vec<&str> = exported.lines().collect();
    let row: Value = serde_json::from_str(lines[1]).unwrap();
    let bytes = STANDARD.decode(row["bytes"].as_str().unwrap()).unwrap();
    let at = bytes.windows(model.len());
    let at = at.into_iter().position(|part| part == model.as_bytes());
    let at = at.expect("a task holds its id as text");

    let file = home.path().join("copies.jsonl");
    let mut out = BufWriter::new(File::create(&file).unwrap());
    writeln!(out, "{}", lines[0]).unwrap();
    let ids: Vec<_> = (0..count).map(id).collect();
    let mut in_order: Vec<_> = ids.iter().collect();
    in_order.sort_unstable_by_key(|id| place(id));
    for id in in_order {
        let mut copy = bytes.clone();
        copy[at..at + id.len()].copy_from_slice(id.as_bytes());
        let row = json!({ "id": id, "unfinished": false, "bytes": STANDARD.encode(&copy) });
        writeln!(out, "{row}").unwrap();
    }
    let end = json!({ "end": true, "tasks": count, "damaged": 0 });
    writeln!(out, "{end}").unwrap();
    out.into_inner().unwrap().sync_all().unwrap();
    let imported = store(home, &["import", file.to_str().unwrap()]).status();
    assert!(imported.unwrap().success(), "the copies were not imported");
    fs::remove_file(file).unwrap();
    ids
}

/// A command of `longshore store` on the home of a stopped server.
fn store(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("store").args(arguments);
    command.arg("--config").arg(home.config());
    command.arg("--data").arg(home.data());
    command.stdout(std::process::Stdio::piped());
    command
}

/// Ids that lie anywhere, as random ones do: the finaliser of SplitMix64 (Steele, Lea, Flood 2014), which repeats nothing.
fn id(number: u64) -> String {
    let mix = |seed: u64| {
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let [first, second] = [mix(number + 1), mix(!number)];
    format!("{first:016x}{second:016x}{:08x}", first >> 32)
}

/// What the store sorts an id by, and so an export: its five words, the first of them joined with the others.
fn place(id: &str) -> [u32; 5] {
    let mut words = [0, 8, 16, 24, 32].map(|at| u32::from_str_radix(&id[at..at + 8], 16).unwrap());
    words[0] = words.iter().fold(0, |all, word| all ^ word);
    words
}
