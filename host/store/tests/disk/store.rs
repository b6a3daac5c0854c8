//! The store against the suite, and against folders as crashes and people leave them.

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use longshore_store::{DiskStore, OpenError, StoreEngine};
use longshore_tasks::store::suite::{Bench, check_all};
use longshore_tasks::{Put, Store, StoreError, TaskId};
use tempfile::TempDir;

use crate::on_each_engine;
use crate::raw::{self, Raw};

on_each_engine!(
    the_suite_passes,
    a_closed_store_refuses_and_keeps,
    a_second_opener_is_told_who_has_it,
    too_large_a_value_is_refused,
    the_other_engine_is_refused,
    a_lost_file_is_not_an_empty_store,
    an_emptied_file_is_not_an_empty_store,
    an_overwritten_file_is_not_an_empty_store,
    another_format_is_named,
    a_store_that_was_begun_and_not_finished_is_made_anew,
    a_store_that_held_something_is_never_made_anew,
    a_folder_that_cannot_be_made_is_named,
    a_flipped_bit_in_a_task_stops_the_start,
    a_lost_part_of_a_large_value_is_an_error_of_that_task_alone,
    parts_without_a_head_are_swept,
    s04_space_stays_in_proportion,
);

struct Folder(TempDir, StoreEngine);

