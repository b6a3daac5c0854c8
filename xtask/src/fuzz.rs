//! Owns `cargo xtask fuzz`: the fuzz targets, guided by coverage, from the kept inputs on; and random guests, seed by seed. The tests
//! run the same checks over the kept inputs and variants of them, and over some seeds; this looks further, for as long as one likes.
//! One of the checks is a short run of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::clock::Stopwatch;
use crate::host::{self, Profile};
use crate::toolchain::Choice;
use crate::{guests, place, process, strangers, tools};

/// What the command line may say.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Targets to run; without any, all
    targets: Vec<String>,
    /// How long each is run, in seconds; building takes minutes, once
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// The first seed of the target `guests`
    #[arg(long, default_value_t = SEEDS_OF_A_RUN)]
    seed: u64,
}

/// The targets that are programs of their own, in `fuzz/targets`.
const PROGRAMS: [&str; 3] = ["message", "headers", "lines"];

/// The one that is no program of its own, but a test with other seeds.
const GUESTS: &str = "guests";
const TEST: &str = "fuzz::";

/// How the test is told its first seed, and how many it uses at most.
const SEED: &str = "LONGSHORE_TESTS_FUZZ_SEED";
const SEEDS_OF_A_RUN: u64 = 100;

/// Size of an input, in bytes: more finds nothing that less does not.
const INPUT_BYTES_MAX: u32 = 4_096;

/// How long the check runs each program, in seconds.
const CHECK_SECONDS: u32 = 10;

/// What the check has of its own: a seed, so that what it finds once it finds again, and few words.
const CHECK_FLAGS: [&str; 3] = ["-seed=1", "-verbosity=0", "-print_final_stats=1"];

/// The manifest of the programs.
pub(crate) fn manifest() -> PathBuf {
    place::root().join("fuzz/Cargo.toml")
}

/// Run the targets. New inputs go to `target/fuzz`; one that breaks something is named.
///
/// # Errors
/// If a target cannot be built, or breaks.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let known = |target: &str| target == GUESTS || PROGRAMS.contains(&target);
    ensure!(
        arguments.targets.iter().all(|target| known(target)),
        "the targets are {}, {GUESTS}",
        PROGRAMS.join(", ")
    );
    let chosen = |target: &str| {
        let targets = &arguments.targets;
        targets.is_empty() || targets.iter().any(|chosen| chosen == target)
    };
    for target in PROGRAMS.into_iter().filter(|target| chosen(target)) {
        let found = place::target().join("fuzz").join(target);
        process::run(&mut program(target, arguments.seconds, &found)?)?;
    }
    if chosen(GUESTS) {
        guests_from(arguments.seed, arguments.seconds)?;
    }
    Ok(())
}

/// Run each program for a short time, from the kept inputs alone.
///
/// # Errors
/// If one cannot be built, or breaks.
pub(crate) fn check() -> Result<()> {
    for target in PROGRAMS {
        // What an earlier check found would make this one another.
        let found = place::target().join("fuzz/check").join(target);
        if found.exists() {
            fs::remove_dir_all(&found).with_context(|| format!("emptying {}", found.display()))?;
        }
        process::run(program(target, CHECK_SECONDS, &found)?.args(CHECK_FLAGS))?;
    }
    Ok(())
}

/// The command that builds and runs a program, and puts new inputs into the folder.
fn program(target: &str, seconds: u32, found: &Path) -> Result<Command> {
    fs::create_dir_all(found)?;
    let mut cargo = Command::new(tools::cargo_fuzz()?);
    cargo
        // No sanitizer: there is no unsafe code to watch, and the stable compiler has none.
        .args(["fuzz", "run", "--sanitizer", "none"])
        // Without it the profile's number is not heeded, and the build takes much longer.
        .args(["--codegen-units", "16", "--target-dir"])
        .arg(place::target().join("fuzz-build"))
        .arg(target)
        .args([found, &place::root().join("fuzz/corpus").join(target)])
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .current_dir(place::root());
    Ok(cargo)
}

/// Run the test of random guests with seed after seed, until the time is over.
fn guests_from(first: u64, seconds: u32) -> Result<()> {
    guests::build(&[guests::Language::Rust], Choice::Any)?;
    host::build(Profile::Debug)?;
    let watch = Stopwatch::start();
    let mut outcome = Ok(());
    for seed in (first..).step_by(SEEDS_OF_A_RUN as usize) {
        if outcome.is_err() || watch.elapsed().as_secs() >= seconds.into() {
            break;
        }
        strangers::write(seed)?;
        let mut cargo = process::cargo(&["test", "--workspace", "--test", "all", "--", TEST]);
        outcome = process::run(cargo.env(SEED, seed.to_string()))
            .with_context(|| format!("seed {seed} (cargo xtask fuzz guests --seed {seed})"));
    }
    // The tests have theirs again.
    strangers::write(strangers::SEED)?;
    outcome
}
