//! Measures how cost grows: with what a call carries, with plugins, with open streams.
//!
//! Each size is measured in the same run as the smallest of its kind; a figure's name ends with the unit, and has the size
//! before it. Tasks in the store are grown by `parked`, records by `inside`.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Home, Server, VERSION_A, variant};
use serde_json::json;

use crate::load;
use crate::measure::Stopwatch;
use crate::report::Report;

const PAYLOAD_BYTES: [usize; 4] = [100, 10_000, 100_000, 1_000_000];
const PLUGINS: [usize; 4] = [1, 10, 100, 1_000];
const STREAMS: [usize; 3] = [0, 100, 400];
const TIME: Duration = Duration::from_secs(1);

/// Grow.
///
/// # Errors
/// If the server does not answer as it must.
pub(crate) fn run(_rounds: usize) -> Result<Report> {
    let mut report = Report::default();
    payload(&mut report)?;
    plugins(&mut report)?;
    streams(&mut report)?;
    Ok(report)
}

/// A call alone, with arguments and result of this size.
fn payload(report: &mut Report) -> Result<()> {
    let server = Server::start(&[FIXTURES], "");
    for bytes in PAYLOAD_BYTES {
        let call = Message::call("echo", json!({ "text": "x".repeat(bytes) }));
        let request = call.bytes(server.address());
        let load = load::repeat(server.address(), &request, "complete", 1, TIME)?;
        report.figure(
            &format!("call_with_{bytes}_bytes_p50_us"),
            load.latency_us.median(),
        );
    }
    Ok(())
}

/// Warm start, memory, and a call, with so many plugins, each of which adds a tool to the list.
fn plugins(report: &mut Report) -> Result<()> {
    for plugins in PLUGINS {
        let prefix = |number| format!("[plugins.p{number}]\nprefix = \"p{number}.\"\n");
        let config: String = (1..plugins).map(prefix).collect();
        let home = Home::new(&[FIXTURES], &config);
        for number in 1..plugins {
            let bytes = variant(VERSION_A, &format!("grown{number}"));
            fs::write(home.plugins().join(format!("p{number}.wasm")), bytes)?;
        }
        let home = Server::start_in(Arc::new(home)).settled().kill();
        let watch = Stopwatch::start();
        let server = Server::start_in(home).settled();
        report.figure(&format!("warm_start_with_{plugins}_plugins_ms"), watch.ms());
        #[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
        report.figure(
            &format!("resident_with_{plugins}_plugins_bytes"),
            server.memory_bytes() as f64,
        );
        let calls = [
            (
                "call",
                Message::call("echo", json!({ "text": "x" })),
                "complete",
            ),
            ("list", Message::new("tools/list"), "tools"),
        ];
        for (name, message, expected) in calls {
            let request = message.bytes(server.address());
            let load = load::repeat(server.address(), &request, expected, 1, TIME)?;
            report.figure(
                &format!("{name}_with_{plugins}_plugins_p50_us"),
                load.latency_us.median(),
            );
        }
    }
    Ok(())
}

/// A call alone, beside so many open streams.
fn streams(report: &mut Report) -> Result<()> {
    let server = Server::start(
        &[FIXTURES],
        "[subscriptions]\nstreams_per_client_max = 512\n",
    );
    let listen = Message::new("subscriptions/listen")
        .param("notifications", json!({ "toolsListChanged": true }));
    let mut open = Vec::new();
    for streams in STREAMS {
        while open.len() < streams {
            let mut stream = server.stream(&listen.clone().id(open.len()));
            stream.message()?;
            open.push(stream);
        }
        let request = Message::call("echo", json!({ "text": "x" })).bytes(server.address());
        let load = load::repeat(server.address(), &request, "complete", 1, TIME)?;
        report.figure(
            &format!("call_beside_{streams}_streams_p50_us"),
            load.latency_us.median(),
        );
    }
    Ok(())
}
