//! Folders with files truncated, flipped, deleted, stale or of an older format: what was acknowledged
//! is there, or the start is refused with the folder and the next step.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use longshore_store::{DiskStore, OpenError, StoreEngine};
use longshore_tasks::{Put, Store as _, StoreError, TaskId};
use tempfile::TempDir;

use crate::on_each_engine;
use crate::raw;

on_each_engine!(
    a_flipped_byte_never_loses_a_task_in_silence,
    a_truncated_file_never_loses_a_task_in_silence,
    a_missing_file_is_no_new_store,
    an_old_file_is_refused,
    a_broken_mark_is_named,
    a_changed_format_names_the_database,
);

type Tasks = HashMap<TaskId, Vec<u8>>;

fn put(id: TaskId, expected: Option<u64>, bytes: &[u8]) -> Put {
    Put {
        id,
        expected,
        unfinished: true,
        due_ms: Some(5),
        bytes: bytes.to_vec(),
    }
}

/// Adds so many tasks, each changed once, and closes the store.
async fn add(engine: StoreEngine, dir: &Path, tasks: &mut Tasks, count: usize) {
    let store = DiskStore::open(dir, engine).unwrap();
    for _ in 0..count {
        let id = TaskId::random().unwrap();
        let value = [id.as_bytes().repeat(20), vec![1]].concat();
        store.put(put(id, None, &[0])).await.unwrap();
        store.put(put(id, Some(1), &value)).await.unwrap();
        tasks.insert(id, value);
    }
    store.close().await.unwrap();
}

