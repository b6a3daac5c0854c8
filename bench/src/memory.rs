//! Measures memory: of a server that rests, with ten plugins, and what an open stream adds.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use longshore_tests::client::Message;
use longshore_tests::server::{Home, Server, VERSION_A, variant};
use serde_json::json;

use crate::measure::{Samples, Stopwatch};
use crate::report::Report;

const PLUGINS: usize = 10;
const STREAMS: usize = 200;

/// Rest, then listen.
///
/// # Errors
/// If the server does not answer as it must.
pub(crate) fn run(rounds: usize) -> Result<Report> {
    let (mut idle, mut stream, mut start_ms) =
        (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..rounds {
        let home = Home::new(&[], "[subscriptions]\nstreams_per_client_max = 512\n");
        for number in 0..PLUGINS {
            fs::write(
                home.plugins().join(format!("p{number}.wasm")),
                variant(VERSION_A, &format!("p{number}")),
            )?;
        }
        // The first start compiles; the second is warm.
        let home = Server::start_in(std::sync::Arc::new(home)).settled().kill();
        let watch = Stopwatch::start();
        let server = Server::start_in(home).settled();
        start_ms.add(watch.ms());
        std::thread::sleep(Duration::from_secs(1));
        let before = server.memory_bytes();
        idle.add(to_f64(before));
        let listen = Message::new("subscriptions/listen")
            .param("notifications", json!({ "toolsListChanged": true }));
        let mut open = Vec::new();
        for number in 0..STREAMS {
            let mut heard = server.stream(&listen.clone().id(number));
            heard.message()?;
            open.push(heard);
        }
        stream.add((to_f64(server.memory_bytes()) - to_f64(before)) / to_f64(STREAMS as u64));
    }
    let mut report = Report::default();
    report.figure("idle_with_10_plugins_bytes", idle.median());
    report.figure("open_stream_bytes", stream.median());
    report.figure("warm_start_with_10_plugins_ms", start_ms.median());
    Ok(report)
}

#[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
fn to_f64(bytes: u64) -> f64 {
    bytes as f64
}
