//! Definitions that break a rule: the host leaves out each of them, and serves the others; and what a definition or a result may
//! not say of itself.

use longshore_plugin::contract::longshore::plugin::task;
use longshore_plugin::contract::longshore::plugin::types::TextContent;
use longshore_plugin::{Annotations, CallResult, Content, Icon, Tool, tool};
use serde_json::{Map, Value, json};

use crate::answers::Silence;

/// A tool that nobody can call. Its name says what is wrong with it.
pub(crate) fn bad(name: &str, input_schema: &str) -> Tool {
    tool(name, || "called").input_schema(input_schema)
}

/// An input schema with these properties.
pub(crate) fn with(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{properties}}}"#)
}

fn reserved_meta() -> Map<String, Value> {
    let names = [
        "io.modelcontextprotocol/serverInfo",
        "dev.mcp/x",
        "example.com/kept",
    ];
    names
        .map(|name| (name.to_owned(), json!(7)))
        .into_iter()
        .collect()
}

/// A definition that claims what is the protocol's, and pictures from anywhere.
pub(crate) fn reserved_tool() -> Tool {
    let icons = [
        "http://example.com/icon.png",
        "https://example.com/icon.png",
        "data:image/png;base64,AA==",
    ];
    let tool = tool("reserved", reserved).description("Uses reserved keys of `_meta`.");
    icons.iter().fold(tool.meta(&reserved_meta()), |tool, src| {
        tool.icon(Icon::new(*src))
    })
}

fn reserved() -> CallResult {
    let meta = Value::Object(reserved_meta()).to_string();
    let text = TextContent {
        text: "reserved".into(),
        annotations: Some(Annotations {
            audience: vec![],
            priority: Some(7.0),
            last_modified: Some("yesterday".into()),
        }),
        meta: Some(meta),
    };
    CallResult::new()
        .block(Content::Text(text))
        .meta(&reserved_meta())
}

/// As a guest does that does not use the SDK.
pub(crate) fn only_structure() -> Silence {
    let result = CallResult {
        structured_content: Some("[1,\n2]".into()),
        ..CallResult::new()
    };
    let _ = task::complete(&result);
    Silence
}
