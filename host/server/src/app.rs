//! What a request needs, wired together once at the start.

use crate::catalogue::Catalogue;
use crate::config::Config;
use crate::seal::Sealer;
use arc_swap::ArcSwap;
use longshore_runtime::Runtime;
use longshore_tasks::{Clock, Engine};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The parts that serve requests.
#[derive(Debug)]
pub(crate) struct App {
    /// What the operator chose.
    pub(crate) config: Config,
    /// Plugins.
    pub(crate) runtime: Runtime,
    /// Tasks.
    pub(crate) engine: Engine,
    /// Time, the same as the engine's.
    pub(crate) clock: ClockHandle,
    /// Seals what clients carry from round to round.
    pub(crate) sealer: Sealer,
    /// What is served; one value at a time.
    pub(crate) catalogue: ArcSwap<Catalogue>,
    /// Whether requests are taken: after the start, until the shutdown.
    pub(crate) ready: AtomicBool,
}

/// A clock that can be printed.
#[derive(Clone)]
pub(crate) struct ClockHandle(pub(crate) Arc<dyn Clock>);

impl std::fmt::Debug for ClockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClockHandle").finish_non_exhaustive()
    }
}
