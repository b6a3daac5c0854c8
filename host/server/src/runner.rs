//! Ties the task engine to the plugin runtime: a task's run is a guest's run, with its values in their wire form.
//!
//! It must not know of requests or of HTTP.

use crate::ends::{Ends, Whose};
use crate::errand::named;
use crate::failure;
use crate::result::Results;
use crate::wire::WireError;
use crate::wire::{question, response};
use async_trait::async_trait;
use futures::future::BoxFuture;
use longshore_runtime::contract::{InputAnswer, RpcError};
use longshore_runtime::{
    Answer, Call, Failure, Names, Patience, Plugin, Record, Run, Runtime, Step, Usage, Version,
};
use longshore_tasks as tasks;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tasks::{Payload, Principal, Question, Reason, TaskId};
use tokio::sync::oneshot;

/// Runs the calls of tasks.
#[derive(Debug)]
pub(crate) struct GuestRunner {
    runtime: Runtime,
    results: Arc<Results>,
    ends: Arc<Ends>,
}

impl GuestRunner {
    pub(crate) fn new(runtime: Runtime, results: Arc<Results>, ends: Arc<Ends>) -> Self {
        Self {
            runtime,
            results,
            ends,
        }
    }
}

impl tasks::Runner for GuestRunner {
    fn start(&self, id: &TaskId, call: &tasks::Call, past: tasks::Past<'_>) -> Box<dyn tasks::Run> {
        let speaker = Speaker::of_task(call);
        let record = past
            .record
            .map(|record| Record::from_bytes(record.to_vec()));
        let external_id = past.external_id.map(str::to_owned);
        let ending = Ending::new(&self.ends, call, Named::Known(*id));
        let call = call.clone();
        tracing::debug!(task = %id, plugin = %call.plugin, tool = %call.tool, "a run starts");
        let start = start(self.runtime.clone(), (*id, call), record, external_id);
        let guest = Guest::Starting(Box::pin(start));
        Box::new(TaskRun::new(guest, speaker, ending, self.results.clone()))
    }
}

/// Find the version that the task belongs to, and run it.
async fn start(
    runtime: Runtime,
    (id, call): (TaskId, tasks::Call),
    record: Option<Record>,
    external_id: Option<String>,
) -> Run {
    match find(&runtime, &call).await {
        Ok((plugin, mut body)) => {
            // The newest is the one the task has; the call knows only what was before there was a task.
            body.external_id = external_id.or(body.external_id);
            body.names = Names {
                principal: named(&call.principal),
                task: Some(id.to_string().into()),
            };
            runtime.run(&plugin, body, record, Patience::AsLongAsItTakes)
        }
        Err(reason) => runtime.failed_run(Failure::Unavailable(reason)),
    }
}

async fn find(runtime: &Runtime, call: &tasks::Call) -> Result<(Arc<Plugin>, Call), String> {
    let body = decode_call(&call.body)?;
    let version = Version::parse(&call.version).ok_or("the stored version is none")?;
    let plugin = runtime.plugin_by_version(&call.plugin, &version).await;
    Ok((plugin.map_err(|error| error.to_string())?, body))
}

/// The runtime's call as a task keeps it.
pub(crate) fn encode_call(call: &Call) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec_named(call).map_err(|error| error.to_string())
}

fn decode_call(body: &[u8]) -> Result<Call, String> {
    rmp_serde::from_slice(body).map_err(|error| format!("the stored call cannot be read: {error}"))
}

/// Who speaks, for the wording of failures.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    pub(crate) plugin: String,
    /// What of it: a tool, for instance.
    pub(crate) kind: &'static str,
    /// Its name or URI.
    pub(crate) subject: String,
}

impl Speaker {
    fn of_task(call: &tasks::Call) -> Self {
        Self {
            plugin: call.plugin.clone(),
            kind: "tool",
            subject: call.tool.clone(),
        }
    }
}

impl fmt::Display for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plugin,
            kind,
            subject,
        } = self;
        write!(f, "the {kind} {subject} of the plugin {plugin}")
    }
}

/// The name of a run's task.
#[derive(Debug)]
pub(crate) enum Named {
    Known(TaskId),
    /// It is being made of a call that runs already.
    Soon(oneshot::Receiver<TaskId>),
}

/// How the operator is told that the run of a task came to no result.
#[derive(Debug)]
pub(crate) struct Ending {
    ends: Arc<Ends>,
    version: String,
    principal: Principal,
    task: Named,
}

