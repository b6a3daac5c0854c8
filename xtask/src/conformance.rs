//! Owns `cargo xtask conformance`: a fresh host with the fixture plugins, the official suite
//! against it, and the verdict.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::clock::Stopwatch;
use crate::host::{self, Host, Log, Profile};
use crate::scenarios::{self, Expected, Scenario};
use crate::suite::{Finding, Suite};
use crate::{guests, place, toolchain};

/// What the command line may say.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Scenarios to run, NAME or NAME@WIRE; without any, all that must pass
    scenarios: Vec<String>,
    /// Run against the release build
    #[arg(long, conflicts_with = "host")]
    release: bool,
    /// Run against this host, and build nothing
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
}

/// How one scenario ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Fail,
    Skip,
}

/// Run the suite.
///
/// # Errors
/// If a scenario fails or warns, or one that must pass checks nothing.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let list = place::root().join("tests/conformance/scenarios.txt");
    let list = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let list = scenarios::parse(&list)?;
    let suite = Suite::ready()?;
    let missing = scenarios::missing(&list, &suite.list()?)?;
    ensure!(
        missing.is_empty(),
        "scenarios.txt does not say what to do with: {}",
        missing.join(", ")
    );
    let binary = binary(arguments)?;
    let folder = place::target().join("conformance");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("emptying {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    let host = start(&binary, &folder)?;
    let chosen = scenarios::chosen(&list, &arguments.scenarios);
    let failed = run_all(&suite, &chosen, &host.url, &folder);
    drop(host);
    ensure!(
        failed == 0,
        "{failed} scenarios failed; results and the host's log are in target/conformance"
    );
    Ok(())
}

fn binary(arguments: &Arguments) -> Result<PathBuf> {
    if let Some(host) = &arguments.host {
        return host
            .canonicalize()
            .with_context(|| format!("finding {}", host.display()));
    }
    guests::build(&[guests::Language::Rust], toolchain::Choice::Any)?;
    host::build(if arguments.release {
        Profile::Release
    } else {
        Profile::Debug
    })
}

/// A host with the fixtures alone, no data, on a free port. Compiled plugins are shared with the
/// tests: they depend on nothing but the plugin.
fn start(binary: &Path, folder: &Path) -> Result<Host> {
    let target = place::target();
    let config = format!(
        "listen = \"127.0.0.1:0\"\nplugins_dir = {:?}\ndata_dir = {:?}\ncompile_cache_dir = {:?}\n",
        target.join("guests/conformance"),
        folder.join("data"),
        target.join("compile-cache"),
    );
    let file = folder.join("longshore.toml");
    fs::write(&file, config).with_context(|| format!("writing {}", file.display()))?;
    let log = folder.join("host.log");
    let file = file.to_string_lossy();
    Host::start(binary, &["--config", &file], Log::Kept(log.clone()))
        .with_context(|| format!("starting the host; its log is {}", log.display()))
}

/// The number of scenarios that failed.
fn run_all(suite: &Suite, chosen: &[Scenario], url: &str, folder: &Path) -> usize {
    let watch = Stopwatch::start();
    let mut verdicts = Vec::new();
    for scenario in chosen {
        let found = suite.run(scenario, url, &folder.join(scenario.word()));
        let (verdict, note) = judge(scenario.expected, &found);
        let word = match verdict {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Skip => "SKIP",
        };
        let wire = scenario.wire.as_deref().unwrap_or("its own wire");
        println!("{word} {} [{wire}] ({note})", scenario.name);
        for line in found.iter().flat_map(|found| &found.complaints) {
            println!("     {line}");
        }
        verdicts.push(verdict);
    }
    let count = |wanted| {
        verdicts
            .iter()
            .filter(|verdict| **verdict == wanted)
            .count()
    };
    let failed = count(Verdict::Fail);
    println!(
        "{} passed, {failed} failed, {} skipped, in {watch}",
        count(Verdict::Pass),
        count(Verdict::Skip)
    );
    failed
}

fn judge(expected: Expected, found: &Result<Finding>) -> (Verdict, String) {
    match found {
        Err(error) => (Verdict::Fail, format!("{error:#}")),
        Ok(found) if !found.complaints.is_empty() => {
            let complaints = found.complaints.len();
            (
                Verdict::Fail,
                format!("{} good, {complaints} bad", found.succeeded),
            )
        }
        Ok(found) if found.succeeded > 0 => (Verdict::Pass, format!("{} checks", found.succeeded)),
        Ok(_) if expected == Expected::Mute => (Verdict::Skip, "the suite checks nothing".into()),
        Ok(_) => (Verdict::Fail, "must pass, but nothing was checked".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(succeeded: usize, complaints: usize) -> Result<Finding> {
        Ok(Finding {
            succeeded,
            complaints: vec!["WARNING x".to_owned(); complaints],
        })
    }

    #[test]
    fn nothing_passes_by_not_being_checked() {
        assert_eq!(judge(Expected::Pass, &found(3, 0)).0, Verdict::Pass);
        assert_eq!(judge(Expected::Pass, &found(0, 0)).0, Verdict::Fail);
        assert_eq!(judge(Expected::Mute, &found(0, 0)).0, Verdict::Skip);
        assert_eq!(judge(Expected::Mute, &found(3, 1)).0, Verdict::Fail);
        let broken = Err(anyhow::anyhow!("no result"));
        assert_eq!(judge(Expected::Mute, &broken).0, Verdict::Fail);
    }
}
