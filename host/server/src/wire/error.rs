//! JSON-RPC errors, each with the HTTP status it travels with.
//!
//! One constructor for each code, so that a code cannot be sent without the data that the schema asks of it.

use super::object::Object;
use super::{ALL_VERSIONS, TASKS};
use http::StatusCode;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// An error as the client sees it.
#[derive(Clone, Debug)]
pub(crate) struct WireError {
    /// The JSON-RPC code.
    pub(crate) code: i32,
    /// One sentence: what is wrong and what to do.
    pub(crate) message: String,
    /// More, for a program.
    pub(crate) data: Option<Box<RawValue>>,
    /// The status of a response that is nothing but this error.
    pub(crate) http_status: StatusCode,
}

impl WireError {
    /// An error that travels with status 200.
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            http_status: StatusCode::OK,
        }
    }

    /// -32700: the body is no JSON.
    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message).with_status(StatusCode::BAD_REQUEST)
    }

    /// -32600: the body is no single request or notification.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message).with_status(StatusCode::BAD_REQUEST)
    }

    /// -32601.
    pub(crate) fn unknown_method(method: &str) -> Self {
        let message = format!("there is no method {}", shortened(method));
        Self::new(-32601, message).with_status(StatusCode::NOT_FOUND)
    }

    /// -32602, with status 200.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// -32602 for a request whose `_meta` is not complete: status 400.
    pub(crate) fn incomplete_meta(message: impl Into<String>) -> Self {
        Self::new(-32602, message).with_status(StatusCode::BAD_REQUEST)
    }

    /// -32603, with a stable `reason` for programs.
    pub(crate) fn internal(reason: &str, message: impl Into<String>) -> Self {
        Self::new(-32603, message).with_data(&json!({ "reason": reason }))
    }

    /// -32603: all places are taken. `limit` is the stable name of how many there are.
    pub(crate) fn busy(message: impl Into<String>, limit: &str, value: u64) -> Self {
        let data = json!({ "reason": "busy", "limit": limit, "value": value });
        Self::new(-32603, message).with_data(&data)
    }

    /// -32020: a header does not say what the body says, or is missing.
    pub(crate) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(-32020, message).with_status(StatusCode::BAD_REQUEST)
    }

    /// -32021: the client would have to declare `required`, an object of the shape of `clientCapabilities`.
    pub(crate) fn missing_capability(message: impl Into<String>, required: &Value) -> Self {
        Self::new(-32021, message)
            .with_data(&json!({ "requiredCapabilities": required }))
            .with_status(StatusCode::BAD_REQUEST)
    }

    /// -32021 for the Tasks extension; `what` needs it.
    pub(crate) fn tasks_required(what: &str) -> Self {
        let message = format!(
            "{what} needs the extension {TASKS}; declare it in clientCapabilities.extensions"
        );
        Self::missing_capability(message, &json!({ "extensions": { TASKS: {} } }))
    }

    /// -32602: nothing of this kind has this name.
    pub(crate) fn unknown(kind: &str, name: &str, list_method: &str) -> Self {
        Self::invalid_params(format!(
            "there is no {kind} {:?}; see {list_method}",
            shortened(name)
        ))
    }

    /// -32602: there is no such resource. Its data says which.
    pub(crate) fn no_such_resource(uri: &str) -> Self {
        let message = format!("there is no resource {:?}", shortened(uri));
        Self::invalid_params(message).with_data(&json!({ "uri": uri }))
    }

    /// -32022. A version that is served elsewhere is told what is served in this place, `here`; any other is told all that there
    /// are.
    pub(crate) fn unsupported_version(requested: &str, here: &[&str]) -> Self {
        let is_elsewhere = ALL_VERSIONS.contains(&requested);
        let served = if is_elsewhere { here } else { &ALL_VERSIONS };
        let requested = shortened(requested);
        let message = format!(
            "protocol version {requested} is not served; served: {}",
            served.join(", ")
        );
        Self::new(-32022, message)
            .with_data(&json!({ "supported": served, "requested": requested }))
            .with_status(StatusCode::BAD_REQUEST)
    }

    /// The same with `data`.
    pub(crate) fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = to_raw_value(data).ok();
        self
    }

    /// The same with another HTTP status.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.http_status = status;
        self
    }

    /// The error object, as JSON text in one line.
    pub(crate) fn to_json(&self) -> String {
        let object = Object::new()
            .value("code", &self.code)
            .value("message", &self.message);
        match &self.data {
            Some(data) => object.raw("data", data.get()),
            None => object,
        }
        .finish()
    }
}

/// Text of a client that is repeated in an error: at most 128 characters of it.
pub(crate) fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 128;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
