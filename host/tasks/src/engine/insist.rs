//! Patience with a store that fails, where a run would be lost for want of one write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{EngineError, Inner};
use crate::decide::Command;
use crate::id::TaskId;
use crate::state::Task;

/// How often a store that fails is tried, and the first wait between, in milliseconds (it doubles:
/// 50 to 800, 1.55 s in all). Longer, and a cancelled guest would go on for too long.
const STORE_TRIES: u32 = 6;
const STORE_WAIT_MS: u64 = 50;

impl Inner {
    /// `transition`, but a store that fails is tried again for a while.
    pub(super) async fn insist(
        self: &Arc<Self>,
        id: &TaskId,
        command: impl Fn(&Task) -> Command + Send + Sync,
    ) -> Result<Task, EngineError> {
        let attempts = AtomicU32::new(0);
        let attempt = || {
            attempts.fetch_add(1, Ordering::Relaxed);
            self.transition(id, &command)
        };
        // On the heap while it lasts: a driver keeps room for all that it may do, there is one for each running task, and what
        // they mostly do is wait.
        let done = Box::pin(self.retry(attempt)).await;
        if attempts.into_inner() > 1 {
            // What an attempt changed that was said to have failed can only be seen now.
            self.tell(id);
        }
        done
    }

    /// The attempt, made again while the store fails; at most a few times.
    pub(super) async fn retry<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let mut wait_ms = STORE_WAIT_MS;
        for _ in 1..STORE_TRIES {
            match attempt().await {
                Err(EngineError::Store(_) | EngineError::Contended) => {}
                done => return done,
            }
            tokio::select! {
                () = self.ports.clock.sleep_until(self.now_ms().saturating_add(wait_ms)) => {}
                () = self.drained.cancelled() => {}
            }
            wait_ms *= 2;
        }
        attempt().await
    }
}