async fn filled(engine: StoreEngine) -> (TempDir, Tasks) {
    let (dir, mut tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
    add(engine, dir.path(), &mut tasks, 150).await;
    add(engine, dir.path(), &mut tasks, 150).await;
    (dir, tasks)
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Opens the store; refused, or with all tasks as they were. Whether it opened.
async fn all_or_refused(engine: StoreEngine, dir: &Path, tasks: &Tasks, what: &str) -> bool {
    let store = match DiskStore::open(dir, engine) {
        Ok(store) => store,
        Err(error) => {
            assert!(
                matches!(error, OpenError::Damaged { .. }),
                "{what}: {error}"
            );
            let text = error.to_string();
            let named = text.contains(&dir.display().to_string());
            assert!(named && text.contains("put back a copy"), "{what}: {text}");
            let again = DiskStore::open(dir, engine);
            assert!(again.is_err(), "{what}: the next start takes it");
            return false;
        }
    };
    for (id, value) in tasks {
        let stored = store.get(id).await.unwrap();
        let stored = stored.unwrap_or_else(|| panic!("{what}: {id} is lost"));
        assert!(stored.bytes == *value, "{what}: {id} changed");
    }
    true
}

async fn a_flipped_byte_never_loses_a_task_in_silence(engine: StoreEngine) {
    let (dir, tasks) = filled(engine).await;
    let log = raw::file(dir.path(), engine);
    let bytes = fs::read(&log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut refused = 0;
    // All over the log, and thickly over its last writes.
    let places = (0..40).map(|n| n * used / 40);
    let places = places.chain((0..20).map(|n| used - n * n * 7));
    for place in places {
        let damaged = tempfile::tempdir().unwrap();
        copy(dir.path(), damaged.path());
        let file = fs::OpenOptions::new()
            .write(true)
            .open(raw::file(damaged.path(), engine))
            .unwrap();
        file.write_all_at(&[bytes[place] ^ 0x55], place as u64)
            .unwrap();
        let what = format!("byte {place} of {used}");
        refused += usize::from(!all_or_refused(engine, damaged.path(), &tasks, &what).await);
    }
    assert!(refused > 0, "no flip was noticed");
}

async fn a_truncated_file_never_loses_a_task_in_silence(engine: StoreEngine) {
    let (dir, tasks) = filled(engine).await;
    let len = fs::metadata(raw::file(dir.path(), engine)).unwrap().len();
    for part in 0..12 {
        let damaged = tempfile::tempdir().unwrap();
        copy(dir.path(), damaged.path());
        let file = fs::OpenOptions::new()
            .write(true)
            .open(raw::file(damaged.path(), engine))
            .unwrap();
        let cut = len * part / 12;
        file.set_len(cut).unwrap();
        let what = format!("cut at {cut} of {len}");
        all_or_refused(engine, damaged.path(), &tasks, &what).await;
    }
}

async fn a_missing_file_is_no_new_store(engine: StoreEngine) {
    let (dir, tasks) = filled(engine).await;
    let folder = engine.to_string();
    let mut files = vec![
        (format!("{folder}/db"), false),
        (folder, false),
        ("mark".to_owned(), false),
        // What they say is said elsewhere too.
        ("format".to_owned(), true),
        ("lock".to_owned(), true),
    ];
    if engine == StoreEngine::Sled {
        files.push(("sled/conf".to_owned(), true));
    }
    for (name, opens) in files {
        let damaged = tempfile::tempdir().unwrap();
        copy(dir.path(), damaged.path());
        let path = damaged.path().join(&name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        let opened = all_or_refused(engine, damaged.path(), &tasks, &name).await;
        assert_eq!(opened, opens, "without {name}");
    }
}

async fn an_old_file_is_refused(engine: StoreEngine) {
    let (dir, mut tasks) = filled(engine).await;
    let old = tempfile::tempdir().unwrap();
    copy(dir.path(), old.path());
    add(engine, dir.path(), &mut tasks, 1).await;
    let folder = engine.to_string();
    fs::remove_dir_all(dir.path().join(&folder)).unwrap();
    fs::create_dir(dir.path().join(&folder)).unwrap();
    copy(&old.path().join(&folder), &dir.path().join(&folder));
    assert!(!all_or_refused(engine, dir.path(), &tasks, "an old file").await);
    let whole_copy = all_or_refused(engine, old.path(), &Tasks::new(), "a whole copy").await;
    assert!(whole_copy, "a copy of the whole folder is a backup");
}

async fn a_broken_mark_is_named(engine: StoreEngine) {
    let (dir, _) = filled(engine).await;
    fs::write(dir.path().join("mark"), [7; 600]).unwrap();
    let error = DiskStore::open(dir.path(), engine).unwrap_err();
    assert!(error.to_string().contains("mark"), "{error}");
}

/// The start does not look at all of a large file; the first write that needs what is damaged says so, and what to do.
#[tokio::test]
async fn damage_that_is_found_late_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = DiskStore::open(dir.path(), StoreEngine::Redb).unwrap();
    // The same ids each time, so that the file is the same too.
    let id = |n: u64| {
        let spread = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        TaskId::from_bytes(std::array::from_fn(|at| *spread.get(at).unwrap_or(&0)))
    };
    for n in 0..200 {
        store.put(put(id(n), None, &[7; 300])).await.unwrap();
    }
    // More than is read at a start.
    for n in 200..270 {
        store
            .put(put(id(n), None, &vec![7; 1 << 20]))
            .await
            .unwrap();
    }
    store.close().await.unwrap();
    drop(store);
    let path = raw::file(dir.path(), StoreEngine::Redb);
    let mut bytes = fs::read(&path).unwrap();
    // A part of the index by due times, which every write changes.
    let key = [b"e", 5u64.to_be_bytes().as_slice(), id(100).as_bytes()].concat();
    let leaf = |page: &&mut [u8]| page[0] == 1 && page.windows(key.len()).any(|at| at == key);
    let pages = bytes.chunks_exact_mut(4_096).filter(leaf);
    assert!(pages.map(|page| page.fill(0xab)).count() > 0);
    fs::write(&path, bytes).unwrap();

    let store = DiskStore::open(dir.path(), StoreEngine::Redb).unwrap();
    assert!(store.get(&id(100)).await.unwrap().is_some());
    let mut neighbour = *id(100).as_bytes();
    neighbour[TaskId::BYTES - 1] += 1;
    let written = store
        .put(put(TaskId::from_bytes(neighbour), None, &[1]))
        .await;
    let error = written.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
    let said = error.to_string();
    let folder = dir.path().display().to_string();
    for part in [
        "damaged",
        &folder,
        "cannot be read",
        "put back a copy",
        "--damaged",
    ] {
        assert!(said.contains(part), "no {part} in {said}");
    }
}

async fn a_changed_format_names_the_database(engine: StoreEngine) {
    let (dir, _) = filled(engine).await;
    let (own, other) = match engine {
        StoreEngine::Redb => (5, StoreEngine::Sled),
        StoreEngine::Sled => (4, StoreEngine::Redb),
    };
    let format = if own == 5 { 4 } else { 5 };
    fs::write(
        dir.path().join("format"),
        format!("longshore task store {format}\n"),
    )
    .unwrap();
    for wanted in [engine, other] {
        let refused = DiskStore::open(dir.path(), wanted).unwrap_err().to_string();
        for part in [
            format!("names {other}"),
            format!("its database is one of {engine}"),
            format!("write `longshore task store {own}`"),
        ] {
            assert!(refused.contains(&part), "no {part} in {refused}");
        }
    }
    fs::write(
        dir.path().join("format"),
        format!("longshore task store {own}\n"),
    )
    .unwrap();
    DiskStore::open(dir.path(), engine)
        .unwrap()
        .close()
        .await
        .unwrap();
}
