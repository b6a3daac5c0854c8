//! Owns the writing of random components, for the tests and for `cargo xtask fuzz`.

use std::path::PathBuf;

use anyhow::Result;

use crate::{place, process};

/// The seed of those that the tests look at.
pub(crate) const SEED: u64 = 1;

/// How many are written at once: a few seconds of loading.
const COUNT: u32 = 60;

/// The plugin whose code is replaced, below the target folder.
const PLUGIN: &str = "guests/hostile/no-tools.wasm";

/// The manifest of the program that writes them.
pub(crate) fn manifest() -> PathBuf {
    place::root().join("tests/strangers/Cargo.toml")
}

/// Write them, in the place of those that are there. The plugins for tests must have been built.
///
/// # Errors
/// If the program cannot be built or run.
pub(crate) fn write(seed: u64) -> Result<()> {
    let target = place::target();
    let mut cargo = process::cargo(&["run", "--quiet", "--manifest-path"]);
    cargo
        .arg(manifest())
        .arg("--target-dir")
        .arg(target.join("guest-check"))
        .arg("--")
        .arg(target.join(PLUGIN))
        .arg(target.join("guests/strangers"))
        .args([seed.to_string(), COUNT.to_string()]);
    process::run(&mut cargo)
}
