//! Checks in a process of their own: for schemas and values that may make more work than a thread of this process should do, or
//! more than its stack can bear. The process has limits; where it meets one, one call is refused.
//!
//! A plugin has one such process at a time, and there are few in all, so that none makes others wait for long. Who goes away
//! while it waits, or while it is checked, ends the process with it.

use super::{Misfit, Schema, Verdict};
use crate::CHILD_ENVIRONMENT;
use longshore_runtime::{Exceeded, Failure, Limit, Limits, Plugin};
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Semaphore;

/// The command by which the program does a check; for itself alone.
pub(crate) const CHECK_COMMAND: &str = "check-schema";

/// Such processes at once, of all plugins.
const PROCESSES_MAX: usize = 4;

/// Checks of one plugin that wait for theirs: as many as it has runs. Each holds a value.
const WAITING_MAX: usize = 256;

/// Its stack, of which nothing is used before it is needed.
const STACK_BYTES: usize = 128 << 20;

/// What it says is cut here.
const ANSWER_BYTES_MAX: u64 = 16 << 10;

/// How it yields to the work of the host, in steps of the system.
const NICE: i32 = 10;

/// Checks values against schemas, here or apart.
#[derive(Debug)]
pub(crate) struct Checks {
    /// The program that knows [`CHECK_COMMAND`].
    program: PathBuf,
    processes: Semaphore,
    /// By the name of the plugin.
    queues: Mutex<HashMap<String, Arc<Queue>>>,
}

/// The checks of one plugin.
#[derive(Debug)]
struct Queue {
    places: Semaphore,
    turn: Semaphore,
}

impl Checks {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self {
            program,
            processes: Semaphore::new(PROCESSES_MAX),
            queues: Mutex::default(),
        }
    }

    /// Check a value against a schema, of which the text is given too.
    ///
    /// # Errors
    /// What is wrong with the value, or why that is not known.
    pub(crate) async fn check(
        &self,
        plugin: &Plugin,
        (schema, text): (&Schema, &str),
        value: &Value,
    ) -> Result<(), Misfit> {
        match schema.judge(value) {
            Verdict::Fits => Ok(()),
            Verdict::Wrong(wrong) => Err(Misfit::Wrong(wrong)),
            // Rare, and large: it is not part of every call's future.
            Verdict::Unknown => Box::pin(self.check_apart(plugin, text, value)).await,
        }
    }

    async fn check_apart(
        &self,
        plugin: &Plugin,
        schema: &str,
        value: &Value,
    ) -> Result<(), Misfit> {
        let queue = self.queue(&plugin.name);
        let _place = queue.places.try_acquire().map_err(|_| {
            Misfit::Failed(Failure::Busy {
                limit: "queued_checks",
                value: WAITING_MAX as u64,
            })
        })?;
        // First the plugin's own, so that it waits once among the others.
        let _turn = queue.turn.acquire().await.map_err(broken)?;
        let _process = self.processes.acquire().await.map_err(broken)?;
        let mut input = format!("{}\n{schema}", schema.len());
        input.push_str(&value.to_string());
        let exchange = self.exchange(&plugin.limits, input);
        // The limit of its time does not bound a process that waits.
        let patience = plugin.limits.schema_cpu_s.saturating_mul(2);
        let patience = Duration::from_secs(patience.saturating_add(10));
        match tokio::time::timeout(patience, exchange).await {
            Ok(Ok((status, answer))) => understand(&plugin.limits, status, &answer),
            Ok(Err(error)) => Err(broken(error)),
            Err(_) => Err(exceeded(&plugin.limits, Limit::SchemaCpu)),
        }
    }

    fn queue(&self, plugin: &str) -> Arc<Queue> {
        let mut queues = self.queues.lock();
        let queue = queues.entry(plugin.to_owned()).or_insert_with(|| {
            Arc::new(Queue {
                places: Semaphore::new(WAITING_MAX),
                turn: Semaphore::new(1),
            })
        });
        Arc::clone(queue)
    }

    async fn exchange(&self, limits: &Limits, input: String) -> io::Result<(ExitStatus, Vec<u8>)> {
        let mut child = Command::new(&self.program)
            .arg(CHECK_COMMAND)
            .arg(limits.value(Limit::SchemaMemory).to_string())
            .arg(limits.schema_cpu_s.to_string())
            .env_clear()
            .envs(CHILD_ENVIRONMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What it says when it breaks down is of nobody's interest.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            // A signal from a terminal is for this process; it ends its checks itself.
            .process_group(0)
            .spawn()?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let mut answer = Vec::new();
        let mut stdout = stdout.take(ANSWER_BYTES_MAX);
        let (_, read) = tokio::join!(
            // One that stops reading says why by its end.
            async {
                let _ = stdin.write_all(input.as_bytes()).await;
                drop(stdin);
            },
            stdout.read_to_end(&mut answer),
        );
        read?;
        Ok((child.wait().await?, answer))
    }
}

