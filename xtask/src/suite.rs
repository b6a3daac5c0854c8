//! Owns the official conformance suite as a program: its installation, and what it says of a
//! server. The versions are pinned in `tests/conformance/package-lock.json`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::node::Node;
use crate::scenarios::Scenario;
use crate::{place, process};

const PACKAGE: &str = "node_modules/@modelcontextprotocol/conformance";

/// The installed suite.
#[derive(Debug)]
pub(crate) struct Suite {
    node: Node,
    script: PathBuf,
}

/// What the suite found in one scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Checks that succeeded.
    pub(crate) succeeded: usize,
    /// A line for each failure or warning.
    pub(crate) complaints: Vec<String>,
}

impl Suite {
    /// The pinned suite, installed if missing.
    ///
    /// # Errors
    /// If node or npm is missing or fails.
    pub(crate) fn ready() -> Result<Self> {
        let node = Node::ready()?;
        let pins = place::root().join("tests/conformance");
        let home = place::cache()?.join("conformance");
        let script = home.join(PACKAGE).join("dist/index.js");
        node.packages(&pins, &home)?;
        Ok(Self { node, script })
    }

    /// The suite's own list of its scenarios for servers.
    ///
    /// # Errors
    /// If the suite does not run.
    pub(crate) fn list(&self) -> Result<String> {
        process::output(self.command().args(["list", "--server"]))
    }

    /// Run one scenario against a server; what the suite writes is kept in the folder.
    ///
    /// # Errors
    /// If the suite cannot be started or leaves no result.
    pub(crate) fn run(&self, scenario: &Scenario, url: &str, folder: &Path) -> Result<Finding> {
        fs::create_dir_all(folder)?;
        let mut command = self.command();
        command.args(["server", "--url", url, "--scenario", &scenario.name]);
        if let Some(wire) = &scenario.wire {
            command.args(["--spec-version", wire, "--force"]);
        }
        let log = fs::File::create(folder.join("suite.log"))?;
        command
            .arg("-o")
            .arg(folder)
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log);
        // Its exit code says less than its result file: a warning is a success there.
        command.status().context("starting the conformance suite")?;
        let file = result_file(folder)
            .with_context(|| format!("the suite left no result; see {}", folder.display()))?;
        finding(&fs::read_to_string(file)?)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node.program);
        command.arg(&self.script);
        command
    }
}

/// `FOLDER/server-NAME-STAMP/checks.json`.
fn result_file(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path().join("checks.json")));
    files.filter(|file| file.is_file()).max()
}

fn finding(checks: &str) -> Result<Finding> {
    let checks: Value = serde_json::from_str(checks).context("reading the suite's result")?;
    let checks = checks.as_array().context("the suite's result is no list")?;
    ensure!(!checks.is_empty(), "the suite's result is empty");
    let mut finding = Finding::default();
    for check in checks {
        match check["status"].as_str() {
            Some("SUCCESS") => finding.succeeded += 1,
            Some("SKIPPED" | "INFO") => {}
            // What is not known to be harmless is a complaint.
            status => finding.complaints.push(complaint(status, check)),
        }
    }
    Ok(finding)
}

fn complaint(status: Option<&str>, check: &Value) -> String {
    let text = check["errorMessage"].as_str().unwrap_or_default();
    let first: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect();
    format!(
        "{} {}: {first}",
        status.unwrap_or("NO STATUS"),
        check["id"].as_str().unwrap_or("?")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_a_complaint_and_a_skip_is_not() {
        let found = finding(
            r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SKIPPED"},
                {"id":"c","status":"WARNING","errorMessage":"odd\nmore"},
                {"id":"d","status":"FAILURE","errorMessage":"bad"},{"id":"e","status":"NEW"}]"#,
        );
        let found = found.unwrap();
        assert_eq!(found.succeeded, 1);
        assert_eq!(
            found.complaints,
            ["WARNING c: odd", "FAILURE d: bad", "NEW e: "]
        );
    }

    #[test]
    fn no_checks_is_no_result() {
        assert!(finding("[]").is_err());
        assert!(finding("{}").is_err());
    }
}
