//! What callers ask for. A command that has begun runs to its end in a task of its own, even if its
//! caller goes away: between a durable write and its effect nothing may stop it.

use std::future::Future;
use std::sync::Arc;

use super::drive::Seed;
use super::{Engine, EngineError, Inner};
use crate::decide::Command;
use crate::id::{Principal, TaskId};
use crate::model::{Birth, Call, Checkpoint, Payload, TaskView};
use crate::run::Run;
use crate::state::Task;

impl Engine {
    /// Makes a task of `call`. It is durable when this returns, and its run is started then.
    ///
    /// If the returned future is dropped before it is done, nobody has the handle, and the task is
    /// cancelled; a caller that cannot pass the handle on calls [`Engine::cancel`].
    pub async fn create(&self, call: Call, birth: Birth) -> Result<TaskView, EngineError> {
        self.bear(call, birth, None, None).await
    }

    /// Makes a task of `call`, whose `run` goes on already: it goes on in place. `checkpoint` is
    /// where it last asked, if it did; with a question still open the task is `InputRequired` at
    /// once. If the future is dropped, the same holds as for [`Engine::create`].
    pub async fn adopt(
        &self,
        call: Call,
        birth: Birth,
        run: Box<dyn Run>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<TaskView, EngineError> {
        self.bear(call, birth, Some(run), checkpoint).await
    }

    /// The task as its owner sees it. Changes nothing.
    pub async fn get(&self, id: &TaskId, principal: &Principal) -> Result<TaskView, EngineError> {
        let task = self.inner.owned(id, principal).await?;
        Ok(task.view(self.inner.live.said(id)))
    }

    /// Answers outstanding questions; durable when this returns. Unknown and spent keys are
    /// ignored, the first answer to a key wins, and with the last one the run goes on.
    pub async fn answer(
        &self,
        id: &TaskId,
        principal: &Principal,
        answers: Vec<(String, Payload)>,
    ) -> Result<(), EngineError> {
        self.inner.owned(id, principal).await?;
        let (inner, id) = (Arc::clone(&self.inner), *id);
        self.detached(async move {
            inner
                .transition(&id, |_| Command::Answer(answers.clone()))
                .await
                .map(drop)
        })
        .await
    }

    /// Wishes the task cancelled; durable when this returns. It is cancelled within the grace
    /// period, unless it ends before; one that has ended stays as it is.
    pub async fn cancel(&self, id: &TaskId, principal: &Principal) -> Result<(), EngineError> {
        self.inner.owned(id, principal).await?;
        let (inner, id) = (Arc::clone(&self.inner), *id);
        self.detached(async move { inner.wish(&id).await }).await
    }

    async fn bear(
        &self,
        call: Call,
        birth: Birth,
        run: Option<Box<dyn Run>>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<TaskView, EngineError> {
        if self.inner.draining.is_cancelled() {
            return Err(EngineError::ShuttingDown);
        }
        let inner = Arc::clone(&self.inner);
        let handle = self
            .detached(async move { inner.bear(call, birth, run, checkpoint).await })
            .await?;
        Ok(handle.deliver())
    }

    /// Runs `work` to its end whether or not anyone waits for it.
    async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineError> {
        let work = self.inner.spawned.spawn(work);
        // It fails only if the runtime goes down under it.
        work.await.unwrap_or(Err(EngineError::ShuttingDown))
    }
}

impl Inner {
    async fn bear(
        self: Arc<Self>,
        call: Call,
        birth: Birth,
        run: Option<Box<dyn Run>>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<Handle, EngineError> {
        if self.live.bytes() + call.body.len() > self.settings.running_bytes_max {
            return Err(EngineError::Busy);
        }
        let now_ms = self.now_ms();
        let id = self.ids.make(now_ms);
        let id = id.map_err(|error| EngineError::Entropy(error.to_string()))?;
        let task = Task::born(id, call, birth, now_ms).asked_before(checkpoint);
        let principal = task.call.principal.clone();
        if !self.open.try_add(&principal) {
            let open_max = self.open.max();
            return Err(EngineError::Full { open_max });
        }
        // The seat is taken before the task can be found, so that no one starts a second run.
        let mut claim = self.live.claim(id).ok_or(EngineError::Contended)?;
        claim.weigh(&task.call);
        if let Err(error) = self.save(&task, None).await {
            self.open.remove(&principal);
            return Err(error);
        }
        let view = task.view(None);
        let task = Box::new(task);
        let seed = match run {
            Some(run) => Seed::Adopted(run, task),
            None => Seed::New(task),
        };
        self.spawn_driver(claim, seed);
        Ok(Handle {
            inner: self,
            view: Some(view),
        })
    }

    /// The task, if it is this principal's, and not one that the sweep has only yet to remove.
    async fn owned(&self, id: &TaskId, principal: &Principal) -> Result<Task, EngineError> {
        let (task, _) = self.load(id).await?;
        let over = task.outcome.is_some() && task.is_expired(self.now_ms());
        if task.call.principal == *principal && !over {
            Ok(task)
        } else {
            Err(EngineError::NotFound)
        }
    }

    async fn wish(self: &Arc<Self>, id: &TaskId) -> Result<(), EngineError> {
        // Without a grace period no run can end by itself in it: one write ends the task.
        let held = self.settings.grace_ms > 0 && self.live.holds(id);
        self.transition(id, |_| Command::Cancel { held })
            .await
            .map(drop)
    }
}

/// The handle of a new task on its way to the caller. Dropped on the way, nobody has it and nobody
/// will: the task is cancelled.
struct Handle {
    inner: Arc<Inner>,
    view: Option<TaskView>,
}

impl Handle {
    fn deliver(mut self) -> TaskView {
        self.view.take().expect("a handle is delivered once")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(TaskView { id, .. }) = self.view.take() else {
            return;
        };
        let inner = Arc::clone(&self.inner);
        self.inner.spawned.spawn(async move {
            if let Err(error) = inner.wish(&id).await {
                tracing::warn!(task = %id, %error, "a task nobody knows of was not cancelled");
            }
        });
    }
}
