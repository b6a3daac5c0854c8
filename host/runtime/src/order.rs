//! What an operator may order of a plugin's versions: to go back to an earlier one, to serve the one that is withheld; and which
//! bytes are of no use any more.
//!
//! It must not know how orders arrive.

use crate::history::{Cause, Hold, Served};
use crate::plugin::{PluginError, Version};
use crate::registry::Runtime;
use crate::versions::{Why, Withheld};
use std::collections::HashSet;
use std::sync::Arc;

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// No file, no plugin.
    #[error("there is no plugin {0}: no such file lies in the folder of plugins")]
    NoPlugin(String),
    /// There is a file, and it was never fit to be served.
    #[error(
        "no version of {plugin} was ever served: the file that is there is refused, for {reason}"
    )]
    NeverServed {
        /// Which plugin.
        plugin: String,
        /// Why its file is refused.
        reason: PluginError,
    },
    /// Nothing in the history fits.
    #[error(
        "{plugin} has no version {wanted} in its history; `longshore plugin history {plugin}` shows what it has"
    )]
    NoVersion {
        /// Of which plugin.
        plugin: String,
        /// What was asked for.
        wanted: String,
    },
    /// More than one does.
    #[error("{wanted} is the beginning of several versions; say more of it")]
    Ambiguous {
        /// What was asked for.
        wanted: String,
    },
    /// There is only one.
    #[error("{0} has no earlier version in its history")]
    NoEarlier(String),
    /// It is that one already.
    #[error("{plugin} is serving {version} already")]
    Serving {
        /// Which plugin.
        plugin: String,
        /// Which version.
        version: Version,
    },
    /// The file's own version is served, or cannot be.
    #[error("there is nothing to approve: no version of {0} is withheld")]
    NothingWithheld(String),
    /// Not what the operator has seen.
    #[error("the file of {0} has changed meanwhile; look at it again")]
    Changed(String),
    /// It does not load.
    #[error("the version {version} cannot be served: {reason}")]
    Plugin {
        /// Which.
        version: Version,
        /// Why.
        reason: PluginError,
    },
    /// The order would not outlive a restart.
    #[error("the order was not carried out, for it could not be written down: {0}")]
    Storage(#[from] std::io::Error),
}

impl Runtime {
    /// What was served of a plugin, the latest last.
    ///
    /// # Errors
    /// If nothing ever was: whether there is a file, and what is wrong with it.
    pub fn history(&self, name: &str) -> Result<Vec<Served>, OrderError> {
        let served = self.inner.history.served(name);
        if !served.is_empty() {
            return Ok(served);
        }
        let plugin = name.to_owned();
        Err(match self.snapshot().refused.get(name) {
            Some(refusal) => OrderError::NeverServed {
                plugin,
                reason: refusal.reason.clone(),
            },
            None => OrderError::NoPlugin(plugin),
        })
    }

