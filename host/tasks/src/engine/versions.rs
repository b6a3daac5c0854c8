//! Which versions of plugins unfinished tasks need.

use std::collections::BTreeSet;

use super::{Engine, EngineError, ID_PAGE};

impl Engine {
    /// The versions that unfinished tasks belong to. It reads each of these tasks, so it is for now and then.
    pub async fn versions_in_use(&self) -> Result<BTreeSet<String>, EngineError> {
        let (mut versions, mut after) = (BTreeSet::new(), None);
        loop {
            let page = self.inner.ports.store.unfinished(after, ID_PAGE).await?;
            for id in &page {
                match self.inner.load(id).await {
                    Ok((task, _)) => {
                        versions.insert(task.call.version);
                    }
                    // It ended meanwhile, and its time is over.
                    Err(EngineError::NotFound) => {}
                    Err(error) => return Err(error),
                }
            }
            after = page.last().copied();
            if page.len() < ID_PAGE {
                return Ok(versions);
            }
        }
    }
}
