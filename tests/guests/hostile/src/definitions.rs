//! Definitions that break a rule: the host leaves out each of them, and serves the others; and what a definition or a result may
//! not say of itself.

use longshore_plugin::contract::longshore::plugin::task;
use longshore_plugin::contract::longshore::plugin::types::{EmbeddedResource, TextContent};
use longshore_plugin::{
    Annotations, CallResult, Content, Icon, Prompt, Resource, ResourceBody, ResourceContents,
    ResourceLink, Template, Tool, prompt, resource, template, tool,
};
use serde::Deserialize;
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

fn icons() -> [Icon; 3] {
    [
        "http://example.com/icon.png",
        "https://example.com/icon.png",
        "data:image/png;base64,AA==",
    ]
    .map(Icon::new)
}

/// A definition that claims what is the protocol's, and pictures from anywhere.
pub(crate) fn reserved_tool() -> Tool {
    let tool = tool("reserved", reserved).description("Uses reserved keys of `_meta`.");
    icons()
        .into_iter()
        .fold(tool.meta(&reserved_meta()), Tool::icon)
}

pub(crate) fn reserved_prompt() -> Prompt {
    let prompt = prompt("reserved", || "reserved").description("Uses reserved keys of `_meta`.");
    icons()
        .into_iter()
        .fold(prompt.meta(&reserved_meta()), Prompt::icon)
}

pub(crate) fn reserved_resource() -> Resource {
    let resource = resource(RESERVED, "reserved", || reserved_contents(RESERVED));
    icons()
        .into_iter()
        .fold(resource.meta(&reserved_meta()), Resource::icon)
}

const RESERVED: &str = "hostile://reserved";

#[derive(Deserialize)]
struct Any {
    name: String,
}

pub(crate) fn reserved_template() -> Template {
    let read = |any: Any| reserved_contents(&format!("{RESERVED}/{}", any.name));
    let template = template("hostile://reserved/{name}", "reserved", read);
    icons()
        .into_iter()
        .fold(template.meta(&reserved_meta()), Template::icon)
}

fn reserved_contents(uri: &str) -> ResourceContents {
    ResourceContents {
        uri: uri.into(),
        mime_type: None,
        body: ResourceBody::Text("reserved".into()),
        meta: meta_text(),
    }
}

fn meta_text() -> Option<String> {
    Some(Value::Object(reserved_meta()).to_string())
}

/// A link and a resource within a result, which claim the same.
pub(crate) fn reserved_blocks() -> CallResult {
    let link = ResourceLink {
        icons: icons().into(),
        meta: meta_text(),
        ..ResourceLink::new(RESERVED, "reserved")
    };
    let embedded = EmbeddedResource {
        contents: reserved_contents(RESERVED),
        annotations: None,
        meta: meta_text(),
    };
    CallResult::new()
        .block(Content::ResourceLink(link))
        .block(Content::Resource(embedded))
}

pub(crate) fn bad_link() -> Content {
    Content::ResourceLink(ResourceLink::new("no uri\r\n", "bad link"))
}

fn reserved() -> CallResult {
    let text = TextContent {
        text: "reserved".into(),
        annotations: Some(Annotations {
            audience: vec![],
            priority: Some(7.0),
            last_modified: Some("yesterday".into()),
        }),
        meta: meta_text(),
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
