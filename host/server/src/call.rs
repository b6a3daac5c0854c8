//! `tools/call`: answer now, ask first, or hand out a task.
//!
//! A call is one run of a guest at a time, followed step by step. Where it asks, the answers that came with the request are
//! tried; if some are missing, the call either becomes a task or goes back to the client with its state sealed. A run from a
//! record arrives at the same question again, so both ways of going on are the same.
//!
//! If the client goes away, the future of [`call`] is dropped, and the guest with it; a task goes on.

use crate::app::App;
use crate::failure;
use crate::meta::Meta;
use crate::outcome::{Notices, Outcome};
use crate::params::CallRequest;
use crate::parked::{ParkedCall, ParkedCalls};
use crate::runner::{self, Adopted, Speaker, TaskRun};
use crate::seal::{Binding, State};
use crate::task_methods;
use crate::wire::object::Object;
use crate::wire::{WireError, content, notification, question};
use longshore_runtime::contract::{ClientFeatures, TaskSupport};
use longshore_runtime::{Call, Context, Failure, Patience, Plugin, Question, Record, Run, Step};
use longshore_tasks::{self as tasks, Birth, Checkpoint, Principal, TaskId, TaskView};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// With its result, however long it takes.
    Plain,
    /// With its result if that comes within the inline window, else with a task.
    Inline,
    /// With a task at once.
    Task,
    /// With questions until the guest calls `begin`, then with a task.
    AskFirst,
}

/// Serve a call whose headers, name and shape were found right.
pub(crate) async fn call(app: &Arc<App>, request: CallRequest, notices: &Notices) -> Outcome {
    match begin(app, &request, notices).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::error(error),
    }
}

async fn begin(
    app: &Arc<App>,
    request: &CallRequest,
    notices: &Notices,
) -> Result<Outcome, WireError> {
    let plan = plan(request)?;
    let offered = offered_answers(request)?;
    let origin = origin(app, request).await?;
    if let Err(wrong) = request.tool.check_arguments(&request.arguments) {
        return Ok(Outcome::result(content::tool_error(&wrong)));
    }
    if plan == Plan::Task && matches!(origin, Origin::Fresh) {
        return create(app, request).await;
    }
    let following = Following::start(app, request, origin, offered)?;
    Box::pin(following.follow(plan, notices)).await
}

fn plan(request: &CallRequest) -> Result<Plan, WireError> {
    let has_tasks = request.meta.features.contains(ClientFeatures::TASKS);
    match (request.tool.task_support, has_tasks) {
        (TaskSupport::Forbidden, _) | (TaskSupport::Optional, false) => Ok(Plan::Plain),
        (TaskSupport::Required, false) => Err(WireError::tasks_required(&format!(
            "the tool {}",
            request.tool.name()
        ))),
        (TaskSupport::Optional | TaskSupport::Required, true) if request.tool.asks_first() => {
            Ok(Plan::AskFirst)
        }
        (TaskSupport::Optional, true) => Ok(Plan::Inline),
        (TaskSupport::Required, true) => Ok(Plan::Task),
    }
}

fn offered_answers(request: &CallRequest) -> Result<BTreeMap<String, String>, WireError> {
    let Some(responses) = &request.input_responses else {
        return Ok(BTreeMap::new());
    };
    let responses = question::read_responses(responses).map_err(WireError::invalid_params)?;
    Ok(responses.into_iter().collect())
}

/// Where the call stands when this request comes.
enum Origin {
    Fresh,
    Sealed(Box<State>, Arc<Plugin>),
    Parked(Box<ParkedCall>),
}

