//! Questions that are too many, or none.

use longshore_plugin::contract::longshore::plugin::task;
use longshore_plugin::{AskError, Confirm, Result, ask_all, confirm, form, url};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Asks questions, one after the other.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Flood {
    n: u32,
}

pub(crate) fn question_flood(args: Flood) -> Result<String> {
    for question in 1..=args.n {
        confirm(&format!("Question {question} of {}?", args.n))?;
    }
    Ok(format!("asked {} questions", args.n))
}

/// Asks questions, all at once.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Many {
    n: u32,
}

pub(crate) fn question_many(args: Many) -> Result<String> {
    let question = |n| Confirm::new("Yes?").named(&format!("question_{n}"));
    let answers = ask_all((0..args.n).map(question).collect::<Vec<_>>())?;
    Ok(format!("got {} answers", answers.len()))
}

/// Asks with a schema of the caller's choice.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WithSchema {
    /// Any text; the default is a form with a nested object, which no form may have.
    schema: Option<String>,
}

const NESTED: &str =
    r#"{"type":"object","properties":{"inner":{"type":"object","properties":{}}}}"#;

pub(crate) fn question_schema(args: WithSchema) -> Result<String> {
    let schema = args.schema.unwrap_or_else(|| NESTED.into());
    outcome(
        form::<Value>("Fill this in.")
            .named("form")
            .schema(schema)
            .ask(),
    )
}

/// Asks by a name of the caller's choice.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WithName {
    /// Any text; the default is no valid name.
    #[serde(default = "bad_name")]
    name: String,
}

fn bad_name() -> String {
    "no name\n".into()
}

pub(crate) fn question_name(args: WithName) -> Result<String> {
    outcome(Confirm::new("Yes?").named(&args.name).ask())
}

pub(crate) fn question_same_name() -> Result<String> {
    outcome(ask_all((Confirm::new("First?"), Confirm::new("Second?"))))
}

/// Asks to open a page of the caller's choice.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WithUrl {
    /// Any text; the default is no page.
    #[serde(default = "bad_url")]
    url: String,
}

fn bad_url() -> String {
    "javascript:alert(1)".into()
}

pub(crate) fn question_url(args: WithUrl) -> Result<String> {
    outcome(url("Open it.", &args.url).ask())
}

pub(crate) fn question_none() -> String {
    format!("{:?}", task::request_input(&[]))
}

/// An invalid question is told, not raised, so that a test can read why.
fn outcome<T: std::fmt::Debug>(answer: Result<T, AskError>) -> Result<String> {
    match answer {
        Err(AskError::Invalid(why)) => Ok(format!("invalid: {why}")),
        other => Ok(format!("answered: {:?}", other?)),
    }
}