#[async_trait]
impl Bench for Folder {
    async fn open(&mut self) -> Arc<dyn Store> {
        Arc::new(DiskStore::open(self.0.path(), self.1).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let blobs = fs::read_dir(self.0.path().join("sled/blobs"));
        let blobs = blobs.map_or(0, |blobs| blobs.count());
        assert_eq!(blobs, 0, "sled made blobs, which are not synced");
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
async fn with_one_task(engine: StoreEngine) -> (TempDir, TaskId) {
    let (dir, id) = (folder(), TaskId::random().unwrap());
    let store = DiskStore::open(dir.path(), engine).unwrap();
    store.put(put(id, vec![7; 10_000])).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    (dir, id)
}

async fn the_suite_passes(engine: StoreEngine) {
    check_all(|| Folder(folder(), engine)).await;
}

async fn a_closed_store_refuses_and_keeps(engine: StoreEngine) {
    let (dir, id) = with_one_task(engine).await;
    let store = DiskStore::open(dir.path(), engine).unwrap();
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

async fn a_second_opener_is_told_who_has_it(engine: StoreEngine) {
    let dir = folder();
    let first = DiskStore::open(dir.path(), engine).unwrap();
    let error = DiskStore::open(dir.path(), engine).unwrap_err();
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
    DiskStore::open(dir.path(), engine).unwrap();
}

async fn the_other_engine_is_refused(engine: StoreEngine) {
    let (dir, id) = with_one_task(engine).await;
    let others = StoreEngine::ALL
        .into_iter()
        .filter(|other| *other != engine);
    for other in others {
        // The format says it, and without it the folder.
        for _ in 0..2 {
            let error = DiskStore::open(dir.path(), other).unwrap_err();
            assert!(matches!(error, OpenError::OtherEngine { .. }), "{error}");
            let text = error.to_string();
            for part in [
                &dir.path().display().to_string(),
                &engine.to_string(),
                "store export",
                "store import",
                "store.engine",
            ] {
                assert!(text.contains(part), "{text}");
            }
            let _ = fs::remove_file(dir.path().join("format"));
        }
        assert!(!dir.path().join(other.to_string()).exists());
    }
    let store = DiskStore::open(dir.path(), engine).unwrap();
    assert!(store.get(&id).await.unwrap().is_some());
}

async fn too_large_a_value_is_refused(engine: StoreEngine) {
    let dir = folder();
    let store = DiskStore::open(dir.path(), engine).unwrap();
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
    let engine = StoreEngine::Sled;
    let (dir, id) = with_one_task(engine).await;
    fs::write(
        dir.path().join("sled/snap.FFFFFFFFFFFFFFFF.generating"),
        b"torn",
    )
    .unwrap();
    let store = DiskStore::open(dir.path(), engine).unwrap();
    assert!(store.get(&id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_damaged_snapshot_is_set_aside() {
    let engine = StoreEngine::Sled;
    let (dir, id) = with_one_task(engine).await;
    drop(DiskStore::open(dir.path(), engine).unwrap());
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
    let store = DiskStore::open(dir.path(), engine).unwrap();
    assert!(store.get(&id).await.unwrap().is_some());
}

fn expect_damage(dir: &Path, engine: StoreEngine) {
    let error = DiskStore::open(dir, engine).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(&dir.display().to_string())
            && text.contains("move it away")
            && text.contains("store export"),
        "{text}"
    );
    // And asking again does not make it a new, empty one.
    assert!(DiskStore::open(dir, engine).is_err());
}

async fn a_lost_file_is_not_an_empty_store(engine: StoreEngine) {
    let (dir, _) = with_one_task(engine).await;
    fs::remove_file(raw::file(dir.path(), engine)).unwrap();
    expect_damage(dir.path(), engine);
}

async fn an_emptied_file_is_not_an_empty_store(engine: StoreEngine) {
    let (dir, _) = with_one_task(engine).await;
    fs::write(raw::file(dir.path(), engine), b"").unwrap();
    expect_damage(dir.path(), engine);
}

async fn an_overwritten_file_is_not_an_empty_store(engine: StoreEngine) {
    let (dir, _) = with_one_task(engine).await;
    let mut log = OpenOptions::new()
        .write(true)
        .open(raw::file(dir.path(), engine))
        .unwrap();
    let len = log.metadata().unwrap().len();
    log.seek(SeekFrom::Start(0)).unwrap();
    log.write_all(&vec![0x5a; usize::try_from(len).unwrap()])
        .unwrap();
    expect_damage(dir.path(), engine);
}

async fn another_format_is_named(engine: StoreEngine) {
    let (dir, _) = with_one_task(engine).await;
    let open = |format: u32| {
        let text = format!("longshore task store {format}\n");
        fs::write(dir.path().join("format"), text).unwrap();
        DiskStore::open(dir.path(), engine).unwrap_err()
    };
    let newer = open(6);
    assert!(
        matches!(newer, OpenError::Newer { found: 6, .. }),
        "{newer}"
    );
    let older = open(3);
    assert!(
        matches!(older, OpenError::Older { found: 3, .. }),
        "{older}"
    );
}

async fn a_store_that_was_begun_and_not_finished_is_made_anew(engine: StoreEngine) {
    let dir = folder();
    let file = raw::file(dir.path(), engine);
    // A folder for the database that somebody has put there is no store.
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    drop(DiskStore::open(dir.path(), engine).unwrap());
    // As a kill may leave it.
    fs::remove_file(dir.path().join("format")).unwrap();
    fs::write(dir.path().join("making"), "").unwrap();
    fs::write(&file, [7; 100]).unwrap();
    fs::write(dir.path().join("mark"), [7; 100]).unwrap();
    let store = DiskStore::open(dir.path(), engine).unwrap();
    let id = TaskId::random().unwrap();
    store.put(put(id, vec![1])).await.unwrap();
    drop(store);
    assert!(!dir.path().join("making").exists());
    let store = DiskStore::open(dir.path(), engine).unwrap();
    assert!(store.get(&id).await.unwrap().is_some());
}

async fn a_store_that_held_something_is_never_made_anew(engine: StoreEngine) {
    let (dir, id) = with_one_task(engine).await;
    fs::write(dir.path().join("making"), "").unwrap();
    fs::remove_file(dir.path().join("format")).unwrap();
    let store = DiskStore::open(dir.path(), engine).unwrap();
    assert!(store.get(&id).await.unwrap().is_some());
    assert!(!dir.path().join("making").exists());
}

async fn a_folder_that_cannot_be_made_is_named(engine: StoreEngine) {
    let dir = folder();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = DiskStore::open(&file.join("tasks"), engine).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    assert!(error.to_string().contains("file/tasks"), "{error}");
}

async fn a_flipped_bit_in_a_task_stops_the_start(engine: StoreEngine) {
    let (dir, id) = with_one_task(engine).await;
    let key = [b"h", id.as_bytes().as_slice()].concat();
    let db = Raw::open(dir.path(), engine);
    let mut head = db.get(&key);
    head[5_000] ^= 1;
    db.set(&key, Some(&head));
    drop(db);
    expect_damage(dir.path(), engine);
}

async fn a_lost_part_of_a_large_value_is_an_error_of_that_task_alone(engine: StoreEngine) {
    let (dir, id) = with_one_task(engine).await;
    let large = TaskId::random().unwrap();
    let store = DiskStore::open(dir.path(), engine).unwrap();
    store.put(put(large, vec![1; 300_000])).await.unwrap();
    drop(store);
    let db = Raw::open(dir.path(), engine);
    let parts = db.keys(&[b"c", large.as_bytes().as_slice()].concat());
    db.set(&parts[0], None);
    drop(db);
    let store = DiskStore::open(dir.path(), engine).unwrap();
    let read = store.get(&large).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    assert!(store.get(&id).await.unwrap().is_some());
    let other = TaskId::random().unwrap();
    store.put(put(other, vec![1])).await.unwrap();
    assert!(store.get(&other).await.unwrap().is_some());
}

async fn parts_without_a_head_are_swept(engine: StoreEngine) {
    let (dir, id) = with_one_task(engine).await;
    let large = TaskId::random().unwrap();
    let store = DiskStore::open(dir.path(), engine).unwrap();
    store.put(put(large, vec![1; 300_000])).await.unwrap();
    drop(store);

    // As a crash leaves it: an intent and parts of a second revision.
    let db = Raw::open(dir.path(), engine);
    let revision = 2_u64.to_be_bytes();
    let intent = [b"i", id.as_bytes().as_slice()].concat();
    let mut sealed = [&[1], revision.as_slice()].concat();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&intent);
    crc.update(&sealed);
    sealed.extend_from_slice(&crc.finalize().to_be_bytes());
    db.set(&intent, Some(&sealed));
    for index in 0..3_u32 {
        let part = [
            b"c",
            id.as_bytes().as_slice(),
            &revision,
            &index.to_be_bytes(),
        ]
        .concat();
        db.set(&part, Some(&[9; 60_000]));
    }
    drop(db);

    let store = DiskStore::open(dir.path(), engine).unwrap();
    assert_eq!(
        store.get(&id).await.unwrap().unwrap().bytes,
        vec![7; 10_000]
    );
    assert_eq!(
        store.get(&large).await.unwrap().unwrap().bytes,
        vec![1; 300_000]
    );
    drop(store);
    let db = Raw::open(dir.path(), engine);
    assert_eq!(db.keys(b"i").len(), 0);
    let parts = |id: TaskId| db.keys(&[b"c", id.as_bytes().as_slice()].concat()).len();
    assert_eq!((parts(id), parts(large)), (0, 5));
}

async fn s04_space_stays_in_proportion(engine: StoreEngine) {
    const LIVE: usize = 100;
    const VALUE_BYTES: usize = 20_000;
    let dir = folder();
    let store = Arc::new(DiskStore::open(dir.path(), engine).unwrap());
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
    let bytes = fs::metadata(raw::file(dir.path(), engine)).unwrap().len();
    let allowed = 20 * LIVE * VALUE_BYTES + (64 << 20);
    assert!(bytes < allowed as u64, "{bytes} bytes");
}
