//! Write a Longshore plugin: a tool is a plain function.
//!
//! ```
//! use longshore_plugin::{Json, Result, tool};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// Counts the words of a text.
//! #[derive(Deserialize, JsonSchema)]
//! struct CountWords {
//!     /// The text to look at.
//!     text: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Count {
//!     words: usize,
//! }
//!
//! fn count_words(args: CountWords) -> Result<Json<Count>> {
//!     Ok(Json(Count { words: args.text.split_whitespace().count() }))
//! }
//!
//! longshore_plugin::plugin! { tools: [tool("count_words", count_words)] }
//! ```
//!
//! Types do the describing: the arguments' type gives the input schema, its doc comment the description that the model reads,
//! [`Json`] of a type gives the output schema. What goes wrong is an error like any other, passed on with `?`
//! (see [`Error`]). While it works, a tool may report [`progress`], ask the user ([`ask`], [`confirm`], [`form`], [`url`]), the
//! client's model ([`sample`]) or the client ([`roots`]), write to the [`log`] and see that nobody waits any more ([`cancelled`]).
//!
//! Besides tools a plugin may have [prompts](prompt()), [resources](resource()), [families of resources](template()) and
//! [completions](complete_prompt); [`plugin!`] exports what it is given and nothing else.
//!
//! **A run may be made again.** While a question waits for its answer, the host may drop the plugin and later run it from the
//! start, with the answer at hand. Clocks, random numbers and answers are then the same, so that ordinary code arrives at the
//! same point by itself and needs no care.
//!
//! This crate owns the way from a Rust function to the contract in `wit/`. It knows nothing of the wire.

mod answer;
mod ask;
mod call;
mod completion;
mod content;
pub mod contract;
mod error;
mod form;
pub mod http;
mod json;
pub mod log;
pub mod notify;
mod plugin;
mod prompt;
mod resource;
mod sample;
mod schema;
mod template;
mod tool;
mod uri;
mod values;

pub use answer::{Answer, Completed, Json};
pub use ask::{
    Confirm, Page, Question, Questions, Reply, Roots, ask, ask_all, confirm, form, roots, url,
};
pub use call::{
    begin, cancelled, client_features, context, external_id, progress, set_external_id,
    stop_if_cancelled,
};
pub use completion::{Completer, Typed, complete, complete_prompt, complete_template};
pub use content::{CallResult, Content};
pub use error::{AskError, Error, Result, RpcError};
pub use form::Form;
pub use prompt::{
    Filled, Message, Prompt, PromptHandler, PromptResult, fill_prompt, prompt, prompt_definitions,
};
pub use resource::{Document, Resource, not_found, resource, resource_entries};
pub use sample::{Sample, Sampled, sample};
pub use template::{Template, follow_resource, read_resource, template, template_entries};
pub use tool::{Handler, TaskSupport, Tool, definitions, serve, tool};

pub use contract::longshore::plugin::task::{CallContext, Root};
pub use contract::longshore::plugin::types::{
    Annotations, ClientFeatures, Icon, IconTheme, LogLevel, ResourceBody, ResourceContents,
    ResourceLink, Role,
};

pub use schemars;
pub use serde;
pub use serde_json;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
