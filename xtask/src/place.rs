//! Owns where things lie: the checkout, its build outputs, and the cache that outlives a checkout.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The root of the checkout.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Where built components and the data of trial runs go, whatever folder cargo builds in.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// A binary of this workspace, in the folder that cargo built this program in.
pub(crate) fn binary(profile: &str, name: &str) -> Result<PathBuf> {
    let own = env::current_exe().context("finding the folder that cargo builds in")?;
    let builds = own
        .ancestors()
        .nth(2)
        .with_context(|| format!("{} is not in a build folder", own.display()))?;
    Ok(builds.join(profile).join(name))
}

/// A folder for tools that take minutes to install, shared by all checkouts of this user.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => env::home_dir()
            .context("no home folder: set XDG_CACHE_HOME")?
            .join(".cache"),
    };
    Ok(base.join("longshore"))
}

/// The file that a plain command name stands for.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// The search path, with these folders before all others.
///
/// # Errors
/// If one of them cannot be in a search path.
pub(crate) fn path_with(folders: &[&Path]) -> Result<OsString> {
    let mut folders: Vec<_> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    if let Some(path) = env::var_os("PATH") {
        folders.extend(env::split_paths(&path));
    }
    env::join_paths(folders).context("extending PATH")
}
