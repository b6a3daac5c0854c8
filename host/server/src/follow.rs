//! Following a call: one run of a guest at a time, step by step.
//!
//! Where the guest asks, the answers that came with the request are tried; if some are missing, the call either becomes a task
//! or goes back to the client with its state sealed. A run from a record arrives at the same question again, so both ways of
//! going on are the same.
//!
//! It must not know how a request became an errand.

use crate::answer;
use crate::app::App;
use crate::call::{birth, handle, task_call};
use crate::errand::{Errand, no_random_numbers, speaker};
use crate::failure;
use crate::legacy::session::Session;
use crate::outcome::{Notices, Outcome};
use crate::parked::{NotParked, ParkedCall, ParkedCalls};
use crate::runner::{self, Adopted, Ending, Named, TaskRun};
use crate::seal::State;
use crate::wire::object::Object;
use crate::wire::{WireError, notification, question, response};
use futures::future::join_all;
use longshore_runtime::contract::{InputAnswer, RpcError};
use longshore_runtime::{Call, Failure, Patience, Plugin, Record, Run, Step, Version, Work};
use longshore_tasks::{Birth, Checkpoint};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// How a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// With its result, however long it takes.
    Plain,
    /// With its result if that comes within the inline window, else with a task.
    Inline,
    /// With a task at once.
    Task,
    /// With questions until the guest calls `begin`, then with a task.
    AskFirst,
}

/// Serve an errand that never becomes a task.
///
/// # Errors
/// Why it has no result.
pub(crate) async fn plainly(
    app: &Arc<App>,
    errand: &Errand,
    notices: &Notices,
) -> Result<Outcome, WireError> {
    let offered = errand.offered_answers()?;
    let origin = Origin::of(app, errand).await?;
    let following = Following::start(app, errand, origin, offered)?;
    let followed = Box::pin(following.follow(Plan::Plain, notices)).await;
    followed.inspect_err(|error| app.ends.tell(error, errand.whose()))
}

/// Where a call stands when its request comes.
pub(crate) enum Origin {
    /// At its beginning.
    Fresh,
    /// At questions; what is needed to arrive there again came with the request.
    Sealed(Box<State>, Arc<Plugin>),
    /// At questions, in memory, under this name.
    Parked(String),
}

impl Origin {
    /// Where the call of this request stands.
    ///
    /// # Errors
    /// -32602 if its state cannot be used.
    pub(crate) async fn of(app: &App, errand: &Errand) -> Result<Self, WireError> {
        let Some(state) = &errand.rounds.request_state else {
            return Ok(Self::Fresh);
        };
        let state: String =
            serde_json::from_str(state.get()).map_err(|_| refuse("it is not a string"))?;
        let binding = errand.binding(app);
        let now_ms = app.clock.now_ms();
        if ParkedCalls::is_name(&state) {
            let checked = app.parked.check(&state, &binding, now_ms);
            return checked.map(|()| Self::Parked(state)).map_err(refuse);
        }
        let state = app
            .sealer
            .open_state(&state)
            .ok_or_else(|| refuse("it was not made here, or was changed"))?;
        state.binding.admits(&binding, now_ms).map_err(refuse)?;
        let version = Version::parse(&state.binding.version);
        let version = version.ok_or_else(|| refuse("it names no version"))?;
        let plugin = app
            .runtime
            .plugin_by_version(&state.binding.plugin, &version)
            .await;
        let plugin = plugin.map_err(|error| refuse(&format!("{error}; start again without it")))?;
        Ok(Self::Sealed(Box::new(state), plugin))
    }

    /// Whether it stands at its beginning.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self, Self::Fresh)
    }
}

/// The error of a state that is of no use.
fn refuse(why: &str) -> WireError {
    WireError::invalid_params(format!("requestState cannot be used: {why}"))
}

