//! What every store must do, as checks that panic with what went wrong.
//!
//! A store's tests call [`check_all`] with a bench that opens it.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;

use super::{Put, Revision, Store, StoreError};
use crate::id::TaskId;

/// Opens the store under test, empty the first time and as it was left later.
#[async_trait]
pub trait Bench: Send {
    /// Opens it. The suite has dropped the store it had before, closed or not.
    async fn open(&mut self) -> Arc<dyn Store>;
}

/// All checks, each on a store of its own.
pub async fn check_all<B: Bench>(mut bench: impl FnMut() -> B) {
    writes_replace_and_conflict(&mut bench()).await;
    big_values_come_back(&mut bench()).await;
    deleted_is_gone(&mut bench()).await;
    unfinished_are_paged(&mut bench()).await;
    due_are_paged(&mut bench()).await;
    many_writers_lose_nothing(&mut bench()).await;
    everything_survives_reopening(&mut bench()).await;
    a_server_that_did_not_close_is_known(&mut bench()).await;
}

fn new_id() -> TaskId {
    TaskId::random().expect("random numbers")
}

fn put(id: TaskId, expected: Option<Revision>, bytes: Vec<u8>) -> Put {
    Put {
        id,
        expected,
        unfinished: true,
        due_ms: Some(1_000),
        bytes,
    }
}

async fn bytes_of(store: &dyn Store, id: &TaskId) -> Option<Vec<u8>> {
    store
        .get(id)
        .await
        .expect("a read")
        .map(|stored| stored.bytes)
}

/// Bytes that no compression and no mix-up of pieces leaves unnoticed.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

async fn writes_replace_and_conflict(bench: &mut impl Bench) {
    let (store, id) = (bench.open().await, new_id());
    assert_eq!(store.get(&id).await, Ok(None));
    assert_eq!(
        store.put(put(id, Some(1), vec![9])).await,
        Err(StoreError::Conflict)
    );
    assert_eq!(store.put(put(id, None, vec![1])).await, Ok(1));
    assert_eq!(
        store.put(put(id, None, vec![2])).await,
        Err(StoreError::Conflict)
    );
    assert_eq!(store.put(put(id, Some(1), vec![3])).await, Ok(2));
    assert_eq!(
        store.put(put(id, Some(1), vec![4])).await,
        Err(StoreError::Conflict)
    );
    let stored = store.get(&id).await.expect("a read").expect("the task");
    assert_eq!((stored.revision, stored.bytes), (2, vec![3]));

    let rivals = (0..16).map(|n| store.put(put(id, Some(2), vec![n])));
    let won: Vec<usize> = join_all(rivals)
        .await
        .iter()
        .enumerate()
        .filter(|(_, r)| r.is_ok())
        .map(|r| r.0)
        .collect();
    assert_eq!(won.len(), 1, "one writer wins");
    assert_eq!(
        bytes_of(&*store, &id).await,
        Some(vec![won[0] as u8]),
        "and it is the one kept"
    );
}

async fn big_values_come_back(bench: &mut impl Bench) {
    let (mut store, id) = (bench.open().await, new_id());
    let sizes = [
        0,
        1,
        65_535,
        65_536,
        65_537,
        300 << 10,
        3 << 20,
        (3 << 20) + 1,
        10,
        1 << 20,
    ];
    for (revision, len) in sizes.into_iter().enumerate() {
        let expected = (revision > 0).then_some(revision as u64);
        let value = noise(len, len as u64);
        store
            .put(put(id, expected, value.clone()))
            .await
            .expect("a write");
        assert!(
            bytes_of(&*store, &id).await == Some(value),
            "{len} bytes came back changed"
        );
    }
    drop(store);
    store = bench.open().await;
    assert!(
        bytes_of(&*store, &id).await == Some(noise(1 << 20, 1 << 20)),
        "changed by reopening"
    );
}

async fn deleted_is_gone(bench: &mut impl Bench) {
    let (store, id, kept) = (bench.open().await, new_id(), new_id());
    store.put(put(kept, None, vec![1])).await.expect("a write");
    assert_eq!(
        store.delete(&id, 1).await,
        Err(StoreError::Conflict),
        "nothing to delete"
    );
    store
        .put(put(id, None, noise(200_000, 7)))
        .await
        .expect("a write");
    assert_eq!(
        store.delete(&id, 2).await,
        Err(StoreError::Conflict),
        "another revision"
    );
    store.delete(&id, 1).await.expect("a deletion");
    assert_eq!(store.get(&id).await, Ok(None));
    assert_eq!(store.unfinished(None, 9).await, Ok(vec![kept]));
    assert_eq!(store.due(u64::MAX, None, 9).await, Ok(vec![(1_000, kept)]));
}

