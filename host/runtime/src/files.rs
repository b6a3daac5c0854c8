//! Files that must be whole or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// A folder that only we can enter.
///
/// # Errors
/// If it cannot be made.
pub fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// When a file is on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnDisk {
    /// Before it has its name.
    Now,
    /// Some time; if the machine crashes before, its name may stand for anything.
    Later,
}

/// Write a file that is whole under its name, on disk, when this returns.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    publish(path, bytes, OnDisk::Now, |partial| {
        fs::rename(partial, path)
    })
}

/// Write a file that is whole under its name when this returns, but may not be after a crash of the machine: for what its reader
/// checks, and can make again.
pub(crate) fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    publish(path, bytes, OnDisk::Later, |partial| {
        fs::rename(partial, path)
    })
}

/// The same, unless the name is taken.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    publish(path, bytes, OnDisk::Now, |partial| {
        fs::hard_link(partial, path)?;
        fs::remove_file(partial)
    })
}

fn publish(
    path: &Path,
    bytes: &[u8],
    on_disk: OnDisk,
    give_name: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut unique = [0u8; 8];
    getrandom::fill(&mut unique).map_err(io::Error::other)?;
    let partial = folder.join(format!(".{}.partial", hex::encode(unique)));
    let written = write(&partial, bytes, on_disk).and_then(|()| give_name(&partial));
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&partial);
    }
    written?;
    match on_disk {
        OnDisk::Now => File::open(folder)?.sync_all(),
        OnDisk::Later => Ok(()),
    }
}

fn write(path: &Path, bytes: &[u8], on_disk: OnDisk) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    match on_disk {
        OnDisk::Now => file.sync_all(),
        OnDisk::Later => Ok(()),
    }
}

/// Read a secret key of 32 bytes, or make it. Of several processes that make it at once, one wins.
///
/// # Errors
/// If the file is no key, or cannot be read or made.
pub fn read_or_make_key(path: &Path) -> io::Result<[u8; 32]> {
    if !path.exists() {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        match write_new(path, &key) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    fs::read(path)?.try_into().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} is no key of 32 bytes; remove it and start again",
                path.display()
            ),
        )
    })
}
