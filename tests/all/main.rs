//! The outer tests: the real `longshore`, with real components, driven over the wire and the command line.
//!
//! One binary, so that servers and their compile cache are shared. A test whose name starts with an id, such as `p01`, is a
//! case that went wrong in another server of this kind. Build first: `cargo xtask plugins` and `cargo build`.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where it cannot go on, and says where that was"
)]

mod auth;
mod cancel;
mod client_rules;
mod command;
mod crash;
mod definition;
mod denied;
mod directory;
mod edges;
mod ends;
mod fuzz;
mod grants;
mod harness;
mod header;
mod host;
mod keys;
mod ladder;
mod languages;
mod legacy;
mod legacy_streams;
mod listen;
mod loading;
mod outbound;
mod outcome;
mod pages;
mod pipes;
mod plain;
mod prompt;
mod question;
mod rate;
mod reload;
mod replay;
mod request;
mod resource;
mod rmcp_client;
mod rollback;
mod rounds;
mod same_on_stdio;
mod saving;
mod schema;
mod servers;
mod session;
mod share;
mod state;
mod stdio;
mod stdio_end;
mod stdio_noise;
mod stdio_rules;
mod store;
mod storm;
mod strain;
mod task;
mod told;
mod typescript_client;
mod unread;
mod zoo;
