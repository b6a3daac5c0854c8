//! Components by content: the bytes of versions that were served, so that a task can go on with the version that began it after
//! its file was replaced, and an operator can go back to one.
//!
//! It must not know who needs which.

use crate::files;
use crate::plugin::Version;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

/// A folder of components, each under the name of its version.
#[derive(Debug)]
pub(crate) struct ContentStore {
    folder: PathBuf,
    /// Held while a file comes or goes: what somebody finds kept must not go at that moment.
    changing: Mutex<()>,
}

impl ContentStore {
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        files::private_folder(&folder)?;
        Ok(Self {
            folder,
            changing: Mutex::default(),
        })
    }

    fn path(&self, version: &Version) -> PathBuf {
        self.folder.join(format!("{version}.wasm"))
    }

    /// Keep a component. It is on disk when this returns.
    pub(crate) fn keep(&self, version: &Version, bytes: &[u8]) -> io::Result<()> {
        let _alone = self.changing.lock();
        let path = self.path(version);
        if path.is_file() {
            return Ok(());
        }
        files::write_whole(&path, bytes)
    }

    /// What is kept.
    pub(crate) fn versions(&self) -> io::Result<HashSet<Version>> {
        let mut versions = HashSet::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let version = name.to_str().and_then(|name| name.strip_suffix(".wasm"));
            versions.extend(version.and_then(Version::parse));
        }
        Ok(versions)
    }

    /// Keep a version no longer, if it is unneeded still.
    pub(crate) fn forget(
        &self,
        version: &Version,
        is_unneeded: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let _alone = self.changing.lock();
        if is_unneeded() {
            std::fs::remove_file(self.path(version))?;
        }
        Ok(())
    }

    /// The bytes of a version, checked against its name.
    pub(crate) fn read(&self, version: &Version) -> io::Result<Vec<u8>> {
        let bytes = files::read_regular(&self.path(version))?;
        if Version::of(&bytes) == *version {
            return Ok(bytes);
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} does not hold what its name says",
                self.path(version).display()
            ),
        ))
    }
}
