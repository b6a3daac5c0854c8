//! The engine through its public API, with scripted runs and a clock that is moved by hand.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod answers;
mod cancel;
mod crash;
mod expiry;
mod faults;
mod fire;
mod life;
mod principals;
mod recovery;
mod schedule;
mod script;
mod world;
