//! Stops and starts: a stop is no cancellation, and what was unfinished goes on.

use std::time::Duration;

use longshore_tasks::{EngineError, Status};

use crate::world::*;

#[tokio::test]
async fn a_stop_drops_runs_and_leaves_tasks_as_they_are() {
    let world = World::new();
    let engine = world.engine().await;
    let working = create(&engine, "say:x hang").await;
    let asking = create(&engine, "ask:a finish").await;
    reach(&engine, &asking, Status::InputRequired).await;
    let writes = world.writes();
    engine.shutdown(Duration::from_secs(5)).await;
    assert_eq!(world.scripts.in_memory(), 0, "nothing had to be waited for");
    assert_eq!(world.writes(), writes);
    assert_eq!(view(&engine, &working).await.status, Status::Working);
    assert_eq!(view(&engine, &asking).await.status, Status::InputRequired);
    let refused = engine.create(call("finish"), birth()).await;
    assert!(matches!(refused, Err(EngineError::ShuttingDown)));
    let run = world.scripts.run("finish");
    let refused = engine.adopt(call("finish"), birth(), run, None).await;
    assert!(matches!(refused, Err(EngineError::ShuttingDown)));
}

#[tokio::test]
async fn work_without_a_checkpoint_starts_again() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "gate finish").await;
    world.until_in_memory(1).await;
    engine.shutdown(Duration::ZERO).await;
    let next = world.engine().await;
    assert_eq!(
        world.scripts.started(),
        2,
        "it is started when the engine is"
    );
    world.scripts.gate.send_replace(true);
    reach(&next, &id, Status::Completed).await;
}

#[tokio::test]
async fn a_question_rests_until_it_is_answered() {
    for linger_ms in [0, 30_000] {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let id = create(&engine, "ask:a,b ask:c finish").await;
        reach(&engine, &id, Status::InputRequired).await;
        answer(&engine, &id, &[("a", "1")]).await;
        engine.shutdown(Duration::ZERO).await;
        let next = world.engine().await;
        settle().await;
        assert_eq!((world.scripts.started(), world.scripts.in_memory()), (1, 0));
        assert_eq!(
            keys(&view(&next, &id).await),
            ["b"],
            "the first answer is kept"
        );
        answer(&next, &id, &[("b", "2")]).await;
        until("the question", async || {
            keys(&view(&next, &id).await) == ["c"]
        })
        .await;
        answer(&next, &id, &[("c", "3")]).await;
        let done = reach(&next, &id, Status::Completed).await;
        assert_eq!(done.result.as_deref(), Some("done a=1,b=2,c=3"));
    }
}

#[tokio::test]
async fn an_answer_taken_just_before_the_end_is_not_lost() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "ask:a finish").await;
    reach(&engine, &id, Status::InputRequired).await;
    engine.shutdown(Duration::ZERO).await;
    answer(&engine, &id, &[("a", "1")]).await;
    let next = world.engine().await;
    let done = reach(&next, &id, Status::Completed).await;
    assert_eq!(done.result.as_deref(), Some("done a=1"));
}

#[tokio::test]
async fn a_pinned_task_is_interrupted_and_says_so() {
    let world = World::new();
    let engine = world.engine().await;
    let asking = create(&engine, "pin:a finish").await;
    let working = create(&engine, "pin:a hang").await;
    for id in [asking, working] {
        reach(&engine, &id, Status::InputRequired).await;
    }
    answer(&engine, &working, &[("a", "1")]).await;
    engine.shutdown(Duration::ZERO).await;
    let started = world.scripts.started();
    let next = world.engine().await;
    for id in [asking, working] {
        let failed = view(&next, &id).await;
        assert_eq!(failed.status, Status::Failed);
        assert_eq!(failed.error.as_deref(), Some("interrupted in scripts"));
    }
    assert_eq!(world.scripts.started(), started, "it is never run twice");
}

#[tokio::test]
async fn a_pinned_run_gets_the_drain_time() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "pin:a gate finish").await;
    let slow = create(&engine, "pin:a hang").await;
    for id in [id, slow] {
        reach(&engine, &id, Status::InputRequired).await;
        answer(&engine, &id, &[("a", "1")]).await;
    }
    settle().await;
    let stopping = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.shutdown(Duration::from_secs(5)).await })
    };
    settle().await;
    assert_eq!(world.scripts.in_memory(), 2);
    world.scripts.gate.send_replace(true);
    reach(&engine, &id, Status::Completed).await;
    assert!(!stopping.is_finished());
    world.clock.advance_ms(5_000);
    stopping.await.unwrap();
    assert_eq!(world.scripts.in_memory(), 0);
    assert_eq!(view(&engine, &slow).await.status, Status::Working);
}

#[tokio::test]
async fn a_wish_that_outlived_the_server_is_granted_at_once() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "hang").await;
    world.until_in_memory(1).await;
    cancel(&engine, &id).await;
    engine.shutdown(Duration::ZERO).await;
    assert_eq!(view(&engine, &id).await.status, Status::Working);
    let next = world.engine().await;
    assert_eq!(view(&next, &id).await.status, Status::Cancelled);
    assert_eq!(world.scripts.started(), 1);
}

#[tokio::test]
async fn many_tasks_are_taken_up_a_few_at_a_time() {
    let mut world = World::new();
    world.settings.recovery_parallel = 3;
    let engine = world.engine().await;
    let mut ids = Vec::new();
    for _ in 0..600 {
        ids.push(create(&engine, "gate finish").await);
    }
    world.until_in_memory(600).await;
    engine.shutdown(Duration::ZERO).await;
    let next = world.engine().await;
    assert_eq!(
        world.scripts.started(),
        1_200,
        "all are started when the engine is"
    );
    world.scripts.gate.send_replace(true);
    for id in &ids {
        reach(&next, id, Status::Completed).await;
    }
}
