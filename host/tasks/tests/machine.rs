//! The pure core: single decisions, and long random histories that must never go wrong.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use longshore_tasks::decide::{
    Command, Decision, Effect, Moment, Opening, Revival, cancellation, decide, opening, revival,
};
use longshore_tasks::state::{Event, Illegal, Outcome, Task, apply};
use longshore_tasks::{
    Birth, Call, Checkpoint, OnCrash, Patience, Principal, Question, Reason, Said, Status, TaskId,
};
use proptest::collection::vec;
use proptest::prelude::*;

const KEEP_MS: u64 = 1_000;

fn task(ttl_ms: Option<u64>) -> Task {
    let call = Call {
        principal: Principal::anonymous(),
        plugin: "plugin".into(),
        version: "version".into(),
        tool: "tool".into(),
        on_crash: OnCrash::Resume,
        body: Vec::new(),
    };
    Task::born(
        TaskId::random().unwrap(),
        call,
        Birth {
            pinned: false,
            poll_interval_ms: 500,
            ttl_ms,
        },
        100,
    )
}

fn asks(keys: &[&str], record: Option<Vec<u8>>) -> Checkpoint {
    let question = |key: &&str| Question {
        key: (*key).into(),
        request: format!("{key}?"),
    };
    Checkpoint::new(keys.iter().map(question).collect(), record)
}

fn at(now_ms: u64) -> Moment {
    Moment {
        now_ms,
        keep_ms: KEEP_MS,
    }
}

fn finish(result: &str) -> Command {
    Command::Close {
        outcome: Outcome::Completed(result.into()),
        message: None,
    }
}

fn expire() -> Command {
    Command::Expire {
        error: "expired".into(),
        message: Some("too late".into()),
    }
}

fn ask(keys: &[&str]) -> Command {
    Command::Ask {
        checkpoint: asks(keys, Some(vec![1])),
        message: None,
    }
}

fn answers(pairs: &[(&str, &str)]) -> Command {
    Command::Answer(
        pairs
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect(),
    )
}

/// Decides and applies; the task after it and the effect.
fn step(task: Task, command: Command, now_ms: u64) -> Result<(Task, Effect), Illegal> {
    let Decision { event, effect } = decide(&task, command, at(now_ms));
    let task = match event {
        Some(event) => apply(task, event, now_ms)?,
        None => task,
    };
    Ok((task, effect))
}

fn after(task: Task, commands: impl IntoIterator<Item = Command>) -> Task {
    commands
        .into_iter()
        .fold(task, |task, command| step(task, command, 200).unwrap().0)
}

#[test]
fn the_five_statuses_are_derived() {
    let asked = after(task(None), [ask(&["a"])]);
    assert_eq!(task(None).status(), Status::Working);
    assert_eq!(asked.status(), Status::InputRequired);
    assert_eq!(
        after(asked.clone(), [answers(&[("a", "1")])]).status(),
        Status::Working
    );
    assert_eq!(
        after(asked.clone(), [finish("r")]).status(),
        Status::Completed
    );
    assert_eq!(
        after(asked.clone(), [cancellation()]).status(),
        Status::Cancelled
    );
    let failed = Command::Close {
        outcome: Outcome::Failed("e".into()),
        message: None,
    };
    assert_eq!(after(asked, [failed]).status(), Status::Failed);
}

#[test]
fn answers_are_taken_once_and_only_if_asked_for() {
    let asked = after(task(None), [ask(&["a", "b"])]);
    for nothing in [answers(&[]), answers(&[("x", "1")])] {
        let decision = decide(&asked, nothing, at(200));
        assert_eq!(
            decision,
            Decision {
                event: None,
                effect: Effect::Rest
            }
        );
    }
    let (half, effect) = step(asked, answers(&[("b", "2"), ("b", "3"), ("x", "1")]), 200).unwrap();
    assert_eq!(effect, Effect::Rest);
    assert_eq!(
        half.outstanding()
            .map(|q| q.key.as_str())
            .collect::<Vec<_>>(),
        ["a"]
    );
    let (whole, effect) = step(half, answers(&[("b", "4"), ("a", "1")]), 200).unwrap();
    assert_eq!(effect, Effect::Attend);
    let taken = whole.checkpoint.unwrap().answers;
    assert_eq!(
        taken.into_iter().collect::<Vec<_>>(),
        [
            ("a".to_owned(), "1".to_owned()),
            ("b".to_owned(), "2".to_owned())
        ]
    );
}

