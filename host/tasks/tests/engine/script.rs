//! Runs that follow a script. The name of the tool is the script, a list of acts:
//!
//! - `say:x`: report progress; `name:x`: name the job elsewhere; `tell`: report the name it has
//! - `effect`: do something that shows outside, counted
//! - `ask:a,b`: ask, replayable; `pin:a`: ask, pinned; `drift:a`: ask `a`, but another key on replay
//! - `hold:n`: take so many bytes; `gate`: go on when the gate of the runner opens
//! - `wait`: go on when cancelled; `hang`: never go on
//! - `finish`: a result that tells all answers; `fail`, `yield` (to the wish), `panic`

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longshore_tasks::{Call, Past, Payload, Question, Run, Runner, Step, TaskId};
use tokio::sync::watch;

type Effects = Arc<Mutex<HashMap<Option<TaskId>, usize>>>;

/// Starts scripts and counts them.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) started: AtomicUsize,
    pub(crate) in_memory: Arc<AtomicUsize>,
    /// Effects of each task; of a run that is no task's yet under `None`.
    effects: Effects,
    /// The scripts started, in their order.
    pub(crate) order: Mutex<Vec<String>>,
    pub(crate) panic_on_start: AtomicBool,
    /// Whoever drops a run is held up while this is set.
    pub(crate) slow_drop: Arc<AtomicBool>,
    pub(crate) gate: watch::Sender<bool>,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            started: AtomicUsize::new(0),
            in_memory: Arc::default(),
            effects: Arc::default(),
            order: Mutex::default(),
            panic_on_start: AtomicBool::new(false),
            slow_drop: Arc::default(),
            gate: watch::Sender::new(false),
        }
    }

    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn effects(&self) -> usize {
        self.effects.lock().unwrap().values().sum()
    }

    pub(crate) fn effects_of_each(&self) -> HashMap<Option<TaskId>, usize> {
        self.effects.lock().unwrap().clone()
    }

    pub(crate) fn in_memory(&self) -> usize {
        self.in_memory.load(Ordering::SeqCst)
    }

    /// A run of the script as a server would hold it before the call becomes a task.
    pub(crate) fn run(&self, script: &str) -> Box<dyn Run> {
        self.run_from(None, script, Past::default())
    }

    /// A record is where it asked, and what had been answered before that.
    fn run_from(&self, id: Option<TaskId>, script: &str, past: Past<'_>) -> Box<dyn Run> {
        let record = past
            .record
            .map(|record| std::str::from_utf8(record).unwrap());
        let (place, answers) = record.unwrap_or("0;").split_once(';').unwrap();
        self.in_memory.fetch_add(1, Ordering::SeqCst);
        Box::new(Script {
            acts: script.split(' ').map(str::to_owned).collect(),
            place: place.parse().unwrap(),
            replays: record.is_some(),
            answers: answers
                .split(',')
                .filter(|a| !a.is_empty())
                .map(str::to_owned)
                .collect(),
            asked: Vec::new(),
            cancelled: false,
            held_bytes: 0,
            name: past.external_id.map(str::to_owned),
            about_to: false,
            id,
            effects: Arc::clone(&self.effects),
            gate: self.gate.subscribe(),
            in_memory: Arc::clone(&self.in_memory),
            slow_drop: Arc::clone(&self.slow_drop),
        })
    }
}

struct Script {
    acts: Vec<String>,
    place: usize,
    replays: bool,
    answers: Vec<String>,
    /// Keys asked and not answered.
    asked: Vec<String>,
    cancelled: bool,
    held_bytes: usize,
    name: Option<String>,
    /// It said that it is about to do something.
    about_to: bool,
    id: Option<TaskId>,
    effects: Effects,
    gate: watch::Receiver<bool>,
    in_memory: Arc<AtomicUsize>,
    slow_drop: Arc<AtomicBool>,
}

impl Runner for Scripts {
    fn start(&self, id: &TaskId, call: &Call, past: Past<'_>) -> Box<dyn Run> {
        assert!(
            !self.panic_on_start.load(Ordering::SeqCst),
            "told to panic on start"
        );
        self.started.fetch_add(1, Ordering::SeqCst);
        self.order.lock().unwrap().push(call.tool.clone());
        self.run_from(Some(*id), &call.tool, past)
    }
}

impl Script {
    fn ask(&mut self, keys: &str, pinned: bool) -> Step {
        let record = format!("{};{}", self.place - 1, self.answers.join(","));
        self.asked = keys
            .split(',')
            .filter(|key| !key.is_empty())
            .map(str::to_owned)
            .collect();
        let question = |key: &String| Question {
            key: key.clone(),
            request: format!("{key}?"),
        };
        Step::NeedsInput {
            questions: self.asked.iter().map(question).collect(),
            record: (!pinned).then(|| record.into_bytes()),
        }
    }
}

#[async_trait]
impl Run for Script {
    async fn step(&mut self) -> Step {
        assert!(
            self.asked.is_empty() || self.cancelled,
            "a step while it waits for answers"
        );
        self.asked.clear();
        if std::mem::take(&mut self.about_to) {
            *self.effects.lock().unwrap().entry(self.id).or_default() += 1;
        }
        loop {
            let act = self.acts[self.place].clone();
            let (verb, arg) = act.split_once(':').unwrap_or((&act, ""));
            match verb {
                "gate" => drop(self.gate.wait_for(|open| *open).await.unwrap()),
                "wait" if !self.cancelled => pending().await,
                "hang" => pending().await,
                _ => {}
            }
            self.place += 1;
            match verb {
                "gate" | "wait" => {}
                "hold" => self.held_bytes += arg.parse::<usize>().unwrap(),
                "say" => {
                    return Step::Progress {
                        message: Some(arg.into()),
                    };
                }
                "name" => {
                    self.name = Some(arg.into());
                    return Step::ExternalId(arg.into());
                }
                "tell" => {
                    let message = Some(format!("{:?}", self.name));
                    return Step::Progress { message };
                }
                "effect" => {
                    self.about_to = true;
                    return Step::Pinned;
                }
                "ask" => return self.ask(arg, false),
                "pin" => return self.ask(arg, true),
                "drift" if self.replays => return self.ask("elsewhere", false),
                "drift" => return self.ask(arg, false),
                "finish" => return Step::Finished(format!("done {}", self.answers.join(","))),
                "fail" => return Step::Failed("failed by script".into()),
                "yield" => return Step::Cancelled,
                "panic" => panic!("told to panic"),
                other => panic!("no act {other:?}"),
            }
        }
    }

    fn answer(&mut self, answers: Vec<(String, Payload)>) {
        let keys: Vec<&String> = answers.iter().map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            self.asked.iter().collect::<Vec<_>>(),
            "all answers, in the order asked"
        );
        self.answers.extend(
            answers
                .iter()
                .map(|(key, answer)| format!("{key}={answer}")),
        );
        self.asked.clear();
    }

    fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    fn cancel(&mut self) {
        assert!(!self.cancelled, "cancelled twice");
        self.cancelled = true;
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.in_memory.fetch_sub(1, Ordering::SeqCst);
        for _ in 0..5_000 {
            if !self.slow_drop.load(Ordering::SeqCst) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