    /// Serve an earlier version, by the beginning of its text or else the one before the present one, until another version
    /// comes into the file than is there now, or the operator approves that.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub async fn roll_back(&self, name: &str, wanted: Option<&str>) -> Result<Version, OrderError> {
        let snapshot = self.snapshot();
        let no_plugin = || OrderError::NoPlugin(name.to_owned());
        snapshot.in_file(name).ok_or_else(no_plugin)?;
        let served = snapshot.plugins.get(name).map(|plugin| &plugin.version);
        let history = self.inner.history.served(name);
        let target = match wanted {
            Some(wanted) => by_beginning(name, &history, wanted)?,
            None => {
                earlier(&history, served).ok_or_else(|| OrderError::NoEarlier(name.to_owned()))?
            }
        };
        if served == Some(&target) {
            let plugin = name.to_owned();
            return Err(OrderError::Serving {
                plugin,
                version: target,
            });
        }
        let plugin = self.ready(name, &target).await?;
        self.inner.try_publish(|snapshot| {
            let in_file = snapshot.in_file(name).ok_or_else(no_plugin)?;
            let own = in_file.as_ref() == Some(&target);
            let hold = (!own).then(|| Hold {
                version: target.clone(),
                instead_of: in_file.clone(),
            });
            self.inner
                .history
                .note(name, &target, Cause::Rollback, hold)?;
            let refusal = snapshot.refused.get(name).cloned();
            snapshot.install(plugin);
            match (refusal, in_file) {
                (Some(mut refusal), _) => {
                    refusal.still_serving = Some(target.clone());
                    snapshot.refused.insert(name.to_owned(), refusal);
                }
                (None, Some(version)) if !own => {
                    let why = Why::RolledBack;
                    let withheld = Withheld { version, why };
                    snapshot.withheld.insert(name.to_owned(), withheld);
                }
                _ => {}
            }
            Ok(target)
        })
    }

    /// Serve the version that is withheld. With the beginning of a version: that one and no other.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub async fn approve(&self, name: &str, seen: Option<&str>) -> Result<Version, OrderError> {
        let snapshot = self.snapshot();
        let withheld = snapshot.withheld.get(name);
        let withheld = withheld.ok_or_else(|| OrderError::NothingWithheld(name.to_owned()))?;
        let version = &withheld.version;
        let changed = || OrderError::Changed(name.to_owned());
        if seen.is_some_and(|seen| !version.as_str().starts_with(seen)) {
            return Err(changed());
        }
        let plugin = self.ready(name, version).await?;
        self.inner.try_publish(|snapshot| {
            let now = snapshot
                .withheld
                .get(name)
                .map(|withheld| &withheld.version);
            if now != Some(version) {
                return Err(changed());
            }
            self.inner
                .history
                .note(name, version, Cause::Approval, None)?;
            snapshot.install(plugin);
            Ok(version.clone())
        })
    }

    async fn ready(&self, name: &str, version: &Version) -> Result<Arc<crate::Plugin>, OrderError> {
        let plugin = self.inner.plugin_by_version(name, version).await;
        plugin.map_err(|reason| OrderError::Plugin {
            version: version.clone(),
            reason,
        })
    }

    /// Versions whose bytes are kept, and that nobody here needs: not served, nor withheld, nor held by a call, nor in the
    /// history.
    ///
    /// # Errors
    /// If the folder of components cannot be read.
    pub fn unneeded_versions(&self) -> std::io::Result<HashSet<Version>> {
        let mut kept = self.inner.content.versions()?;
        let needed = self.needed_versions();
        kept.retain(|version| !needed.contains(version));
        Ok(kept)
    }

    /// Let go of compiled components beyond what the cache may hold, once all that lay in the directory at the start has been
    /// looked at. What is needed here stays, and what any host used within the last hour.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file not be removed.
    pub fn sweep_compiled(&self) -> std::io::Result<()> {
        if !self.snapshot().settled {
            return Ok(());
        }
        self.inner.loader.sweep_cache(&self.needed_versions())
    }

    fn needed_versions(&self) -> HashSet<Version> {
        let snapshot = self.snapshot();
        let served = snapshot.plugins.values().map(|plugin| &plugin.version);
        let withheld = snapshot.withheld.values().map(|withheld| &withheld.version);
        let mut needed: HashSet<Version> = served.chain(withheld).cloned().collect();
        needed.extend(self.inner.history.versions());
        needed.extend(self.inner.versions_in_use());
        needed
    }

    /// Keep the bytes of a version no longer, unless somebody here has begun to need them.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn forget_version(&self, version: &Version) -> std::io::Result<()> {
        let is_unneeded = || !self.needed_versions().contains(version);
        self.inner.content.forget(version, is_unneeded)
    }
}

fn by_beginning(plugin: &str, history: &[Served], wanted: &str) -> Result<Version, OrderError> {
    let fitting: HashSet<_> = history
        .iter()
        .map(|served| &served.version)
        .filter(|version| version.as_str().starts_with(wanted))
        .collect();
    let wanted = wanted.to_owned();
    let mut fitting = fitting.into_iter();
    match (fitting.next(), fitting.next()) {
        (Some(version), None) => Ok(version.clone()),
        (Some(_), Some(_)) => Err(OrderError::Ambiguous { wanted }),
        (None, _) => Err(OrderError::NoVersion {
            plugin: plugin.to_owned(),
            wanted,
        }),
    }
}

/// The version before the present one. Going back twice goes back two steps: what was gone back from is not "before".
fn earlier(history: &[Served], served: Option<&Version>) -> Option<Version> {
    let Some(served) = served else {
        return history.last().map(|last| last.version.clone());
    };
    let is_own = |entry: &Served| entry.version == *served;
    let came = history
        .iter()
        .rposition(|entry| is_own(entry) && entry.by != Cause::Rollback)
        .or_else(|| history.iter().position(is_own));
    let before = history[..came.unwrap_or(history.len())].iter().rev();
    let mut before = before.filter(|entry| !is_own(entry));
    before.next().map(|entry| entry.version.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[(u8, Cause)]) -> Vec<Served> {
        let served = |(of, by): &(u8, Cause)| Served {
            version: Version::of(&[*of]),
            since_ms: 0,
            by: *by,
        };
        entries.iter().map(served).collect()
    }

    #[test]
    fn the_earlier_one_is_never_what_was_gone_back_from() {
        use Cause::{File, Rollback};
        let of = |entries: &[(u8, Cause)], served: u8| {
            earlier(&history(entries), Some(&Version::of(&[served])))
        };
        let version = |of: u8| Some(Version::of(&[of]));
        assert_eq!(of(&[(1, File)], 1), None);
        assert_eq!(of(&[(1, File), (2, File)], 2), version(1));
        assert_eq!(
            of(&[(1, File), (2, File), (3, File), (2, Rollback)], 2),
            version(1)
        );
        assert_eq!(of(&[(1, File), (2, File), (1, Rollback)], 1), None);
        assert_eq!(of(&[(1, File), (2, File), (1, File)], 1), version(2));
    }
}
