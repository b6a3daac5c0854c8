//! Owns `cargo xtask fuzz`: the fuzz targets, guided by coverage, from the kept inputs on; and random guests, seed by seed. The tests
//! run the same checks over the kept inputs and variants of them, and over some seeds; this looks further, for as long as one likes.

use std::fs;

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

/// All targets.
const TARGETS: [&str; 4] = ["message", "headers", "lines", GUESTS];

/// The one that is no program of its own, but a test with other seeds.
const GUESTS: &str = "guests";
const TEST: &str = "fuzz::";

/// How the test is told its first seed, and how many it uses at most.
const SEED: &str = "LONGSHORE_TESTS_FUZZ_SEED";
const SEEDS_OF_A_RUN: u64 = 100;

/// Size of an input, in bytes: more finds nothing that less does not.
const INPUT_BYTES_MAX: u32 = 4_096;

/// Run the targets. New inputs go to `target/fuzz`; one that breaks something is named.
///
/// # Errors
/// If a target cannot be built, or breaks.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let known = |target: &String| TARGETS.contains(&target.as_str());
    let unknown = arguments.targets.iter().find(|target| !known(target));
    ensure!(unknown.is_none(), "the targets are {}", TARGETS.join(", "));
    let chosen: Vec<&str> = if arguments.targets.is_empty() {
        TARGETS.to_vec()
    } else {
        arguments.targets.iter().map(String::as_str).collect()
    };
    for target in chosen {
        if target == GUESTS {
            guests_from(arguments.seed, arguments.seconds)?;
            continue;
        }
        let program = tools::cargo_fuzz()?;
        let found = place::target().join("fuzz").join(target);
        fs::create_dir_all(&found)?;
        let kept = place::root().join("fuzz/corpus").join(target);
        let mut cargo = std::process::Command::new(&program);
        cargo
            // No sanitizer: there is no unsafe code to watch, and the stable compiler has none.
            .args(["fuzz", "run", "--sanitizer", "none", target])
            .args([&found, &kept])
            .arg("--")
            .arg(format!("-max_total_time={}", arguments.seconds))
            .arg(format!("-max_len={INPUT_BYTES_MAX}"))
            .current_dir(place::root());
        process::run(&mut cargo)?;
    }
    Ok(())
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
