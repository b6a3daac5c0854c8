//! Unfinished tasks go on after a start, by the same path as after an answer.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{EngineError, Inner};

/// How many ids are read at once; a page of a few kilobytes.
const PAGE: usize = 256;

/// Takes up every unfinished task, a bounded number of them at once, and returns when all have
/// been. Those that wait for an answer need no run and are left alone.
pub(super) async fn recover(inner: &Arc<Inner>) -> Result<(), EngineError> {
    let parallel = inner.settings.recovery_parallel.max(1);
    let permits = Arc::new(Semaphore::new(parallel as usize));
    let (mut after, mut found) = (None, 0);
    loop {
        let page = inner.ports.store.unfinished(after, PAGE).await?;
        for id in &page {
            // The semaphore is never closed; the permit is given back once the run is started.
            let permit = Arc::clone(&permits).acquire_owned().await.ok();
            inner.attend(*id, permit);
        }
        found += page.len();
        after = page.last().copied();
        if page.len() < PAGE {
            break;
        }
    }
    let _all_started = permits.acquire_many(parallel).await;
    if found > 0 {
        tracing::info!(tasks = found, "unfinished tasks taken up");
    }
    Ok(())
}