impl Ending {
    pub(crate) fn new(ends: &Arc<Ends>, call: &tasks::Call, task: Named) -> Self {
        Self {
            ends: ends.clone(),
            version: call.version.clone(),
            principal: call.principal.clone(),
            task,
        }
    }

    /// The last step of such a run.
    async fn failed(self, error: WireError) -> tasks::Step {
        let task = match self.task {
            Named::Known(id) => Some(id),
            // It comes as soon as the task is stored. If its caller has gone away by then, nobody knows it.
            Named::Soon(named) => named.await.ok(),
        };
        let whose = Whose {
            version: Some(&self.version),
            principal: Some(&self.principal),
            task,
        };
        self.ends.tell(&error, whose);
        tasks::Step::Failed(error.to_json())
    }
}

enum Guest {
    Starting(BoxFuture<'static, Run>),
    Running(Run),
}

/// A guest's run as the task engine knows it.
pub(crate) struct TaskRun {
    guest: Guest,
    speaker: Speaker,
    results: Arc<Results>,
    /// Taken by the last step.
    ending: Option<Ending>,
    /// The last step, which is being worded.
    wording: Option<BoxFuture<'static, tasks::Step>>,
    /// What the engine has yet to be told of the time before the call was a task.
    news: VecDeque<tasks::Step>,
    /// What the guest waits to be answered.
    asked: Vec<Question>,
    /// The guest waits at `begin`, or for its name elsewhere to be stored.
    begins: bool,
    /// The guest waits to have its first effect.
    acts: bool,
    wished: bool,
}

/// Where a run stands when its call becomes a task.
pub(crate) struct Adopted {
    pub(crate) run: Run,
    pub(crate) speaker: Speaker,
    pub(crate) ending: Ending,
    /// It waits for answers to these.
    pub(crate) asked: Vec<Question>,
    /// It waits at `begin`.
    pub(crate) begins: bool,
    /// The last progress message.
    pub(crate) message: Option<String>,
    /// The guest's own id for the call.
    pub(crate) external_id: Option<String>,
}

impl TaskRun {
    fn new(guest: Guest, speaker: Speaker, ending: Ending, results: Arc<Results>) -> Self {
        Self {
            guest,
            speaker,
            results,
            ending: Some(ending),
            wording: None,
            news: VecDeque::new(),
            asked: Vec::new(),
            begins: false,
            acts: false,
            wished: false,
        }
    }

    /// A run that goes on already.
    pub(crate) fn adopted(adopted: Adopted, results: Arc<Results>) -> Self {
        let message = adopted.message.map(|message| tasks::Step::Progress {
            message: Some(message),
        });
        let external_id = adopted.external_id.map(tasks::Step::ExternalId);
        let guest = Guest::Running(adopted.run);
        Self {
            news: message.into_iter().chain(external_id).collect(),
            asked: adopted.asked,
            begins: adopted.begins,
            ..Self::new(guest, adopted.speaker, adopted.ending, results)
        }
    }

    /// The run, once it has started. Cancelling the wait loses nothing: the start goes on with the next one.
    async fn running(&mut self) -> &mut Run {
        if let Guest::Starting(start) = &mut self.guest {
            let run = start.await;
            if self.wished {
                run.cancel();
            }
            self.guest = Guest::Running(run);
        }
        match &mut self.guest {
            Guest::Running(run) => run,
            Guest::Starting(_) => unreachable!("it has just been started"),
        }
    }

    /// `None`: the run has no plugin, and so cannot have an answer.
    fn word(
        &mut self,
        answer: Box<Answer>,
        usage: Option<Usage>,
    ) -> Option<BoxFuture<'static, tasks::Step>> {
        let Guest::Running(run) = &self.guest else {
            return None;
        };
        let plugin = run.plugin()?.clone();
        let (results, tool) = (self.results.clone(), self.speaker.subject.clone());
        let ending = self.ending.take()?;
        Some(Box::pin(async move {
            let answer = (&*answer, usage.as_ref());
            match results.answer(&plugin, &tool, answer).await {
                Ok(result) => tasks::Step::Finished(result),
                Err(error) => ending.failed(error).await,
            }
        }))
    }

