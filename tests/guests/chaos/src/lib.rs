//! A guest that gives arbitrary values wherever it can give one: lists, definitions, results, errors, questions, progress, logs.
//!
//! All follows from the variable `SEED`, what is called, and its arguments, so a call that is run again does the same again.

mod asks;
mod contents;
mod dice;
mod gives;
mod lists;

#[allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod contract {
    wit_bindgen::generate!({ path: "../../../wit", world: "full" });
}

use contract::exports::longshore::plugin::{completions, prompts, resources, tools};
use contract::longshore::plugin::types::RpcError;
use dice::Dice;

/// What is offered beside all that is random, so that there is something to call: a tool, a prompt and a resource.
pub(crate) const KNOWN: &str = "chaos";
pub(crate) const KNOWN_URI: &str = "chaos://";

/// The plugin.
#[derive(Debug)]
pub struct Chaos;

impl tools::Guest for Chaos {
    fn list() -> Vec<tools::Tool> {
        lists::tools(&mut Dice::of(&["tools"]))
    }

    fn call(name: String, arguments: String) -> Result<(), RpcError> {
        gives::serve(&mut Dice::of(&["call", &name, &arguments]))
    }
}

impl prompts::Guest for Chaos {
    fn list() -> Vec<prompts::Prompt> {
        lists::prompts(&mut Dice::of(&["prompts"]))
    }

    fn get(
        name: String,
        arguments: Vec<(String, String)>,
    ) -> Result<prompts::PromptResult, RpcError> {
        let dice = &mut Dice::of(&["get", &name, &format!("{arguments:?}")]);
        gives::act(dice);
        gives::or_error(dice, gives::prompt)
    }
}

impl resources::Guest for Chaos {
    fn list() -> Vec<resources::ResourceEntry> {
        lists::resources(&mut Dice::of(&["resources"]))
    }

    fn templates() -> Vec<resources::ResourceTemplate> {
        lists::templates(&mut Dice::of(&["templates"]))
    }

    fn read(uri: String) -> Result<resources::ReadOutcome, RpcError> {
        let dice = &mut Dice::of(&["read", &uri]);
        gives::act(dice);
        gives::or_error(dice, gives::outcome)
    }

    fn subscribe(uri: String) -> Result<(), RpcError> {
        gives::or_error(&mut Dice::of(&["subscribe", &uri]), |_| ())
    }

    fn unsubscribe(uri: String) -> Result<(), RpcError> {
        gives::or_error(&mut Dice::of(&["unsubscribe", &uri]), |_| ())
    }
}

impl completions::Guest for Chaos {
    fn complete(
        _: completions::CompletionTarget,
        argument: String,
        value: String,
        _: Vec<(String, String)>,
    ) -> Result<completions::Completion, RpcError> {
        let dice = &mut Dice::of(&["complete", &argument, &value]);
        gives::act(dice);
        gives::or_error(dice, gives::completion)
    }
}

#[cfg(target_arch = "wasm32")]
contract::export!(Chaos with_types_in contract);