/// A call that is being followed.
pub(crate) struct Following<'a> {
    app: &'a Arc<App>,
    errand: &'a Errand,
    plugin: Arc<Plugin>,
    call: Call,
    run: Run,
    /// Answers that came with the request and were not used yet.
    offered: BTreeMap<String, String>,
    /// Where the guest asked last, with the answers it has.
    checkpoint: Option<Checkpoint>,
    /// Answers of an older client, for the question at which the run arrives again.
    answers: Option<Vec<InputAnswer>>,
    /// The guest has had an effect outside.
    acted: bool,
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
    /// Start a run, or go on with the one that is parked.
    ///
    /// # Errors
    /// -32603 if the system has no random numbers; -32602 if the one that is parked has ended meanwhile.
    pub(crate) fn start(
        app: &'a Arc<App>,
        errand: &'a Errand,
        origin: Origin,
        mut offered: BTreeMap<String, String>,
    ) -> Result<Self, WireError> {
        let (plugin, call, run, checkpoint) = match origin {
            Origin::Fresh => {
                let plugin = errand.plugin.clone();
                let call = errand.new_call()?;
                let run = app
                    .runtime
                    .run(&plugin, call.clone(), None, Patience::Queue);
                (plugin, call, run, None)
            }
            Origin::Sealed(state, plugin) => {
                let mut call = state.call;
                call.work = errand.work.clone();
                call.context = errand.context();
                call.names = errand.names();
                let run =
                    app.runtime
                        .run(&plugin, call.clone(), Some(state.record), Patience::Queue);
                // What was answered in an earlier round counts before what is offered now.
                offered.extend(state.answers);
                (plugin, call, run, None)
            }
            Origin::Parked(state) => {
                let ParkedCall {
                    plugin,
                    call,
                    run,
                    checkpoint,
                    ..
                } = app.parked.take(&state).map_err(refuse)?;
                (plugin, call, run, Some(checkpoint))
            }
        };
        Ok(Self {
            app,
            errand,
            plugin,
            call,
            run,
            offered,
            checkpoint,
            answers: None,
            acted: false,
            message: None,
        })
    }

    /// Follow the run until there is something to answer.
    ///
    /// # Errors
    /// Why there is no result.
    pub(crate) async fn follow(
        mut self,
        plan: Plan,
        notices: &Notices,
    ) -> Result<Outcome, WireError> {
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
                Turn::AskClient => match &self.errand.session {
                    Some(session) => self.ask_in(session, notices).await,
                    None => return self.ask_client(),
                },
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
            turn = self.turn(step, plan, notices).await;
        }
    }

    async fn turn(&mut self, step: Step, plan: Plan, notices: &Notices) -> Turn {
        match step {
            Step::Progress(progress) => {
                self.message.clone_from(&progress.message);
                if let Some(token) = &self.errand.meta.progress_token {
                    notices.send(notification::progress(token, &progress));
                }
            }
            Step::Log(message) => notices.send(notification::log(&message)),
            Step::ExternalId(id) => {
                self.call.external_id = Some(id);
                self.run.proceed();
            }
            Step::Begin if plan == Plan::AskFirst => return Turn::BecomeTask { begins: true },
            Step::Begin => self.run.proceed(),
            Step::Effect => {
                self.acted = true;
                self.run.permit();
            }
            Step::NeedsInput { questions, record } => {
                if let Some(answers) = self.answers.take() {
                    self.run.answer(answers);
                    return Turn::GoOn;
                }
                let asked = runner::wire_questions(&questions, &self.plugin.name);
                self.checkpoint = Some(Checkpoint::new(asked, record.map(Record::into_bytes)));
                return self.try_answers(plan);
            }
            Step::Finished { answer, usage } => {
                let (app, errand) = (self.app, self.errand);
                let worded = answer::word(app, errand, &self.plugin, (&answer, usage.as_ref()));
                return Turn::Answer(worded.await);
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
        failure::of_run(failure, &speaker(&self.plugin, &self.call.work))
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
            match response::read_answer(&asked.request, &answer) {
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
        let Self {
            app,
            errand,
            plugin,
            call,
            run,
            checkpoint,
            acted,
            message,
            ..
        } = self;
        let stored = task_call(app, &call, &plugin, &errand.principal)?;
        let waiting = checkpoint
            .as_ref()
            .is_some_and(|asked| asked.outstanding().next().is_some());
        let asked = match &checkpoint {
            Some(checkpoint) if waiting => checkpoint.questions.clone(),
            _ => Vec::new(),
        };
        let (naming, (name, named)) = (run.naming(), oneshot::channel());
        let speaker = || speaker(&plugin, &call.work);
        let adopted = Adopted {
            run,
            speaker: speaker(),
            ending: Ending::new(&app.ends, &stored, Named::Soon(named)),
            asked,
            begins,
            message,
            external_id: call.external_id.clone(),
        };
        let birth = Birth {
            pinned: acted,
            ..birth(app)
        };
        let run = TaskRun::adopted(adopted, app.results.clone());
        let adopted = app
            .engine
            .adopt(stored, birth, Box::new(run), checkpoint)
            .await;
        let running_bytes_max = app.config.tasks.running_bytes_max;
        let view =
            adopted.map_err(|error| failure::of_birth(error, &speaker(), running_bytes_max))?;
        naming.task(&view.id.to_string());
        // A run that has failed waits for it; any other forgets it.
        let _ = name.send(view.id);
        Ok(handle(app, &view, &errand.principal))
    }

    /// The client is asked in its session. Whatever comes of it reaches the guest: it waits in memory for a while if there is
    /// room, and else leaves it, and another run arrives at the same question by the record.
    async fn ask_in(&mut self, session: &Session, notices: &Notices) {
        let Some(checkpoint) = self.checkpoint.take() else {
            return;
        };
        let app = self.app;
        let patience = Duration::from_millis(app.config.host.input_time_ms);
        let questions = checkpoint.questions.iter();
        let asked = questions.map(|asked| session.ask(&asked.request, patience, notices));
        let mut asked = Box::pin(join_all(asked));
        let place = app.lingering.take(&self.plugin.name, 1);
        let bytes = self.run.held_bytes() as u64;
        let room = app.waiting_room.take(&self.plugin.name, bytes);
        let stays = Duration::from_millis(app.config.tasks.linger_ms);
        let linger = place.zip(room).map(|place| (place, stays));
        let Some(record) = checkpoint.record.clone() else {
            // What cannot be replayed has to wait in memory, so it must have found a place there.
            let answers = match linger {
                Some(_place) => asked.await,
                None => vec![busy(); checkpoint.questions.len()],
            };
            return self.run.answer(answers);
        };
        if let Some((_place, stays)) = linger
            && let Ok(answers) = timeout(stays, &mut asked).await
        {
            return self.run.answer(answers);
        }
        self.run = app.runtime.failed_run(Failure::Unavailable(
            "it left memory while it waited".to_owned(),
        ));
        self.answers = Some(asked.await);
        let record = Some(Record::from_bytes(record));
        self.run = app
            .runtime
            .run(&self.plugin, self.call.clone(), record, Patience::Queue);
    }

    /// The client is asked; what is needed to go on goes with the question.
    fn ask_client(self) -> Result<Outcome, WireError> {
        let app = self.app;
        let speaker = speaker(&self.plugin, &self.call.work);
        let Some(checkpoint) = self.checkpoint else {
            return Err(WireError::internal("broken", "a question got lost"));
        };
        let requests = question::input_requests(checkpoint.outstanding());
        let mut binding = self.errand.binding(app);
        binding.plugin.clone_from(&self.plugin.name);
        self.plugin
            .version
            .as_str()
            .clone_into(&mut binding.version);
        let sealed = checkpoint.record.as_ref().and_then(|record| {
            app.sealer.seal(&State {
                binding: binding.clone(),
                call: Call {
                    work: Work::Tool {
                        name: String::new(),
                        arguments: String::new(),
                    },
                    ..self.call.clone()
                },
                record: Record::from_bytes(record.clone()),
                answers: checkpoint.answers.clone(),
            })
        });
        let state = match sealed {
            Some(sealed) => sealed,
            None => {
                let parked = ParkedCall {
                    binding,
                    plugin: self.plugin,
                    call: self.call,
                    run: self.run,
                    checkpoint,
                };
                let parked = app
                    .parked
                    .park(parked, &app.waiting_room, app.clock.now_ms());
                parked.map_err(|error| match error {
                    NotParked::NoRoom(limit) => failure::no_room(&speaker, limit),
                    NotParked::NoName(error) => no_random_numbers(error),
                })?
            }
        };
        let result = Object::result("input_required")
            .value("inputRequests", &requests)
            .value("requestState", &state);
        Ok(Outcome::result(result.finish_result()))
    }
}

/// There is no room to wait for an answer.
fn busy() -> InputAnswer {
    InputAnswer::Refused(RpcError {
        code: -32603,
        message: "too many calls wait for answers; try again".to_owned(),
        data: None,
    })
}
