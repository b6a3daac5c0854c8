//! Ends of the server under its runs: what goes on, what is run again, what fails.

use std::time::Duration;

use longshore_tasks::{Call, Engine, OnCrash, Patience, Status, TaskId};

use crate::world::*;

async fn create_with(engine: &Engine, script: &str, on_crash: OnCrash) -> TaskId {
    let call = Call {
        on_crash,
        ..call(script)
    };
    engine.create(call, birth()).await.unwrap().id
}

#[tokio::test]
async fn an_effect_is_never_doubled_unasked() {
    let world = World::new();
    for (on_crash, status, effects) in [
        (OnCrash::Resume, Status::Failed, 1),
        (OnCrash::Fail, Status::Failed, 1),
        (OnCrash::Rerun, Status::Completed, 2),
    ] {
        world.scripts.gate.send_replace(false);
        let before = world.scripts.effects();
        let engine = world.engine().await;
        let id = create_with(&engine, "effect gate finish", on_crash).await;
        until("the effect", async || world.scripts.effects() == before + 1).await;
        let next = world.engine_after_a_crash(engine).await;
        world.scripts.gate.send_replace(true);
        let ended = reach(&next, &id, status).await;
        assert_eq!(world.scripts.effects(), before + effects);
        if status == Status::Failed {
            assert_eq!(ended.error.as_deref(), Some("interrupted in scripts"));
        }
        next.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn an_effect_waits_until_it_is_written_down() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "gate effect finish").await;
    world.until_in_memory(1).await;
    world.shut_store();
    world.scripts.gate.send_replace(true);
    settle().await;
    assert_eq!(world.scripts.effects(), 0);
    world.open_store();
    reach(&engine, &id, Status::Completed).await;
    assert_eq!(world.scripts.effects(), 1);
}

#[tokio::test]
async fn a_call_that_must_not_be_run_again_gets_the_drain_time_and_then_fails() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create_with(&engine, "gate finish", OnCrash::Fail).await;
    let waiting = create_with(&engine, "ask:a finish", OnCrash::Fail).await;
    reach(&engine, &waiting, Status::InputRequired).await;
    world.until_in_memory(2).await;
    let stopping = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.shutdown(Duration::from_secs(5)).await })
    };
    settle().await;
    assert!(!stopping.is_finished(), "it gets the drain time");
    world.clock.advance_ms(5_000);
    stopping.await.unwrap();

    let next = world.engine().await;
    let failed = view(&next, &id).await;
    assert_eq!(failed.error.as_deref(), Some("interrupted in scripts"));
    answer(&next, &waiting, &[("a", "1")]).await;
    let done = reach(&next, &waiting, Status::Completed).await;
    assert_eq!(done.result.as_deref(), Some("done a=1"), "it did not run");
}

#[tokio::test]
async fn a_run_that_starts_over_asks_under_new_keys() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create_with(&engine, "pin:a ask:b finish", OnCrash::Rerun).await;
    reach_question(&engine, &id, "a").await;
    let engine = world.engine_after_a_crash(engine).await;
    reach_question(&engine, &id, "a~2").await;
    answer(&engine, &id, &[("a", "late"), ("a~2", "1")]).await;
    reach_question(&engine, &id, "b~2").await;
    let engine = world.engine_after_a_crash(engine).await;
    answer(&engine, &id, &[("b~2", "2")]).await;
    let done = reach(&engine, &id, Status::Completed).await;
    assert_eq!(done.result.as_deref(), Some("done a=1,b=2"));
}

#[tokio::test]
async fn a_task_that_brings_the_server_down_is_given_up() {
    let mut world = World::new();
    world.settings.patience = Patience {
        crashes_max: 3,
        at_least_ms: 10_000,
    };
    let mut engine = world.engine().await;
    let id = create(&engine, "hang").await;
    let asks = create(&engine, "ask:a hang").await;
    reach_question(&engine, &asks, "a").await;
    for _ in 0..9 {
        engine = world.engine_after_a_crash(engine).await;
        assert_eq!(view(&engine, &id).await.status, Status::Working);
    }
    world.clock.advance_ms(10_000);
    let started = world.scripts.started();
    engine = world.engine_after_a_crash(engine).await;
    let failed = view(&engine, &id).await;
    assert_eq!(failed.error.as_deref(), Some("crash_loop in scripts"));
    assert_eq!(world.scripts.started(), started);
    assert_eq!(view(&engine, &asks).await.status, Status::InputRequired);
}

#[tokio::test]
async fn an_orderly_stop_does_not_count_as_a_crash() {
    let mut world = World::new();
    world.settings.patience = Patience {
        crashes_max: 1,
        at_least_ms: 0,
    };
    let mut engine = world.engine().await;
    let id = create(&engine, "hang").await;
    world.until_in_memory(1).await;
    let writes = world.writes();
    for _ in 0..4 {
        engine.shutdown(Duration::ZERO).await;
        engine = world.engine().await;
        assert_eq!(view(&engine, &id).await.status, Status::Working);
    }
    assert_eq!(world.writes(), writes, "nothing is written for it");
}

#[tokio::test]
async fn a_run_sees_the_name_it_gave_its_job_again() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "tell name:job-7 hang").await;
    until("the name", async || {
        view(&engine, &id).await.external_id.is_some()
    })
    .await;
    let next = world.engine_after_a_crash(engine).await;
    until("the name told", async || {
        let message = view(&next, &id).await.status_message;
        message.as_deref() == Some("Some(\"job-7\")")
    })
    .await;
}

#[tokio::test]
async fn queued_work_keeps_its_order() {
    let world = World::new();
    let engine = world.engine().await;
    let mut scripts = Vec::new();
    for n in 0..300 {
        scripts.push(format!("say:{n} hang"));
        create(&engine, &scripts[n]).await;
        world.clock.advance_ms(1);
    }
    world.until_in_memory(300).await;
    engine.shutdown(Duration::ZERO).await;
    world.scripts.order.lock().unwrap().clear();
    let _next = world.engine().await;
    assert_eq!(*world.scripts.order.lock().unwrap(), scripts);
}
