//! Kills a process that writes, at a random time, and looks for what it was told is durable.
//!
//! A test without the harness: the binary is its own child.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use longshore_store::{DiskStore, StoreEngine};
use longshore_tasks::{Put, Store, TaskId};

/// The lives of the child; each leaves a store for the next to open.
const ROUNDS: usize = 4;

/// Acknowledged writes after which it is killed, more each round.
const WRITES_STEP: usize = 120;

fn main() {
    let mut args = std::env::args();
    let _program = args.next();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let (Some("child"), Some(engine), Some(dir)) =
        (args.next().as_deref(), args.next(), args.next())
    {
        let engine = StoreEngine::ALL
            .into_iter()
            .find(|one| one.to_string() == engine);
        return runtime.block_on(child(engine.unwrap(), Path::new(&dir)));
    }
    for engine in StoreEngine::ALL {
        runtime.block_on(parent(engine));
    }
}

/// Small values and large ones, so that kills fall between the groups of a large one too.
fn value(id: &TaskId, revision: u64) -> Vec<u8> {
    let len = if id.as_bytes()[0].is_multiple_of(48) {
        1_500_000
    } else {
        700
    };
    let start = id.as_bytes()[1] as usize + usize::try_from(revision).unwrap();
    (start..start + len).map(|n| (n % 251) as u8).collect()
}

/// Writes until it is killed, and says each write that is durable.
async fn child(engine: StoreEngine, dir: &Path) {
    let store = std::sync::Arc::new(DiskStore::open(dir, engine).unwrap());
    let writer = || {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move {
            loop {
                let id = TaskId::random().unwrap();
                for revision in 0..4 {
                    let expected = (revision > 0).then_some(revision);
                    let bytes = value(&id, revision + 1);
                    let put = Put {
                        id,
                        expected,
                        unfinished: true,
                        due_ms: Some(1),
                        bytes,
                    };
                    let revision = store.put(put).await.unwrap();
                    // One write to the pipe: a kill never leaves half a line of it behind.
                    let line = format!("{id} {revision}\n");
                    std::io::stderr().write_all(line.as_bytes()).unwrap();
                }
            }
        })
    };
    futures::future::join_all((0..8).map(|_| writer())).await;
}

async fn parent(engine: StoreEngine) {
    let dir = tempfile::tempdir().unwrap();
    let mut acked: HashMap<TaskId, u64> = HashMap::new();
    for round in 1..=ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", &engine.to_string()])
            .arg(dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        for n in 0.. {
            if n == round * WRITES_STEP {
                child.kill().unwrap();
            }
            let Some(line) = lines.next() else { break };
            let line = line.unwrap();
            let (id, revision) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            acked.insert(id.parse().unwrap(), revision.parse().unwrap());
        }
        child.wait().unwrap();
        check(engine, dir.path(), &acked).await;
    }
    assert!(
        acked.len() > ROUNDS * WRITES_STEP / 8,
        "only {} tasks",
        acked.len()
    );
}

async fn check(engine: StoreEngine, dir: &Path, acked: &HashMap<TaskId, u64>) {
    let store = DiskStore::open(dir, engine).unwrap();
    for (id, revision) in acked {
        let stored = store
            .get(id)
            .await
            .unwrap()
            .unwrap_or_else(|| panic!("{id} is lost"));
        assert!(
            stored.revision >= *revision,
            "{id} went back to {}",
            stored.revision
        );
        assert!(
            stored.bytes == value(id, stored.revision),
            "{id} is not as it was written"
        );
    }
    let unfinished = store.unfinished(None, usize::MAX).await.unwrap();
    assert!(unfinished.len() >= acked.len(), "the index lost tasks");
}
