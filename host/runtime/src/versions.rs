//! Which version of a plugin is served: that of its file, unless the operator went back to another one, or it says something
//! new of itself that has to be approved. From a look at a file to the snapshot.
//!
//! It must not know how changes of a file are noticed; that is `watch`.

use crate::definitions::{self, Change};
use crate::history::Cause;
use crate::plugin::{Plugin, PluginError, Version};
use crate::registry::{Inner, Refusal, Snapshot, plugin_name};
use std::path::Path;
use std::sync::Arc;

/// A version that is in its file and could be served, but is not.
#[derive(Clone, Debug)]
pub struct Withheld {
    /// Which.
    pub version: Version,
    /// Why.
    pub why: Why,
}

/// Why a version is withheld.
#[derive(Clone, Debug)]
pub enum Why {
    /// The operator went back to another one.
    RolledBack,
    /// The definitions of the plugin are pinned, and these have changed. None: what was served before is not to be had, so
    /// that they could not be compared.
    Pinned(Vec<Change>),
}

/// What was found in a file.
pub(crate) struct Look {
    name: String,
    /// Of the bytes in it, once they were read.
    version: Option<Version>,
    found: Result<Found, PluginError>,
    /// What was served last, to be served again: nothing is now, and what is in the file is not to be.
    older: Option<Arc<Plugin>>,
}

enum Found {
    /// What is served already.
    Served(Version),
    /// Another version.
    New(Arc<Plugin>),
    /// Another version, which is not to be served. If it was loaded it is held until that is known, so that its bytes stay.
    Withheld(Withheld, Option<Arc<Plugin>>),
}

impl Inner {
    /// Look at a file. The bytes of a component that can be served are kept first.
    pub(crate) async fn look_at(&self, path: &Path) -> Look {
        let name = plugin_name(path);
        let (version, found) = match self.read_component(path).await {
            Ok((version, bytes)) => {
                let found = self.find(&name, &version, bytes).await;
                (Some(version), found)
            }
            Err(error) => (None, Err(error)),
        };
        let older = self.older(&name, version.as_ref(), &found).await;
        Look {
            name,
            version,
            found,
            older,
        }
    }

    async fn find(
        &self,
        name: &str,
        version: &Version,
        bytes: Vec<u8>,
    ) -> Result<Found, PluginError> {
        if self.served_version(name).as_ref() == Some(version) {
            return Ok(Found::Served(version.clone()));
        }
        let withheld = |why, plugin| {
            let version = version.clone();
            Ok(Found::Withheld(Withheld { version, why }, plugin))
        };
        if let Some(hold) = self.history.hold(name)
            && hold.instead_of.as_ref() == Some(version)
        {
            return withheld(Why::RolledBack, None);
        }
        let plugin = Arc::new(self.load(name, version.clone(), &bytes).await?);
        // In use from here on: what is kept already is not removed any more.
        self.remember_former(&plugin);
        self.keep(version, bytes).await?;
        match self.unapproved(&plugin).await {
            Some(changes) => withheld(Why::Pinned(changes), Some(plugin)),
            None => Ok(Found::New(plugin)),
        }
    }

    /// What the operator has to see first. A plugin that was never served has nobody's word to keep.
    async fn unapproved(&self, plugin: &Plugin) -> Option<Vec<Change>> {
        let name = &plugin.name;
        if !self.settings.pins.hold(name) {
            return None;
        }
        let former = self
            .served_version(name)
            .or_else(|| self.history.last(name))?;
        if former == plugin.version {
            return None;
        }
        match self.plugin_by_version(name, &former).await {
            Ok(former) => {
                let changes = definitions::compare(&former, plugin);
                (!changes.is_empty()).then_some(changes)
            }
            Err(error) => {
                tracing::error!(plugin = %name, %error, "what was served before cannot be compared with");
                Some(Vec::new())
            }
        }
    }

    /// What to serve at the start, or when a file comes again, where the file's own version is not to be.
    async fn older(
        &self,
        name: &str,
        version: Option<&Version>,
        found: &Result<Found, PluginError>,
    ) -> Option<Arc<Plugin>> {
        let snapshot = self.current();
        let wanted = match found {
            Ok(Found::Withheld(..)) => true,
            Ok(Found::Served(_) | Found::New(_)) | Err(PluginError::Dangling(_)) => false,
            // A file that was removed and comes back broken brings nothing back.
            Err(_) => !snapshot.settled,
        };
        if !wanted || snapshot.plugins.contains_key(name) {
            return None;
        }
        let last = self.history.last(name)?;
        if Some(&last) == version {
            return None;
        }
        let older = self.plugin_by_version(name, &last).await;
        older
            .inspect_err(|error| {
                tracing::error!(plugin = %name, version = %last, %error, "what was served last cannot be served again");
            })
            .ok()
    }