#[test]
fn a_run_that_breaks_its_contract_is_refused() {
    let used = after(task(None), [ask(&["a"]), answers(&[("a", "1")])]);
    let again = Command::Ask {
        checkpoint: asks(&["b", "a"], None),
        message: None,
    };
    assert_eq!(step(used, again, 200), Err(Illegal::KeyUsed("a".into())));
    assert_eq!(step(task(None), ask(&[]), 200), Err(Illegal::AsksNothing));
    assert_eq!(
        step(task(None), ask(&["a", "a"]), 200),
        Err(Illegal::KeyUsed("a".into()))
    );
    let asked = after(task(None), [ask(&["a"])]);
    assert_eq!(step(asked, ask(&["b"]), 200), Err(Illegal::AlreadyAsking));
}

#[test]
fn illegal_events_are_typed_errors() {
    let ended = after(task(None), [finish("r")]);
    assert_eq!(apply(ended, Event::Wished, 200), Err(Illegal::Ended));
    let wished = after(task(None), [Command::Cancel { held: true }]);
    assert_eq!(
        apply(wished, Event::Wished, 200),
        Err(Illegal::AlreadyWished)
    );
    let unasked = Event::Answered(vec![("a".into(), "1".into())]);
    assert_eq!(
        apply(task(None), unasked, 200),
        Err(Illegal::NotAsked("a".into()))
    );
}

#[test]
fn what_happened_is_not_written_twice() {
    for command in [
        ask(&["a"]),
        Command::Name("job".into()),
        Command::Cancel { held: true },
    ] {
        let once = after(task(None), [command.clone()]);
        assert_eq!(decide(&once, command, at(300)).event, None);
    }
}

#[test]
fn a_wish_waits_for_a_run_in_memory_and_for_nothing_else() {
    let (wished, effect) = step(task(None), Command::Cancel { held: true }, 200).unwrap();
    assert_eq!((wished.status(), effect), (Status::Working, Effect::Attend));
    assert_eq!(wished.wished_ms, Some(200));
    let (cancelled, effect) = step(task(None), Command::Cancel { held: false }, 200).unwrap();
    assert_eq!(
        (cancelled.status(), effect),
        (Status::Cancelled, Effect::Wake)
    );
    assert!(cancelled.status_message.is_some());
    assert_eq!(
        after(wished, [finish("in time")]).status(),
        Status::Completed
    );
}

#[test]
fn life_is_counted_from_birth_and_grows_at_the_end() {
    let view = |task: &Task| task.view(None);
    assert_eq!(view(&task(Some(5_000))).ttl_ms, Some(5_000));
    let early = after(task(Some(5_000)), [finish("r")]);
    assert_eq!(view(&early).ttl_ms, Some(5_000), "there is enough left");
    let late = step(task(Some(5_000)), finish("r"), 5_000).unwrap().0;
    assert_eq!(view(&late).ttl_ms, Some(4_900 + KEEP_MS));
    assert_eq!(view(&after(task(None), [finish("r")])).ttl_ms, None);
}

