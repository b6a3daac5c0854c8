//! What the suite calls only on the 2025-11-25 wire.

use longshore_plugin::{AskError, Reply, Result, form, log, sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(50);

pub(crate) fn with_logging() -> &'static str {
    log::info("Tool execution started");
    sleep(STEP);
    log::info("Tool processing data");
    sleep(STEP);
    log::info("Tool execution completed");
    "Tool with logging executed successfully"
}

/// Passes a prompt to the client's model.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Sampling {
    /// What to ask the model.
    prompt: String,
}

pub(crate) fn sampling(args: Sampling) -> Result<String> {
    let answer = sample(&args.prompt).max_tokens(100).ask()?;
    Ok(format!("LLM response: {}", answer.text()))
}

/// Asks the user for a name and an address.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Elicitation {
    /// What to tell the user.
    message: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Account {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

pub(crate) fn elicitation(args: Elicitation) -> Result<String> {
    let reply = form::<Account>(&args.message).named("account").ask()?;
    Ok(describe(reply))
}

pub(crate) fn defaults() -> Result<String, AskError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
        "required": [],
    });
    ask_raw(
        "Please review and update the form fields with defaults",
        &schema,
    )
}

pub(crate) fn enums() -> Result<String, AskError> {
    let titled = json!([
        { "const": "value1", "title": "First Option" },
        { "const": "value2", "title": "Second Option" },
        { "const": "value3", "title": "Third Option" },
    ]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
        "required": [],
    });
    ask_raw("Please select options from the enum fields", &schema)
}

fn ask_raw(message: &str, schema: &Value) -> Result<String, AskError> {
    let reply = form::<Value>(message)
        .named("form")
        .schema(schema.to_string())
        .ask()?;
    Ok(describe(reply))
}

fn describe<T: Serialize>(reply: Reply<T>) -> String {
    match reply {
        Reply::Accepted(content) => {
            format!(
                "Elicitation completed: action=accept, content={}",
                json!(content)
            )
        }
        Reply::Declined => "Elicitation completed: action=decline".into(),
        Reply::Cancelled => "Elicitation completed: action=cancel".into(),
    }
}

pub(crate) fn reconnection() -> &'static str {
    sleep(STEP * 10);
    "Reconnection test completed successfully"
}
