//! `longshore`: runs untrusted WebAssembly plugins as MCP tools.
//!
//! The only part that knows the wire. From the outside in:
//!
//! - `cli`, `config`, `logs`, `inspect`: commands and settings.
//! - `app`: the wiring.
//! - `http`: the transport. Knows no method.
//! - `message`, `members`, `strict`, `meta`, `params`, `headers`: reading a request.
//! - `ladder`: the checks of a request in their order. Then `lists`, `call` or `task_methods`, whose answer is an `outcome`.
//! - `catalogue`: which tools are served. Knows no request.
//! - `call`, `parked`, `seal`: calls over several rounds.
//! - `runner`, `result`, `failure`: the adapter between tasks and guests, and the wording of what went right or wrong.
//! - `schema`: JSON Schemas of strangers.
//! - `wire`: the protocol's texts. Knows no transport.

mod app;
mod call;
mod catalogue;
mod cli;
mod config;
mod failure;
mod headers;
mod http;
mod inspect;
mod ladder;
mod lists;
mod logs;
mod members;
mod message;
mod meta;
mod outcome;
mod params;
mod parked;
mod result;
mod runner;
mod schema;
mod seal;
mod strict;
mod task_methods;
mod wire;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
