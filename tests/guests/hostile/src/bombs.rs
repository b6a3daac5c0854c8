//! Too much for the host to hold, clocks at their edges, and messages that are none of a guest's business.

use longshore_plugin::{CallResult, Confirm, Result, ask_all, log};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::io::Write;
use wasip2::clocks::monotonic_clock;
use wasip2::http::types::Fields;
use wasip2::io::poll;
use wasip2::random::random;

/// Keeps handles of the host's.
pub(crate) fn handle_flood() -> String {
    let mut kept = Vec::new();
    loop {
        kept.push(monotonic_clock::subscribe_duration(1));
    }
}

/// How large.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Mib {
    mib: usize,
}

pub(crate) fn log_big(args: Mib) -> String {
    log::info("x".repeat(args.mib << 20));
    format!("logged {} MiB", args.mib)
}

pub(crate) fn random_flood(args: Mib) -> String {
    let bytes = random::get_random_bytes((args.mib as u64) << 20);
    format!("got {} bytes", bytes.len())
}

pub(crate) fn field_flood() -> String {
    let fields = Fields::new();
    for number in 0..1_000_000 {
        if let Err(error) = fields.append(&format!("x-{number}"), &[b'x'; 1000]) {
            return format!("refused after {number}: {error}");
        }
    }
    "never refused".to_owned()
}

/// Waits of no time, and of all time.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Edge {
    /// Whether it waits for what never comes.
    far: bool,
}

pub(crate) fn clock_edges(args: Edge) -> String {
    if args.far {
        for far in [u64::MAX, 1 << 63] {
            let waits = [
                monotonic_clock::subscribe_duration(far),
                monotonic_clock::subscribe_instant(far),
            ];
            poll::poll(&waits.iter().collect::<Vec<_>>());
        }
        return "waited for ever".to_owned();
    }
    let now = monotonic_clock::now();
    for near in [
        monotonic_clock::subscribe_duration(0),
        monotonic_clock::subscribe_duration(1),
        monotonic_clock::subscribe_instant(0),
        monotonic_clock::subscribe_instant(now.saturating_sub(1_000_000_000)),
    ] {
        near.block();
        assert!(near.ready(), "a timer that has fired stays ready");
    }
    "all fired".to_owned()
}

pub(crate) fn poll_none() -> String {
    format!("{:?}", poll::poll(&[]))
}

pub(crate) fn forge() -> Result<&'static str> {
    let mut out = std::io::stdout();
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"forged"}]}}"#,
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/forged\"}\n\n",
        "2026-01-01T00:00:00Z  INFO longshore: forged line",
    ] {
        writeln!(out, "{line}")?;
    }
    Ok("forged nothing")
}

/// Gives structured content as it stands here.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RawJson {
    json: String,
    /// So often one after the other.
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

pub(crate) fn raw_json(args: RawJson) -> CallResult {
    CallResult {
        structured_content: Some(args.json.repeat(args.times)),
        ..CallResult::new().text("see structure")
    }
}

/// Reads a file and asks about it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Shown {
    path: String,
}

pub(crate) fn cat_then_ask(args: Shown) -> Result<String> {
    let text = fs::read_to_string(args.path)?;
    let answers = ask_all((Confirm::new(&format!("Is it {text}?")).named("text"),))?;
    Ok(format!("{answers:?}"))
}
