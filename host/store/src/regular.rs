//! Opens files that must be regular ones: a pipe or a device in the place of one would keep the start waiting for as long as it
//! likes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file, if it is a regular one. Never waits.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Looked at twice: to open a device may do something already, and what is there may change before it is opened.
    expect(path)?;
    let file = options
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(is_none(path))
}

/// All of a file, if it is a regular one.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OpenOptions::new().read(true))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is there is a regular file, or nothing is. For who must leave the opening to others.
pub(crate) fn expect(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(found) if !found.is_file() => Err(is_none(path)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn is_none(path: &Path) -> io::Error {
    io::Error::other(format!("{} is no regular file", path.display()))
}