#[test]
fn at_expiry_the_unfinished_fail_and_the_ended_go() {
    let young = task(Some(5_000));
    assert_eq!(decide(&young, expire(), at(5_099)).effect, Effect::Rest);
    let (failed, effect) = step(young, expire(), 5_100).unwrap();
    assert_eq!((failed.status(), effect), (Status::Failed, Effect::Wake));
    assert_eq!(
        decide(&failed, expire(), at(5_100 + KEEP_MS - 1)).effect,
        Effect::Rest
    );
    assert_eq!(
        decide(&failed, expire(), at(5_100 + KEEP_MS)).effect,
        Effect::Delete
    );
    assert_eq!(
        decide(&task(None), expire(), at(u64::MAX)).effect,
        Effect::Rest
    );
}

#[test]
fn what_a_task_needs_without_a_run() {
    let pinned = Command::Ask {
        checkpoint: asks(&["a"], None),
        message: None,
    };
    let answer = answers(&[("a", "1")]);
    assert_eq!(opening(&task(None)), Opening::Start);
    assert_eq!(opening(&after(task(None), [ask(&["a"])])), Opening::Rest);
    let answered = after(task(None), [ask(&["a"]), answer.clone()]);
    assert!(matches!(opening(&answered), Opening::Replay(c) if c.answers["a"] == "1"));
    assert_eq!(
        opening(&after(task(None), [pinned.clone()])),
        Opening::Interrupted
    );
    assert_eq!(
        opening(&after(task(None), [pinned, answer])),
        Opening::Interrupted
    );
    let wished = after(answered, [Command::Cancel { held: true }]);
    assert_eq!(opening(&wished), Opening::Cancel);
    assert_eq!(opening(&after(wished, [finish("r")])), Opening::Rest);
}

#[test]
fn what_a_start_means_for_a_task() {
    let patience = |at_least_ms| Patience {
        crashes_max: 2,
        at_least_ms,
    };
    let start = |task: &Task, crashed| revival(task, crashed, patience(0), 1_000);
    let with = |on_crash, commands: Vec<Command>| {
        let mut task = task(None);
        task.call.on_crash = on_crash;
        after(task, commands)
    };
    let again = || Command::StartAgain { crashed: true };
    let waits = || vec![ask(&["a"])];
    let answered = || vec![ask(&["a"]), Command::Answer(vec![("a".into(), "1".into())])];
    let effect = || vec![ask(&["a"]), Command::Pin];
    let (fails, counts) = (Revival::Fail(Reason::Interrupted), Revival::CountAndStart);
    for (on_crash, commands, orderly, crashed) in [
        (OnCrash::Resume, vec![], Revival::Start, counts),
        (OnCrash::Resume, answered(), Revival::Start, counts),
        (OnCrash::Resume, waits(), Revival::Rest, Revival::Rest),
        (OnCrash::Resume, effect(), fails, fails),
        (OnCrash::Rerun, vec![], Revival::Start, counts),
        (OnCrash::Rerun, effect(), counts, counts),
        (OnCrash::Fail, vec![], fails, fails),
        (OnCrash::Fail, answered(), fails, fails),
        (OnCrash::Fail, waits(), Revival::Rest, Revival::Rest),
        (
            OnCrash::Fail,
            vec![finish("r")],
            Revival::Rest,
            Revival::Rest,
        ),
    ] {
        let task = with(on_crash, commands);
        assert_eq!(start(&task, false), orderly, "{task:?}");
        assert_eq!(start(&task, true), crashed, "{task:?}");
    }
    let twice = with(OnCrash::Resume, vec![again(), again()]);
    let given_up = Revival::Fail(Reason::CrashLoop);
    assert_eq!(start(&twice, true), given_up);
    assert_eq!(start(&twice, false), Revival::Start, "it did not crash");
    let later = revival(&twice, true, patience(60_000), 1_000);
    assert_eq!(later, counts, "not for long yet");
    let got_on = after(
        twice,
        [ask(&["a"]), Command::Answer(vec![("a".into(), "1".into())])],
    );
    assert_eq!(start(&got_on, true), counts);
}