async fn origin(app: &App, request: &CallRequest) -> Result<Origin, WireError> {
    let Some(state) = &request.request_state else {
        return Ok(Origin::Fresh);
    };
    let refuse =
        |why: &str| WireError::invalid_params(format!("requestState cannot be used: {why}"));
    let state: String =
        serde_json::from_str(state.get()).map_err(|_| refuse("it is not a string"))?;
    let binding = binding(app, request);
    let now_ms = app.clock.now_ms();
    if ParkedCalls::is_name(&state) {
        return Ok(Origin::Parked(Box::new(
            app.parked.take(&state, &binding, now_ms).map_err(refuse)?,
        )));
    }
    let state = app
        .sealer
        .open_state(&state)
        .ok_or_else(|| refuse("it was not made here, or was changed"))?;
    state.binding.admits(&binding, now_ms).map_err(refuse)?;
    let version = longshore_runtime::Version::parse(&state.binding.version);
    let version = version.ok_or_else(|| refuse("it names no version"))?;
    let plugin = app
        .runtime
        .plugin_by_version(&state.binding.plugin, &version)
        .await;
    let plugin = plugin.map_err(|error| refuse(&format!("{error}; start again without it")))?;
    Ok(Origin::Sealed(Box::new(state), plugin))
}

fn binding(app: &App, request: &CallRequest) -> Binding {
    let plugin = request.tool.plugin();
    Binding {
        target: format!("tools/call {}", request.tool.name()),
        arguments: Binding::digest(&request.arguments),
        principal: request.principal.as_str().to_owned(),
        plugin: plugin.name.clone(),
        version: plugin.version.as_str().to_owned(),
        expires_ms: app
            .clock
            .now_ms()
            .saturating_add(app.config.host.input_time_ms),
    }
}

fn context(meta: &Meta) -> Context {
    Context {
        features: meta.features,
        log_level: meta.log_level,
        trace: meta.trace.clone(),
    }
}

fn new_call(request: &CallRequest) -> Result<Call, WireError> {
    let limits = request.tool.plugin().limits.clone();
    Call::begin(
        request.tool.name().to_owned(),
        request.arguments.clone(),
        context(&request.meta),
        limits,
    )
    .map_err(|error| {
        WireError::internal(
            "entropy",
            format!("the system has no random numbers: {error}"),
        )
    })
}

/// A task before anything runs.
async fn create(app: &Arc<App>, request: &CallRequest) -> Result<Outcome, WireError> {
    let call = task_call(
        &new_call(request)?,
        request.tool.plugin(),
        &request.principal,
    )?;
    let view = app
        .engine
        .create(call, birth(app))
        .await
        .map_err(task_methods::wire_error)?;
    Ok(handle(app, &view, &request.principal))
}

fn birth(app: &App) -> Birth {
    let tasks = &app.config.tasks;
    Birth {
        poll_interval_ms: tasks.poll_interval_ms,
        ttl_ms: Some(tasks.ttl_ms),
    }
}

fn task_call(
    call: &Call,
    plugin: &Plugin,
    principal: &Principal,
) -> Result<tasks::Call, WireError> {
    Ok(tasks::Call {
        principal: principal.clone(),
        plugin: plugin.name.clone(),
        version: plugin.version.as_str().to_owned(),
        tool: call.tool.clone(),
        body: runner::encode_call(call).map_err(|error| WireError::internal("encoding", error))?,
    })
}

fn handle(app: &Arc<App>, view: &TaskView, principal: &Principal) -> Outcome {
    let undelivered = Undelivered {
        app: app.clone(),
        handle: Some((view.id, principal.clone())),
    };
    Outcome::handle(task_methods::create_result(app, view), undelivered)
}

/// The handle of a task on its way to the client. Dropped before it was delivered, nobody has it, and the task is cancelled.
pub(crate) struct Undelivered {
    app: Arc<App>,
    handle: Option<(TaskId, Principal)>,
}

impl Undelivered {
    /// The client has it, as far as can be known.
    pub(crate) fn delivered(mut self) {
        self.handle = None;
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        let Some((id, principal)) = self.handle.take() else {
            return;
        };
        let app = self.app.clone();
        tokio::spawn(async move {
            tracing::info!(task = %id, "the client went away before it had the handle; the task is cancelled");
            if let Err(error) = app.engine.cancel(&id, &principal).await {
                tracing::warn!(task = %id, %error, "a task that nobody knows of was not cancelled");
            }
        });
    }
}

impl std::fmt::Debug for Undelivered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Undelivered")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

