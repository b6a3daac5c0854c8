//! The workload: tasks are made, changed, and removed, by several writers at once, through several
//! lives of the store. Each acknowledged change is written to standard error.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longshore_store::{DiskStore, StoreEngine};
use longshore_tasks::{Put, Store as _, TaskId};

/// After this revision a task may be removed.
pub(crate) const LAST_REVISION: u64 = 6;

/// What is acknowledged for a removal.
const REMOVED: u64 = u64::MAX;

const LIVES: u64 = 3;
const WRITERS: u64 = 12;

/// What `id` holds at this revision; mostly small, some larger than one record.
pub(crate) fn value(id: &TaskId, revision: u64) -> Vec<u8> {
    let kind = id.as_bytes()[0];
    let len = match kind {
        0..4 => 150_000,
        4..32 => 20_000,
        _ => 1_500,
    };
    let start = id.as_bytes()[1] as usize + usize::try_from(revision).unwrap();
    (start..start + len).map(|n| (n % 251) as u8).collect()
}

pub(crate) fn run(engine: StoreEngine, dir: &Path, changes: u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    for _ in 0..LIVES {
        let store = Arc::new(DiskStore::open(dir, engine).unwrap());
        let left = Arc::new(AtomicU64::new(changes / LIVES));
        let writers = (0..WRITERS).map(|_| {
            let (store, left) = (Arc::clone(&store), Arc::clone(&left));
            runtime.spawn(async move { write(&store, &left).await })
        });
        let writers: Vec<_> = writers.collect();
        for writer in writers {
            runtime.block_on(writer).unwrap();
        }
        runtime.block_on(store.close()).unwrap();
    }
}

async fn write(store: &DiskStore, left: &AtomicU64) {
    let spend = || {
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        })
    };
    loop {
        let id = TaskId::random().unwrap();
        for revision in 0..LAST_REVISION {
            if spend().is_err() {
                return;
            }
            let put = Put {
                id,
                expected: (revision > 0).then_some(revision),
                unfinished: revision + 1 < LAST_REVISION,
                due_ms: Some(revision),
                bytes: value(&id, revision + 1),
            };
            acked(&id, store.put(put).await.unwrap());
        }
        if id.as_bytes()[2] < 220 {
            store.delete(&id, LAST_REVISION).await.unwrap();
            acked(&id, REMOVED);
        }
    }
}

/// One write, so that it is one event.
fn acked(id: &TaskId, revision: u64) {
    let line = format!("ack {id} {revision}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
