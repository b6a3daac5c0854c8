//! Whether the store in a folder is still being made for the first time.
//!
//! A store is made of several files, and a power cut in between leaves some of them by half, which is hard to tell from damage.
//! So the file `making` is in the folder before the first of them, and leaves it after the last, `format`, is safe. Nobody is
//! answered before that: what is found beside a `making` without a `format` held nothing, and is made anew.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::engine::StoreEngine;
use crate::folder::{format_path, sync_dir};
use crate::{mark, regular};

fn path(dir: &Path) -> PathBuf {
    dir.join("making")
}

/// Whether what is in the folder is a store that was begun and not finished.
pub(crate) fn is_cut_short(dir: &Path) -> bool {
    path(dir).exists() && !format_path(dir).exists()
}

/// Removes what is left of a store that was begun and not finished.
pub(crate) fn start_over(dir: &Path) -> io::Result<()> {
    if !is_cut_short(dir) {
        return Ok(());
    }
    tracing::info!(dir = %dir.display(), "the task store was cut short when it was made; it held nothing and is made anew");
    for engine in StoreEngine::ALL {
        absent(fs::remove_dir_all(engine.folder(dir)))?;
    }
    absent(fs::remove_file(mark::path(dir)))?;
    sync_dir(dir)
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
    if !path(dir).exists() {
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
