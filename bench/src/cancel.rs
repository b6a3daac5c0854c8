//! Measures how soon a spinning guest is gone after its task was cancelled.
//!
//! The server has one slot for guests, and the grace period is zero: a plain call that is sent right after the cancellation
//! is answered once the slot is free. What that call takes on a quiet server is measured in the same run.

use anyhow::{Context as _, Result};
use longshore_tests::client::Message;
use longshore_tests::server::{FIXTURES, Server};
use serde_json::{Value, json};

use crate::load::Client;
use crate::measure::{Samples, Stopwatch};
use crate::report::Report;

/// Cancellations in a round.
const TIMES: usize = 100;

/// Cancel.
///
/// # Errors
/// If the server does not answer as it must.
pub(crate) fn run(rounds: usize) -> Result<Report> {
    let config = "[limits]\nconcurrent_runs = 1\n[tasks]\ngrace_ms = 0\n";
    let server = Server::start(&[FIXTURES], config);
    let address = server.address();
    let spin = Message::call("spin", json!({})).tasks();
    let call = Message::call("echo", json!({ "text": "x" })).bytes(address);
    let (mut cancel_ms, mut freed_ms, mut call_ms) =
        (Samples::default(), Samples::default(), Samples::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut client = Client::connect(address).await?;
        for _ in 0..rounds * TIMES {
            let created: Value =
                serde_json::from_slice(client.exchange(&spin.bytes(address)).await?)?;
            let id = created["result"]["taskId"]
                .as_str()
                .context("no task was made")?;
            let cancel = Message::task("tasks/cancel", id).bytes(address);
            let watch = Stopwatch::start();
            client.exchange(&cancel).await?;
            cancel_ms.add(watch.ms());
            client.exchange(&call).await?;
            freed_ms.add(watch.ms());
            let watch = Stopwatch::start();
            client.exchange(&call).await?;
            call_ms.add(watch.ms());
        }
        anyhow::Ok(())
    })?;
    let mut report = Report::default();
    report.figure("cancel_answered_p50_ms", cancel_ms.median());
    report.figure("cancel_to_slot_free_p50_ms", freed_ms.median());
    report.figure("cancel_to_slot_free_p99_ms", freed_ms.quantile(0.99));
    report.figure("call_after_cancel_p50_ms", call_ms.median());
    Ok(report)
}
