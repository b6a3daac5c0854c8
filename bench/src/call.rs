//! Measures a plain call over HTTP: longshore with a sandboxed plugin, beside a bare echo of the same body and beside the
//! same tool in native code behind the Rust SDK. Also `tasks/get` beside the echo.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Server};
use serde_json::json;

use crate::load::{self, Load};
use crate::measure::Samples;
use crate::report::Report;
use crate::rivals::{Rival, Running};

/// Connections at once: as many as keep two cores busy.
const CONNECTIONS: usize = 32;
/// How long each server is asked in a round, and how long before that, so that it is warm.
const TIME: Duration = Duration::from_secs(2);
const WARMING: Duration = Duration::from_millis(500);

/// What a server has shown, a value for each round.
#[derive(Debug, Default)]
struct Course {
    per_s: Samples,
    p50_us: Samples,
    p99_us: Samples,
    alone_p50_us: Samples,
}

/// Call, and get tasks.
///
/// # Errors
/// If a server does not answer as it must.
pub(crate) fn run(rounds: usize) -> Result<Report> {
    let server = Server::start(&[FIXTURES], "");
    let (echo, rmcp) = (Running::start(Rival::Echo)?, Running::start(Rival::Rmcp)?);
    let call = Message::call(
        "echo",
        json!({ "text": "The quick brown fox jumps over the lazy dog" }),
    );
    let task = a_finished_task(&server);
    let get = Message::task("tasks/get", &task);
    let said = "The quick brown fox";
    let contests = [
        (echo.address, &call, said),
        (rmcp.address, &call, said),
        (server.address(), &call, said),
        (echo.address, &get, task.as_str()),
        (server.address(), &get, "completed"),
    ];
    let mut courses: [Course; 5] = Default::default();
    for _ in 0..rounds {
        // Side by side: what disturbs the machine for a while disturbs all of them.
        for ((address, message, expected), course) in contests.iter().zip(&mut courses) {
            course.go(*address, &message.bytes(*address), expected)?;
        }
    }
    Ok(report(&courses))
}

fn report([echo, rmcp, call, echo_get, get]: &[Course; 5]) -> Report {
    let mut report = Report::default();
    report.ratio(
        "http_call_vs_rmcp_native",
        call.per_s.median() / rmcp.per_s.median(),
    );
    report.ratio(
        "http_call_vs_echo",
        call.per_s.median() / echo.per_s.median(),
    );
    report.ratio(
        "http_call_p99_vs_echo",
        call.p99_us.median() / echo.p99_us.median(),
    );
    report.ratio(
        "tasks_get_vs_echo",
        get.per_s.median() / echo_get.per_s.median(),
    );
    for (name, course) in [
        ("echo", echo),
        ("rmcp_native_call", rmcp),
        ("http_call", call),
        ("echo_of_tasks_get", echo_get),
        ("tasks_get", get),
    ] {
        report.figure(&format!("{name}_per_s"), course.per_s.median());
        report.figure(&format!("{name}_p50_us"), course.p50_us.median());
        report.figure(&format!("{name}_p99_us"), course.p99_us.median());
        report.figure(
            &format!("{name}_alone_p50_us"),
            course.alone_p50_us.median(),
        );
    }
    report
}

impl Course {
    fn go(&mut self, address: SocketAddr, request: &[u8], expected: &str) -> Result<()> {
        load::repeat(address, request, expected, CONNECTIONS, WARMING)?;
        let Load { latency_us, per_s } =
            load::repeat(address, request, expected, CONNECTIONS, TIME)?;
        self.per_s.add(per_s);
        self.p50_us.add(latency_us.median());
        self.p99_us.add(latency_us.quantile(0.99));
        let alone = load::repeat(address, request, expected, 1, WARMING)?;
        self.alone_p50_us.add(alone.latency_us.median());
        Ok(())
    }
}

/// Its id.
fn a_finished_task(server: &Server) -> String {
    let task = server.call_task("sleep_required", json!({ "ms": 0 }));
    task.wait("completed");
    task.id
}
