//! Unfinished tasks after a start: those that wait for answers rest, the others go on in the order
//! they were made, or end. Those that have ended are not looked at, so a start takes no longer for
//! them, however many there are.
//!
//! A run that a crash cut short is counted before the next one starts, so that a task that brings the
//! server down does it a few times only. Nothing is written for it before that: a task that runs
//! through costs no more for it.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use tokio::sync::Semaphore;

use super::{EngineError, ID_PAGE, Inner};
use crate::decide::{Command, Revival, cancellation, revival};
use crate::id::TaskId;
use crate::state::Task;

/// A task that needs a run, in the order of its making: 32 bytes each.
type Queued = (u64, TaskId);

/// Takes up every unfinished task, a bounded number of them at once, and returns when all have
/// been and their runs are started.
pub(super) async fn recover(inner: &Arc<Inner>) -> Result<(), EngineError> {
    let crashed = inner.ports.store.begin().await?;
    let parallel = inner.settings.recovery_parallel.max(1) as usize;
    let (mut after, mut found, mut queue) = (None, 0, Vec::new());
    loop {
        let page = inner.ports.store.unfinished(after, ID_PAGE).await?;
        found += page.len();
        let revived = stream::iter(&page).map(|id| inner.revive(id, crashed));
        let revived: Vec<_> = revived.buffer_unordered(parallel).collect().await;
        queue.extend(revived.into_iter().flatten());
        after = page.last().copied();
        if page.len() < ID_PAGE {
            break;
        }
    }
    if found > 0 {
        tracing::info!(
            tasks = found,
            to_run = queue.len(),
            crashed,
            "unfinished tasks taken up"
        );
    }
    queue.sort_unstable();
    start_in_order(inner, queue).await;
    Ok(())
}

/// Runners queue what they cannot start at once, so the order of the starts is that of the queue.
async fn start_in_order(inner: &Arc<Inner>, queue: Vec<Queued>) {
    let turn = Arc::new(Semaphore::new(1));
    for (_, id) in queue {
        // The semaphore is never closed; the permit is given back once the run is started.
        let permit = Arc::clone(&turn).acquire_owned().await.ok();
        inner.attend(id, permit);
    }
    let _all_started = turn.acquire().await;
}

impl Inner {
    /// Counts the task and ends it, if it ends; returned if it needs a run.
    async fn revive(self: &Arc<Self>, id: &TaskId, crashed: bool) -> Option<Queued> {
        let task = match self.retry(|| self.load(id)).await {
            Ok((task, _)) => task,
            Err(error) => {
                tracing::error!(task = %id, %error, "an unfinished task cannot be read; it stays as it is stored");
                return None;
            }
        };
        if task.outcome.is_some() {
            return None;
        }
        self.open.add(&task.call.principal);
        let queued = Some((task.created_ms, task.id));
        let now_ms = self.now_ms();
        let command = match revival(&task, crashed, self.settings.patience, now_ms) {
            // Before anyone asks: what expired while nothing ran must not be seen as it was.
            _ if task.is_expired(now_ms) => self.expiry(&task),
            Revival::Rest => return None,
            Revival::Start => return queued,
            Revival::CountAndStart => Command::StartAgain { crashed },
            Revival::Cancel => cancellation(),
            Revival::Fail(reason) => self.failure(reason, &task.call),
        };
        match self.insist(id, |_: &Task| command.clone()).await {
            Ok(task) if task.outcome.is_some() => None,
            Ok(_) => queued,
            Err(error) => {
                tracing::error!(task = %id, %error, "an unfinished task was not taken up; it stays as it is stored");
                None
            }
        }
    }
}
