//! Too much of what a guest may say, and what it may not say.

use longshore_plugin::contract::longshore::plugin::{log as raw_log, task};
use longshore_plugin::{LogLevel, cancelled, log, notify, progress, set_external_id};
use schemars::JsonSchema;
use serde::Deserialize;
use std::hint::black_box;
use std::io::Write;

/// Repeats something.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Times {
    n: u64,
}

/// With the newline, 64 bytes.
const LINE: &str = "0123456789abcdef\u{1b}[31m0123456789abcdef0123456789abcdef012345678\t";

pub(crate) fn spew(args: Times) -> String {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    for _ in 0..args.n {
        // A host may refuse more; that must not end the run.
        let _ = writeln!(out, "{LINE}");
        let _ = writeln!(err, "{LINE}");
    }
    format!("wrote {} lines to each", args.n)
}

pub(crate) fn log_flood(args: Times) -> String {
    for line in 0..args.n {
        log::info(format!("line {line}\r\nforged line \u{1b}[31m"));
    }
    format!("logged {} lines", args.n)
}

pub(crate) fn log_bad_json() -> &'static str {
    raw_log::log(LogLevel::Info, Some("bad\nlogger"), "{not json");
    "logged"
}

pub(crate) fn progress_flood(args: Times) -> String {
    for step in 1..=args.n {
        progress(step as f64, None, &format!("step {step}"));
    }
    format!("reported {} times", args.n)
}

pub(crate) fn progress_bad() -> &'static str {
    for done in [
        1.0,
        5.0,
        3.0,
        5.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        6.0,
    ] {
        task::report_progress(done, Some(f64::NAN), Some("line\nforged\u{1b}"));
    }
    "reported"
}

pub(crate) fn notify_flood(args: Times) -> String {
    for n in 0..args.n {
        notify::tools_changed();
        notify::resource_updated(&format!("no uri {n}"));
    }
    format!("notified {} times", args.n)
}

pub(crate) fn poll_flood() {
    loop {
        black_box(cancelled());
    }
}

pub(crate) fn external_id_bad() -> String {
    let ids = ["", "two words \n", "\u{e9}", &"x".repeat(257)];
    let refused = ids.iter().filter(|id| set_external_id(id).is_err()).count();
    format!("{refused} of {} refused", ids.len())
}
