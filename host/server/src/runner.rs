//! Ties the task engine to the plugin runtime: a task's run is a guest's run, with its values in their wire form.
//!
//! It must not know of requests or of HTTP.

use crate::failure;
use crate::wire::{content, question};
use async_trait::async_trait;
use futures::future::BoxFuture;
use longshore_runtime::contract::{InputAnswer, RpcError};
use longshore_runtime::{Call, Failure, Plugin, Record, Run, Runtime, Step, Version};
use longshore_tasks as tasks;
use std::sync::Arc;
use tasks::{Payload, Question, Reason, TaskId};

/// Runs the calls of tasks.
#[derive(Debug)]
pub(crate) struct GuestRunner {
    runtime: Runtime,
}

impl GuestRunner {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }
}

impl tasks::Runner for GuestRunner {
    fn start(&self, id: &TaskId, call: &tasks::Call, record: Option<&[u8]>) -> Box<dyn tasks::Run> {
        let speaker = Speaker {
            plugin: call.plugin.clone(),
            tool: call.tool.clone(),
        };
        let record = record.map(|record| Record::from_bytes(record.to_vec()));
        let start = start(self.runtime.clone(), call.clone(), record);
        tracing::debug!(task = %id, plugin = %call.plugin, tool = %call.tool, "a run starts");
        Box::new(TaskRun::new(Guest::Starting(Box::pin(start)), speaker))
    }
}

/// Find the version that the task belongs to, and run it.
async fn start(runtime: Runtime, call: tasks::Call, record: Option<Record>) -> Run {
    match find(&runtime, &call).await {
        Ok((plugin, body)) => runtime.run(&plugin, body, record),
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
    pub(crate) tool: String,
}

enum Guest {
    Starting(BoxFuture<'static, Run>),
    Running(Run),
}

/// A guest's run as the task engine knows it.
pub(crate) struct TaskRun {
    guest: Guest,
    speaker: Speaker,
    /// What the guest waits to be answered.
    asked: Vec<Question>,
    /// The guest waits at `begin`.
    begins: bool,
    wished: bool,
}

impl TaskRun {
    fn new(guest: Guest, speaker: Speaker) -> Self {
        Self {
            guest,
            speaker,
            asked: Vec::new(),
            begins: false,
            wished: false,
        }
    }

    /// A run that goes on already: it waits for `asked` to be answered, or at `begin`, or computes.
    pub(crate) fn adopted(run: Run, speaker: Speaker, asked: Vec<Question>, begins: bool) -> Self {
        Self {
            asked,
            begins,
            ..Self::new(Guest::Running(run), speaker)
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

    fn translate(&mut self, step: Step) -> Option<tasks::Step> {
        Some(match step {
            Step::Log(_) => return None,
            Step::Begin => {
                self.begins = true;
                return None;
            }
            Step::Progress(progress) => tasks::Step::Progress {
                message: progress.message,
            },
            Step::ExternalId(id) => tasks::Step::ExternalId(id),
            Step::NeedsInput { questions, record } => {
                self.asked = wire_questions(&questions);
                let record = record.map(Record::into_bytes);
                tasks::Step::NeedsInput {
                    questions: self.asked.clone(),
                    record,
                }
            }
            Step::Finished(result) => tasks::Step::Finished(content::call_result(&result)),
            Step::Failed(reason) => {
                tasks::Step::Failed(failure::of_run(&reason, &self.speaker).to_json())
            }
            Step::Cancelled => tasks::Step::Cancelled,
        })
    }
}

#[async_trait]
impl tasks::Run for TaskRun {
    async fn step(&mut self) -> tasks::Step {
        loop {
            let begins = std::mem::take(&mut self.begins);
            let run = self.running().await;
            if begins {
                run.proceed();
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

    fn cancel(&mut self) {
        self.wished = true;
        if let Guest::Running(run) = &self.guest {
            run.cancel();
        }
    }
}

/// Questions of a guest, as the wire has them.
pub(crate) fn wire_questions(questions: &[longshore_runtime::Question]) -> Vec<Question> {
    questions
        .iter()
        .map(|asked| Question {
            key: asked.key.clone(),
            request: question::request_text(&asked.kind),
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
            question::read_answer(&asked.request, text.unwrap_or("null")).unwrap_or_else(|misfit| {
            tracing::error!(key = %asked.key, %misfit, "an answer that was taken cannot be read");
            InputAnswer::Refused(RpcError { code: -32603, message: misfit.to_string(), data: None })
        })
        };
    asked.iter().map(answer).collect()
}

/// Words the engine's own failures.
#[derive(Debug)]
pub(crate) struct Wording;

impl tasks::Failures for Wording {
    fn error(&self, reason: Reason, call: &tasks::Call) -> Payload {
        let speaker = Speaker {
            plugin: call.plugin.clone(),
            tool: call.tool.clone(),
        };
        failure::of_task(reason, &speaker).to_json()
    }

    fn message(&self, error: &str) -> Option<String> {
        let error: serde_json::Value = serde_json::from_str(error).ok()?;
        Some(error["message"].as_str()?.to_owned())
    }
}
