//! Owns `cargo xtask bench`: builds what is measured, optimised, and runs the bench in `bench/`.

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{guests, place, process};

/// The variable by which the bench is told which program to drive.
const BINARY: &str = "LONGSHORE_BIN";

/// Measure; the arguments are the bench's own.
///
/// # Errors
/// If something cannot be built, or does not answer as it must.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    guests::build(&[guests::Language::Rust], Choice::Any)?;
    process::run(&mut process::cargo(&["build", "--release", "--workspace"]))?;
    let mut bench = std::process::Command::new(place::binary("release", "longshore-bench")?);
    bench
        .arg("run")
        .args(arguments)
        .env(BINARY, place::binary("release", "longshore")?);
    process::run(&mut bench)
}
