//! What lies in the directory of plugins: its component files, and what tells two states of one apart.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What tells two states of a file apart. The change time moves even when a tool sets an old modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: (u64, u64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }

    /// Of the file as it is now.
    pub(super) fn now(path: &Path) -> Option<Self> {
        // Follows links; one that leads nowhere is a file too, and is refused as such.
        let found = std::fs::metadata(path).or_else(|_| std::fs::symlink_metadata(path));
        Some(Self::of(&found.ok()?))
    }
}

/// One look at a folder.
#[derive(Debug)]
pub(super) struct Listing {
    /// Which folder it is: another one may come under the same name.
    pub(super) folder: (u64, u64),
    /// What is a component by its name, also what is no file: that is refused by its name, and never opened.
    pub(super) files: BTreeMap<PathBuf, Stamp>,
}

/// Whether a file would be a plugin. Hidden files are none: tools write under such names before they rename.
pub(super) fn is_component(path: &Path) -> bool {
    let hidden = path
        .file_name()
        .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden
        && path
            .extension()
            .is_some_and(|extension| extension == "wasm")
}

pub(super) fn list(folder: &Path) -> io::Result<Listing> {
    let metadata = std::fs::metadata(folder)?;
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !is_component(&path) {
            continue;
        }
        // A file that vanished meanwhile is simply not there.
        if let Some(stamp) = Stamp::now(&path) {
            files.insert(path, stamp);
        }
    }
    Ok(Listing {
        folder: (metadata.dev(), metadata.ino()),
        files,
    })
}
