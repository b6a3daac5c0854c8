//! `longshore`: runs untrusted WebAssembly plugins as MCP tools. A program; what is public here is what `main` needs.
//!
//! The only part that knows the wire. From the outside in:
//!
//! - `cli`, `config`, `logs`, `inspect`, `reach`, `store_command`: commands and settings, and what a component is.
//! - `app`: the wiring. `leftover`: what is kept on disk for too long.
//! - `admin`, `standing`: orders of those who run the server, and what they are told.
//! - `http`, `stdio`: the transports. They know no method.
//! - `auth`, `rate`: who calls, and how often.
//! - `ends`: what the log says of calls that come to no result.
//! - `message`, `members`, `strict`, `meta`, `method`, `params`, `headers`: reading a request.
//! - `era`: whether a request stands for itself, or needs a session. `ladder`: the checks of those that do, in their order.
//!   `legacy`: sessions of older clients.
//! - `perform`, `resolve`: what a request does. Then `lists`, `call`, `follow`, `listen` or `task_methods`, whose answer is an
//!   `outcome`.
//! - `in_flight`: requests by their ids, where they share a connection.
//! - `listen`: streams of notifications.
//! - `catalogue`: what is served. Knows no request. `start`: what waits for it when the server starts.
//! - `call`, `errand`, `follow`, `parked`, `waiting_room`, `seal`: work for a plugin, over several rounds.
//! - `runner`, `result`, `answer`, `failure`: the adapter between tasks and guests, and the wording of what went right or wrong.
//! - `schema`: JSON Schemas of strangers.
//! - `fuzzing`: what fuzz targets call; not in the program.
//! - `wire`: the protocol's texts. Knows no transport.

mod admin;
mod answer;
mod app;
mod auth;
mod call;
mod catalogue;
mod cli;
mod config;
mod ends;
mod era;
mod errand;
mod failure;
mod follow;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod headers;
mod http;
mod in_flight;
mod inspect;
mod ladder;
mod leftover;
mod legacy;
mod listen;
mod lists;
mod logs;
mod members;
mod message;
mod meta;
mod method;
mod outcome;
mod params;
mod parked;
mod perform;
mod rate;
mod reach;
mod resolve;
mod result;
mod runner;
mod schema;
mod seal;
mod standing;
mod start;
mod stdio;
mod store_command;
mod strict;
mod task_methods;
mod waiting_room;
mod wire;

/// All that is in the environment of a child of this program. The allocator (see `main`) asks for a gibibyte of addresses at
/// once, and a limit of the child's memory is one of its addresses.
const CHILD_ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_ARENA_RESERVE", "64MiB")];

pub use cli::run;
