//! The prompts that the suite fills in, and what it completes.

use longshore_plugin::{Content, Message, Reply, Result, Typed, form};
use schemars::JsonSchema;
use serde::Deserialize;

const PIXEL: &[u8] = include_bytes!("pixel.png");

pub(crate) fn simple() -> &'static str {
    "This is a simple prompt for testing."
}

/// Repeats its two arguments.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// The first argument
    arg1: String,
    /// The second argument
    arg2: String,
}

pub(crate) fn with_arguments(args: Arguments) -> String {
    format!(
        "Prompt with arguments: arg1='{}', arg2='{}'",
        args.arg1, args.arg2
    )
}

/// Embeds a resource.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Embedded {
    /// The URI of the resource
    resource_uri: String,
}

pub(crate) fn with_resource(args: Embedded) -> Vec<Message> {
    let text = "Embedded resource content for testing.";
    vec![
        Message::user(Content::embedded_text(
            args.resource_uri,
            "text/plain",
            text,
        )),
        Message::user("Please process the embedded resource above."),
    ]
}

pub(crate) fn with_image() -> Vec<Message> {
    vec![
        Message::user(Content::image(PIXEL, "image/png")),
        Message::user("Please analyze the image above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Context {
    /// What the prompt should take into account
    context: String,
}

pub(crate) fn asking() -> Result<String> {
    let context = form::<Context>("What context should the prompt use?")
        .named("user_context")
        .ask()?;
    Ok(match context {
        Reply::Accepted(answer) => format!("Use the following context: {}", answer.context),
        Reply::Declined | Reply::Cancelled => "Use no context.".into(),
    })
}

/// What the argument `arg1` may hold.
const KNOWN: [&str; 3] = ["test", "testValue1", "testing"];

pub(crate) fn complete_arg1(typed: &Typed) -> Vec<&'static str> {
    let fits = |value: &&str| value.starts_with(&typed.value);
    KNOWN.into_iter().filter(fits).collect()
}
