//! Owns `cargo xtask test`: the checks, their order, and the account of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::clock::Stopwatch;
use crate::host::{self, Profile};
use crate::toolchain::Choice;
use crate::{bench, clients, conformance, fuzz, guests, place, process, strangers, tools};

/// One check. The order is the one they run in: what is quick to fail goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Check {
    /// Each lock file fits its manifests
    Locks,
    /// Formatting
    Fmt,
    /// Lints, warnings are errors
    Clippy,
    /// Licences, banned and foreign dependencies
    Deny,
    /// Every guest builds
    Guests,
    /// All tests
    Tests,
    /// The outer tests once more, with guests that leave memory whenever they ask
    Replay,
    /// The hot paths take no more instructions than are kept
    Counts,
    /// Documentation builds without warnings
    Docs,
    /// The official conformance suite
    Conformance,
    /// The fuzz targets, for some seconds each
    Fuzz,
}

/// Run the named checks, or all if none is named, up to the first that fails.
///
/// # Errors
/// Names the check that failed.
pub(crate) fn run(only: &[Check]) -> Result<()> {
    let chosen = |check: &Check| only.is_empty() || only.contains(check);
    let all = Check::value_variants();
    let watch = Stopwatch::start();
    let mut account = Vec::new();
    let mut failure = None;
    for check in all.iter().filter(|check| chosen(check)) {
        let name = check.name();
        println!("\n== {name}");
        let step = Stopwatch::start();
        let outcome = check.run();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("== {name}: {word} in {step}");
        account.push(format!("  {name:12} {word:7} {step}"));
        if let Err(error) = outcome {
            failure = Some((name, error));
            break;
        }
    }
    println!("\nchecks, {watch} in all");
    for line in &account {
        println!("{line}");
    }
    for check in all.iter().filter(|check| chosen(check)).skip(account.len()) {
        println!("  {:12} not run", check.name());
    }
    match failure {
        None => Ok(()),
        Some((name, error)) => Err(error.context(format!("the check `{name}` failed"))),
    }
}

impl Check {
    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self) -> Result<()> {
        match self {
            Self::Locks => locks(),
            Self::Fmt => each_workspace(&["fmt", "--all", "--check"]),
            Self::Clippy => clippy(),
            Self::Deny => deny(),
            Self::Guests => guests::build(&[], Choice::Any),
            Self::Tests => tests(),
            Self::Replay => replay(),
            Self::Counts => bench::counts(false),
            Self::Docs => docs(),
            Self::Conformance => conformance::run(&conformance::Arguments::default()),
            Self::Fuzz => fuzz::check(),
        }
    }
}

/// The manifests of the workspaces beside the host's that do without its dependencies.
fn small() -> Vec<PathBuf> {
    let mut manifests = guests::manifests();
    manifests.push(strangers::manifest());
    manifests
}

/// The manifests of all workspaces beside the host's. The fuzz targets are a line each; to lint, test or document them would be to
/// compile the guests' engine once more, and what they call is linted and tested with the host.
fn beside() -> Vec<PathBuf> {
    let mut manifests = small();
    manifests.push(fuzz::manifest());
    manifests
}

/// Run a cargo command in the workspace of the host and in those beside it.
fn each_workspace(arguments: &[&str]) -> Result<()> {
    process::run(&mut process::cargo(arguments))?;
    for manifest in beside() {
        let mut cargo = process::cargo(&arguments[..1]);
        cargo.arg("--manifest-path").arg(manifest);
        process::run(cargo.args(&arguments[1..]))?;
    }
    Ok(())
}

fn locks() -> Result<()> {
    let root = place::root().join("Cargo.toml");
    for manifest in std::iter::once(root).chain(beside()) {
        let mut cargo = process::cargo(&["metadata", "--format-version=1", "--locked"]);
        process::output(cargo.arg("--manifest-path").arg(manifest))?;
    }
    Ok(())
}

fn clippy() -> Result<()> {
    let lints = ["--", "-D", "warnings"];
    let mut cargo = process::cargo(&["clippy", "--workspace", "--all-targets"]);
    process::run(cargo.args(lints))?;
    for manifest in small() {
        let mut cargo = natively(&["clippy", "--workspace", "--all-targets"], &manifest);
        process::run(cargo.args(lints))?;
    }
    Ok(())
}

/// A cargo command for guests as if they were for this machine: lints, unit tests and
/// documentation see the same code there, and need no compiler for guests.
fn natively(arguments: &[&str], manifest: &Path) -> Command {
    let mut cargo = process::cargo(arguments);
    cargo.arg("--manifest-path").arg(manifest);
    cargo
        .arg("--target-dir")
        .arg(place::target().join("guest-check"));
    cargo
}

/// Advisories are left out: their database is fetched, and a check must not turn red because
/// something was published elsewhere.
fn deny() -> Result<()> {
    let file = tools::cargo_deny()?;
    let check = |manifest: &Path, unused: &str| {
        let lints = ["license-exception-not-encountered", "unused-wrapper"];
        let mut deny = Command::new(&file);
        deny.current_dir(place::root())
            .args(["--workspace", "--manifest-path"])
            .arg(manifest)
            .arg("--config")
            .arg(place::root().join("deny.toml"))
            .args(["check", unused, lints[0], unused, lints[1]])
            .args(["licenses", "bans", "sources"]);
        process::run(&mut deny)
    };
    check(&place::root().join("Cargo.toml"), "--deny")?;
    // Those have other dependencies, so not every entry is theirs.
    for manifest in beside() {
        check(&manifest, "--allow")?;
    }
    Ok(())
}

/// The tests drive the real host with real guests and clients, so all are made ready first.
fn tests() -> Result<()> {
    clients::ready()?;
    tools::strace()?;
    guests::build(&[], Choice::Any)?;
    let host = host::build(Profile::Debug)?;
    if !host.is_file() {
        bail!("{} was not built", host.display());
    }
    // Compiling the engines of JavaScript and Python keeps all cores busy for a while: not beside tests that measure time.
    let engines = [
        "test",
        "--workspace",
        "--test",
        "all",
        "languages::they_load",
    ];
    process::run(&mut process::cargo(&engines))?;
    process::run(&mut process::cargo(&["test", "--workspace"]))?;
    for manifest in small() {
        process::run(&mut natively(&["test", "--workspace"], &manifest))?;
    }
    Ok(())
}

/// Correctness never depends on a guest that lingers: with a linger time of zero every answer goes through a replay.
fn replay() -> Result<()> {
    clients::ready()?;
    // The whole workspace, though one test of it: a single package has other features, and half of it would be built again.
    let mut cargo = process::cargo(&["test", "--workspace", "--test", "all"]);
    process::run(cargo.env("LONGSHORE_TESTS_LINGER_MS", "0"))
}

fn docs() -> Result<()> {
    let arguments = ["doc", "--workspace", "--no-deps"];
    let document = |cargo: &mut Command| process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"));
    document(&mut process::cargo(&arguments))?;
    for manifest in small() {
        document(&mut natively(&arguments, &manifest))?;
    }
    Ok(())
}