async fn unfinished_are_paged(bench: &mut impl Bench) {
    let store = bench.open().await;
    let mut ids: Vec<TaskId> = (0..25).map(|_| new_id()).collect();
    ids.sort_unstable();
    for id in &ids {
        store.put(put(*id, None, vec![1])).await.expect("a write");
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.unfinished(after, 10).await.expect("a page");
        assert!(page.len() <= 10);
        seen.extend_from_slice(&page);
        after = page.last().copied();
        if page.len() < 10 {
            break;
        }
    }
    assert_eq!(seen, ids);
    let done = Put {
        unfinished: false,
        ..put(ids[3], Some(1), vec![2])
    };
    store.put(done).await.expect("a write");
    ids.remove(3);
    assert_eq!(store.unfinished(None, 100).await, Ok(ids));
}

async fn due_are_paged(bench: &mut impl Bench) {
    let store = bench.open().await;
    let mut due: Vec<(u64, TaskId)> = (0..25).map(|n| (n % 7 * 300, new_id())).collect();
    for (due_ms, id) in &due {
        let put = Put {
            due_ms: Some(*due_ms),
            ..put(*id, None, vec![1])
        };
        store.put(put).await.expect("a write");
    }
    let never = new_id();
    store
        .put(Put {
            due_ms: None,
            ..put(never, None, vec![1])
        })
        .await
        .expect("a write");
    due.sort_unstable();
    assert_eq!(store.due(u64::MAX, None, 100).await.as_ref(), Ok(&due));
    let by_900: Vec<_> = due
        .iter()
        .filter(|(at_ms, _)| *at_ms <= 900)
        .copied()
        .collect();
    assert_eq!(store.due(900, None, 100).await, Ok(by_900.clone()));
    assert_eq!(store.due(900, None, 5).await.as_deref(), Ok(&by_900[..5]));
    assert_eq!(
        store.due(900, Some(by_900[4]), 100).await.as_deref(),
        Ok(&by_900[5..])
    );

    let (moved_ms, moved) = due.remove(0);
    assert_eq!(moved_ms, 0);
    let later = Put {
        due_ms: Some(5_000),
        ..put(moved, Some(1), vec![2])
    };
    store.put(later).await.expect("a write");
    due.push((5_000, moved));
    assert_eq!(
        store.due(u64::MAX, None, 100).await,
        Ok(due),
        "only the new time counts"
    );
}

async fn many_writers_lose_nothing(bench: &mut impl Bench) {
    const WRITERS: usize = 256;
    const PUTS: u64 = 8;
    let store = bench.open().await;
    let writer = |n: usize| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let id = new_id();
            for revision in 0..PUTS {
                let value = noise(n * 37, revision);
                let expected = (revision > 0).then_some(revision);
                let got = store.put(put(id, expected, value.clone())).await;
                assert_eq!(got, Ok(revision + 1));
                assert!(
                    bytes_of(&*store, &id).await == Some(value),
                    "a write was not seen"
                );
            }
            id
        })
    };
    let written = join_all((0..WRITERS).map(writer)).await;
    let mut ids: Vec<TaskId> = written
        .into_iter()
        .map(|id| id.expect("a writer"))
        .collect();
    for (n, id) in ids.iter().enumerate() {
        let stored = store.get(id).await.expect("a read").expect("a task");
        assert_eq!(stored.revision, PUTS);
        assert!(
            stored.bytes == noise(n * 37, PUTS - 1),
            "writer {n} lost its last write"
        );
    }
    ids.sort_unstable();
    assert_eq!(store.unfinished(None, 2 * WRITERS).await, Ok(ids));
}

async fn everything_survives_reopening(bench: &mut impl Bench) {
    let ids: Vec<TaskId> = (0..40).map(|_| new_id()).collect();
    let value = |n: usize, life: u64| noise(n * 5_000, life);
    for life in 0..3 {
        let store = bench.open().await;
        for (n, id) in ids.iter().enumerate() {
            if life > 0 {
                assert!(
                    bytes_of(&*store, id).await == Some(value(n, life - 1)),
                    "{n} was lost"
                );
            }
            let expected = (life > 0).then_some(life);
            assert_eq!(
                store.put(put(*id, expected, value(n, life))).await,
                Ok(life + 1)
            );
        }
        // One life ends well, the others just end.
        if life == 1 {
            store.close().await.expect("a good end");
        }
    }
    let store = bench.open().await;
    for (n, id) in ids.iter().enumerate() {
        let stored = store.get(id).await.expect("a read").expect("a task");
        assert_eq!(stored.revision, 3);
        assert!(stored.bytes == value(n, 2), "{n} was lost");
    }
    assert_eq!(
        store.due(1_000, None, 100).await.map(|due| due.len()),
        Ok(40)
    );
}

async fn a_server_that_did_not_close_is_known(bench: &mut impl Bench) {
    for (life, abandoned) in [false, false, true, false].into_iter().enumerate() {
        let store = bench.open().await;
        assert_eq!(store.begin().await, Ok(abandoned), "life {life}");
        if life != 1 {
            store.close().await.expect("a good end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    struct Memory(Arc<MemoryStore>);

    #[async_trait]
    impl Bench for Memory {
        async fn open(&mut self) -> Arc<dyn Store> {
            Arc::clone(&self.0) as Arc<dyn Store>
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_memory_twin_passes() {
        check_all(|| Memory(Arc::default())).await;
    }
}
