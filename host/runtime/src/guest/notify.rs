//! The import `notify`: what a guest tells of changes.
//!
//! It must not know who listens.

use super::Guest;
use crate::contract::generated::longshore::plugin::notify;
use crate::news::NewsKind;
use wasmtime::Result;

/// Resources that one run may call updated, a second; the rest is dropped. A run that changes more should say that the list
/// has changed. It keeps a run from filling its plugin's room for news alone.
pub(super) const UPDATES_PER_SECOND: u32 = 100;

/// A URI that is longer is no resource's that a client could subscribe to.
const URI_BYTES_MAX: usize = 4 << 10;

impl notify::Host for Guest {
    fn tools_changed(&mut self) -> Result<()> {
        self.tell(NewsKind::Tools);
        Ok(())
    }

    fn prompts_changed(&mut self) -> Result<()> {
        self.tell(NewsKind::Prompts);
        Ok(())
    }

    fn resources_changed(&mut self) -> Result<()> {
        self.tell(NewsKind::Resources);
        Ok(())
    }

    fn resource_updated(&mut self, uri: String) -> Result<()> {
        if uri.len() > URI_BYTES_MAX || !self.updates.admits() {
            tracing::debug!(plugin = %self.seat.plugin, "a resource was called updated too often, or has too long a URI");
            return Ok(());
        }
        self.tell(NewsKind::ResourceUpdated(uri));
        Ok(())
    }
}

impl Guest {
    /// What was told in the recorded stretch is not told again.
    fn tell(&self, kind: NewsKind) {
        if self.repeats_itself() {
            return;
        }
        if let Some(newsroom) = &self.seat.rules.newsroom {
            newsroom.report(&self.seat.plugin, kind);
        }
    }
}
