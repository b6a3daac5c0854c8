//! Effects: what a call does to the world, and what cannot be done twice.
//!
//! From its first effect on a call cannot be run again from a record. Whoever holds the run is told before the effect happens,
//! and says when it may: what must survive a crash is durable by then.

use super::Guest;
use crate::record::Diverged;
use crate::run::{Shared, Step};
use std::sync::Arc;
use tokio::sync::mpsc;
use wasmtime::Result;

/// An effect that may happen once it is permitted.
pub(crate) struct Permission {
    /// For the first effect of a run: the holder has to be told.
    tell: Option<mpsc::Sender<Step>>,
    shared: Arc<Shared>,
}

impl Permission {
    /// Wait until the effect may happen. If the holder is gone, so will be the guest that waits.
    pub(crate) async fn granted(self) {
        if let Some(steps) = self.tell {
            let _ = steps.send(Step::Effect).await;
        }
        self.shared.permission().await;
    }
}

impl Guest {
    /// Pin the call, for an effect comes next. `None`: there is no holder that could be told, or the call has its result.
    pub(super) fn pin(&mut self) -> Result<Option<Permission>> {
        if self.repeats_itself() {
            // No record goes beyond an effect.
            return Err(Diverged::at_effect().into());
        }
        let is_first = !self.acted;
        if is_first && (self.seat.listing || self.seat.shared.is_completed()) {
            return Ok(None);
        }
        self.acted = true;
        self.tape.stop();
        Ok(Some(Permission {
            tell: is_first.then(|| self.seat.steps.clone()),
            shared: self.seat.shared.clone(),
        }))
    }
}