#[test]
fn the_message_of_progress_is_shown_until_the_task_ends() {
    let asked = Command::Ask {
        checkpoint: asks(&["a"], None),
        message: Some("half".into()),
    };
    let asked = after(task(None), [asked]);
    assert_eq!(asked.view(None).status_message.as_deref(), Some("half"));
    let said = |message: &str| {
        let (message, at_ms) = (message.to_owned(), u64::MAX);
        Some(Said { message, at_ms })
    };
    let view = asked.view(said("more"));
    assert_eq!(view.status_message.as_deref(), Some("more"));
    assert_eq!(view.updated_ms, u64::MAX);
    let done = after(asked, [finish("r")]);
    let view = done.view(said("late"));
    assert_eq!(view.status_message.as_deref(), Some("half"));
    assert!(view.updated_ms < u64::MAX);
}

fn any_key() -> impl Strategy<Value = String> {
    "[a-f]"
}

fn any_command() -> impl Strategy<Value = Command> {
    let questions = vec(any_key(), 0..3);
    let asked = (questions, any::<bool>()).prop_map(|(keys, pinned)| {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Command::Ask {
            checkpoint: asks(&keys, (!pinned).then(|| vec![1])),
            message: None,
        }
    });
    let answered = vec((any_key(), "[0-9]"), 0..4).prop_map(Command::Answer);
    prop_oneof![
        4 => asked,
        6 => answered,
        1 => any::<bool>().prop_map(|held| Command::Cancel { held }),
        1 => Just(Command::Name("job".into())),
        1 => Just(Command::Pin),
        1 => any::<bool>().prop_map(|crashed| Command::StartAgain { crashed }),
        1 => Just(finish("result")),
        1 => Just(cancellation()),
        2 => Just(expire()),
    ]
}

fn may_follow(before: Status, now: Status) -> bool {
    before == now || !before.is_terminal()
}

proptest! {
    #[test]
    fn no_history_goes_wrong(
        ttl_ms in proptest::option::of(0_u64..2_000),
        history in vec((any_command(), -50_i64..400), 1..60),
    ) {
        let (mut task, mut now_ms) = (task(ttl_ms), 100_u64);
        for (command, passed_ms) in history {
            // The clock may be set back between two lives of a server.
            now_ms = now_ms.saturating_add_signed(passed_ms);
            let before = task.clone();
            let legal = step(task, command.clone(), now_ms);
            let Ok((next, effect)) = legal else {
                // Only a run can break the rules, and it leaves the task as it was.
                prop_assert!(matches!(command, Command::Ask { .. }), "{command:?}");
                task = before;
                continue;
            };
            prop_assert!(may_follow(before.status(), next.status()));
            prop_assert!(next.updated_ms >= before.updated_ms);
            prop_assert!(next.keys.is_superset(&before.keys));
            prop_assert!(next.expires_ms >= before.expires_ms);
            prop_assert_eq!(next.expires_ms.is_some(), before.expires_ms.is_some());
            if before.status().is_terminal() {
                prop_assert_eq!(&next, &before, "what has ended changed");
            } else {
                prop_assert!(effect != Effect::Delete, "an unfinished task was removed");
            }
            if next.status().is_terminal() {
                prop_assert!(next.checkpoint.is_none());
                prop_assert_eq!(opening(&next), Opening::Rest);
            }
            if before.is_pinned() && !next.is_pinned() && !next.status().is_terminal() {
                let again = matches!(command, Command::StartAgain { .. });
                let asked = matches!(command, Command::Ask { .. }) && !before.pinned;
                prop_assert!(again || asked, "{command:?} forgot an effect");
                prop_assert!(asked || next.reruns == before.reruns + 1);
            }
            if let (Some(old), Some(new)) = (&before.checkpoint, &next.checkpoint)
                && old.questions == new.questions
            {
                let kept = old.answers.iter().all(|(key, answer)| new.answers[key] == *answer);
                prop_assert!(kept, "an answer was lost or changed");
            }
            task = next;
        }
    }
}
