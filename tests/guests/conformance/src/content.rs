//! Every kind of content, an error, progress, and schemas that must arrive as they are.

use longshore_plugin::{CallResult, Content, Error, Result, progress};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

const PIXEL: &[u8] = include_bytes!("pixel.png");
const SILENCE: &[u8] = include_bytes!("silence.wav");

pub(crate) fn simple_text() -> &'static str {
    "This is a simple text response for testing."
}

pub(crate) fn image() -> Content {
    Content::image(PIXEL, "image/png")
}

pub(crate) fn audio() -> Content {
    Content::audio(SILENCE, "audio/wav")
}

pub(crate) fn embedded_resource() -> Content {
    Content::embedded_text(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    )
}

pub(crate) fn multiple() -> CallResult {
    CallResult::new()
        .text("Multiple content types test:")
        .block(Content::image(PIXEL, "image/png"))
        .block(Content::embedded_text(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ))
}

pub(crate) fn failure() -> Result<()> {
    Err(Error::msg(
        "This tool intentionally returns an error for testing",
    ))
}

pub(crate) fn with_progress() -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        progress(done, 100.0, &format!("Completed step {done} of 100"));
        sleep(Duration::from_millis(50));
    }
    "Tool with progress completed"
}

pub(crate) fn schema_2020_12(arguments: Value) -> String {
    format!("JSON Schema 2020-12 tool called with: {arguments}")
}

/// Has an argument that is also a header.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CustomHeader {
    /// The same as the header `Mcp-Param-Value`.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

pub(crate) fn custom_header(args: CustomHeader) -> String {
    format!("Header value: {}", args.value)
}
