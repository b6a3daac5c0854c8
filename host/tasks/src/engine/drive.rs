//! One run in memory, driven from its start to the end of its task, or until it is let go.
//!
//! The driver owns the run. It learns of answers, wishes and ends made by others by looking at the
//! durable state when its bell rings.

use std::future::pending;
use std::ops::ControlFlow::{self, Break, Continue};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::sync::OwnedSemaphorePermit;

use super::keys::Keys;
use super::live::{Claim, Seat};
use super::waiting::Place;
use super::{EngineError, Inner};
use crate::decide::{Command, Opening, cancellation, opening};
use crate::id::TaskId;
use crate::model::{Checkpoint, OnCrash, Payload, Question, Said};
use crate::run::{Past, Reason, Run, Step};
use crate::state::{Outcome, Task};

/// Where a driver has its run from.
pub(super) enum Seed {
    /// From a caller: it goes on already.
    Adopted(Box<dyn Run>, Box<Task>),
    /// The first of a task that was made just now.
    New(Box<Task>),
    /// From the task as stored, if it needs one. The permit is given back when it is started.
    Stored(Option<OwnedSemaphorePermit>),
}

/// Why a driver left.
#[derive(Debug, PartialEq, Eq)]
enum Exit {
    /// The task has ended.
    Ended,
    /// The task waits for answers and needs no run.
    NotNeeded,
    /// The run waited for its answers long enough.
    LetGo,
    /// The store failed for too long; the task stays as it is stored.
    GaveUp,
    /// The server stops.
    Drained,
}

/// What the run is at.
enum Posture {
    Running,
    /// On its way to the questions of this checkpoint, which are answered.
    Replaying(Checkpoint),
    /// It asked. `None`: it is kept whatever it takes.
    Waiting {
        until_ms: Option<u64>,
        /// Its place among those that wait, given back with the posture.
        place: Option<Place>,
    },
}

enum Happened {
    Stopped,
    Rung,
    Due,
    Stepped(Step),
}

type Flow = ControlFlow<Exit>;

struct Driver {
    inner: Arc<Inner>,
    id: TaskId,
    plugin: String,
    seat: Arc<Seat>,
    run: Box<dyn Run>,
    posture: Posture,
    /// Only this very run can go on from its last questions.
    pinned: bool,
    /// By the rule of its call no other run follows it.
    once: bool,
    keys: Keys,
    /// The run was told of the wish; the engine ends the task then.
    grace_ends_ms: Option<u64>,
    expires_ms: Option<u64>,
}

impl Inner {
    /// Lets a run look at the task: the one in memory, or one started for it.
    pub(super) fn attend(self: &Arc<Self>, id: TaskId, permit: Option<OwnedSemaphorePermit>) {
        if self.draining.is_cancelled() {
            return;
        }
        if let Some(claim) = self.live.claim(id) {
            self.spawn_driver(claim, Seed::Stored(permit));
        }
    }

    pub(super) fn spawn_driver(self: &Arc<Self>, claim: Claim, seed: Seed) {
        self.spawned.spawn(drive(Arc::clone(self), claim, seed));
    }
}

/// Drives one run. A panic of the run costs its task, nothing else.
async fn drive(inner: Arc<Inner>, mut claim: Claim, seed: Seed) {
    let id = claim.id;
    let driven = AssertUnwindSafe(async {
        match Driver::open(&inner, &mut claim, seed).await {
            Ok(driver) => driver.go().await,
            Err(exit) => exit,
        }
    });
    let exit = driven.catch_unwind().await;
    if exit.is_err() {
        tracing::error!(task = %id, "the run panicked");
        let broken = |task: &Task| inner.failure(Reason::Broken, &task.call);
        if let Err(error) = inner.insist(&id, broken).await {
            tracing::error!(task = %id, %error, "the failure was not stored");
        }
    }
    // A command may have rung after the last look and before the seat was free.
    let over = matches!(exit, Ok(Exit::Ended | Exit::Drained) | Err(_));
    if claim.leave() && !over {
        inner.attend(id, None);
    }
}

