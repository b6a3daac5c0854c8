//! Questions and answers, with runs that wait in memory and runs that are started again.

use std::sync::atomic::Ordering;

use longshore_tasks::{Checkpoint, Status, Step};

use crate::world::*;

const LINGERS_MS: [u64; 2] = [0, 30_000];

#[tokio::test]
async fn answers_come_one_by_one_and_the_last_goes_on() {
    for linger_ms in LINGERS_MS {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let id = create(&engine, "say:hello ask:a,b finish").await;
        let asked = reach(&engine, &id, Status::InputRequired).await;
        assert_eq!(keys(&asked), ["a", "b"]);
        assert_eq!(asked.questions[0].request, "a?");

        answer(&engine, &id, &[]).await;
        answer(&engine, &id, &[("x", "9")]).await;
        assert_eq!(view(&engine, &id).await, asked, "nothing fitted");
        answer(&engine, &id, &[("b", "2"), ("x", "9")]).await;
        answer(&engine, &id, &[("b", "3")]).await;
        let half = view(&engine, &id).await;
        assert_eq!(
            (half.status, keys(&half)),
            (Status::InputRequired, vec!["a"])
        );
        answer(&engine, &id, &[("a", "1"), ("b", "4")]).await;
        let done = reach(&engine, &id, Status::Completed).await;
        assert_eq!(done.result.as_deref(), Some("done a=1,b=2"));
        assert_eq!(world.scripts.started(), if linger_ms == 0 { 2 } else { 1 });
    }
}

