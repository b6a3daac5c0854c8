//! What the outer tests drive the real `longshore` with: its process, a client of the wire, the official schemas.
//!
//! It knows the wire and the command line, as any client and operator does. It must not know the host's crates: a test that
//! looks inside would pass when a client fails.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where it cannot go on, and says where that was"
)]

pub mod archive;
pub mod client;
pub mod era;
mod home;
pub mod http;
pub mod legacy;
mod legacy_schema;
pub mod machine;
mod message;
pub mod origin;
pub mod relay;
pub mod save;
pub mod schema;
pub mod server;
pub mod stdio;
pub mod tap;
mod task;
pub mod wait;