impl Driver {
    /// Takes the run over, or starts the one that the stored task needs.
    async fn open(inner: &Arc<Inner>, claim: &mut Claim, seed: Seed) -> Result<Self, Exit> {
        let (task, run, posture) = match seed {
            Seed::Adopted(run, task) => {
                let waits = task.outstanding().next().is_some();
                let pinned = task.is_pinned();
                let plugin = &task.call.plugin;
                let posture = match waits.then(|| inner.waiting(plugin, run.as_ref(), pinned)) {
                    Some(Some(waiting)) => waiting,
                    Some(None) => return Err(inner.fail(&task.id, Reason::NoRoom).await),
                    None => Posture::Running,
                };
                (*task, run, posture)
            }
            Seed::New(task) => {
                let run = inner.start(&task, None);
                (*task, run, Posture::Running)
            }
            Seed::Stored(permit) => {
                let opened = inner.start_stored(&claim.id).await;
                drop(permit);
                let opened = opened?;
                claim.weigh(&opened.0.call);
                opened
            }
        };
        Ok(Self {
            inner: Arc::clone(inner),
            id: claim.id,
            seat: Arc::clone(&claim.seat),
            run,
            posture,
            pinned: task.is_pinned(),
            once: task.call.on_crash == OnCrash::Fail,
            keys: Keys::of(&task),
            plugin: task.call.plugin,
            grace_ends_ms: None,
            expires_ms: task.expires_ms,
        })
    }

    async fn go(mut self) -> Exit {
        loop {
            let flow = match self.next().await {
                Happened::Stopped => Break(Exit::Drained),
                Happened::Rung => self.look().await,
                Happened::Due => self.due().await,
                Happened::Stepped(step) => self.stepped(step).await,
            };
            if let Break(exit) = flow {
                return exit;
            }
        }
    }

    /// Waits for what happens next. Everything waited for is cancel safe. Time goes before steps: a
    /// guest that never stops reporting must not outrun its deadline.
    async fn next(&mut self) -> Happened {
        let stop = if self.pinned || self.once {
            &self.inner.drained
        } else {
            &self.inner.draining
        };
        let waits = matches!(self.posture, Posture::Waiting { .. });
        let due_ms = self.due_ms();
        tokio::select! {
            biased;
            () = stop.cancelled() => Happened::Stopped,
            () = self.seat.bell.notified() => Happened::Rung,
            () = self.inner.ports.clock.sleep_until(due_ms) => Happened::Due,
            () = told_to_leave(&self.posture), if self.grace_ends_ms.is_none() => Happened::Due,
            step = self.run.step(), if !waits => Happened::Stepped(step),
        }
    }

