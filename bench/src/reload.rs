//! Measures how soon a change of the folder shows: from the rename of a new file to its tools in `tools/list`, compiled then and
//! compiled before; and from the start of a server to all of a hundred plugins, compiled before.
//!
//! Nobody calls meanwhile: what is measured is the server's own work. It is looked at every few milliseconds.

use std::fmt::Write as _;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use longshore_tests::client::{Connection, Message};
use longshore_tests::server::{Home, Server, marked};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::json;

use crate::measure::{Samples, Stopwatch};
use crate::report::Report;

/// Plugins of the start.
const PLUGINS: usize = 100;

/// Between two changes, so that each finds a server at rest.
const REST: Duration = Duration::from_millis(300);

/// Change and start again, so many times each.
///
/// # Errors
/// If a plugin that is served does not answer.
pub(crate) fn run(rounds: usize) -> Result<Report> {
    let mut report = Report::default();
    changes(rounds, &mut report);
    starts(rounds, &mut report)?;
    Ok(report)
}

fn changes(rounds: usize, report: &mut Report) {
    let home = Home::new(&[], "");
    home.configure_apart("");
    home.install_as("p.wasm", &marked(0).1);
    let server = Server::start_in(Arc::new(home)).settled();
    let mut connection = server.connect();
    let (mut compiled, mut cached) = (Samples::default(), Samples::default());
    for round in 1..=rounds {
        compiled.add(change(&server, &mut connection, round));
        cached.add(change(&server, &mut connection, 0));
    }
    report.figure("reload_compiled_ms", compiled.median());
    report.figure("reload_cached_ms", cached.median());
}

/// From the rename to the list, in milliseconds.
fn change(server: &Server, connection: &mut Connection, number: usize) -> f64 {
    let (mark, bytes) = marked(number);
    let list = Message::new("tools/list").bytes(server.address());
    sleep(REST);
    let watch = Stopwatch::start();
    server.home.install_as("p.wasm", &bytes);
    wait_for("the new version", PATIENCE, || {
        ask(connection, &list).contains(&mark).then_some(())
    });
    watch.ms()
}

fn starts(rounds: usize, report: &mut Report) -> Result<()> {
    let home = Home::new(&[], "");
    let mut config = String::new();
    for number in 0..PLUGINS {
        // Each has the same tools, so each needs names of its own.
        let _ = writeln!(config, "[plugins.p{number}]\nprefix = \"p{number}.\"");
        home.install_as(&format!("p{number}.wasm"), &marked(number).1);
    }
    home.configure_apart(&config);
    let mut home = Arc::new(home);
    let (mut cold, mut warm) = (Samples::default(), Samples::default());
    for round in 0..=rounds {
        let watch = Stopwatch::start();
        let server = Server::start_in(home).settled();
        let taken = watch.ms();
        if round == 0 { &mut cold } else { &mut warm }.add(taken);
        let mut connection = server.connect();
        for number in 0..PLUGINS {
            let call = Message::call(&format!("p{number}.mark"), json!({}));
            let answer = ask(&mut connection, &call.bytes(server.address()));
            ensure!(answer.contains(&marked(number).0), "{answer}");
        }
        home = server.kill();
    }
    report.figure("start_100_plugins_cold_ms", cold.median());
    report.figure("start_100_plugins_warm_ms", warm.median());
    Ok(())
}

/// What is answered; a connection that ends is a failure of the server.
fn ask(connection: &mut Connection, request: &[u8]) -> String {
    let answer = connection
        .write(request)
        .and_then(|()| connection.plain_reply());
    let (_, body) = answer.expect("the server answers");
    String::from_utf8_lossy(&body).into_owned()
}
