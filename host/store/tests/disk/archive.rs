//! Looking at a closed store, writing it out and reading it back.

use std::io::Cursor;
use std::path::Path;

use longshore_store::{
    Archive, ArchiveError, DiskStore, OpenError, StoreEngine, Summary, import, judge,
};
use longshore_tasks::state::{Event, Outcome, Task, apply};
use longshore_tasks::{Birth, Call, MemoryStore, OnCrash, Principal, Put, Store, TaskId, codec};

use crate::on_each_engine;
use crate::raw::{Raw, file};

on_each_engine!(
    an_export_is_read_back_as_it_was,
    a_task_is_found_by_its_name_elsewhere,
    what_is_left_of_a_damaged_store_is_saved,
    a_wrong_format_keeps_no_task_from_being_saved,
    a_store_in_use_and_no_store_are_told_apart,
);

fn task(body_bytes: usize, external_id: Option<&str>, ended: bool) -> Task {
    let call = Call {
        principal: Principal::new("alice"),
        plugin: "shop".into(),
        version: "v1".into(),
        tool: "order".into(),
        on_crash: OnCrash::Resume,
        body: vec![7; body_bytes],
    };
    let birth = Birth {
        poll_interval_ms: 500,
        ttl_ms: Some(60_000),
        pinned: false,
    };
    let mut task = Task::born(TaskId::random().unwrap(), call, birth, 1_000);
    if let Some(external_id) = external_id {
        task = apply(task, Event::Named(external_id.into()), 1_001).unwrap();
    }
    if ended {
        let outcome = Outcome::Completed("{}".into());
        let closed = Event::Closed {
            outcome,
            message: None,
            keep_until_ms: 70_000,
        };
        task = apply(task, closed, 1_002).unwrap();
    }
    task
}

async fn keep(engine: StoreEngine, dir: &Path, tasks: &[Task]) {
    let store = DiskStore::open(dir, engine).unwrap();
    for task in tasks {
        let put = Put {
            id: task.id,
            expected: None,
            unfinished: task.outcome.is_none(),
            due_ms: task.expires_ms,
            bytes: codec::encode(task).unwrap(),
        };
        store.put(put).await.unwrap();
    }
    store.close().await.unwrap();
}

fn tasks() -> Vec<Task> {
    (0..200)
        .map(|n| {
            let name = (n == 17).then_some("job-17");
            task(if n % 50 == 0 { 200_000 } else { n }, name, n % 3 == 0)
        })
        .collect()
}

fn export(archive: &Archive) -> (Summary, Vec<u8>) {
    let mut out = Vec::new();
    let summary = archive.export(&mut out, |damage| panic!("{damage}"));
    (summary.unwrap(), out)
}

async fn an_export_is_read_back_as_it_was(engine: StoreEngine) {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tasks = tasks();
    keep(engine, dir.path(), &tasks).await;
    let archive = Archive::open(dir.path()).unwrap();
    let checked = archive.check(|damage| panic!("{damage}")).unwrap();
    let (written, text) = export(&archive);
    assert_eq!(checked, written);
    assert_eq!((written.tasks, written.unfinished), (200, 133));

    // Into the other one: an export is how tasks move between them.
    let moved = StoreEngine::ALL.into_iter().find(|moved| *moved != engine);
    let store = DiskStore::open(other.path(), moved.unwrap()).unwrap();
    assert_eq!(import(&store, Cursor::new(&text)).await.unwrap().tasks, 200);
    for task in &tasks {
        let stored = store.get(&task.id).await.unwrap().unwrap();
        assert_eq!(codec::decode(&stored.bytes).unwrap(), *task);
    }
    assert_eq!(store.unfinished(None, 1_000).await.unwrap().len(), 133);
    assert_eq!(store.due(60_999, None, 1_000).await.unwrap().len(), 0);
    assert_eq!(store.due(61_000, None, 1_000).await.unwrap().len(), 133);
    store.close().await.unwrap();
    drop(store);
    let again = Archive::open(other.path()).unwrap();
    assert_eq!(export(&again).1, text, "the same tasks, in the same order");
}

