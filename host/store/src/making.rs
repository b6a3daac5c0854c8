//! Whether the store in a folder is still being made for the first time.
//!
//! A store is made of several files, and a power cut in between leaves some of them by half, which is hard to tell from damage.
//! So the file `making` is in the folder before the first of them, and leaves it after the last, `format`, is safe. Nobody is
//! answered before that: what is found beside a `making` without a `format` held nothing, and is made anew; unless its mark says
//! that it held something, for then somebody has changed the folder by hand.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::engine::StoreEngine;
use crate::folder::{format_path, sync_dir};
use crate::mark::{self, Mark};
use crate::regular;

fn path(dir: &Path) -> PathBuf {
    dir.join("making")
}

/// Whether there is nothing of a store in the folder, but for a folder of a database that somebody has put there.
pub(crate) fn is_due(dir: &Path) -> bool {
    let no_database = |engine: StoreEngine| !engine.file(dir).exists();
    !format_path(dir).exists()
        && !mark::path(dir).exists()
        && StoreEngine::ALL.into_iter().all(no_database)
}

/// Whether what is in the folder is a store that was begun and not finished.
pub(crate) fn is_cut_short(dir: &Path) -> bool {
    let held = Mark::open(dir).is_ok_and(|(_, groups, _)| groups.is_some_and(|groups| groups > 0));
    path(dir).is_file() && !format_path(dir).exists() && !held
}

/// Removes what is left of a store that was begun and not finished.
pub(crate) fn start_over(dir: &Path) -> io::Result<()> {
    if !is_cut_short(dir) {
        return Ok(());
    }
    tracing::info!(dir = %dir.display(), "the task store was cut short when it was made; it held nothing and is made anew");
    for engine in StoreEngine::ALL {
        empty(&engine.folder(dir))?;
    }
    absent(fs::remove_file(mark::path(dir)))?;
    sync_dir(dir)
}

/// Removes what is in a folder, and not the folder: it may be a link, or another disk.
fn empty(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    sync_dir(folder)
}

/// A store is about to be made; durable when this returns.
pub(crate) fn begin(dir: &Path) -> io::Result<()> {
    regular::open(
        &path(dir),
        OpenOptions::new().write(true).create(true).truncate(false),
    )?;
    sync_dir(dir)
}

/// The store is made; durable when this returns.
pub(crate) fn end(dir: &Path) -> io::Result<()> {
    if !path(dir).is_file() {
        return Ok(());
    }
    fs::remove_file(path(dir))?;
    sync_dir(dir)
}

/// What is not there need not be removed.
fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
