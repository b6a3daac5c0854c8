//! Owns how other programs are run: said before they start, and named when they fail.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::clock::Stopwatch;
use crate::place;

/// How often a program with a time limit is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// `cargo` in the root of the checkout.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(place::root());
    command
}

/// Run to its end; its output is shown.
///
/// # Errors
/// If it cannot be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = said(command);
    println!("$ {line}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("starting `{line}`"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}

/// Like [`run`], but ended when the limit has passed.
///
/// # Errors
/// As [`run`], and if it took too long.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    let line = said(command);
    println!("$ {line}");
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("starting `{line}`"))?;
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "`{line}` failed: {status}");
            return Ok(());
        }
        if watch.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("`{line}` was ended after {watch}");
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// What a program prints on standard output.
///
/// # Errors
/// If it cannot be started or does not succeed; the error quotes what it complained of.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = said(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting `{line}`"))?;
    ensure!(
        output.status.success(),
        "`{line}` failed: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    String::from_utf8(output.stdout).with_context(|| format!("reading the output of `{line}`"))
}

/// The command as a person would type it, paths shortened.
fn said(command: &Command) -> String {
    let root = format!("{}/", place::root().display());
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ").replace(&root, "")
}
