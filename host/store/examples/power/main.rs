//! What the store keeps when the power goes.
//!
//! Runs a workload under `strace`, follows every write and every sync of it, and at many moments
//! builds the disk as a power cut may leave it: what was synced is there, of the rest any part, in
//! pieces of a sector. Each such disk is opened, and every change that was acknowledged before the
//! cut must be there.
//!
//! ```text
//! cargo run --release -p longshore-store --example power -- [cuts] [changes] [seed]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool of ours, read by people"
)]

mod disk;
mod trace;
mod work;

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use disk::{Dice, Disk};
use longshore_store::SledStore;
use longshore_tasks::{Store as _, TaskId};
use trace::{Event, Trace};

/// The system calls that change files, or say that they are safe.
const CALLS: &str = "trace=openat,creat,mkdir,rename,renameat,renameat2,unlink,unlinkat,\
                     ftruncate,pwrite64,write,fsync,fdatasync";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| {
        args.get(place)
            .map_or(default, |text| text.parse().unwrap())
    };
    if args.first().is_some_and(|arg| arg == "work") {
        return work::run(Path::new(&args[1]), number(2, 0));
    }
    let (cuts, changes, seed) = (number(0, 200), number(1, 20_000), number(2, 1));
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("store");
    std::fs::create_dir(&dir).unwrap();
    let file = home.path().join("trace");
    let status = Command::new("strace")
        .args(["-f", "-y", "-xx", "-s", "33554432", "-e", CALLS, "-o"])
        .arg(&file)
        .arg(std::env::current_exe().unwrap())
        .args(["work"])
        .arg(&dir)
        .arg(changes.to_string())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("strace is needed: install it");
    assert!(status.success(), "the workload failed: {status}");
    let trace_bytes = std::fs::metadata(&file).unwrap().len();
    let length = Trace::of(BufReader::new(File::open(&file).unwrap()), &dir).count();
    say(&format!(
        "{length} events in a trace of {trace_bytes} bytes"
    ));
    let trace = Trace::of(BufReader::new(File::open(&file).unwrap()), &dir);
    let report = follow(trace, length, cuts, seed);
    say(&report);
}

fn say(text: &str) {
    println!("{text}");
}

/// Follows the trace and cuts the power `cuts` times.
fn follow(trace: impl Iterator<Item = Event>, length: usize, cuts: u64, seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let mut at: Vec<usize> = (0..cuts).map(|_| dice.roll(length)).collect();
    at.sort_unstable();
    let (mut disk, mut acked) = (Disk::default(), HashMap::new());
    let (mut checked, mut unsynced) = (0, 0);
    for (place, event) in trace.enumerate() {
        match event {
            Event::Acked(id, revision) => drop(acked.insert(id, revision)),
            event => disk.apply(event),
        }
        while at.first() == Some(&place) {
            at.remove(0);
            unsynced += disk.unsynced();
            let image = tempfile::tempdir().unwrap();
            disk.leave(image.path(), &mut dice);
            checked += check(image.path(), &acked, place);
        }
    }
    format!(
        "{cuts} power cuts, {checked} acknowledged facts checked, {} tasks at the end; {unsynced} \
         writes were not synced at the cuts: nothing acknowledged was lost",
        acked.len()
    )
}

/// Opens the image; the number of facts that hold.
fn check(dir: &Path, acked: &HashMap<TaskId, u64>, place: usize) -> usize {
    let store = SledStore::open(dir)
        .unwrap_or_else(|error| panic!("cut at event {place}: refused: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (id, revision) in acked {
        let stored = runtime.block_on(store.get(id)).unwrap();
        let kept = stored.as_ref().map_or(u64::MAX, |stored| stored.revision);
        assert!(
            kept >= *revision,
            "cut at event {place}: {id} is at {kept}, {revision} was acknowledged"
        );
        if let Some(stored) = stored {
            let right = stored.bytes == work::value(id, stored.revision);
            assert!(right, "cut at event {place}: {id} is not as it was written");
        } else {
            assert!(
                *revision >= work::LAST_REVISION,
                "cut at event {place}: {id} is lost at revision {revision}"
            );
        }
    }
    acked.len()
}
