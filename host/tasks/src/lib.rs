//! The task engine: what a task is, how it changes, and who drives it.
//!
//! Owns the state machine ([`state`]), the decisions ([`decide`]), the store's trait with its
//! in-memory twin ([`store`]) and the async driver ([`engine`]).
//!
//! Must not know: WebAssembly, HTTP, JSON, any database. What travels on the wire is opaque text
//! here ([`Payload`]); how a call is run is a [`Runner`]'s business.

pub mod clock;
pub mod codec;
pub mod decide;
pub mod engine;
pub mod id;
pub mod model;
pub mod run;
pub mod state;
pub mod store;

pub use clock::{Clock, ManualClock, SystemClock};
pub use decide::Patience;
pub use engine::{Engine, EngineError, Ports, Settings};
pub use id::{Principal, TaskId};
pub use model::{Birth, Call, Checkpoint, OnCrash, Payload, Question, Said, Status, TaskView};
pub use run::{Failures, Past, Reason, Run, Runner, Step};
pub use store::{MemoryStore, Put, Store, StoreError, Stored};