/// A call that is being followed.
struct Following<'a> {
    app: &'a Arc<App>,
    request: &'a CallRequest,
    plugin: Arc<Plugin>,
    call: Call,
    run: Run,
    /// Answers that came with the request and were not used yet.
    offered: BTreeMap<String, String>,
    /// Where the guest asked last, with the answers it has.
    checkpoint: Option<Checkpoint>,
    /// The last progress message.
    message: Option<String>,
}

/// Why the following ends.
enum Turn {
    GoOn,
    /// The call becomes a task. `begins`: its guest waits at `begin`.
    BecomeTask {
        begins: bool,
    },
    AskClient,
    Answer(Result<String, WireError>),
}

impl<'a> Following<'a> {
    fn start(
        app: &'a Arc<App>,
        request: &'a CallRequest,
        origin: Origin,
        mut offered: BTreeMap<String, String>,
    ) -> Result<Self, WireError> {
        let (plugin, call, run, checkpoint) = match origin {
            Origin::Fresh => {
                let plugin = request.tool.plugin().clone();
                let call = new_call(request)?;
                let run = app
                    .runtime
                    .run(&plugin, call.clone(), None, Patience::Queue);
                (plugin, call, run, None)
            }
            Origin::Sealed(state, plugin) => {
                let mut call = state.call;
                call.arguments.clone_from(&request.arguments);
                call.context = context(&request.meta);
                let run =
                    app.runtime
                        .run(&plugin, call.clone(), Some(state.record), Patience::Queue);
                // What was answered in an earlier round counts before what is offered now.
                offered.extend(state.answers);
                (plugin, call, run, None)
            }
            Origin::Parked(parked) => {
                let ParkedCall {
                    plugin,
                    call,
                    run,
                    checkpoint,
                    ..
                } = *parked;
                (plugin, call, run, Some(checkpoint))
            }
        };
        Ok(Self {
            app,
            request,
            plugin,
            call,
            run,
            offered,
            checkpoint,
            message: None,
        })
    }

    async fn follow(mut self, plan: Plan, notices: &Notices) -> Result<Outcome, WireError> {
        let window = Duration::from_millis(self.app.config.tasks.inline_window_ms);
        let inline_until = (plan == Plan::Inline).then(|| Instant::now() + window);
        // A call that was parked waits at its questions already.
        let mut turn = if self.checkpoint.is_some() {
            self.try_answers(plan)
        } else {
            Turn::GoOn
        };
        loop {
            match turn {
                Turn::GoOn => {}
                Turn::BecomeTask { begins } => return self.become_task(begins).await,
                Turn::AskClient => return self.ask_client(),
                Turn::Answer(answer) => return answer.map(Outcome::result),
            }
            let step = match inline_until {
                None => self.run.step().await,
                Some(until) => match tokio::time::timeout_at(until, self.run.step()).await {
                    Ok(step) => step,
                    Err(_) => {
                        turn = Turn::BecomeTask { begins: false };
                        continue;
                    }
                },
            };
            turn = self.turn(step, plan, notices);
        }
    }

    fn turn(&mut self, step: Step, plan: Plan, notices: &Notices) -> Turn {
        match step {
            Step::Progress(progress) => {
                self.message.clone_from(&progress.message);
                if let Some(token) = &self.request.meta.progress_token {
                    notices.send(notification::progress(token, &progress));
                }
            }
            Step::Log(message) => notices.send(notification::log(&message)),
            Step::ExternalId(id) => self.call.external_id = Some(id),
            Step::Begin if plan == Plan::AskFirst => return Turn::BecomeTask { begins: true },
            Step::Begin => self.run.proceed(),
            Step::NeedsInput { questions, record } => {
                self.checkpoint = Some(checkpoint(&questions, record));
                return self.try_answers(plan);
            }
            Step::Finished(result) => {
                return Turn::Answer(Ok(self.app.results.text(
                    &self.plugin,
                    &self.call.tool,
                    &result,
                )));
            }
            Step::Failed(failure) => return Turn::Answer(Err(self.failed(&failure))),
            Step::Cancelled => {
                let why = Failure::Unavailable("it was cancelled".to_owned());
                return Turn::Answer(Err(self.failed(&why)));
            }
        }
        Turn::GoOn
    }

