//! A store that runs out of room and gets it back: it refuses, loses nothing, and goes on without a
//! restart.
//!
//! A limit on the size of files stands for the full disk. It holds for a whole process, so the test
//! is its own child; the shell between makes the limit an error instead of a signal.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use longshore_store::{DiskStore, StoreEngine};
use longshore_tasks::{Put, Store as _, StoreError, TaskId};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Room for a little more than one segment of sled's log.
const ROOM_BYTES: u64 = 9 << 20;

/// The store looks for room again within five seconds.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() {
    let mut args = std::env::args().skip(1);
    if let (Some("child"), Some(engine), Some(dir)) =
        (args.next().as_deref(), args.next(), args.next())
    {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let engine = StoreEngine::ALL
            .into_iter()
            .find(|one| one.to_string() == engine);
        return runtime.block_on(child(engine.unwrap(), Path::new(&dir)));
    }
    for engine in StoreEngine::ALL {
        parent(engine);
    }
}

fn parent(engine: StoreEngine) {
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["child", &engine.to_string()])
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(status.success(), "{engine}: {status}");
}

fn put(id: TaskId, expected: Option<u64>) -> Put {
    let revision = expected.unwrap_or(0) + 1;
    Put {
        id,
        expected,
        unfinished: true,
        due_ms: Some(7),
        bytes: value(&id, revision),
    }
}

fn value(id: &TaskId, revision: u64) -> Vec<u8> {
    let start = id.as_bytes()[1] as usize + usize::try_from(revision).unwrap();
    (start..start + 20_000).map(|n| (n % 251) as u8).collect()
}

fn allow(bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    setrlimit(Resource::Fsize, limit).unwrap();
}

async fn child(engine: StoreEngine, dir: &Path) {
    let store = DiskStore::open(dir, engine).unwrap();
    let mut acked = HashMap::new();
    for round in 0..2 {
        allow(Some(ROOM_BYTES * (1 + round)));
        let refusal = fill(&store, &mut acked).await;
        let text = refusal.to_string();
        assert!(text.contains(&dir.display().to_string()), "{text}");
        assert!(text.contains("room"), "{text}");
        let read = store.get(acked.keys().next().unwrap()).await;
        assert!(
            matches!(read, Err(StoreError::Unavailable(_))),
            "nothing unsure is shown: {read:?}"
        );
        allow(None);
        until_it_works(&store).await;
        check(&store, &acked).await;
    }
    store.close().await.unwrap();
    drop(store);
    check(&DiskStore::open(dir, engine).unwrap(), &acked).await;
}

/// Writes until the store refuses.
async fn fill(store: &DiskStore, acked: &mut HashMap<TaskId, u64>) -> StoreError {
    for _ in 0..100_000 {
        let id = TaskId::random().unwrap();
        for expected in [None, Some(1)] {
            match store.put(put(id, expected)).await {
                Ok(revision) => drop(acked.insert(id, revision)),
                Err(error) => return error,
            }
        }
    }
    panic!("there was room for everything");
}

async fn until_it_works(store: &DiskStore) {
    let works = async {
        loop {
            let id = TaskId::random().unwrap();
            if store.put(put(id, None)).await.is_ok() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, works)
        .await
        .expect("the store goes on");
}

async fn check(store: &DiskStore, acked: &HashMap<TaskId, u64>) {
    for (id, revision) in acked {
        let stored = store.get(id).await.unwrap();
        let stored = stored.unwrap_or_else(|| panic!("{id} is lost"));
        // A write that was refused may have been kept, as a whole.
        assert!(stored.revision >= *revision, "{id} went back");
        assert!(stored.bytes == value(id, stored.revision), "{id} changed");
    }
}
