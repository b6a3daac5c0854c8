//! Components by content: the bytes of each version that was ever served, so that a task can go on with the version that
//! began it after its file was replaced.

use crate::files;
use crate::plugin::Version;
use std::io;
use std::path::PathBuf;

/// A folder of components, each under the name of its version.
#[derive(Debug)]
pub(crate) struct ContentStore {
    folder: PathBuf,
}

impl ContentStore {
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        files::private_folder(&folder)?;
        Ok(Self { folder })
    }

    fn path(&self, version: &Version) -> PathBuf {
        self.folder.join(format!("{version}.wasm"))
    }

    /// Keep a component. It is on disk when this returns.
    pub(crate) fn keep(&self, version: &Version, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(version);
        if path.exists() {
            return Ok(());
        }
        files::write_whole(&path, bytes)
    }

    /// The bytes of a version, checked against its name.
    pub(crate) fn read(&self, version: &Version) -> io::Result<Vec<u8>> {
        let bytes = std::fs::read(self.path(version))?;
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