    /// Serve what was found, or say why not.
    pub(crate) fn take(&self, look: Look) {
        let name = look.name;
        if let Some(older) = look.older {
            tracing::info!(plugin = %name, version = %older.version, "serving the version that was served last");
            self.publish(|snapshot| {
                snapshot.plugins.entry(name.clone()).or_insert(older);
            });
        }
        match look.found {
            Ok(Found::New(plugin)) => self.serve(plugin),
            Ok(Found::Served(version)) => self.recover(&name, &version),
            Ok(Found::Withheld(withheld, _plugin)) => self.withhold(name, withheld),
            Err(reason) => self.refuse(name, look.version, reason),
        }
    }

    fn serve(&self, plugin: Arc<Plugin>) {
        tracing::info!(plugin = %plugin.name, version = %plugin.version, tools = plugin.tools.len(), "serving the plugin");
        self.publish(|snapshot| {
            self.note(&plugin.name, &plugin.version);
            snapshot.install(plugin);
        });
    }

    /// The file holds what is served: what was wrong with it is over, and what held it too.
    fn recover(&self, name: &str, version: &Version) {
        let snapshot = self.current();
        let troubled = snapshot.refused.contains_key(name) || snapshot.withheld.contains_key(name);
        if !troubled && self.history.hold(name).is_none() {
            return;
        }
        self.publish(|snapshot| {
            // It may have been rolled back since the look.
            if let Some(served) = snapshot.plugins.get(name).cloned()
                && served.version == *version
            {
                self.note(name, version);
                snapshot.install(served);
            }
        });
    }

    /// What cannot be written down is served all the same; it is missing in the history.
    fn note(&self, name: &str, version: &Version) {
        if let Err(error) = self.history.note(name, version, Cause::File, None) {
            tracing::error!(plugin = %name, %error, "the history of the plugin could not be written");
        }
    }

    fn withhold(&self, name: String, withheld: Withheld) {
        match &withheld.why {
            Why::RolledBack => {
                tracing::info!(plugin = %name, version = %withheld.version, "the version in the file was rolled back, and is not served");
            }
            Why::Pinned(changes) => {
                let changes: Vec<_> = changes.iter().map(Change::to_string).collect();
                let changes = changes.join(", ");
                tracing::warn!(plugin = %name, version = %withheld.version, changes, "the new file is not served before it is approved: its definitions are pinned");
            }
        }
        self.publish(|snapshot| {
            snapshot.refused.remove(&name);
            snapshot.withheld.insert(name, withheld);
        });
    }

    fn refuse(&self, name: String, version: Option<Version>, reason: PluginError) {
        // A link without its file is a file that was removed.
        if matches!(reason, PluginError::Dangling(_)) && self.served_version(&name).is_some() {
            self.remove(&name);
        }
        let still_serving = self.served_version(&name);
        match &still_serving {
            Some(version) => {
                tracing::error!(plugin = %name, %reason, %version, "the new file is refused; the older version goes on serving");
            }
            None => tracing::error!(plugin = %name, %reason, "the file is refused"),
        }
        self.publish(|snapshot| {
            let refusal = Refusal {
                plugin: name.clone(),
                version,
                reason,
                still_serving,
            };
            snapshot.withheld.remove(&name);
            snapshot.refused.insert(name, refusal);
        });
    }

    /// The plugin's file is gone.
    pub(crate) fn remove(&self, name: &str) {
        tracing::info!(plugin = %name, "the plugin's file is gone; it is not served any more");
        self.publish(|snapshot| {
            snapshot.plugins.remove(name);
            snapshot.refused.remove(name);
            snapshot.withheld.remove(name);
        });
    }

    pub(crate) fn served_version(&self, name: &str) -> Option<Version> {
        let snapshot = self.current();
        let served = snapshot.plugins.get(name);
        served.map(|plugin| plugin.version.clone())
    }
}

impl Snapshot {
    /// Serve a version, and nothing is wrong any more.
    pub(crate) fn install(&mut self, plugin: Arc<Plugin>) {
        self.refused.remove(&plugin.name);
        self.withheld.remove(&plugin.name);
        self.plugins.insert(plugin.name.clone(), plugin);
    }

    /// The version in the file of a plugin; `Some(None)`: it cannot be read.
    pub(crate) fn in_file(&self, name: &str) -> Option<Option<Version>> {
        let withheld = self
            .withheld
            .get(name)
            .map(|withheld| Some(withheld.version.clone()));
        let refused = || Some(self.refused.get(name)?.version.clone());
        let served = || Some(Some(self.plugins.get(name)?.version.clone()));
        withheld.or_else(refused).or_else(served)
    }
}
