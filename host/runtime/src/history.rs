//! Which versions of each plugin were served, and which one the operator holds. On disk, so that a restart changes nothing.
//!
//! It must not know what a version is made of, nor what is served now.

use crate::clock;
use crate::files;
use crate::plugin::Version;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;

/// Plugins that are remembered, also when their files are gone; of more, the one that came last longest ago is forgotten.
const PLUGINS_MAX: usize = 1_000;

/// A version that was served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// The version.
    pub version: Version,
    /// Since when, in milliseconds since the epoch.
    pub since_ms: u64,
    /// By whose word.
    pub by: Cause,
}

/// Why a version came to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// It was in the file.
    File,
    /// The operator went back to it.
    Rollback,
    /// The operator approved it.
    Approval,
}

/// A version that is served in the place of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) version: Version,
    /// What was in the file then, as far as it could be read. Any other version there ends the hold.
    pub(crate) instead_of: Option<Version>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    /// The latest last.
    served: Vec<Served>,
    hold: Option<Hold>,
}

/// The history of all plugins.
#[derive(Debug)]
pub(crate) struct History {
    path: PathBuf,
    versions_max: usize,
    pages: Mutex<BTreeMap<String, Page>>,
}

impl History {
    pub(crate) fn open(path: PathBuf, versions_max: usize) -> io::Result<Self> {
        let pages = match files::read_regular(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let message = format!("it is no history of plugins ({error}); remove it, which forgets what could be rolled back to, and start again");
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path,
            versions_max,
            pages: Mutex::new(pages),
        })
    }

    /// What was served of a plugin, the latest last.
    pub(crate) fn served(&self, name: &str) -> Vec<Served> {
        let pages = self.pages.lock();
        pages
            .get(name)
            .map(|page| page.served.clone())
            .unwrap_or_default()
    }

    /// What was served last.
    pub(crate) fn last(&self, name: &str) -> Option<Version> {
        Some(self.pages.lock().get(name)?.served.last()?.version.clone())
    }

    /// What is served whatever the file says.
    pub(crate) fn hold(&self, name: &str) -> Option<Hold> {
        self.pages.lock().get(name)?.hold.clone()
    }

    /// All versions that somebody may go back to.
    pub(crate) fn versions(&self) -> HashSet<Version> {
        let pages = self.pages.lock();
        let served = pages.values().flat_map(|page| &page.served);
        served.map(|served| served.version.clone()).collect()
    }

    /// A version is served from now on, in the place of another one or not. It is on disk when this returns.
    pub(crate) fn note(
        &self,
        name: &str,
        version: &Version,
        by: Cause,
        hold: Option<Hold>,
    ) -> io::Result<()> {
        self.change(name, |page| {
            page.hold = hold;
            if page
                .served
                .last()
                .is_none_or(|last| last.version != *version)
            {
                page.served.push(Served {
                    version: version.clone(),
                    since_ms: clock::unix_ms(),
                    by,
                });
            }
            let surplus = page.served.len().saturating_sub(self.versions_max);
            page.served.drain(..surplus);
        })
    }

    /// What fails leaves everything as it was.
    fn change(&self, name: &str, change: impl FnOnce(&mut Page)) -> io::Result<()> {
        let mut pages = self.pages.lock();
        let before = pages.get(name).cloned();
        let mut page = before.clone().unwrap_or_default();
        change(&mut page);
        if before.as_ref() == Some(&page) {
            return Ok(());
        }
        let mut changed = pages.clone();
        changed.insert(name.to_owned(), page);
        if changed.len() > PLUGINS_MAX {
            let since = |page: &Page| page.served.last().map(|served| served.since_ms);
            let oldest = changed.iter().min_by_key(|(_, page)| since(page));
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                changed.remove(&oldest);
            }
        }
        files::write_whole(&self.path, &serde_json::to_vec_pretty(&changed)?)?;
        *pages = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(of: u8) -> Version {
        Version::of(&[of])
    }

    #[test]
    fn it_is_bounded_and_the_same_after_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.json");
        let history = History::open(path.clone(), 3).unwrap();
        for of in [1, 2, 2, 3, 4] {
            history.note("a", &version(of), Cause::File, None).unwrap();
        }
        let hold = Hold {
            version: version(3),
            instead_of: Some(version(4)),
        };
        history
            .note("a", &version(3), Cause::Rollback, Some(hold.clone()))
            .unwrap();
        let again = History::open(path.clone(), 3).unwrap();
        assert_eq!(again.served("a"), history.served("a"));
        assert_eq!(again.hold("a"), Some(hold));
        assert_eq!(again.last("a"), Some(version(3)));
        let versions: Vec<_> = again
            .served("a")
            .into_iter()
            .map(|served| served.version)
            .collect();
        assert_eq!(versions, [version(3), version(4), version(3)]);
        std::fs::write(&path, "no history").unwrap();
        let error = History::open(path, 3).unwrap_err().to_string();
        assert!(error.contains("start again"), "{error}");
    }
}
