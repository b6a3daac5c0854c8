//! Owns the host as a program: building it, starting it, knowing when it is ready, ending it.
//!
//! Must not know the wire; all it reads is the line that says where the host listens.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::{clock::Stopwatch, place, process};

/// A first start compiles every plugin, which a slow machine needs minutes for.
const START_LIMIT: Duration = Duration::from_secs(300);

/// Longer than any drain that the host has by default.
const END_LIMIT: Duration = Duration::from_secs(30);

/// What the host says once it is ready, before its address.
const READY: &str = "listening on ";

/// How the host is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// Build the host and give its file.
///
/// # Errors
/// If it does not compile.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    match profile {
        // All targets at once: built alone, the host would share fewer dependencies with the
        // tests, and wasmtime would be compiled twice.
        Profile::Debug => {
            process::run(&mut process::cargo(&[
                "build",
                "--workspace",
                "--all-targets",
            ]))?;
            place::binary("debug", "longshore")
        }
        Profile::Release => {
            process::run(&mut process::cargo(&[
                "build",
                "--release",
                "--package=longshore",
            ]))?;
            place::binary("release", "longshore")
        }
    }
}

/// Where the host's own lines go.
#[derive(Debug)]
pub(crate) enum Log {
    /// To this terminal.
    Shown,
    /// To a file.
    Kept(PathBuf),
}

/// A host that listens. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    /// Of its MCP endpoint.
    pub(crate) url: String,
}

impl Host {
    /// Start it with these arguments, and wait until it listens.
    ///
    /// # Errors
    /// If it ends, or does not listen in time.
    pub(crate) fn start(binary: &Path, arguments: &[&str], log: Log) -> Result<Self> {
        use std::os::unix::process::CommandExt;

        let mut command = Command::new(binary);
        command
            .arg("serve")
            .args(arguments)
            .current_dir(place::root())
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        if matches!(log, Log::Shown) {
            // Of its own group: Ctrl-C reaches it once, through us, and not a second time, which
            // would mean "at once".
            command.process_group(0);
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let stderr = child.stderr.take().context("the host has no stderr")?;
        let mut host = Self {
            child,
            url: String::new(),
        };
        let ready = follow(stderr, log)?;
        host.url = match ready.recv_timeout(START_LIMIT) {
            Ok(url) => url,
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the host ended before it listened: {}", host.child.wait()?)
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!("the host does not listen after {} s", START_LIMIT.as_secs())
            }
        };
        Ok(host)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Wait until it ends by itself, or by a signal.
    ///
    /// # Errors
    /// If the system cannot say.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().context("waiting for the host to end")
    }

    fn end(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        kill_process(self.pid(), Signal::TERM)?;
        let watch = Stopwatch::start();
        while self.child.try_wait()?.is_none() {
            if watch.elapsed() > END_LIMIT {
                self.child.kill()?;
                self.child.wait()?;
                bail!("the host did not end within {} s", END_LIMIT.as_secs());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            println!("ending the host: {error:#}");
        }
    }
}

/// Pass the host's lines on, and its address when it says it. The channel closes with the host.
fn follow(stderr: ChildStderr, log: Log) -> Result<Receiver<String>> {
    let mut sink: Box<dyn Write + Send> = match log {
        Log::Shown => Box::new(std::io::stderr()),
        Log::Kept(file) => {
            Box::new(File::create(&file).with_context(|| format!("creating {}", file.display()))?)
        }
    };
    let (say, ready) = mpsc::channel();
    thread::spawn(move || {
        let mut say = Some(say);
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            // A terminal that is gone must not end the host: it would block on a full pipe.
            let _ = writeln!(sink, "{line}");
            if let Some(url) = address(&line)
                && let Some(say) = say.take()
            {
                let _ = say.send(url);
            }
        }
    });
    Ok(ready)
}

/// The address in a line that says where the host listens, in text or JSON, coloured or not.
fn address(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(READY)?;
    let end = |c: char| c.is_whitespace() || c.is_control() || c == '"';
    let url = rest.split(end).next()?;
    url.starts_with("http").then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn the_address_is_found_in_any_form_of_log() {
        let url = Some("http://127.0.0.1:7777/mcp".to_owned());
        for line in [
            "listening on http://127.0.0.1:7777/mcp",
            "2026-01-01T00:00:00Z  INFO longshore: listening on http://127.0.0.1:7777/mcp plugins=3",
            "\u{1b}[32mINFO\u{1b}[0m listening on http://127.0.0.1:7777/mcp\u{1b}[0m",
            r#"{"level":"INFO","message":"listening on http://127.0.0.1:7777/mcp"}"#,
        ] {
            assert_eq!(address(line), url, "{line}");
        }
        assert_eq!(address("not listening on anything"), None);
    }
}
