//! Measures what is left for others while guests compute on all cores: `tasks/get`, `tasks/cancel`, `tools/list` and a call of
//! another plugin, beside the same on an idle server.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, HOSTILE, Server};
use serde_json::json;

use crate::load;
use crate::measure::{Samples, Stopwatch};
use crate::report::Report;

/// Spinning guests for each core.
const SPINNERS_PER_CORE: usize = 2;
/// How long each thing is asked for in a round.
const TIME: Duration = Duration::from_secs(1);
/// Tasks that are cancelled in a round.
const CANCELLED: usize = 100;

/// What spins, and what is cancelled, is a task.
const CONFIG: &str = "
[log]
level = \"error\"
[tasks]
grace_ms = 100
[plugins.hostile.tools.spin]
task_support = \"required\"
";

/// The 99th percentile of each round, in microseconds.
#[derive(Debug, Default)]
struct Course {
    idle: Samples,
    busy: Samples,
}

/// Ask, and let guests spin.
///
/// # Errors
/// If the server does not answer as it must.
pub(crate) fn run(rounds: usize) -> Result<Report> {
    let server = Server::start(&[HOSTILE, FIXTURES], CONFIG);
    let cores = thread::available_parallelism()?.get();
    let mut courses: [Course; 4] = Default::default();
    for _ in 0..rounds {
        for busy in [false, true] {
            let count = if busy { SPINNERS_PER_CORE * cores } else { 0 };
            let spinners: Vec<_> = (0..count)
                .map(|_| server.call_task("spin", json!({})))
                .collect();
            for (p99_us, course) in ask(&server)?.into_iter().zip(&mut courses) {
                let side = if busy {
                    &mut course.busy
                } else {
                    &mut course.idle
                };
                side.add(p99_us);
            }
            for spinner in &spinners {
                ensure!(spinner.get()["status"] == "working", "a guest did not spin");
                spinner.cancel();
            }
            for spinner in &spinners {
                spinner.wait("cancelled");
            }
        }
    }
    Ok(report(&courses))
}

/// The 99th percentile of each of the four.
fn ask(server: &Server) -> Result<[f64; 4]> {
    let waiting = server.call_task("ask_one", json!({}));
    waiting.wait("input_required");
    let repeated = |message: &Message, expected: &str| {
        let bytes = message.bytes(server.address());
        let load = load::repeat(server.address(), &bytes, expected, 1, TIME)?;
        anyhow::Ok(load.latency_us.quantile(0.99))
    };
    let get = repeated(&Message::task("tasks/get", &waiting.id), "input_required")?;
    let list = repeated(&Message::new("tools/list"), "ask_one")?;
    let call = repeated(&Message::call("echo", json!({ "text": "well" })), "well")?;
    let cancel = cancel(server)?;
    waiting.cancel();
    Ok([get, cancel, list, call])
}

fn cancel(server: &Server) -> Result<f64> {
    let mut connection = server.connect();
    let mut latency_us = Samples::default();
    for _ in 0..CANCELLED {
        let task = server.call_task("sleep_required", json!({ "ms": 600_000 }));
        let bytes = Message::task("tasks/cancel", &task.id).bytes(server.address());
        let watch = Stopwatch::start();
        connection.write(&bytes)?;
        let (head, _) = connection
            .plain_reply()
            .context("the answer to tasks/cancel")?;
        latency_us.add(watch.us());
        ensure!(head.status() == 200, "tasks/cancel got {}", head.status());
    }
    Ok(latency_us.quantile(0.99))
}

fn report(courses: &[Course; 4]) -> Report {
    let mut report = Report::default();
    let names = ["tasks_get", "tasks_cancel", "tools_list", "other_call"];
    for (name, course) in names.iter().zip(courses) {
        let (idle, busy) = (course.idle.median(), course.busy.median());
        report.ratio(&format!("isolation_{name}_p99_vs_idle"), busy / idle);
        report.figure(&format!("isolation_{name}_idle_p99_us"), idle);
        report.figure(&format!("isolation_{name}_busy_p99_us"), busy);
    }
    report
}
