//! The JSON-RPC envelope. An id is echoed as it was written, or left out if it could not be read.

use super::WireError;
use super::object::Object;
use serde_json::value::RawValue;

/// The version of JSON-RPC, as JSON.
const VERSION: &str = "\"2.0\"";

/// Answer a request with a result, the text of a JSON object, or an error.
pub(crate) fn response(id: Option<&RawValue>, answer: &Result<String, WireError>) -> String {
    let envelope = Object::new().line("jsonrpc", VERSION);
    let envelope = match id {
        Some(id) => envelope.raw("id", id.get()),
        None => envelope,
    };
    match answer {
        Ok(result) => envelope.line("result", result),
        Err(error) => envelope.raw("error", &error.to_json()),
    }
    .finish()
}

/// A notification; `params` is the text of a JSON object.
pub(crate) fn notification(method: &str, params: &str) -> String {
    Object::new()
        .line("jsonrpc", VERSION)
        .value("method", &method)
        .raw("params", params)
        .finish()
}
