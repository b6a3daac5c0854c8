//! Asks a plugin for its resources again when it says that they have changed.
//!
//! It must not know who listens.

use crate::admission::Patience;
use crate::contract::ResourceEntry;
use crate::news::Desk;
use crate::plugin::Plugin;
use crate::registry::Inner;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// How long a list that is asked again waits for a slot before other news of its plugin has its turn.
const SLOT_WAIT: Duration = Duration::from_secs(2);

#[async_trait]
impl Desk for Inner {
    /// What fails leaves the list as it was: its plugin may say again that it has changed.
    async fn relist(&self, name: &str) -> bool {
        let Some(plugin) = self.current().plugins.get(name).cloned() else {
            return true;
        };
        if !plugin.exports.has_resources() {
            return true;
        }
        // A list runs a guest, so it takes a slot as a run does.
        let slot = self.admission.admit(name, Patience::AsLongAsItTakes);
        let Ok(Ok(_slot)) = tokio::time::timeout(SLOT_WAIT, slot).await else {
            return false;
        };
        match self.loader.relist(&plugin).await {
            Ok(resources) if same(&resources, &plugin.resources) => {}
            Ok(resources) => self.replace_resources(&plugin, resources),
            Err(error) => {
                tracing::warn!(plugin = %name, %error, "the resources of a plugin could not be listed again");
            }
        }
        true
    }
}

impl Inner {
    fn replace_resources(&self, plugin: &Plugin, resources: Vec<ResourceEntry>) {
        let relisted = Arc::new(Plugin {
            resources,
            ..plugin.clone()
        });
        self.publish(|snapshot| {
            // The file may have been replaced meanwhile.
            if let Some(served) = snapshot.plugins.get_mut(&plugin.name)
                && served.version == plugin.version
            {
                *served = relisted;
            }
        });
    }
}

/// The types of the contract have no equality, but one way to be written.
fn same(one: &[ResourceEntry], other: &[ResourceEntry]) -> bool {
    matches!(
        (rmp_serde::to_vec(one), rmp_serde::to_vec(other)),
        (Ok(one), Ok(other)) if one == other
    )
}
