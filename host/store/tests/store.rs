//! The sled store against the suite, and against folders as crashes and people leave them.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use longshore_store::{OpenError, SledStore};
use longshore_tasks::store::suite::{Bench, check_all};
use longshore_tasks::{Put, Store, StoreError, TaskId};
use tempfile::TempDir;

struct Folder(TempDir);

#[async_trait]
impl Bench for Folder {
    async fn open(&mut self) -> Arc<dyn Store> {
        Arc::new(SledStore::open(self.0.path()).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let blobs = fs::read_dir(self.0.path().join("sled/blobs")).unwrap();
        assert_eq!(blobs.count(), 0, "sled made blobs, which are not synced");
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn put(id: TaskId, bytes: Vec<u8>) -> Put {
    Put {
        id,
        expected: None,
        unfinished: true,
        due_ms: Some(5),
        bytes,
    }
}

/// A store with one task in it, closed.
async fn with_one_task() -> (TempDir, TaskId) {
    let (dir, id) = (folder(), TaskId::random().unwrap());
    let store = SledStore::open(dir.path()).unwrap();
    store.put(put(id, vec![7; 10_000])).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    (dir, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_passes() {
    check_all(|| Folder(folder())).await;
}

#[tokio::test]
async fn a_closed_store_refuses_and_keeps() {
    let (dir, id) = with_one_task().await;
    let store = SledStore::open(dir.path()).unwrap();
    assert_eq!(
        store.get(&id).await.unwrap().unwrap().bytes,
        vec![7; 10_000]
    );
    store.close().await.unwrap();
    let late = store.put(put(TaskId::random().unwrap(), vec![])).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    assert!(matches!(
        store.get(&id).await,
        Err(StoreError::Unavailable(_))
    ));
    assert!(matches!(
        store.unfinished(None, 1).await,
        Err(StoreError::Unavailable(_))
    ));
}

#[tokio::test]
async fn a_second_opener_is_told_who_has_it() {
    let dir = folder();
    let first = SledStore::open(dir.path()).unwrap();
    let error = SledStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    assert!(
        error.to_string().contains(&std::process::id().to_string()),
        "{error}"
    );
    first
        .put(put(TaskId::random().unwrap(), vec![1]))
        .await
        .unwrap();
    drop(first);
    SledStore::open(dir.path()).unwrap();
}

#[tokio::test]
async fn too_large_a_value_is_refused() {
    let dir = folder();
    let store = SledStore::open(dir.path()).unwrap();
    let refused = store
        .put(put(TaskId::random().unwrap(), vec![0; (64 << 20) + 1]))
        .await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_unfinished_snapshot_does_not_matter() {
    let (dir, id) = with_one_task().await;
    fs::write(
        dir.path().join("sled/snap.FFFFFFFFFFFFFFFF.generating"),
        b"torn",
    )
    .unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    assert!(store.get(&id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_damaged_snapshot_is_set_aside() {
    let (dir, id) = with_one_task().await;
    drop(SledStore::open(dir.path()).unwrap());
    let snapshots: Vec<PathBuf> = fs::read_dir(dir.path().join("sled"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("snap.")
        })
        .collect();
    assert!(
        !snapshots.is_empty(),
        "sled makes one when it opens a log with something in it"
    );
    for path in &snapshots {
        fs::write(path, b"nonsense").unwrap();
    }
    let store = SledStore::open(dir.path()).unwrap();
    assert!(store.get(&id).await.unwrap().is_some());
}

fn expect_damage(dir: &Path) {
    let error = SledStore::open(dir).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(&dir.display().to_string())
            && text.contains("move it away")
            && text.contains("store export"),
        "{text}"
    );
    // And asking again does not make it a new, empty one.
    assert!(SledStore::open(dir).is_err());
}

#[tokio::test]
async fn a_lost_log_is_not_an_empty_store() {
    let (dir, _) = with_one_task().await;
    fs::remove_file(dir.path().join("sled/db")).unwrap();
    expect_damage(dir.path());
}

#[tokio::test]
async fn an_emptied_log_is_not_an_empty_store() {
    let (dir, _) = with_one_task().await;
    fs::write(dir.path().join("sled/db"), b"").unwrap();
    expect_damage(dir.path());
}

#[tokio::test]
async fn an_overwritten_log_is_not_an_empty_store() {
    let (dir, _) = with_one_task().await;
    let mut log = OpenOptions::new()
        .write(true)
        .open(dir.path().join("sled/db"))
        .unwrap();
    let len = log.metadata().unwrap().len();
    log.seek(SeekFrom::Start(0)).unwrap();
    log.write_all(&vec![0x5a; usize::try_from(len).unwrap()])
        .unwrap();
    expect_damage(dir.path());
}

#[tokio::test]
async fn a_newer_format_is_named() {
    let (dir, _) = with_one_task().await;
    fs::write(dir.path().join("format"), "longshore task store 3\n").unwrap();
    let error = SledStore::open(dir.path()).unwrap_err();
    assert!(
        matches!(error, OpenError::Newer { found: 3, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let dir = folder();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = SledStore::open(&file.join("tasks")).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    assert!(error.to_string().contains("file/tasks"), "{error}");
}

/// sled itself, with nothing of ours around it.
fn raw(dir: &Path) -> sled::Db {
    sled::Config::new()
        .path(dir.join("sled"))
        .segment_size(8 << 20)
        .open()
        .unwrap()
}

#[tokio::test]
async fn a_flipped_bit_in_a_task_stops_the_start() {
    let (dir, id) = with_one_task().await;
    let key = [b"h", id.as_bytes().as_slice()].concat();
    let db = raw(dir.path());
    let mut head = db.get(&key).unwrap().unwrap().to_vec();
    head[5_000] ^= 1;
    db.insert(&key, head).unwrap();
    drop(db);
    expect_damage(dir.path());
}

#[tokio::test]
async fn a_lost_part_of_a_large_value_is_an_error_of_that_task_alone() {
    let (dir, id) = with_one_task().await;
    let large = TaskId::random().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    store.put(put(large, vec![1; 300_000])).await.unwrap();
    drop(store);
    let db = raw(dir.path());
    let parts = db.scan_prefix([b"c", large.as_bytes().as_slice()].concat());
    let (part, _) = parts.into_iter().next().unwrap().unwrap();
    db.remove(part).unwrap();
    drop(db);
    let store = SledStore::open(dir.path()).unwrap();
    let read = store.get(&large).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    assert!(store.get(&id).await.unwrap().is_some());
    let other = TaskId::random().unwrap();
    store.put(put(other, vec![1])).await.unwrap();
    assert!(store.get(&other).await.unwrap().is_some());
}

#[tokio::test]
async fn parts_without_a_head_are_swept() {
    let (dir, id) = with_one_task().await;
    let large = TaskId::random().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    store.put(put(large, vec![1; 300_000])).await.unwrap();
    drop(store);

    // As a crash leaves it: an intent and parts of a second revision.
    let db = raw(dir.path());
    let revision = 2_u64.to_be_bytes();
    let intent = [b"i", id.as_bytes().as_slice()].concat();
    let mut sealed = [&[1], revision.as_slice()].concat();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&intent);
    crc.update(&sealed);
    sealed.extend_from_slice(&crc.finalize().to_be_bytes());
    db.insert(intent, sealed).unwrap();
    for index in 0..3_u32 {
        let part = [
            b"c",
            id.as_bytes().as_slice(),
            &revision,
            &index.to_be_bytes(),
        ]
        .concat();
        db.insert(part, vec![9; 60_000]).unwrap();
    }
    drop(db);

    let store = SledStore::open(dir.path()).unwrap();
    assert_eq!(
        store.get(&id).await.unwrap().unwrap().bytes,
        vec![7; 10_000]
    );
    assert_eq!(
        store.get(&large).await.unwrap().unwrap().bytes,
        vec![1; 300_000]
    );
    drop(store);
    let db = raw(dir.path());
    assert_eq!(db.scan_prefix(b"i").count(), 0);
    let parts = |id: TaskId| {
        db.scan_prefix([b"c", id.as_bytes().as_slice()].concat())
            .count()
    };
    assert_eq!((parts(id), parts(large)), (0, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn s04_space_stays_in_proportion() {
    const LIVE: usize = 100;
    const VALUE_BYTES: usize = 20_000;
    let dir = folder();
    let store = Arc::new(SledStore::open(dir.path()).unwrap());
    let mut live = std::collections::VecDeque::new();
    // 250 MB in all.
    for _ in 0..2_000 {
        let store = Arc::clone(&store);
        live.push_back(tokio::spawn(async move {
            let id = TaskId::random().unwrap();
            for revision in 0..6_u64 {
                let value = id.as_bytes().repeat(VALUE_BYTES / TaskId::BYTES);
                let expected = (revision > 0).then_some(revision);
                let put = Put {
                    expected,
                    ..put(id, value)
                };
                store.put(put).await.unwrap();
            }
            store.delete(&id, 6).await.unwrap();
        }));
        if live.len() == LIVE {
            live.pop_front().unwrap().await.unwrap();
        }
    }
    for task in live {
        task.await.unwrap();
    }
    store.close().await.unwrap();
    let bytes = fs::metadata(dir.path().join("sled/db")).unwrap().len();
    let allowed = 20 * LIVE * VALUE_BYTES + (64 << 20);
    assert!(bytes < allowed as u64, "{bytes} bytes");
}
