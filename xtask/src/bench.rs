//! Owns `cargo xtask bench` and `cargo xtask counts`: builds what is measured, and runs the bench in `bench/`.

use anyhow::Result;

use crate::host::{self, Profile};
use crate::toolchain::Choice;
use crate::{guests, place, process, tools};

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

/// Count the instructions of the hot paths, in the build that the tests drive, and compare them with those that are kept; or
/// keep them.
///
/// # Errors
/// If something cannot be built, or takes more instructions than are kept.
pub(crate) fn counts(write: bool) -> Result<()> {
    tools::valgrind()?;
    guests::build(&[guests::Language::Rust], Choice::Any)?;
    let host = host::build(Profile::Debug)?;
    let mut bench = std::process::Command::new(place::binary("debug", "longshore-bench")?);
    bench
        .arg("counts")
        .arg(place::root().join("bench/counts.json"))
        .args(write.then_some("--write"))
        .env(BINARY, host);
    process::run(&mut bench)
}
