//! The params of each method: their shape (rung 18 of the ladder).

use crate::catalogue::CatalogueTool;
use crate::members::Members;
use crate::meta::Meta;
use crate::wire::WireError;
use longshore_tasks::Principal;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A call of a tool, its headers, name and shape found right.
#[derive(Debug)]
pub(crate) struct CallRequest {
    /// The tool.
    pub(crate) tool: Arc<CatalogueTool>,
    /// The text of a JSON object.
    pub(crate) arguments: String,
    /// What the request says of its client.
    pub(crate) meta: Meta,
    /// Answers, not yet looked at.
    pub(crate) input_responses: Option<Box<RawValue>>,
    /// State of an earlier round, not yet looked at.
    pub(crate) request_state: Option<Box<RawValue>>,
    /// Who calls.
    pub(crate) principal: Principal,
}

/// A member that must be a string.
pub(crate) fn string(params: &Members, name: &str) -> Result<String, WireError> {
    params
        .string(name)
        .ok_or_else(|| WireError::invalid_params(format!("params.{name} must be a string")))
}

/// A member that must be an object; it is taken out.
pub(crate) fn object(params: &mut Members, name: &str) -> Result<Box<RawValue>, WireError> {
    params
        .take(name)
        .filter(|value| value.get().starts_with('{'))
        .ok_or_else(|| WireError::invalid_params(format!("params.{name} must be an object")))
}

/// A member that may be absent, and else must be a string.
pub(crate) fn optional_string(params: &Members, name: &str) -> Result<Option<String>, WireError> {
    match params.get(name) {
        Some(_) => string(params, name).map(Some),
        None => Ok(None),
    }
}
