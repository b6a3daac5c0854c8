//! Owns `cargo xtask fuzz`: the fuzz targets, guided by coverage, from the kept inputs on. The tests run the same checks over the
//! kept inputs and variants of them; this looks further, for as long as one likes.

use std::fs;

use anyhow::{Result, ensure};

use crate::{place, process, tools};

/// What the command line may say.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Targets to run; without any, all
    targets: Vec<String>,
    /// How long each is run, in seconds; building takes minutes, once
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// All targets.
const TARGETS: [&str; 3] = ["message", "headers", "lines"];

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
    let program = tools::cargo_fuzz()?;
    let chosen: Vec<&str> = if arguments.targets.is_empty() {
        TARGETS.to_vec()
    } else {
        arguments.targets.iter().map(String::as_str).collect()
    };
    for target in chosen {
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