    fn due_ms(&self) -> u64 {
        let linger_ends_ms = match self.posture {
            // After the wish no answer comes; the grace period ends what waits for one, and the
            // task with it. Let go before that, nobody would end it.
            Posture::Waiting { until_ms, .. } if self.grace_ends_ms.is_none() => until_ms,
            Posture::Waiting { .. } | Posture::Running | Posture::Replaying(_) => None,
        };
        let due = [self.grace_ends_ms, self.expires_ms, linger_ends_ms];
        due.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    async fn due(&mut self) -> Flow {
        let now_ms = self.inner.now_ms();
        let over = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        if over(self.grace_ends_ms) {
            return self.end(|_| cancellation()).await;
        }
        if over(self.expires_ms) {
            let inner = Arc::clone(&self.inner);
            return self.end(|task| inner.expiry(task)).await;
        }
        Break(Exit::LetGo)
    }

    /// Looks at the durable state and tells the run what it does not know yet.
    async fn look(&mut self) -> Flow {
        let task = match self.inner.retry(|| self.inner.load(&self.id)).await {
            Ok((task, _)) => task,
            Err(error) => return self.give_up(&error),
        };
        if task.outcome.is_some() {
            return Break(Exit::Ended);
        }
        self.expires_ms = task.expires_ms;
        let answered = task.outstanding().next().is_none();
        match (task.wished_ms, task.checkpoint) {
            (Some(wished_ms), _) => self.pass_on_wish(wished_ms),
            (None, Some(checkpoint)) if answered && self.waits() => self.answer(&checkpoint),
            (None, _) => {}
        }
        Continue(())
    }

    fn pass_on_wish(&mut self, wished_ms: u64) {
        if self.grace_ends_ms.is_some() {
            return;
        }
        self.grace_ends_ms = Some(wished_ms.saturating_add(self.inner.settings.grace_ms));
        self.run.cancel();
        // A wait for answers returns once on the wish, so the run takes steps again.
        if self.waits() {
            self.posture = Posture::Running;
        }
    }

    async fn stepped(&mut self, step: Step) -> Flow {
        match step {
            Step::Progress { message } => {
                if let Some(message) = message {
                    let at_ms = self.inner.now_ms();
                    *self.seat.said.lock() = Some(Said { message, at_ms });
                    self.inner.tell(&self.id);
                }
                // A run whose steps are always ready must not keep the thread.
                tokio::task::consume_budget().await;
                Continue(())
            }
            Step::ExternalId(external_id) => {
                let stored = self
                    .inner
                    .insist(&self.id, |_| Command::Name(external_id.clone()));
                match stored.await {
                    Ok(_) => {
                        // By this line an operator finds the task of a job.
                        tracing::info!(task = %self.id, external_id, "the tool named its job elsewhere");
                        Continue(())
                    }
                    Err(error) => self.give_up(&error),
                }
            }
            Step::Pinned => self.pin().await,
            Step::NeedsInput { questions, record } => self.asked(questions, record).await,
            Step::Finished(_) if matches!(self.posture, Posture::Replaying(_)) => {
                self.fail(Reason::Diverged).await
            }
            Step::Finished(result) => {
                let message = self.message();
                let outcome = Outcome::Completed(result);
                self.end(|_| Command::Close {
                    outcome: outcome.clone(),
                    message: message.clone(),
                })
                .await
            }
            Step::Failed(error) => {
                let message = self.inner.ports.failures.message(&error);
                let outcome = Outcome::Failed(error);
                self.end(|_| Command::Close {
                    outcome: outcome.clone(),
                    message: message.clone(),
                })
                .await
            }
            Step::Cancelled => self.end(|_| cancellation()).await,
        }
    }

    async fn asked(&mut self, questions: Vec<Question>, record: Option<Vec<u8>>) -> Flow {
        if let Posture::Replaying(checkpoint) = &self.posture {
            let stored = checkpoint.questions.iter();
            let same = stored.map(|question| self.keys.inward(&question.key));
            if !same.eq(questions.iter().map(|question| question.key.as_str())) {
                return self.fail(Reason::Diverged).await;
            }
            let checkpoint = checkpoint.clone();
            self.answer(&checkpoint);
            return Continue(());
        }
        let questions = questions
            .into_iter()
            .map(|question| self.keys.outward(question));
        let checkpoint = Checkpoint::new(questions.collect(), record);
        let pinned = self.pinned || checkpoint.is_pinned();
        // Before it is written: a question that nobody can wait with must not be seen.
        let Some(waiting) = self.wait(pinned) else {
            return self.fail(Reason::NoRoom).await;
        };
        let message = self.message();
        let ask = |_: &Task| Command::Ask {
            checkpoint: checkpoint.clone(),
            message: message.clone(),
        };
        match self.inner.insist(&self.id, ask).await {
            Ok(task) if task.outcome.is_some() => Break(Exit::Ended),
            Ok(_) => {
                self.pinned = pinned;
                self.posture = waiting;
                Continue(())
            }
            Err(EngineError::Illegal(illegal)) => {
                tracing::error!(task = %self.id, %illegal, "the run broke its contract");
                self.fail(Reason::Broken).await
            }
            Err(error) => self.give_up(&error),
        }
    }

    fn wait(&self, pinned: bool) -> Option<Posture> {
        if self.grace_ends_ms.is_some() {
            // It gets no answer and ends in a moment: nobody leaves for that.
            return Some(Posture::Waiting {
                until_ms: None,
                place: None,
            });
        }
        self.inner.waiting(&self.plugin, self.run.as_ref(), pinned)
    }

    /// Durable before the run goes on: a crash right after its effect must find it pinned.
    async fn pin(&mut self) -> Flow {
        match self.inner.insist(&self.id, |_| Command::Pin).await {
            Ok(task) if task.outcome.is_some() => Break(Exit::Ended),
            Ok(_) => {
                self.pinned = true;
                Continue(())
            }
            // It did nothing yet; dropped now, it may be started again.
            Err(error) => self.give_up(&error),
        }
    }

    fn waits(&self) -> bool {
        matches!(self.posture, Posture::Waiting { .. })
    }

    fn message(&self) -> Option<String> {
        let said = self.seat.said.lock();
        said.as_ref().map(|said| said.message.clone())
    }

    fn answer(&mut self, checkpoint: &Checkpoint) {
        let answer = |q: &Question| {
            let answer = checkpoint.answers.get(&q.key)?.clone();
            Some((self.keys.inward(&q.key).to_owned(), answer))
        };
        let answers: Vec<(String, Payload)> =
            checkpoint.questions.iter().filter_map(answer).collect();
        self.run.answer(answers);
        self.posture = Posture::Running;
    }

    async fn fail(&mut self, reason: Reason) -> Flow {
        Break(self.inner.fail(&self.id, reason).await)
    }

    /// Makes the end durable; the run is dropped after it.
    async fn end(&mut self, command: impl Fn(&Task) -> Command + Send + Sync) -> Flow {
        match self.inner.insist(&self.id, command).await {
            Ok(_) => Break(Exit::Ended),
            Err(error) => self.give_up(&error),
        }
    }

    fn give_up(&self, error: &EngineError) -> Flow {
        Break(self.inner.give_up(&self.id, error))
    }
}

/// Resolves when another run has the place of this one; never if it waits without one, or does not wait.
async fn told_to_leave(posture: &Posture) {
    match posture {
        Posture::Waiting {
            place: Some(place), ..
        } => place.leave.cancelled().await,
        _ => pending().await,
    }
}

impl Inner {
    /// How a run of this plugin waits that has asked. `None`: it would have to stay in memory, and there is no room.
    fn waiting(&self, plugin: &str, run: &dyn Run, pinned: bool) -> Option<Posture> {
        if pinned {
            let place = Some(self.waiting.stay(plugin, run.held_bytes())?);
            return Some(Posture::Waiting {
                until_ms: None,
                place,
            });
        }
        let linger_ms = self.settings.linger_ms;
        let lingers = linger_ms > 0;
        let place = lingers.then(|| self.waiting.linger(run.held_bytes()));
        let place = place.flatten();
        let linger_ms = place.as_ref().map_or(0, |_| linger_ms);
        Some(Posture::Waiting {
            until_ms: Some(self.now_ms().saturating_add(linger_ms)),
            place,
        })
    }

