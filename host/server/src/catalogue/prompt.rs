//! One prompt as clients see it: its definition for the wire, and what a request for it must have.

use super::shelf::{Entry, Kind};
use crate::wire::content::{guest_meta, icons};
use crate::wire::object::Object;
use longshore_runtime::Plugin;
use longshore_runtime::contract::{Prompt, PromptArgument};
use serde::Serialize;
use std::sync::Arc;

/// A prompt that is served.
#[derive(Debug)]
pub(crate) struct CataloguePrompt {
    plugin: Arc<Plugin>,
    /// With its prefix.
    name: String,
    /// As its plugin knows it.
    own_name: String,
    required: Vec<String>,
    definition: String,
}

impl CataloguePrompt {
    /// Check a prompt of a plugin.
    ///
    /// # Errors
    /// Why it cannot be served, and what to do.
    pub(super) fn build(
        plugin: &Arc<Plugin>,
        prompt: &Prompt,
        prefix: &str,
    ) -> Result<Self, String> {
        if prompt.name.is_empty() {
            return Err("it has no name".to_owned());
        }
        let name = format!("{prefix}{}", prompt.name);
        let required = prompt.arguments.iter().filter(|argument| argument.required);
        Ok(Self {
            plugin: plugin.clone(),
            definition: definition(prompt, &name),
            name,
            own_name: prompt.name.clone(),
            required: required.map(|argument| argument.name.clone()).collect(),
        })
    }

    /// Its name as its plugin knows it.
    pub(crate) fn own_name(&self) -> &str {
        &self.own_name
    }

    /// The first argument that must be there and is not.
    pub(crate) fn missing(&self, arguments: &[(String, String)]) -> Option<&str> {
        let given = |name: &String| arguments.iter().any(|(given, _)| given == name);
        self.required
            .iter()
            .find(|name| !given(name))
            .map(String::as_str)
    }
}

impl Entry for CataloguePrompt {
    const KIND: Kind = Kind::Prompt;

    fn key(&self) -> &str {
        &self.name
    }

    fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    fn definition(&self) -> &str {
        &self.definition
    }
}

#[derive(Serialize)]
struct Argument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    required: bool,
}

fn argument(argument: &PromptArgument) -> Argument<'_> {
    Argument {
        name: &argument.name,
        title: argument.title.as_deref(),
        description: argument.description.as_deref(),
        required: argument.required,
    }
}

fn definition(prompt: &Prompt, name: &str) -> String {
    let arguments: Vec<_> = prompt.arguments.iter().map(argument).collect();
    let icons = icons(&prompt.icons);
    Object::new()
        .value("name", &name)
        .option("title", prompt.title.as_ref())
        .option("description", prompt.description.as_ref())
        .option("arguments", (!arguments.is_empty()).then_some(&arguments))
        .option("icons", (!icons.is_empty()).then_some(&icons))
        .option("_meta", guest_meta(prompt.meta.as_deref()).as_ref())
        .finish()
}
