//! Time to live.

use longshore_tasks::{Birth, Engine, Status, Store as _, TaskId};

use crate::world::*;

async fn create_for(engine: &Engine, script: &str, ttl_ms: Option<u64>) -> TaskId {
    let birth = Birth {
        pinned: false,
        poll_interval_ms: 500,
        ttl_ms,
    };
    engine.create(call(script), birth).await.unwrap().id
}

/// Neither shown nor kept.
async fn gone(world: &World, engine: &Engine, id: &TaskId) -> bool {
    let shown = engine.get(id, &owner()).await;
    is_not_found(&shown) && world.store.get(id).await.unwrap().is_none()
}

#[tokio::test]
async fn a_working_task_fails_at_its_expiry_and_goes_later() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create_for(&engine, "say:busy hang", Some(2_000)).await;
    world.until_in_memory(1).await;
    world.clock.advance_ms(1_999);
    settle().await;
    assert_eq!(view(&engine, &id).await.status, Status::Working);
    world.clock.advance_ms(1);
    let failed = reach(&engine, &id, Status::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("expired in scripts"));
    assert_eq!(
        failed.status_message.as_deref(),
        Some("because: expired in scripts")
    );
    assert_eq!(
        failed.ttl_ms,
        Some(602_000),
        "it says how long it is kept now"
    );
    world.until_in_memory(0).await;

    world.clock.advance_ms(599_999);
    settle().await;
    assert_eq!(view(&engine, &id).await, failed);
    world.clock.advance_ms(501);
    until("the removal", async || gone(&world, &engine, &id).await).await;
}

#[tokio::test]
async fn a_question_expires_too() {
    for linger_ms in [0, 30_000] {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let id = create_for(&engine, "ask:a finish", Some(2_000)).await;
        reach(&engine, &id, Status::InputRequired).await;
        world.clock.advance_ms(2_500);
        let failed = reach(&engine, &id, Status::Failed).await;
        assert_eq!(failed.questions, []);
        world.until_in_memory(0).await;
        answer(&engine, &id, &[("a", "1")]).await;
        assert_eq!(view(&engine, &id).await, failed, "never back");
    }
}

#[tokio::test]
async fn a_result_is_kept_for_a_while_even_if_it_came_late() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create_for(&engine, "gate finish", Some(2_000)).await;
    world.clock.advance_ms(1_900);
    world.scripts.gate.send_replace(true);
    let done = reach(&engine, &id, Status::Completed).await;
    assert_eq!(done.ttl_ms, Some(601_900));
    world.clock.advance_ms(599_000);
    settle().await;
    assert_eq!(view(&engine, &id).await, done);
    world.clock.advance_ms(2_000);
    until("the removal", async || gone(&world, &engine, &id).await).await;
}

#[tokio::test]
async fn a_task_may_live_for_ever() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create_for(&engine, "finish", None).await;
    let done = reach(&engine, &id, Status::Completed).await;
    assert_eq!(done.ttl_ms, None);
    world.clock.advance_ms(1 << 40);
    settle().await;
    assert_eq!(view(&engine, &id).await, done);
}

#[tokio::test]
async fn reads_write_nothing() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create_for(&engine, "ask:a finish", Some(2_000)).await;
    reach(&engine, &id, Status::InputRequired).await;
    let writes = world.writes();
    for _ in 0..100 {
        view(&engine, &id).await;
    }
    assert_eq!(world.writes(), writes);
}

#[tokio::test]
async fn more_than_one_batch_is_swept() {
    let mut world = World::new();
    world.settings.sweep_batch = 10;
    let engine = world.engine().await;
    let mut ids = Vec::new();
    for _ in 0..35 {
        ids.push(create_for(&engine, "finish", Some(1_000)).await);
    }
    for id in &ids {
        reach(&engine, id, Status::Completed).await;
    }
    world.clock.advance_ms(700_000);
    for id in &ids {
        until("the removal", async || gone(&world, &engine, id).await).await;
    }
}

#[tokio::test]
async fn a_start_leaves_ended_tasks_alone_and_shows_none_that_are_over() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create_for(&engine, "finish", Some(1_000)).await;
    reach(&engine, &id, Status::Completed).await;
    engine.shutdown(std::time::Duration::ZERO).await;
    world.clock.advance_ms(700_000);
    let writes = world.writes();
    let engine = world.engine().await;
    assert_eq!(world.writes(), writes, "removing them is for later");
    assert!(is_not_found(&engine.get(&id, &owner()).await));
    settle().await;
    world.clock.advance_ms(501);
    until("the removal", async || gone(&world, &engine, &id).await).await;
}
