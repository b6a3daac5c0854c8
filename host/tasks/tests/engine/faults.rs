//! Runs that panic and stores that fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_tasks::{EngineError, Put, Status, Store as _, SystemClock, TaskId};

use crate::world::*;

#[tokio::test]
async fn a_panic_costs_one_task() {
    let world = World::new();
    let engine = world.engine().await;
    let other = create(&engine, "gate finish").await;
    let id = create(&engine, "say:x panic").await;
    let failed = reach(&engine, &id, Status::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("broken in scripts"));
    world.until_in_memory(1).await;

    world.scripts.panic_on_start.store(true, Ordering::SeqCst);
    let id = create(&engine, "finish").await;
    reach(&engine, &id, Status::Failed).await;
    world.scripts.panic_on_start.store(false, Ordering::SeqCst);

    world.scripts.gate.send_replace(true);
    reach(&engine, &other, Status::Completed).await;
}

#[tokio::test]
async fn a_short_fault_of_the_store_is_waited_out() {
    let world = World::new();
    let engine = world.engine_on(Arc::new(SystemClock::new())).await;
    let id = create(&engine, "gate finish").await;
    world.store.faults.store(3, Ordering::SeqCst);
    world.scripts.gate.send_replace(true);
    reach(&engine, &id, Status::Completed).await;
    assert_eq!(world.store.faults.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_long_fault_costs_the_run_but_not_the_task() {
    let world = World::new();
    let engine = world.engine_on(Arc::new(SystemClock::new())).await;
    let id = create(&engine, "gate finish").await;
    world.until_in_memory(1).await;
    world.store.faults.store(usize::MAX, Ordering::SeqCst);
    world.scripts.gate.send_replace(true);
    world.until_in_memory(0).await;
    assert_eq!(view(&engine, &id).await.status, Status::Working);
    let refused = engine.create(call("finish"), birth()).await;
    assert!(
        matches!(refused, Err(EngineError::Store(_))),
        "nobody has a handle of nothing"
    );
    assert!(matches!(
        engine.cancel(&id, &owner()).await,
        Err(EngineError::Store(_))
    ));

    world.store.faults.store(0, Ordering::SeqCst);
    let other = create(&engine, "finish").await;
    reach(&engine, &other, Status::Completed).await;
    engine.shutdown(Duration::ZERO).await;
    let next = world.engine().await;
    reach(&next, &id, Status::Completed).await;
}

#[tokio::test]
async fn a_task_that_cannot_be_read_stops_no_other() {
    let world = World::new();
    let engine = world.engine().await;
    let good = create(&engine, "gate finish").await;
    engine.shutdown(Duration::ZERO).await;
    let bad = TaskId::random().unwrap();
    let bytes = vec![99, 1, 2, 3];
    let put = Put {
        id: bad,
        expected: None,
        unfinished: true,
        due_ms: Some(1),
        bytes,
    };
    world.store.put(put).await.unwrap();

    let next = world.engine().await;
    world.scripts.gate.send_replace(true);
    reach(&next, &good, Status::Completed).await;
    let unreadable = next.get(&bad, &owner()).await;
    assert!(
        matches!(unreadable, Err(EngineError::Codec(_))),
        "{unreadable:?}"
    );
    world.clock.advance_ms(3_600_000);
    until("the removal", async || {
        next.get(&good, &owner()).await.is_err()
    })
    .await;
    assert!(
        world.store.get(&bad).await.unwrap().is_some(),
        "what cannot be read is kept"
    );
}