#[tokio::test]
async fn an_export_goes_into_any_store() {
    let engine = StoreEngine::default();
    let dir = tempfile::tempdir().unwrap();
    let tasks = tasks();
    keep(engine, dir.path(), &tasks).await;
    let (_, text) = export(&Archive::open(dir.path()).unwrap());
    let memory = MemoryStore::default();
    import(&memory, Cursor::new(&text)).await.unwrap();
    assert!(memory.get(&tasks[0].id).await.unwrap().is_some());
}

#[tokio::test]
async fn where_one_task_is_there_none_is_put() {
    let engine = StoreEngine::default();
    let dir = tempfile::tempdir().unwrap();
    let tasks = tasks();
    keep(engine, dir.path(), &tasks).await;
    let (_, text) = export(&Archive::open(dir.path()).unwrap());
    let mut ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
    ids.sort_unstable();
    let (last, others) = ids.split_last().unwrap();
    let memory = MemoryStore::default();
    let task = tasks.iter().find(|task| task.id == *last).unwrap();
    let put = Put {
        id: *last,
        expected: None,
        unfinished: true,
        due_ms: None,
        bytes: codec::encode(task).unwrap(),
    };
    memory.put(put).await.unwrap();
    let refused = import(&memory, Cursor::new(&text)).await;
    assert!(matches!(refused, Err(ArchiveError::Exists(id)) if id == *last));
    for id in others {
        assert!(memory.get(id).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_export_with_a_task_twice_is_none() {
    let engine = StoreEngine::default();
    let dir = tempfile::tempdir().unwrap();
    keep(engine, dir.path(), &tasks()).await;
    let (_, text) = export(&Archive::open(dir.path()).unwrap());
    assert!(judge(&text[..]).is_ok());
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    lines[60] = lines[20];
    let error = judge(&lines.concat()[..]).unwrap_err().to_string();
    assert!(
        error.starts_with("line 61 ") && error.contains("twice"),
        "{error}"
    );
}

#[tokio::test]
async fn a_cut_or_changed_export_is_named_by_its_line() {
    let engine = StoreEngine::default();
    let dir = tempfile::tempdir().unwrap();
    keep(engine, dir.path(), &tasks()).await;
    let (_, text) = export(&Archive::open(dir.path()).unwrap());
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let without_last = lines[..201].concat();
    let without_one = [lines[..50].concat(), lines[51..].concat()].concat();
    let half_line = [lines[..50].concat(), lines[50][..40].to_vec()].concat();
    let no_header = lines[1..].concat();
    let swapped = [
        lines[0],
        lines[1],
        b"{\"id\":\"0\",\"unfinished\":true,\"bytes\":\"\"}\n",
    ]
    .concat();
    let two_in_one = [&text[..], &text[..]].concat();
    for (text, line) in [
        (two_in_one, 203),
        (without_last, 202),
        (without_one, 201),
        (half_line, 51),
        (no_header, 1),
        (swapped, 3),
        (Vec::new(), 1),
    ] {
        let error = import(&MemoryStore::default(), Cursor::new(&text))
            .await
            .unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with(&format!("line {line} ")), "{said}");
    }
}

async fn a_task_is_found_by_its_name_elsewhere(engine: StoreEngine) {
    let dir = tempfile::tempdir().unwrap();
    let tasks = tasks();
    keep(engine, dir.path(), &tasks).await;
    let archive = Archive::open(dir.path()).unwrap();
    let mut found = Vec::new();
    archive
        .find("job-17", |line| found.push(line.to_owned()))
        .unwrap();
    let id = tasks[17].id.to_string();
    assert_eq!(found.len(), 1, "{found:?}");
    for part in [id.as_str(), "job-17", "alice", "shop", "order", "working"] {
        assert!(found[0].contains(part), "{}", found[0]);
    }
    assert_eq!(
        archive.find("job", |line| panic!("{line}")).unwrap().tasks,
        0
    );
}

async fn what_is_left_of_a_damaged_store_is_saved(engine: StoreEngine) {
    let dir = tempfile::tempdir().unwrap();
    let tasks = tasks();
    keep(engine, dir.path(), &tasks).await;
    let db = Raw::open(dir.path(), engine);
    let key = [b"h", tasks[5].id.as_bytes().as_slice()].concat();
    let mut head = db.get(&key);
    head[40] ^= 1;
    db.set(&key, Some(&head));
    drop(db);

    let refused = Archive::open(dir.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    let archive = Archive::open_damaged(dir.path()).unwrap();
    let (mut out, mut damages) = (Vec::new(), 0);
    let saved = archive.export(&mut out, |_| damages += 1).unwrap();
    assert_eq!((saved.tasks, saved.damaged, damages), (199, 1, 1));
    let store = MemoryStore::default();
    assert_eq!(import(&store, Cursor::new(&out)).await.unwrap().tasks, 199);
}

/// Some pages of the database are nothing any more.
#[tokio::test]
async fn an_export_goes_around_what_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    // The same ids each time, so that the file is the same too.
    let tasks: Vec<Task> = (0..1_000u64)
        .map(|n| {
            let spread = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            Task {
                id: TaskId::from_bytes(std::array::from_fn(|at| *spread.get(at).unwrap_or(&0))),
                ..task(300, None, n % 3 == 0)
            }
        })
        .collect();
    keep(StoreEngine::Redb, dir.path(), &tasks).await;
    let path = file(dir.path(), StoreEngine::Redb);
    let mut bytes = std::fs::read(&path).unwrap();
    let pages = [10, 400, 401, 700].map(|n| &tasks[n].id).map(|id| {
        let key = [b"h", id.as_bytes().as_slice()].concat();
        let leaf = |page: &&mut [u8]| page[0] == 1 && page.windows(key.len()).any(|at| at == key);
        let pages = bytes.chunks_exact_mut(4_096).filter(leaf);
        pages.map(|page| page.fill(0xab)).count()
    });
    assert!(pages.iter().all(|count| *count > 0), "{pages:?}");
    std::fs::write(&path, bytes).unwrap();

    let archive = Archive::open_damaged(dir.path()).unwrap();
    let (mut out, mut told) = (Vec::new(), Vec::new());
    let saved = archive
        .export(&mut out, |line| told.push(line.to_owned()))
        .unwrap();
    assert_eq!(saved.tasks + saved.damaged, 1_000, "{told:?}");
    assert!((850..1_000).contains(&saved.tasks), "{saved:?}: {told:?}");
    let parts = told
        .iter()
        .filter(|line| line.contains("a part of the database"));
    assert!(parts.count() > 0, "{told:?}");
    // It has its end, and can be read back.
    let store = MemoryStore::default();
    assert_eq!(
        import(&store, Cursor::new(&out)).await.unwrap().tasks,
        saved.tasks
    );
}

/// The file `format` beside a sound database says nothing, nonsense, or the other database.
async fn a_wrong_format_keeps_no_task_from_being_saved(engine: StoreEngine) {
    for format in [
        &b""[..],
        b"\xff\xfe",
        b"longshore task store 4\n",
        b"longshore task store 5\n",
    ] {
        let dir = tempfile::tempdir().unwrap();
        keep(engine, dir.path(), &tasks()).await;
        std::fs::write(dir.path().join("format"), format).unwrap();
        if !format.starts_with(b"longshore") {
            let refused = Archive::open(dir.path()).unwrap_err();
            assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
        }
        let archive = Archive::open_damaged(dir.path()).unwrap();
        let saved = archive.export(&mut Vec::new(), |_| {}).unwrap();
        assert_eq!(saved.tasks, 200, "{format:?}");
    }
}

async fn a_store_in_use_and_no_store_are_told_apart(engine: StoreEngine) {
    let dir = tempfile::tempdir().unwrap();
    let _store = DiskStore::open(dir.path(), engine).unwrap();
    let error = Archive::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let nowhere = dir.path().join("nowhere");
    let error = Archive::open(&nowhere).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert!(!nowhere.exists(), "looking makes nothing");
    let empty = tempfile::tempdir().unwrap();
    assert!(Archive::open(empty.path()).is_err());
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}
