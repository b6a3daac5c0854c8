//! Files that must be whole or not there, and files that must be regular ones.

use rustix::fs::OFlags;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Do what keeps the disk or a core busy for long on a thread on which no request waits. It is done to its end, also if nobody
/// waits for it any more.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

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

/// Open a file for reading, if it is a regular one: a pipe or a device in its place could keep us waiting for as long as it likes.
///
/// # Errors
/// If it cannot be opened, or is none.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Looked at twice: to open a device may do something already, and what is there may change before it is opened.
    expect_regular(&path.metadata()?)?;
    let file = open_flagged(path, OFlags::NONBLOCK)?;
    expect_regular(&file.metadata()?)?;
    Ok(file)
}

fn expect_regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file"))
}

/// All of a file, if it is a regular one.
///
/// # Errors
/// If it is none, or cannot be read.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Open a folder, and nothing else.
pub(crate) fn open_folder(path: &Path) -> io::Result<File> {
    open_flagged(path, OFlags::DIRECTORY)
}

fn open_flagged(path: &Path, flags: OFlags) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = flags.bits().cast_signed();
    options.read(true).custom_flags(flags).open(path)
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
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    read_regular(path).map_err(named)?.try_into().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} is no key of 32 bytes; remove it and start again",
                path.display()
            ),
        )
    })
}
