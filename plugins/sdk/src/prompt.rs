//! A prompt: a function that fills it in, with what clients are told of it.

use crate::contract::prompts::exports::longshore::plugin::prompts as contract;
use crate::{Content, Error, Icon, Result, Role, RpcError, schema, values};
use contract::PromptArgument;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

pub use contract::{PromptMessage as Message, PromptResult};

impl Message {
    /// Something that the user says.
    pub fn user(content: impl Into<Content>) -> Self {
        Self {
            role: Role::User,
            content: content.into(),
        }
    }

    /// Something that the model says.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
        }
    }
}

/// What a prompt may return: text (one message of the user), one [`Message`] or several, a [`PromptResult`], or a `Result` of
/// one of these.
pub trait Filled: Sized {
    /// The filled prompt.
    ///
    /// # Errors
    /// If the prompt could not be filled in.
    fn fill(self) -> Result<PromptResult>;
}

impl Filled for PromptResult {
    fn fill(self) -> Result<PromptResult> {
        Ok(self)
    }
}

impl Filled for Vec<Message> {
    fn fill(self) -> Result<PromptResult> {
        Ok(PromptResult {
            description: None,
            messages: self,
            meta: None,
        })
    }
}

impl Filled for Message {
    fn fill(self) -> Result<PromptResult> {
        vec![self].fill()
    }
}

impl Filled for String {
    fn fill(self) -> Result<PromptResult> {
        Message::user(self).fill()
    }
}

impl Filled for &str {
    fn fill(self) -> Result<PromptResult> {
        Message::user(self).fill()
    }
}

impl<T: Filled, E: Into<Error>> Filled for Result<T, E> {
    fn fill(self) -> Result<PromptResult> {
        self.map_err(Into::into)?.fill()
    }
}

/// What can fill in a prompt: a function of one argument (a struct of plain values) or of none.
pub trait PromptHandler<Signature> {
    /// The schema of the arguments.
    fn input_schema() -> Value;
    /// Fills it in.
    ///
    /// # Errors
    /// If the arguments cannot be read, or the prompt could not be filled in.
    fn handle(&self, arguments: &[(String, String)]) -> Result<PromptResult>;
}

impl<F, A, R> PromptHandler<fn(A) -> R> for F
where
    F: Fn(A) -> R,
    A: DeserializeOwned + JsonSchema,
    R: Filled,
{
    fn input_schema() -> Value {
        schema::of_input::<A>()
    }

    fn handle(&self, arguments: &[(String, String)]) -> Result<PromptResult> {
        let arguments = values::read(arguments).map_err(|error| {
            RpcError::invalid_params(format!("the arguments cannot be used: {error}"))
        })?;
        self(arguments).fill()
    }
}

impl<F, R> PromptHandler<fn() -> R> for F
where
    F: Fn() -> R,
    R: Filled,
{
    fn input_schema() -> Value {
        schema::of_nothing()
    }

    fn handle(&self, _arguments: &[(String, String)]) -> Result<PromptResult> {
        self().fill()
    }
}

/// A prompt by the name of `name`, filled in by `handler`.
///
/// Its description is the doc comment of the arguments' type; those of the fields describe the arguments.
pub fn prompt<S, H: PromptHandler<S> + 'static>(name: &str, handler: H) -> Prompt {
    Prompt {
        name: name.into(),
        title: None,
        description: None,
        input_schema: H::input_schema,
        icons: Vec::new(),
        meta: None,
        handle: Box::new(move |arguments| handler.handle(arguments)),
    }
}

/// Fills in one prompt.
type Fill = Box<dyn Fn(&[(String, String)]) -> Result<PromptResult>>;

/// A prompt. Made by [`prompt`].
pub struct Prompt {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: fn() -> Value,
    icons: Vec<Icon>,
    meta: Option<String>,
    handle: Fill,
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Prompt {
    /// A name for a person.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What the prompt is for.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Adds a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Sets `_meta`, a JSON object.
    #[must_use]
    pub fn meta(mut self, meta: &serde_json::Map<String, Value>) -> Self {
        self.meta = Some(Value::Object(meta.clone()).to_string());
        self
    }

    fn definition(&self) -> contract::Prompt {
        let schema = (self.input_schema)();
        let doc = schema["description"].as_str().map(str::to_owned);
        contract::Prompt {
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone().or(doc),
            arguments: self.arguments(&schema),
            icons: self.icons.clone(),
            meta: self.meta.clone(),
        }
    }

    fn arguments(&self, schema: &Value) -> Vec<PromptArgument> {
        let required = |name: &str| {
            let names = schema["required"].as_array();
            names.is_some_and(|names| names.iter().any(|listed| listed == name))
        };
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields
            .map(|(name, field)| {
                assert!(
                    field["type"] != "object" && field["type"] != "array",
                    "prompt `{}`: its argument `{name}` must be a plain value",
                    self.name
                );
                PromptArgument {
                    name: name.clone(),
                    title: None,
                    description: field["description"].as_str().map(str::to_owned),
                    required: required(name),
                }
            })
            .collect()
    }
}

/// What [`plugin!`](crate::plugin) lists.
pub fn prompt_definitions(prompts: &[Prompt]) -> Vec<contract::Prompt> {
    prompts.iter().map(Prompt::definition).collect()
}

/// Fills in one prompt; what [`plugin!`](crate::plugin) does.
///
/// # Errors
/// If there is no such prompt, the request is wrong, or it could not be filled in.
pub fn fill_prompt(
    prompts: &[Prompt],
    name: &str,
    arguments: &[(String, String)],
) -> Result<PromptResult, RpcError> {
    let prompt = prompts
        .iter()
        .find(|prompt| prompt.name == name)
        .ok_or_else(|| RpcError::invalid_params(format!("there is no prompt `{name}`")))?;
    (prompt.handle)(arguments).map_err(Error::into_rpc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// Asks for a poem.
    #[derive(Deserialize, JsonSchema)]
    struct Poem {
        /// What it is about.
        topic: String,
        lines: Option<u8>,
    }

    fn poem(args: Poem) -> String {
        format!("{} lines about {}", args.lines.unwrap_or(4), args.topic)
    }

    fn filled(arguments: &[(&str, &str)]) -> Result<PromptResult, RpcError> {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect();
        fill_prompt(&[prompt("poem", poem)], "poem", &arguments)
    }

    #[test]
    fn types_describe_a_prompt() {
        let definition = prompt("poem", poem).definition();
        assert_eq!(definition.description.as_deref(), Some("Asks for a poem."));
        let told: Vec<_> = definition
            .arguments
            .iter()
            .map(|argument| {
                (
                    argument.name.as_str(),
                    argument.description.as_deref(),
                    argument.required,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("topic", Some("What it is about."), true),
                ("lines", None, false)
            ]
        );
        assert_eq!(prompt("none", || "x").definition().arguments, []);
    }

    #[test]
    fn text_is_a_message_of_the_user() {
        let result = filled(&[("topic", "rain"), ("lines", "2")]).unwrap();
        assert_eq!(result.messages, [Message::user("2 lines about rain")]);
    }

    #[test]
    fn wrong_arguments_are_a_wrong_request() {
        for wrong in [&[("topic", "rain"), ("lines", "two")][..], &[]] {
            assert_eq!(filled(wrong).unwrap_err().code, -32602);
        }
    }
}