#[tokio::test]
async fn questions_may_follow_each_other() {
    for linger_ms in LINGERS_MS {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let id = create(&engine, "ask:a say:x ask:b,c ask:d finish").await;
        for (keys_now, answers) in [
            (vec!["a"], vec![("a", "1")]),
            (vec!["b", "c"], vec![("c", "3"), ("b", "2")]),
            (vec!["d"], vec![("d", "4")]),
        ] {
            until("the question", async || {
                keys(&view(&engine, &id).await) == keys_now
            })
            .await;
            answer(&engine, &id, &answers).await;
        }
        let done = reach(&engine, &id, Status::Completed).await;
        assert_eq!(done.result.as_deref(), Some("done a=1,b=2,c=3,d=4"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_answers_at_once_the_first_wins() {
    for linger_ms in LINGERS_MS {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        for _ in 0..20 {
            let id = create(&engine, "ask:a gate finish").await;
            reach(&engine, &id, Status::InputRequired).await;
            let rivals = (0..8).map(|n| {
                let engine = engine.clone();
                tokio::spawn(async move { answer(&engine, &id, &[("a", &n.to_string())]).await })
            });
            for rival in futures::future::join_all(rivals).await {
                rival.unwrap();
            }
            world.scripts.gate.send_replace(true);
            let done = reach(&engine, &id, Status::Completed).await;
            let result = done.result.unwrap();
            assert!((0..8).any(|n| result == format!("done a={n}")), "{result}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_falls_between_two_runs() {
    let world = World::lingering(0);
    let engine = world.engine().await;
    let tasks = (0..300).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let id = create(&engine, "ask:a ask:b ask:c finish").await;
            for key in ["a", "b", "c"] {
                // Answered as soon as it can be seen: the run that asked is just being let go.
                reach_question(&engine, &id, key).await;
                answer(&engine, &id, &[(key, "1")]).await;
            }
            reach(&engine, &id, Status::Completed).await;
        })
    });
    for task in futures::future::join_all(tasks).await {
        task.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_while_the_run_is_being_let_go_is_heeded() {
    let world = World::lingering(0);
    let engine = world.engine().await;
    world.scripts.slow_drop.store(true, Ordering::SeqCst);
    let id = create(&engine, "ask:a finish").await;
    reach(&engine, &id, Status::InputRequired).await;
    world.until_in_memory(0).await;
    answer(&engine, &id, &[("a", "1")]).await;
    assert_eq!(world.scripts.started(), 1, "the first run is not gone yet");
    world.scripts.slow_drop.store(false, Ordering::SeqCst);
    reach(&engine, &id, Status::Completed).await;
}

#[tokio::test]
async fn only_so_many_runs_linger() {
    let mut world = World::lingering(30_000);
    world.settings.lingering_max = 2;
    let engine = world.engine().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(create(&engine, "ask:a finish").await);
    }
    for id in &ids {
        reach(&engine, id, Status::InputRequired).await;
    }
    world.until_in_memory(2).await;
    // It was the oldest that left: the others go on in place.
    for (id, started) in ids.iter().rev().zip([5, 5, 6, 7, 8]) {
        answer(&engine, id, &[("a", "1")]).await;
        reach(&engine, id, Status::Completed).await;
        assert_eq!(world.scripts.started(), started);
    }
}

#[tokio::test]
async fn waiting_runs_hold_only_so_much_memory() {
    let mut world = World::lingering(30_000);
    world.settings.waiting_bytes_max = 100;
    let engine = world.engine().await;
    let mut ids = Vec::new();
    for script in ["hold:40 ask:a finish", "hold:50 ask:a finish"] {
        ids.push(create(&engine, script).await);
        reach(&engine, &ids[ids.len() - 1], Status::InputRequired).await;
    }
    settle().await;
    assert_eq!(world.scripts.in_memory(), 2);
    for (script, left) in [
        ("hold:20 ask:a finish", 2),
        ("hold:100 ask:a finish", 1),
        ("hold:101 ask:a finish", 1),
    ] {
        ids.push(create(&engine, script).await);
        reach(&engine, &ids[ids.len() - 1], Status::InputRequired).await;
        world.until_in_memory(left).await;
    }
    for id in &ids {
        answer(&engine, id, &[("a", "1")]).await;
        let done = reach(&engine, id, Status::Completed).await;
        assert_eq!(done.result.as_deref(), Some("done a=1"));
    }
    // All but the one that waited in memory to the end started again.
    assert_eq!(world.scripts.started(), 2 * ids.len() - 1);
}

#[tokio::test]
async fn a_pinned_run_without_room_fails_and_says_so() {
    let mut world = World::lingering(30_000);
    world.settings.waiting_bytes_max = 120;
    let engine = world.engine().await;
    let small = create(&engine, "hold:61 ask:a finish").await;
    reach(&engine, &small, Status::InputRequired).await;
    let first = create(&engine, "hold:60 pin:a finish").await;
    reach(&engine, &first, Status::InputRequired).await;
    world.until_in_memory(1).await;
    let mut changes = engine.changes();
    let second = create(&engine, "hold:60 pin:a finish").await;
    let failed = reach(&engine, &second, Status::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("no_room in scripts"));
    // Made and ended: a question that has no room is never shown.
    assert_eq!(changes.try_recv(), Ok(second));
    assert_eq!(changes.try_recv(), Ok(second));
    assert!(changes.try_recv().is_err());
    answer(&engine, &first, &[("a", "1")]).await;
    let done = reach(&engine, &first, Status::Completed).await;
    assert_eq!(done.result.as_deref(), Some("done a=1"));
    let third = create(&engine, "hold:60 pin:a finish").await;
    reach(&engine, &third, Status::InputRequired).await;
    for id in [&small, &third] {
        cancel(&engine, id).await;
    }
}

#[tokio::test]
async fn an_adopted_pinned_run_without_room_fails_too() {
    let mut world = World::lingering(30_000);
    world.settings.waiting_bytes_max = 100;
    let engine = world.engine().await;
    let script = "hold:101 pin:a finish";
    let mut run = world.scripts.run(script);
    let Step::NeedsInput { questions, record } = run.step().await else {
        panic!("it asks");
    };
    let checkpoint = Checkpoint::new(questions, record);
    let adopted = engine.adopt(call(script), birth(), run, Some(checkpoint));
    let adopted = adopted.await.unwrap();
    let failed = reach(&engine, &adopted.id, Status::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("no_room in scripts"));
    world.until_in_memory(0).await;
}

#[tokio::test]
async fn a_run_that_asks_on_after_the_wish_takes_no_room() {
    let mut world = World::lingering(30_000);
    world.settings.waiting_bytes_max = 100;
    let engine = world.engine().await;
    let lingering = create(&engine, "hold:100 ask:a finish").await;
    reach(&engine, &lingering, Status::InputRequired).await;
    let asks_on = create(&engine, "hold:100 wait pin:a finish").await;
    settle().await;
    cancel(&engine, &asks_on).await;
    settle().await;
    assert_eq!(world.scripts.in_memory(), 2);
    world.clock.advance_ms(world.settings.grace_ms);
    reach(&engine, &asks_on, Status::Cancelled).await;
    assert_eq!(world.scripts.in_memory(), 1);
}

#[tokio::test]
async fn a_run_waits_in_memory_as_long_as_it_lingers() {
    let world = World::lingering(1_000);
    let engine = world.engine().await;
    let id = create(&engine, "ask:a finish").await;
    reach(&engine, &id, Status::InputRequired).await;
    world.clock.advance_ms(999);
    settle().await;
    assert_eq!(world.scripts.in_memory(), 1);
    world.clock.advance_ms(1);
    world.until_in_memory(0).await;
    assert_eq!(view(&engine, &id).await.status, Status::InputRequired);
    answer(&engine, &id, &[("a", "1")]).await;
    let done = reach(&engine, &id, Status::Completed).await;
    assert_eq!(done.result.as_deref(), Some("done a=1"));
    assert_eq!(world.scripts.started(), 2);
}

#[tokio::test]
async fn a_pinned_run_is_never_let_go() {
    for linger_ms in LINGERS_MS {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let id = create(&engine, "pin:a finish").await;
        reach(&engine, &id, Status::InputRequired).await;
        world.clock.advance_ms(100_000);
        settle().await;
        answer(&engine, &id, &[("a", "1")]).await;
        let done = reach(&engine, &id, Status::Completed).await;
        assert_eq!(done.result.as_deref(), Some("done a=1"));
        assert_eq!(world.scripts.started(), 1);
    }
}

#[tokio::test]
async fn a_replay_that_asks_something_else_has_diverged() {
    let world = World::lingering(0);
    let engine = world.engine().await;
    for script in ["drift:a finish", "drift:a,b finish"] {
        let id = create(&engine, script).await;
        reach(&engine, &id, Status::InputRequired).await;
        answer(&engine, &id, &[("a", "1"), ("b", "2")]).await;
        let failed = reach(&engine, &id, Status::Failed).await;
        assert_eq!(failed.error.as_deref(), Some("diverged in scripts"));
        assert_eq!(
            failed.status_message.as_deref(),
            Some("because: diverged in scripts")
        );
    }
    world.until_in_memory(0).await;
}

#[tokio::test]
async fn a_run_that_breaks_the_contract_fails_its_task() {
    for linger_ms in LINGERS_MS {
        let world = World::lingering(linger_ms);
        let engine = world.engine().await;
        let repeats = create(&engine, "ask:a ask:a finish").await;
        reach(&engine, &repeats, Status::InputRequired).await;
        answer(&engine, &repeats, &[("a", "1")]).await;
        let asks_nothing = create(&engine, "ask: finish").await;
        for id in [repeats, asks_nothing] {
            let failed = reach(&engine, &id, Status::Failed).await;
            assert_eq!(failed.error.as_deref(), Some("broken in scripts"));
        }
        world.until_in_memory(0).await;
    }
}
