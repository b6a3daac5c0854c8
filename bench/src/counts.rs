//! Counts the instructions of the hot paths, under callgrind: what does not change with the load of the machine.
//!
//! The server that is counted is the one that the tests drive, so its own code is not optimised and what it depends on is:
//! a count is good for comparing with itself, and says nothing of time. Neither the kernel's work is in it, nor what waits.
//!
//! Callgrind runs one thread at a time, which orders them nearly the same each time. Counts of one build differ by a few
//! percent, and processors do not all choose the same routines; [`TOLERANCE`] is above that.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use longshore_tests::client::{Connection, Message};
use longshore_tests::server::{FIXTURES, Home, Server};
use serde_json::json;

/// Requests that are counted of each kind. A request takes some milliseconds there.
const REQUESTS: u64 = 50;
/// How often they are counted. The least counts: what the server does beside can only add to it.
const ROUNDS: usize = 3;
/// Requests before that: what is made once is made then.
const WARMING: u64 = 10;
/// By how much a count may be above what is kept.
const TOLERANCE: f64 = 0.15;

/// Instructions of one request, by its kind.
type Counts = BTreeMap<String, u64>;

/// Count, and compare with what is kept in `file`; or keep it.
///
/// # Errors
/// If something takes more instructions than is kept, or there is no `valgrind`.
pub(crate) fn run(file: &Path, write: bool) -> Result<()> {
    let counts = count()?;
    if write {
        let text = serde_json::to_string_pretty(&counts)? + "\n";
        return fs::write(file, text).with_context(|| format!("writing {}", file.display()));
    }
    let kept = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    compare(&counts, &serde_json::from_slice(&kept)?)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts are far below 2^52, and compared to a percent"
)]
fn compare(counts: &Counts, kept: &Counts) -> Result<()> {
    let mut worse = Vec::new();
    for (kind, &count) in counts {
        let &before = kept
            .get(kind)
            .with_context(|| format!("no count of {kind} is kept"))?;
        let change = count as f64 / before as f64 - 1.0;
        eprintln!(
            "  {kind:12} {count:9} instructions, {:+.1} %",
            change * 100.0
        );
        if change > TOLERANCE {
            worse.push(kind.as_str());
        } else if change < -TOLERANCE {
            eprintln!("    keep that: cargo xtask counts --write");
        }
    }
    ensure!(
        worse.is_empty(),
        "more instructions than are kept: {}; find out why, and if it is worth it: cargo xtask counts --write",
        worse.join(", ")
    );
    Ok(())
}

fn count() -> Result<Counts> {
    // With fewer slots than tasks: those that are made wait, so that the making is counted, and some of the running.
    let home = Arc::new(Home::new(&[FIXTURES], "[limits]\nconcurrent_runs = 4\n"));
    let folder = tempfile::tempdir()?;
    let server = Server::start_by(home.clone(), counted(&home.command(), folder.path())).settled();
    let finished = server.call_task("sleep_required", json!({ "ms": 0 }));
    finished.wait("completed");
    let kinds = [
        ("list", Message::new("tools/list")),
        ("call", Message::call("echo", json!({ "text": "x" }))),
        ("get", Message::task("tasks/get", &finished.id)),
        (
            "create",
            Message::call("sleep_required", json!({ "ms": 3_600_000 })).tasks(),
        ),
    ];
    control(&server, "--instr=on")?;
    let mut connection = server.connect();
    let mut counts = Counts::new();
    let mut dumps = (1..).map(|number| folder.path().join(format!("{}.{number}", server.pid())));
    for (kind, message) in kinds {
        send(&mut connection, &message, WARMING)?;
        let mut least = u64::MAX;
        for dump in dumps.by_ref().take(ROUNDS) {
            control(&server, "--zero")?;
            send(&mut connection, &message, REQUESTS)?;
            control(&server, "--dump")?;
            least = least.min(total(&dump)? / REQUESTS);
        }
        counts.insert(kind.to_owned(), least);
    }
    Ok(counts)
}

/// The same command under callgrind. The child that compiles runs there too: what it compiles is for the processor that it sees.
fn counted(command: &Command, folder: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args([
            "--tool=callgrind",
            "--instr-atstart=no",
            "--trace-children=yes",
        ])
        .arg(format!(
            "--callgrind-out-file={}",
            folder.join("%p").display()
        ))
        .arg(command.get_program())
        .args(command.get_args());
    valgrind
}

fn send(connection: &mut Connection, message: &Message, times: u64) -> Result<()> {
    for _ in 0..times {
        let reply = connection.exchange(message)?;
        ensure!(reply.status() == 200, "answered with {}", reply.status());
    }
    Ok(())
}

fn control(server: &Server, order: &str) -> Result<()> {
    let done = Command::new("callgrind_control")
        .args([order, &server.pid().to_string()])
        .output()
        .context("callgrind_control, of Debian's package valgrind")?;
    if !done.status.success() {
        bail!(
            "callgrind_control {order}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    Ok(())
}

/// The instructions that a dump of callgrind tells.
fn total(dump: &Path) -> Result<u64> {
    let text = fs::read_to_string(dump).with_context(|| format!("reading {}", dump.display()))?;
    let mut lines = text.lines();
    let total = lines.find_map(|line| {
        line.strip_prefix("totals: ")
            .or(line.strip_prefix("summary: "))
    });
    let total = total.with_context(|| format!("no total in {}", dump.display()))?;
    Ok(total.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_is_kept_is_told_and_less_is_not() {
        let of = |count: u64| Counts::from([("list".to_owned(), count)]);
        assert!(compare(&of(1_149), &of(1_000)).is_ok());
        assert!(compare(&of(500), &of(1_000)).is_ok());
        let worse = compare(&of(1_151), &of(1_000)).unwrap_err();
        assert!(worse.to_string().contains("are kept: list"), "{worse}");
        assert!(compare(&of(1), &Counts::new()).is_err());
    }
}
