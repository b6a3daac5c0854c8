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
//! **A run may be made again.** While a question waits for its answer, the host may drop the plugin and later run it from the
//! start, with the answer at hand. Clocks, random numbers and answers are then the same, so that ordinary code arrives at the
//! same point by itself and needs no care.
//!
//! This crate owns the way from a Rust function to the contract in `wit/`. It knows nothing of the wire.

mod answer;
mod ask;
mod call;
mod content;
pub mod contract;
mod error;
mod form;
pub mod log;
pub mod notify;
mod sample;
mod schema;
mod tool;

pub use answer::{Answer, Completed, Json};
pub use ask::{
    Confirm, Page, Question, Questions, Reply, Roots, ask, ask_all, confirm, form, roots, url,
};
pub use call::{
    begin, cancelled, client_features, context, external_id, progress, set_external_id,
    stop_if_cancelled,
};
pub use content::{CallResult, Content};
pub use error::{AskError, Error, Result, RpcError};
pub use form::Form;
pub use sample::{Sample, Sampled, sample};
pub use tool::{Handler, TaskSupport, Tool, definitions, serve, tool};

pub use contract::longshore::plugin::task::{CallContext, Root};
pub use contract::longshore::plugin::types::{
    Annotations, ClientFeatures, Icon, IconTheme, LogLevel, ResourceLink, Role,
};

pub use schemars;
pub use serde;
pub use serde_json;

/// Makes a plugin of tools. Call it once in a crate of type `cdylib`.
///
/// ```
/// use longshore_plugin::tool;
///
/// longshore_plugin::plugin! {
///     tools: [
///         tool("ping", || "pong").description("Answers.").read_only(),
///         tool("wait", || std::thread::sleep(std::time::Duration::from_secs(60)))
///             .description("Takes a minute.")
///             .task_required(),
///     ]
/// }
/// ```
#[macro_export]
macro_rules! plugin {
    (tools: [$($tool:expr),+ $(,)?] $(,)?) => {
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct LongshorePlugin;

        impl LongshorePlugin {
            #[doc(hidden)]
            pub fn tools() -> ::std::vec::Vec<$crate::Tool> {
                ::std::vec![$($tool),+]
            }
        }

        impl $crate::contract::exports::longshore::plugin::tools::Guest for LongshorePlugin {
            fn list() -> ::std::vec::Vec<$crate::contract::exports::longshore::plugin::tools::Tool> {
                $crate::definitions(&Self::tools())
            }

            fn call(
                name: ::std::string::String,
                arguments: ::std::string::String,
            ) -> ::std::result::Result<(), $crate::RpcError> {
                $crate::serve(&Self::tools(), &name, &arguments)
            }
        }

        // Native builds (tests of a plugin's own logic) have no host to export to.
        #[cfg(target_arch = "wasm32")]
        $crate::contract::export!(LongshorePlugin with_types_in $crate::contract);
    };
}

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
