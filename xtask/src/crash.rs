//! Owns `cargo xtask crash`: the test that kills the server under mixed traffic, for as many rounds as one likes.

use anyhow::Result;

use crate::host::{self, Profile};
use crate::toolchain::Choice;
use crate::{guests, process};

/// The test, and the variable by which it is told how long to go on.
const TEST: &str = "storm::";
const ROUNDS: &str = "LONGSHORE_TESTS_CRASH_ROUNDS";

/// Kill the server so many times, and check each time what it had acknowledged.
///
/// # Errors
/// If something cannot be built, or a fact does not hold.
pub(crate) fn run(rounds: u32) -> Result<()> {
    guests::build(&[guests::Language::Rust], Choice::Any)?;
    host::build(Profile::Debug)?;
    let mut cargo = process::cargo(&["test", "--workspace", "--test", "all", "--", "--nocapture"]);
    process::run(cargo.arg(TEST).env(ROUNDS, rounds.to_string()))
}
