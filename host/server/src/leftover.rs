//! The bytes of versions that nobody needs any more. What is served, withheld or in the history the runtime knows, what tasks need
//! the engine; beside that a plain call may come back with an answer, for as long as its state is good.
//!
//! It must not know where the bytes are.

use crate::app::App;
use longshore_runtime::Version;
use std::collections::HashMap;

/// Versions that nobody needs, and since when, in milliseconds since the epoch.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    since_ms: HashMap<Version, u64>,
}

impl Leftovers {
    /// Remove what nobody has needed for so long that nobody will. What fails is tried again by the next sweep.
    pub(crate) async fn sweep(&mut self, app: &App, now_ms: u64) {
        if let Err(error) = app.runtime.sweep_compiled() {
            tracing::warn!(%error, "the compile cache could not be kept within its bound");
        }
        let unneeded = match app.runtime.unneeded_versions() {
            Ok(unneeded) => unneeded,
            Err(error) => {
                tracing::warn!(%error, "the components that are kept could not be listed");
                return;
            }
        };
        self.since_ms
            .retain(|version, _| unneeded.contains(version));
        for version in unneeded {
            self.since_ms.entry(version).or_insert(now_ms);
        }
        let kept_ms = app.config.host.input_time_ms;
        let is_over = |since_ms: &u64| now_ms.saturating_sub(*since_ms) > kept_ms;
        if !self.since_ms.values().any(is_over) {
            return;
        }
        let tasks = match app.engine.versions_in_use().await {
            Ok(tasks) => tasks,
            Err(error) => {
                tracing::warn!(%error, "what tasks need could not be read; no component is removed");
                return;
            }
        };
        let known = self.since_ms.iter_mut();
        for (version, since_ms) in known.filter(|(_, since_ms)| is_over(since_ms)) {
            if tasks.contains(version.as_str()) {
                // To look at all tasks takes a while, with many of them: not again by the next sweep.
                *since_ms = now_ms;
                continue;
            }
            match app.runtime.forget_version(version) {
                Ok(()) => tracing::debug!(%version, "the bytes of a version are kept no longer"),
                Err(error) => {
                    tracing::warn!(%version, %error, "the bytes of a version could not be removed");
                }
            }
        }
    }
}
