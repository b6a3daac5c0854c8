//! The cancellation ladder.

use longshore_tasks::{Status, Store as _};

use crate::world::*;

#[tokio::test]
async fn a_run_that_gives_in_is_cancelled_at_once() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "say:busy wait yield").await;
    cancel(&engine, &id).await;
    let cancelled = reach(&engine, &id, Status::Cancelled).await;
    assert_eq!(
        cancelled.status_message.as_deref(),
        Some("Cancelled by its caller.")
    );
    assert_eq!((cancelled.result, cancelled.error), (None, None));
}

#[tokio::test]
async fn a_run_that_does_not_is_ended_after_the_grace_period_every_time() {
    let world = World::new();
    let engine = world.engine().await;
    for _ in 0..10 {
        let id = create(&engine, "hang").await;
        world.until_in_memory(1).await;
        cancel(&engine, &id).await;
        cancel(&engine, &id).await;
        world.clock.advance_ms(999);
        settle().await;
        assert_eq!(view(&engine, &id).await.status, Status::Working);
        world.clock.advance_ms(1);
        reach(&engine, &id, Status::Cancelled).await;
        world.until_in_memory(0).await;
    }
}

#[tokio::test]
async fn without_a_grace_period_the_wish_is_the_end() {
    let mut world = World::new();
    world.settings.grace_ms = 0;
    let engine = world.engine().await;
    let id = create(&engine, "hang").await;
    world.until_in_memory(1).await;
    let revision = async || world.store.get(&id).await.unwrap().unwrap().revision;
    let born = revision().await;
    cancel(&engine, &id).await;
    assert_eq!(view(&engine, &id).await.status, Status::Cancelled);
    world.until_in_memory(0).await;
    assert_eq!(revision().await, born + 1, "one write");
}

#[tokio::test]
async fn a_run_that_asks_on_after_the_wish_is_ended_after_the_grace_period() {
    for linger_ms in [0, 30_000] {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let id = create(&engine, "wait ask:a").await;
        world.until_in_memory(1).await;
        cancel(&engine, &id).await;
        world.clock.advance_ms(999);
        settle().await;
        assert_eq!(view(&engine, &id).await.status, Status::Working);
        world.clock.advance_ms(1);
        reach(&engine, &id, Status::Cancelled).await;
        world.until_in_memory(0).await;
    }
}

#[tokio::test]
async fn what_ends_within_the_grace_period_stands() {
    let world = World::new();
    let engine = world.engine().await;
    for (script, status) in [
        ("wait finish", Status::Completed),
        ("wait fail", Status::Failed),
    ] {
        let id = create(&engine, script).await;
        cancel(&engine, &id).await;
        let ended = reach(&engine, &id, status).await;
        world.clock.advance_ms(5_000);
        settle().await;
        assert_eq!(view(&engine, &id).await, ended);
    }
}

#[tokio::test]
async fn a_question_without_a_run_in_memory_has_nothing_to_wait_for() {
    let world = World::lingering(0);
    let engine = world.engine().await;
    let id = create(&engine, "ask:a finish").await;
    reach(&engine, &id, Status::InputRequired).await;
    world.until_in_memory(0).await;
    settle().await;
    cancel(&engine, &id).await;
    assert_eq!(view(&engine, &id).await.status, Status::Cancelled);
}

#[tokio::test]
async fn a_run_that_waits_in_memory_is_told() {
    let world = World::new();
    let engine = world.engine().await;
    for (script, status) in [
        ("ask:a finish", Status::Completed),
        ("ask:a yield", Status::Cancelled),
        ("pin:a yield", Status::Cancelled),
    ] {
        let id = create(&engine, script).await;
        reach(&engine, &id, Status::InputRequired).await;
        cancel(&engine, &id).await;
        reach(&engine, &id, status).await;
    }
}

#[tokio::test]
async fn after_the_wish_nothing_is_answered_and_asking_on_does_not_help() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "ask:a ask:b finish").await;
    reach(&engine, &id, Status::InputRequired).await;
    cancel(&engine, &id).await;
    settle().await;
    answer(&engine, &id, &[("a", "1"), ("b", "2")]).await;
    settle().await;
    assert_eq!(keys(&view(&engine, &id).await), ["a"], "it was not taken");
    world.clock.advance_ms(1_000);
    reach(&engine, &id, Status::Cancelled).await;
    world.until_in_memory(0).await;
}

#[tokio::test]
async fn a_task_that_asks_again_and_again_can_be_cancelled_while_it_works() {
    let world = World::lingering(0);
    let engine = world.engine().await;
    let id = create(&engine, "ask:a hang").await;
    reach(&engine, &id, Status::InputRequired).await;
    answer(&engine, &id, &[("a", "1")]).await;
    world.until_in_memory(1).await;
    cancel(&engine, &id).await;
    settle().await;
    world.clock.advance_ms(1_000);
    reach(&engine, &id, Status::Cancelled).await;
}
