//! From birth to end, without questions.

use longshore_tasks::{Checkpoint, Principal, Question, Status, TaskId};

use crate::world::*;

#[tokio::test]
async fn a_task_is_durable_when_its_handle_is_out_and_completes() {
    let world = World::new();
    let engine = world.engine().await;
    let born = engine.create(call("gate finish"), birth()).await.unwrap();
    assert_eq!(world.writes(), 1);
    assert_eq!(born.status, Status::Working);
    assert_eq!((born.created_ms, born.updated_ms), (1_000_000, 1_000_000));
    assert_eq!((born.ttl_ms, born.poll_interval_ms), (Some(3_600_000), 500));
    assert_eq!(
        (born.plugin.as_str(), born.version.as_str()),
        ("scripts", "v1")
    );
    assert_eq!(view(&engine, &born.id).await, born);

    world.clock.advance_ms(70);
    world.scripts.gate.send_replace(true);
    let done = reach(&engine, &born.id, Status::Completed).await;
    assert_eq!((done.result.as_deref(), done.error), (Some("done "), None));
    assert_eq!((done.created_ms, done.updated_ms), (1_000_000, 1_000_070));
    world.until_in_memory(0).await;
    assert_eq!(world.writes(), 2);
}

#[tokio::test]
async fn the_last_progress_message_is_shown_and_stored_with_the_next_change() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "say:one say:two gate name:job-7 ask:a").await;
    until("the message", async || {
        view(&engine, &id).await.status_message.as_deref() == Some("two")
    })
    .await;
    assert_eq!(world.writes(), 1, "progress alone is not written");
    world.scripts.gate.send_replace(true);
    let asked = reach(&engine, &id, Status::InputRequired).await;
    assert_eq!(asked.external_id.as_deref(), Some("job-7"));
    engine.shutdown(std::time::Duration::ZERO).await;
    let next = world.engine().await;
    assert_eq!(
        view(&next, &id).await.status_message.as_deref(),
        Some("two")
    );
}

#[tokio::test]
async fn each_change_is_told_when_it_can_be_seen() {
    let world = World::new();
    let engine = world.engine().await;
    let mut changes = engine.changes();
    let id = create(&engine, "gate say:one finish").await;
    assert_eq!(changes.try_recv().ok(), Some(id), "the birth");
    assert!(changes.try_recv().is_err());
    world.scripts.gate.send_replace(true);
    let (mut messages, mut last) = (Vec::new(), Status::Working);
    until("the end to be told", async || {
        while let Ok(changed) = changes.try_recv() {
            assert_eq!(changed, id);
            let seen = view(&engine, &id).await;
            messages.extend(seen.status_message);
            last = seen.status;
        }
        last == Status::Completed
    })
    .await;
    assert!(
        messages.iter().all(|message| message == "one"),
        "{messages:?}"
    );
    assert!(!messages.is_empty());
}

#[tokio::test]
async fn a_failed_task_has_its_error_and_says_why() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "say:trying fail").await;
    let failed = reach(&engine, &id, Status::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("failed by script"));
    assert_eq!(
        failed.status_message.as_deref(),
        Some("because: failed by script")
    );
    assert_eq!(failed.result, None);
}

#[tokio::test]
async fn terminal_is_terminal() {
    let world = World::new();
    let engine = world.engine().await;
    for (script, status) in [
        ("finish", Status::Completed),
        ("fail", Status::Failed),
        ("wait yield", Status::Cancelled),
    ] {
        let id = create(&engine, script).await;
        if status == Status::Cancelled {
            cancel(&engine, &id).await;
        }
        let ended = reach(&engine, &id, status).await;
        let writes = world.writes();
        world.clock.advance_ms(10);
        cancel(&engine, &id).await;
        answer(&engine, &id, &[("a", "1")]).await;
        settle().await;
        assert_eq!(view(&engine, &id).await, ended);
        assert_eq!(world.writes(), writes, "nothing was written");
    }
}

#[tokio::test]
async fn foreign_and_unknown_are_the_same() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "ask:a").await;
    reach(&engine, &id, Status::InputRequired).await;
    let unknown = TaskId::random().unwrap();
    for (id, caller) in [(id, Principal::anonymous()), (unknown, owner())] {
        let answers = vec![("a".to_owned(), "1".to_owned())];
        assert!(is_not_found(&engine.get(&id, &caller).await));
        assert!(is_not_found(&engine.answer(&id, &caller, answers).await));
        assert!(is_not_found(&engine.cancel(&id, &caller).await));
    }
    assert_eq!(view(&engine, &id).await.status, Status::InputRequired);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_short_tasks_are_all_there() {
    let world = World::new();
    let engine = world.engine().await;
    let tasks = (0..1_000).map(|n| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let id = create(&engine, if n % 2 == 0 { "finish" } else { "say:x fail" }).await;
            let status = if n % 2 == 0 {
                Status::Completed
            } else {
                Status::Failed
            };
            let first = reach(&engine, &id, status).await;
            for _ in 0..3 {
                assert_eq!(view(&engine, &id).await, first);
            }
        })
    });
    for task in futures::future::join_all(tasks).await {
        task.unwrap();
    }
    world.until_in_memory(0).await;
    assert_eq!(world.scripts.started(), 1_000);
}