    fn translate(&mut self, step: Step) -> Option<tasks::Step> {
        Some(match step {
            Step::Log(_) => return None,
            Step::Begin => {
                self.begins = true;
                return None;
            }
            Step::Effect => {
                self.acts = true;
                tasks::Step::Pinned
            }
            Step::Progress(progress) => tasks::Step::Progress {
                message: progress.message,
            },
            Step::ExternalId(id) => {
                self.begins = true;
                tasks::Step::ExternalId(id)
            }
            Step::NeedsInput { questions, record } => {
                self.asked = wire_questions(&questions, &self.speaker.plugin);
                let record = record.map(Record::into_bytes);
                tasks::Step::NeedsInput {
                    questions: self.asked.clone(),
                    record,
                }
            }
            Step::Finished { answer, usage } => {
                self.wording = self.word(answer, usage);
                return None;
            }
            Step::Failed(reason) => {
                let error = failure::of_run(&reason, &self.speaker);
                // There is one last step.
                self.wording = Some(Box::pin(self.ending.take()?.failed(error)));
                return None;
            }
            Step::Cancelled => tasks::Step::Cancelled,
        })
    }
}

#[async_trait]
impl tasks::Run for TaskRun {
    async fn step(&mut self) -> tasks::Step {
        if let Some(news) = self.news.pop_front() {
            return news;
        }
        loop {
            // A wait that is given up goes on with the next one.
            if let Some(wording) = &mut self.wording {
                let step = wording.await;
                self.wording = None;
                return step;
            }
            let begins = std::mem::take(&mut self.begins);
            let acts = std::mem::take(&mut self.acts);
            let run = self.running().await;
            if begins {
                run.proceed();
            }
            if acts {
                run.permit();
            }
            let step = run.step().await;
            if let Some(step) = self.translate(step) {
                return step;
            }
        }
    }

    fn answer(&mut self, answers: Vec<(String, Payload)>) {
        let answers = typed_answers(&std::mem::take(&mut self.asked), &answers);
        if let Guest::Running(run) = &self.guest {
            run.answer(answers);
        }
    }

    fn held_bytes(&self) -> usize {
        match &self.guest {
            Guest::Running(run) => run.held_bytes(),
            Guest::Starting(_) => 0,
        }
    }

    fn cancel(&mut self) {
        self.wished = true;
        if let Guest::Running(run) = &self.guest {
            run.cancel();
        }
    }
}

/// Questions of a guest, as the wire has them.
pub(crate) fn wire_questions(
    questions: &[longshore_runtime::Question],
    plugin: &str,
) -> Vec<Question> {
    questions
        .iter()
        .map(|asked| Question {
            key: asked.key.clone(),
            request: question::request_text(&asked.kind, plugin),
        })
        .collect()
}

/// The answers in the order of the questions, for the guest. Each was read against its question before it was taken, so one
/// that cannot be read now is damage; the guest is told.
pub(crate) fn typed_answers(asked: &[Question], answers: &[(String, Payload)]) -> Vec<InputAnswer> {
    let answer =
        |asked: &Question| {
            let text = answers
                .iter()
                .find(|(key, _)| *key == asked.key)
                .map(|(_, text)| text.as_str());
            response::read_answer(&asked.request, text.unwrap_or("null")).unwrap_or_else(|misfit| {
            tracing::error!(key = %asked.key, %misfit, "an answer that was taken cannot be read");
            InputAnswer::Refused(RpcError { code: -32603, message: misfit.to_string(), data: None })
        })
        };
    asked.iter().map(answer).collect()
}

/// Words the engine's own failures.
#[derive(Debug)]
pub(crate) struct Wording {
    pub(crate) ends: Arc<Ends>,
    /// What guests of tasks may hold in memory while they wait for answers.
    pub(crate) waiting_bytes_max: u64,
}

impl tasks::Failures for Wording {
    fn error(&self, reason: Reason, call: &tasks::Call) -> Payload {
        let speaker = Speaker::of_task(call);
        let error = failure::of_task(reason, &speaker, self.waiting_bytes_max);
        // Of the end of its time the engine has a line of its own.
        if reason != Reason::Expired {
            let whose = Whose {
                version: Some(&call.version),
                principal: Some(&call.principal),
                task: None,
            };
            self.ends.tell(&error, whose);
        }
        error.to_json()
    }

    fn message(&self, error: &str) -> Option<String> {
        let error: serde_json::Value = serde_json::from_str(error).ok()?;
        Some(error["message"].as_str()?.to_owned())
    }
}