    fn failed(&self, failure: &Failure) -> WireError {
        failure::of_run(failure, &self.speaker())
    }

    fn speaker(&self) -> Speaker {
        Speaker {
            plugin: self.plugin.name.clone(),
            tool: self.call.tool.clone(),
        }
    }

    /// Take what was offered and fits. With all answers the guest goes on.
    fn try_answers(&mut self, plan: Plan) -> Turn {
        let Some(checkpoint) = &mut self.checkpoint else {
            return Turn::GoOn;
        };
        for asked in &checkpoint.questions {
            if checkpoint.answers.contains_key(&asked.key) {
                continue;
            }
            let Some(answer) = self.offered.remove(&asked.key) else {
                continue;
            };
            match question::read_answer(&asked.request, &answer) {
                Ok(_) => {
                    checkpoint.answers.insert(asked.key.clone(), answer);
                }
                Err(misfit) => {
                    tracing::info!(key = %asked.key, %misfit, "an answer does not fit its question; it is asked again");
                }
            }
        }
        if checkpoint.outstanding().next().is_some() {
            return match plan {
                Plan::Inline | Plan::Task => Turn::BecomeTask { begins: false },
                Plan::Plain | Plan::AskFirst => Turn::AskClient,
            };
        }
        let answers: Vec<_> = checkpoint.answers.clone().into_iter().collect();
        self.run
            .answer(runner::typed_answers(&checkpoint.questions, &answers));
        Turn::GoOn
    }

    /// The run goes on in place, as a task.
    async fn become_task(self, begins: bool) -> Result<Outcome, WireError> {
        let speaker = self.speaker();
        let Self {
            app,
            request,
            plugin,
            call,
            run,
            checkpoint,
            message,
            ..
        } = self;
        let stored = task_call(&call, &plugin, &request.principal)?;
        let waiting = checkpoint
            .as_ref()
            .is_some_and(|asked| asked.outstanding().next().is_some());
        let asked = match &checkpoint {
            Some(checkpoint) if waiting => checkpoint.questions.clone(),
            _ => Vec::new(),
        };
        let adopted = Adopted {
            run,
            speaker,
            asked,
            begins,
            message,
            external_id: call.external_id,
        };
        let run = TaskRun::adopted(adopted, app.results.clone());
        let adopted = app
            .engine
            .adopt(stored, birth(app), Box::new(run), checkpoint)
            .await;
        let view = adopted.map_err(task_methods::wire_error)?;
        Ok(handle(app, &view, &request.principal))
    }

    /// The client is asked; what is needed to go on goes with the question.
    fn ask_client(self) -> Result<Outcome, WireError> {
        let app = self.app;
        let busy = self.failed(&Failure::Busy { queued_max: 0 });
        let Some(checkpoint) = self.checkpoint else {
            return Err(WireError::internal("broken", "a question got lost"));
        };
        let requests = question::input_requests(checkpoint.outstanding());
        let mut binding = binding(app, self.request);
        binding.plugin.clone_from(&self.plugin.name);
        self.plugin
            .version
            .as_str()
            .clone_into(&mut binding.version);
        let sealed = checkpoint.record.as_ref().and_then(|record| {
            app.sealer.seal(&State {
                binding: binding.clone(),
                call: Call {
                    arguments: String::new(),
                    ..self.call.clone()
                },
                record: Record::from_bytes(record.clone()),
                answers: checkpoint.answers.clone(),
            })
        });
        let state = sealed.or_else(|| {
            let (plugin, call, run) = (self.plugin, self.call, self.run);
            let parked = ParkedCall {
                binding,
                plugin,
                call,
                run,
                checkpoint,
            };
            app.parked.park(parked, app.clock.now_ms())
        });
        let result = Object::result("input_required")
            .value("inputRequests", &requests)
            .value("requestState", &state.ok_or(busy)?);
        Ok(Outcome::result(result.finish_result()))
    }
}

fn checkpoint(questions: &[Question], record: Option<Record>) -> Checkpoint {
    Checkpoint::new(
        runner::wire_questions(questions),
        record.map(Record::into_bytes),
    )
}
