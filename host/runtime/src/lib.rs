//! Runs plugins: WebAssembly components that speak `longshore:plugin`.
//!
//! One verb: a *run* is one execution of a guest for a call, from a record of what earlier runs of the call learned from
//! outside. [`Runtime`] keeps the plugins of a directory loaded and current; [`Runtime::run`] starts a run and gives back a
//! [`Run`], which reports [`Step`]s until the last one.
//!
//! **A run that is started from a record arrives at the same question again**; whoever holds it then answers. Dropping a
//! [`Run`] ends its guest at once.
//!
//! This crate must not know of tasks, transports, or the JSON shapes of MCP. Its values are those of the contract in `wit/`.

mod admission;
mod cache;
mod call;
mod clock;
mod compile;
mod content;
pub mod contract;
mod definitions;
mod desk;
mod engine;
mod failure;
mod files;
mod grants;
mod guest;
mod history;
pub mod json;
mod limits;
mod load;
mod news;
mod order;
mod outbound;
mod plugin;
mod record;
mod registry;
mod run;
mod unseen;
mod versions;
mod wants;
mod watch;

pub use admission::Patience;
pub use call::{Call, Context, Names, Work};
pub use compile::{Compiler, child_main};
pub use definitions::Change;
pub use failure::{Exceeded, Failure};
pub use files::{open_regular, private_folder, read_or_make_key};
pub use grants::{Ask, DirectoryGrant, Grants, GrantsPrint, HostGrant, Variable, key_of};
pub use history::{Cause, Served};
pub use limits::{Limit, Limits};
pub use news::{News, NewsKind};
pub use order::OrderError;
pub use outbound::read_authorities;
pub use plugin::{Inspection, Plugin, PluginError, Version};
pub use record::Record;
pub use registry::{Pins, PluginSettings, Refusal, Runtime, Settings, Snapshot};
pub use run::{Answer, LogMessage, Naming, Progress, Question, Run, Step, Usage};
pub use unseen::is_unseen;
pub use versions::{Why, Withheld};
pub use wants::Wants;