#[tokio::test]
async fn an_adopted_run_goes_on_in_place() {
    let world = World::new();
    let engine = world.engine().await;
    let run = world.scripts.run("gate finish");
    let born = engine
        .adopt(call("gate finish"), birth(), run, None)
        .await
        .unwrap();
    assert_eq!(born.status, Status::Working);
    world.scripts.gate.send_replace(true);
    reach(&engine, &born.id, Status::Completed).await;
    assert_eq!(world.scripts.started(), 0, "it was not started again");
}

#[tokio::test]
async fn a_run_adopted_while_it_asks_is_input_required_at_once() {
    for linger_ms in [0, 30_000] {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let mut run = world.scripts.run("ask:a finish");
        let longshore_tasks::Step::NeedsInput { questions, record } = run.step().await else {
            panic!("it asks");
        };
        let checkpoint = Some(Checkpoint::new(questions, record));
        let call = call("ask:a finish");
        let born = engine.adopt(call, birth(), run, checkpoint).await.unwrap();
        assert_eq!(
            (born.status, keys(&born)),
            (Status::InputRequired, vec!["a"])
        );
        answer(&engine, &born.id, &[("a", "1")]).await;
        let done = reach(&engine, &born.id, Status::Completed).await;
        assert_eq!(done.result.as_deref(), Some("done a=1"));
        if linger_ms > 0 {
            assert_eq!(world.scripts.started(), 0, "it was answered in place");
        }
    }
}

#[tokio::test]
async fn an_adopted_run_that_asked_before_goes_on_from_there_after_a_stop() {
    let world = World::new();
    let engine = world.engine().await;
    let mut run = world.scripts.run("ask:a gate finish");
    let longshore_tasks::Step::NeedsInput { questions, record } = run.step().await else {
        panic!("it asks");
    };
    let mut checkpoint = Checkpoint::new(questions, record);
    checkpoint.answers.insert("a".into(), "1".into());
    run.answer(vec![("a".into(), "1".into())]);
    let call = call("ask:a gate finish");
    let born = engine
        .adopt(call, birth(), run, Some(checkpoint))
        .await
        .unwrap();
    assert_eq!(born.status, Status::Working);
    engine.shutdown(std::time::Duration::ZERO).await;
    let next = world.engine().await;
    world.scripts.gate.send_replace(true);
    let done = reach(&next, &born.id, Status::Completed).await;
    assert_eq!(done.result.as_deref(), Some("done a=1"));
}

#[tokio::test]
async fn a_run_that_ends_while_it_becomes_a_task_still_gets_a_handle() {
    let world = World::new();
    let engine = world.engine().await;
    world.shut_store();
    let run = world.scripts.run("finish");
    let adopting = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.adopt(call("finish"), birth(), run, None).await })
    };
    settle().await;
    assert!(!adopting.is_finished(), "no handle before it is durable");
    world.open_store();
    let born = adopting.await.unwrap().unwrap();
    assert_eq!(born.status, Status::Working);
    reach(&engine, &born.id, Status::Completed).await;
}

#[tokio::test]
async fn a_handle_that_nobody_took_is_a_cancelled_task() {
    let world = World::new();
    let engine = world.engine().await;
    world.shut_store();
    let mut creating = Box::pin(engine.create(call("wait yield"), birth()));
    assert!(futures::poll!(&mut creating).is_pending());
    settle().await;
    drop(creating);
    world.open_store();
    // The birth, the wish and the end.
    until("the end of the task", async || world.writes() == 3).await;
    world.until_in_memory(0).await;
    let unfinished = longshore_tasks::Store::unfinished(&*world.store, None, 9)
        .await
        .unwrap();
    assert_eq!(unfinished, []);
}

#[tokio::test]
async fn questions_of_a_checkpoint_are_kept_as_they_are() {
    let world = World::new();
    let engine = world.engine().await;
    let question = Question {
        key: "k".into(),
        request: r#"{"method":"x"}"#.into(),
    };
    let checkpoint = Checkpoint::new(vec![question.clone()], Some(b"0;".to_vec()));
    let run = world.scripts.run("hang");
    let born = engine
        .adopt(call("hang"), birth(), run, Some(checkpoint))
        .await
        .unwrap();
    assert_eq!(born.questions, [question]);
}
