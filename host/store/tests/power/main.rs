//! What the store keeps when the power goes.
//!
//! Runs a workload under `strace`, follows every write and every sync of it, and at many moments
//! builds the disk as a power cut may leave it: what was synced is there, of the rest any part, in
//! pieces of a sector. Each such disk is opened, and every change that was acknowledged before the
//! cut must be there.
//!
//! A test without the harness: the binary is its own child. A longer run, of each engine:
//!
//! ```text
//! cargo test --release -p longshore-store --test power -- cuts CUTS CHANGES SEED
//! ```

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "figures, read by people")]

mod disk;
mod trace;
mod work;

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use disk::{Dice, Disk};
use longshore_store::{DiskStore, StoreEngine};
use longshore_tasks::{Store as _, TaskId};
use trace::{Event, Trace};

/// The system calls that change files, or say that they are safe.
const CALLS: &str = "trace=openat,creat,mkdir,rename,renameat,renameat2,unlink,unlinkat,\
                     ftruncate,fallocate,pwrite64,write,writev,pwritev,fsync,fdatasync";

/// What is done with each engine where nothing else is said: power cuts, changes, and where chance
/// begins. It takes some seconds.
const USUAL: [u64; 3] = [25, 600, 1];

/// Events until a store is made, at most: it takes about a hundred. On a busy machine the first answer comes long after it.
const MADE_EVENTS_MAX: usize = 160;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [cuts, changes, seed] = match args[..] {
        ["work", engine, dir, changes] => {
            let engine = StoreEngine::ALL
                .into_iter()
                .find(|one| one.to_string() == engine);
            return work::run(engine.unwrap(), Path::new(dir), changes.parse().unwrap());
        }
        ["cuts", cuts, changes, seed] => [cuts, changes, seed].map(|text| text.parse().unwrap()),
        _ => USUAL,
    };
    for engine in StoreEngine::ALL {
        let home = tempfile::tempdir().unwrap();
        let (dir, file) = (home.path().join("store"), home.path().join("trace"));
        std::fs::create_dir(&dir).unwrap();
        record(engine, &dir, &file, changes);
        let trace = || Trace::of(BufReader::new(File::open(&file).unwrap()), &dir);
        let made = trace().position(|event| matches!(event, Event::Acked(..)));
        let lengths = (made.unwrap().min(MADE_EVENTS_MAX), trace().count());
        let report = follow(engine, trace(), lengths, cuts, seed);
        println!("{engine}: {} events, {report}", lengths.1);
    }
}

/// Runs the workload and writes what it does with files to `file`.
fn record(engine: StoreEngine, dir: &Path, file: &Path, changes: u64) {
    let strace = Command::new("strace")
        .args(["-f", "-y", "-xx", "-s", "33554432", "-e", CALLS, "-o"])
        .arg(file)
        .arg(std::env::current_exe().unwrap())
        .args(["work", &engine.to_string()])
        .arg(dir)
        .arg(changes.to_string())
        .output()
        .expect("strace is needed: install it with `apt-get install strace`");
    assert!(
        strace.status.success(),
        "strace or the workload failed, {}: {}",
        strace.status,
        String::from_utf8_lossy(&strace.stderr)
    );
}

/// Follows the trace, in which a store is made and then changed, and cuts the power `cuts` times and while it is made.
fn follow(
    engine: StoreEngine,
    trace: impl Iterator<Item = Event>,
    (made, length): (usize, usize),
    cuts: u64,
    seed: u64,
) -> String {
    let mut dice = Dice::new(seed);
    // Each place until the first change is acknowledged, some times over, and any.
    let mut at: Vec<usize> = (0..cuts).map(|_| dice.roll(length)).collect();
    at.extend((0..made).flat_map(|place| [place; 4]));
    at.sort_unstable();
    let places = at.len();
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
            checked += check(engine, image.path(), &acked, place);
        }
    }
    format!(
        "{places} power cuts, {checked} acknowledged facts checked, {} tasks at the end; {unsynced} \
         writes were not synced at the cuts: nothing acknowledged was lost",
        acked.len()
    )
}

/// Opens the image; the number of facts that hold.
fn check(engine: StoreEngine, dir: &Path, acked: &HashMap<TaskId, u64>, place: usize) -> usize {
    let store = DiskStore::open(dir, engine)
        .unwrap_or_else(|error| panic!("{engine}, cut at event {place}: refused: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (id, revision) in acked {
        let stored = runtime.block_on(store.get(id)).unwrap();
        let kept = stored.as_ref().map_or(u64::MAX, |stored| stored.revision);
        assert!(
            kept >= *revision,
            "{engine}, cut at event {place}: {id} is at {kept}, {revision} was acknowledged"
        );
        if let Some(stored) = stored {
            let right = stored.bytes == work::value(id, stored.revision);
            assert!(
                right,
                "{engine}, cut at event {place}: {id} is not as it was written"
            );
        } else {
            assert!(
                *revision >= work::LAST_REVISION,
                "{engine}, cut at event {place}: {id} is lost at revision {revision}"
            );
        }
    }
    acked.len()
}