fn broken(error: impl std::fmt::Display) -> Misfit {
    let why = format!("its schema could not be checked apart: {error}");
    Misfit::Failed(Failure::Unavailable(why))
}

fn exceeded(limits: &Limits, limit: Limit) -> Misfit {
    Misfit::Failed(Failure::Limit(Exceeded {
        limit,
        value: limits.value(limit),
    }))
}

fn understand(limits: &Limits, status: ExitStatus, answer: &[u8]) -> Result<(), Misfit> {
    if status.success() {
        return match answer.split_first() {
            Some((b'+', _)) => Ok(()),
            Some((b'-', wrong)) => Err(Misfit::Wrong(String::from_utf8_lossy(wrong).into_owned())),
            _ => Err(broken("it gave no answer")),
        };
    }
    if answer.first() == Some(&b'-') {
        let wrong = "it does not; to find out where takes more than the limits of the check";
        return Err(Misfit::Wrong(wrong.to_owned()));
    }
    let signals = [Signal::XCPU, Signal::KILL].map(Signal::as_raw);
    match status.signal() {
        Some(signal) if signals.contains(&signal) => Err(exceeded(limits, Limit::SchemaCpu)),
        // Neither a full memory nor a full stack has another sign.
        _ => Err(exceeded(limits, Limit::SchemaMemory)),
    }
}

/// Serve as the process: on standard input the length of the schema, the schema and the value, on standard output the answer.
///
/// The arguments are its limits; it sets them for itself before it reads a byte.
pub(crate) fn child_main(memory_bytes: u64, cpu_s: u64) -> ExitCode {
    let checked = confine(memory_bytes, cpu_s).and_then(|()| {
        let check = std::thread::Builder::new().stack_size(STACK_BYTES);
        let check = check.spawn(check_stdin)?.join();
        check.unwrap_or_else(|_| Err(io::Error::other("the check broke down")))
    });
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn confine(memory_bytes: u64, cpu_s: u64) -> io::Result<()> {
    let limit = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    // A host that is killed must not leave checks behind.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    setrlimit(Resource::As, limit(memory_bytes))?;
    setrlimit(Resource::Cpu, limit(cpu_s))?;
    setrlimit(Resource::Core, limit(0))?;
    rustix::process::nice(NICE)?;
    Ok(())
}

fn check_stdin() -> io::Result<()> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let parts = input.split_once('\n').and_then(|(length, rest)| {
        let length = length.parse().ok()?;
        rest.split_at_checked(length)
    });
    let (schema, value) = parts.ok_or_else(|| io::Error::other("there is nothing to check"))?;
    let schema: Value = serde_json::from_str(schema)?;
    let value: Value = serde_json::from_str(value)?;
    let mut stdout = io::stdout();
    let wrong = match super::build(&schema, false) {
        Ok(validator) if validator.is_valid(&value) => return stdout.write_all(b"+"),
        Ok(validator) => {
            // To find out what is wrong may take longer than that something is.
            stdout.write_all(b"-")?;
            stdout.flush()?;
            super::told(&validator, &value)
        }
        Err(wrong) => format!("-the schema {wrong}"),
    };
    stdout.write_all(wrong.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_process_tells_which_limit_it_met() {
        let limits = Limits::default();
        let end = |raw: i32, answer: &str| {
            let met = understand(&limits, ExitStatus::from_raw(raw), answer.as_bytes());
            met.map_err(|misfit| match misfit {
                Misfit::Wrong(wrong) => wrong,
                Misfit::Failed(Failure::Limit(exceeded)) => exceeded.limit.name().to_owned(),
                Misfit::Failed(failure) => failure.reason().to_owned(),
            })
        };
        let (killed, aborted, failed) = (9, 6, 1 << 8);
        assert_eq!(end(0, "+"), Ok(()));
        assert_eq!(end(0, "-at /a: no"), Err("at /a: no".to_owned()));
        assert_eq!(end(0, ""), Err("unavailable".to_owned()));
        assert_eq!(end(killed, ""), Err("schema_cpu_s".to_owned()));
        assert_eq!(end(aborted, ""), Err("schema_memory_bytes".to_owned()));
        assert_eq!(end(failed, "+"), Err("schema_memory_bytes".to_owned()));
        // It knew that much before.
        assert!(end(killed, "-").is_err_and(|wrong| wrong.contains("it does not")));
    }
}
