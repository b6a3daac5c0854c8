//! Results that are missing, double, broken or too large, and errors that a guest may not raise.

use longshore_plugin::contract::longshore::plugin::task;
use longshore_plugin::{Answer, CallResult, Completed, Content, Result, RpcError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::hint::black_box;

/// Nothing is given to the host.
pub(crate) struct Silence;

impl Answer for Silence {
    fn give(self) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn no_result() -> Silence {
    Silence
}

fn first() -> Result<Completed, RpcError> {
    CallResult::new().text("the first result").complete()
}

pub(crate) fn complete_twice() -> Result<Completed, RpcError> {
    let completed = first()?;
    match task::complete(&CallResult::new().text("the second result")) {
        Err(task::CompleteError::AlreadyComplete) => Ok(completed),
        other => panic!("a second result was answered with {other:?}"),
    }
}

pub(crate) fn complete_then_trap() -> Result<Completed, RpcError> {
    let _completed = first()?;
    panic!("trapped after the result");
}

pub(crate) fn complete_then_fail() -> Result<Completed, RpcError> {
    let _completed = first()?;
    Err(RpcError::internal("failed after the result"))
}

pub(crate) fn complete_then_spin() -> Result<Completed, RpcError> {
    let _completed = first()?;
    loop {
        black_box(());
    }
}

/// Gives a large result.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Big {
    /// How large its text is.
    mib: usize,
}

pub(crate) fn big(args: Big) -> String {
    "x".repeat(args.mib << 20)
}

fn structured(json: impl Into<String>) -> CallResult {
    CallResult {
        structured_content: Some(json.into()),
        ..CallResult::new().text("see structure")
    }
}

pub(crate) fn bad_json() -> CallResult {
    structured(r#"{"n": 1"#)
}

/// Gives structured content that is nested deeply.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeepJson {
    levels: usize,
}

pub(crate) fn deep_json(args: DeepJson) -> CallResult {
    structured("[".repeat(args.levels) + &"]".repeat(args.levels))
}

pub(crate) fn forge_meta() -> CallResult {
    let meta = json!({ "longshore/usage": { "fuel": 0 }, "longshore/plugin": "another", "example.com/own": 1 });
    CallResult {
        meta: Some(meta.to_string()),
        ..CallResult::new().text("forged")
    }
}

pub(crate) fn bad_meta() -> CallResult {
    CallResult {
        meta: Some("[1]".into()),
        ..CallResult::new().text("bad meta")
    }
}

pub(crate) fn bad_media() -> Content {
    Content::image([1, 2, 3], "no media type\r\n")
}

pub(crate) fn wrong_shape() -> Result<CallResult> {
    Ok(CallResult::new().structured(&json!({ "n": "one" }))?)
}

pub(crate) fn no_structure() -> &'static str {
    "only text"
}

/// Returns a JSON-RPC error.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RaiseRpcError {
    /// Its code.
    #[serde(default = "header_mismatch")]
    code: i32,
    /// Its data, any text; it need not be JSON.
    data: Option<String>,
}

/// A code that only the host may raise.
fn header_mismatch() -> i32 {
    -32020
}

pub(crate) fn rpc_error(args: RaiseRpcError) -> Result<(), RpcError> {
    let data = args.data;
    Err(RpcError {
        data,
        ..RpcError::new(args.code, "raised on purpose")
    })
}
