//! Tasks whose time is over: the unfinished fail, and those that ended are removed.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;

use super::{EngineError, Inner};
use crate::decide::Command;
use crate::id::TaskId;
use crate::run::Reason;
use crate::state::Task;

/// How many tasks are swept at once: enough to share a store's group commits.
const PARALLEL: usize = 32;

/// Sweeps until shutdown. One sweep ends before the next begins, however long it takes.
pub(super) async fn sweep(inner: Arc<Inner>) {
    loop {
        let next_ms = inner
            .now_ms()
            .saturating_add(inner.settings.sweep_every_ms.max(1));
        tokio::select! {
            () = inner.draining.cancelled() => return,
            () = inner.ports.clock.sleep_until(next_ms) => {}
        }
        if let Err(error) = inner.sweep_once().await {
            tracing::error!(%error, "expired tasks could not be looked for");
        }
    }
}

impl Inner {
    pub(super) async fn sweep_once(self: &Arc<Self>) -> Result<(), EngineError> {
        let (until_ms, batch) = (self.now_ms(), self.settings.sweep_batch.max(1));
        let mut after = None;
        while !self.draining.is_cancelled() {
            let page = self.ports.store.due(until_ms, after, batch).await?;
            stream::iter(&page)
                .for_each_concurrent(PARALLEL, |(_, id)| self.end(id))
                .await;
            after = page.last().copied();
            if page.len() < batch {
                break;
            }
        }
        Ok(())
    }

    /// What could not be ended now is found again by the next sweep.
    async fn end(self: &Arc<Self>, id: &TaskId) {
        match self.transition(id, |task| self.expiry(task)).await {
            Ok(_) | Err(EngineError::NotFound) => {}
            Err(error) => tracing::error!(task = %id, %error, "an expired task could not be ended"),
        }
    }

    /// The command that ends a task whose time is over.
    pub(super) fn expiry(&self, task: &Task) -> Command {
        let error = self.ports.failures.error(Reason::Expired, &task.call);
        let message = self.ports.failures.message(&error);
        Command::Expire { error, message }
    }
}