    /// The task fails by the engine's own word; its run is dropped after it.
    async fn fail(self: &Arc<Self>, id: &TaskId, reason: Reason) -> Exit {
        match self
            .insist(id, |task| self.failure(reason, &task.call))
            .await
        {
            Ok(_) => Exit::Ended,
            Err(error) => self.give_up(id, &error),
        }
    }

    fn start(&self, task: &Task, record: Option<&[u8]>) -> Box<dyn Run> {
        let external_id = task.external_id.as_deref();
        let past = Past {
            record,
            external_id,
        };
        self.ports.runner.start(&task.id, &task.call, past)
    }

    /// The run that the stored task needs now, if it needs one.
    async fn start_stored(
        self: &Arc<Self>,
        id: &TaskId,
    ) -> Result<(Task, Box<dyn Run>, Posture), Exit> {
        let loaded = self.retry(|| self.load(id)).await;
        let (mut task, _) = loaded.map_err(|error| self.give_up(id, &error))?;
        if opening(&task) == Opening::Again {
            let again = |_: &Task| Command::StartAgain { crashed: false };
            let written = self.insist(id, again).await;
            task = written.map_err(|error| self.give_up(id, &error))?;
        }
        let end = match opening(&task) {
            Opening::Start => {
                let run = self.start(&task, None);
                return Ok((task, run, Posture::Running));
            }
            Opening::Replay(checkpoint) => {
                let run = self.start(&task, checkpoint.record.as_deref());
                return Ok((task, run, Posture::Replaying(checkpoint)));
            }
            Opening::Rest => return Err(Exit::NotNeeded),
            Opening::Cancel => cancellation(),
            // Written down just now, it is not pinned any more.
            Opening::Again | Opening::Interrupted => self.failure(Reason::Interrupted, &task.call),
        };
        match self.insist(id, |_| end.clone()).await {
            Ok(_) => Err(Exit::Ended),
            Err(error) => Err(self.give_up(id, &error)),
        }
    }

    fn give_up(&self, id: &TaskId, error: &EngineError) -> Exit {
        if matches!(error, EngineError::NotFound) {
            return Exit::Ended;
        }
        tracing::error!(task = %id, %error, "the run is dropped, its task stays as it is stored");
        Exit::GaveUp
    }
}
