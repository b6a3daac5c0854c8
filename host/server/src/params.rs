//! The params of each method: their shape (rung 18 of the ladder).

use crate::catalogue::Kind;
use crate::listen::filter::Filter;
use crate::members::Members;
use crate::message::Request;
use crate::method::Method;
use crate::strict;
use crate::wire::WireError;
use longshore_runtime::contract::CompletionTarget;
use serde_json::Value;
use serde_json::value::RawValue;

/// Params whose shape was found right.
pub(crate) enum Checked {
    /// `server/discover`
    Discover,
    /// One of the lists.
    List {
        /// Of what.
        kind: Kind,
        /// Where to go on.
        cursor: Option<String>,
    },
    /// `tools/call`
    CallTool(Box<ToolParams>, Rounds),
    /// `prompts/get`
    GetPrompt {
        /// The prompt.
        name: String,
        /// Name and value, by name.
        arguments: Vec<(String, String)>,
        rounds: Rounds,
    },
    /// `resources/read`
    ReadResource {
        /// The resource.
        uri: String,
        rounds: Rounds,
    },
    /// `completion/complete`
    Complete(Box<CompleteParams>),
    /// `subscriptions/listen`
    Listen(Box<Filter>),
    /// `tasks/get`
    GetTask {
        /// The task.
        id: String,
    },
    /// `tasks/update`
    UpdateTask {
        /// The task.
        id: String,
        /// Answers, not yet looked at.
        responses: Box<RawValue>,
    },
    /// `tasks/cancel`
    CancelTask {
        /// The task.
        id: String,
    },
}

/// A call of a tool.
pub(crate) struct ToolParams {
    /// The tool.
    pub(crate) name: String,
    /// The arguments as they were written: the text of an object.
    pub(crate) text: String,
    /// The same, parsed.
    pub(crate) arguments: Value,
}

/// A wish for suggestions.
pub(crate) struct CompleteParams {
    /// Whose argument is typed.
    pub(crate) target: CompletionTarget,
    /// Its name.
    pub(crate) argument: String,
    /// What was typed.
    pub(crate) value: String,
    /// What other arguments hold.
    pub(crate) known: Vec<(String, String)>,
}

/// What a request brings from earlier rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Answers, not yet looked at.
    pub(crate) input_responses: Option<Box<RawValue>>,
    /// State of an earlier round, not yet looked at.
    pub(crate) request_state: Option<Box<RawValue>>,
}

/// Check the shape of a request's params.
///
/// # Errors
/// -32602, naming the member.
pub(crate) fn shape(method: Method, request: Request) -> Result<Checked, WireError> {
    let mut params = request.params;
    Ok(match method {
        Method::Discover => Checked::Discover,
        Method::ListTools => list(Kind::Tool, &params)?,
        Method::ListPrompts => list(Kind::Prompt, &params)?,
        Method::ListResources => list(Kind::Resource, &params)?,
        Method::ListTemplates => list(Kind::Template, &params)?,
        Method::GetTask => Checked::GetTask {
            id: string(&params, "taskId")?,
        },
        Method::CancelTask => Checked::CancelTask {
            id: string(&params, "taskId")?,
        },
        Method::UpdateTask => Checked::UpdateTask {
            id: string(&params, "taskId")?,
            responses: object(&mut params, "inputResponses")?,
        },
        Method::CallTool => Checked::CallTool(Box::new(tool(&mut params)?), rounds(&mut params)),
        Method::GetPrompt => Checked::GetPrompt {
            name: string(&params, "name")?,
            arguments: strings(&mut params, "arguments")?,
            rounds: rounds(&mut params),
        },
        Method::ReadResource => Checked::ReadResource {
            uri: string(&params, "uri")?,
            rounds: rounds(&mut params),
        },
        Method::Listen => {
            let notifications = members(&mut params, "notifications")?;
            Checked::Listen(Box::new(Filter::read(&notifications)?))
        }
        Method::Complete => Checked::Complete(Box::new(completion(&mut params)?)),
    })
}

fn list(kind: Kind, params: &Members) -> Result<Checked, WireError> {
    let cursor = match params.get("cursor") {
        Some(_) => Some(string(params, "cursor")?),
        None => None,
    };
    Ok(Checked::List { kind, cursor })
}

fn tool(params: &mut Members) -> Result<ToolParams, WireError> {
    let name = string(params, "name")?;
    let text = params
        .take("arguments")
        .map_or_else(|| "{}".to_owned(), text_of);
    let arguments = strict::parse(&text)
        .map_err(|error| WireError::invalid_params(format!("params.arguments: {error}")))?;
    if !arguments.is_object() {
        return Err(must_be("arguments", "an object"));
    }
    Ok(ToolParams {
        name,
        text,
        arguments,
    })
}

fn text_of(json: Box<RawValue>) -> String {
    let text: Box<str> = json.into();
    text.into()
}

fn rounds(params: &mut Members) -> Rounds {
    Rounds {
        input_responses: params.take("inputResponses"),
        request_state: params.take("requestState"),
    }
}

fn completion(params: &mut Members) -> Result<CompleteParams, WireError> {
    let reference = members(params, "ref")?;
    let part = |name: &str| {
        let value = reference.string(name);
        value.ok_or_else(|| must_be(&format!("ref.{name}"), "a string"))
    };
    let target = match part("type")?.as_str() {
        "ref/prompt" => CompletionTarget::Prompt(part("name")?),
        "ref/resource" => CompletionTarget::ResourceTemplate(part("uri")?),
        _ => return Err(must_be("ref.type", "ref/prompt or ref/resource")),
    };
    let argument = members(params, "argument")?;
    let part = |name: &str| {
        let value = argument.string(name);
        value.ok_or_else(|| must_be(&format!("argument.{name}"), "a string"))
    };
    let known = match params.get("context") {
        Some(_) => strings(&mut members(params, "context")?, "arguments")
            .map_err(|_| must_be("context.arguments", "an object whose values are strings"))?,
        None => Vec::new(),
    };
    Ok(CompleteParams {
        target,
        argument: part("name")?,
        value: part("value")?,
        known,
    })
}

fn must_be(name: &str, kind: &str) -> WireError {
    WireError::invalid_params(format!("params.{name} must be {kind}"))
}

/// A member that must be a string.
fn string(params: &Members, name: &str) -> Result<String, WireError> {
    params.string(name).ok_or_else(|| must_be(name, "a string"))
}

/// A member that must be an object; it is taken out.
fn object(params: &mut Members, name: &str) -> Result<Box<RawValue>, WireError> {
    params
        .take(name)
        .filter(|value| value.get().starts_with('{'))
        .ok_or_else(|| must_be(name, "an object"))
}

/// A member that must be an object, taken apart.
fn members(params: &mut Members, name: &str) -> Result<Members, WireError> {
    let object = object(params, name)?;
    Members::parse(object.get())
        .map_err(|error| WireError::invalid_params(format!("params.{name}: {error}")))
}

/// A member that may be absent, and else must be an object of strings: name and value, by name.
fn strings(params: &mut Members, name: &str) -> Result<Vec<(String, String)>, WireError> {
    if params.get(name).is_none() {
        return Ok(Vec::new());
    }
    let strings = members(params, name)?.into_strings();
    strings.ok_or_else(|| must_be(name, "an object whose values are strings"))
}
