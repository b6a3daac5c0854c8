//! What a guest gives, as the wire has it: results and their content blocks.
//!
//! Guests' values are typed (see `wit/`), so bytes are encoded here and cannot be malformed; JSON text of a guest passes as it
//! is, in one line.

use super::{check, server_info};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_runtime::contract::{
    Annotations, CallResult, ContentBlock, Icon, IconTheme, ResourceBody, ResourceContents, Role,
    TextContent,
};
use longshore_runtime::{Usage, json};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::sync::LazyLock;
use std::time::Duration;

/// A tool's result: an object with `resultType` `complete`, and the server's name in its `_meta` beside the guest's own.
pub(crate) fn call_result(result: &CallResult, usage: Option<&Usage>) -> String {
    let structured = result.structured_content.as_deref().and_then(raw);
    let mut content: Vec<Block<'_>> = result.content.iter().map(block).collect();
    // A text copy, for clients that read no structured content (MCP 2026-07-28, "Structured Content"), and for older ones,
    // which get none that is no object.
    if let Some(json) = result.structured_content.as_deref()
        && !has_copy(&result.content, json)
    {
        content.push(text_block(json));
    }
    let wire = WireResult {
        result_type: "complete",
        content,
        structured_content: structured,
        is_error: result.is_error,
        meta: answer_meta(result.meta.as_deref(), usage),
    };
    // Serialising these types cannot fail: no maps with other keys than text, no foreign code.
    serde_json::to_string(&wire).expect("a result is JSON")
}

/// Whether a text of the guest is this JSON already, spaces and the order of members aside.
fn has_copy(content: &[ContentBlock], json: &str) -> bool {
    let first = |text: &str| text.trim_start().bytes().next();
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let value = LazyCell::new(|| parse(json));
    content.iter().any(|block| match block {
        ContentBlock::Text(block) => {
            let text = block.text.as_str();
            // Words are not parsed.
            text == json
                || (first(text) == first(json)
                    && parse(text).is_some_and(|copy| Some(copy) == *value))
        }
        _ => false,
    })
}

/// A result that tells the client's model what went wrong.
pub(crate) fn tool_error(text: &str) -> String {
    let block = TextContent {
        text: text.to_owned(),
        annotations: None,
        meta: None,
    };
    let error = CallResult {
        content: vec![ContentBlock::Text(block)],
        structured_content: None,
        is_error: true,
        meta: None,
    };
    call_result(&error, None)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'a> {
    result_type: &'static str,
    content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: Cow<'static, RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    body: Body<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<WireAnnotations<'a>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Map<String, Value>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Media {
        data: String,
        mime_type: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Link {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        icons: Vec<WireIcon<'a>>,
    },
    Resource {
        resource: WireResource<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireResource<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Map<String, Value>>,
}

/// Annotations as the wire has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireAnnotations<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    audience: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_modified: Option<&'a str>,
}

/// An icon as the wire has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireIcon<'a> {
    src: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    theme: Option<&'static str>,
}

fn text_block(text: &str) -> Block<'_> {
    Block {
        kind: "text",
        body: Body::Text { text },
        annotations: None,
        meta: None,
    }
}

/// A content block as the wire has it.
pub(super) fn block(block: &ContentBlock) -> Block<'_> {
    match block {
        ContentBlock::Text(text) => Block {
            kind: "text",
            body: Body::Text { text: &text.text },
            annotations: annotations(text.annotations.as_ref()),
            meta: guest_meta(text.meta.as_deref()),
        },
        ContentBlock::Image(media) | ContentBlock::Audio(media) => Block {
            kind: if matches!(block, ContentBlock::Image(_)) {
                "image"
            } else {
                "audio"
            },
            body: Body::Media {
                data: STANDARD.encode(&media.data),
                mime_type: &media.mime_type,
            },
            annotations: annotations(media.annotations.as_ref()),
            meta: guest_meta(media.meta.as_deref()),
        },
        ContentBlock::ResourceLink(link) => Block {
            kind: "resource_link",
            body: Body::Link {
                uri: &link.uri,
                name: &link.name,
                title: link.title.as_deref(),
                description: link.description.as_deref(),
                mime_type: link.mime_type.as_deref(),
                size: link.size,
                icons: icons(&link.icons),
            },
            annotations: annotations(link.annotations.as_ref()),
            meta: guest_meta(link.meta.as_deref()),
        },
        ContentBlock::Resource(embedded) => Block {
            kind: "resource",
            body: Body::Resource {
                resource: resource_contents(&embedded.contents),
            },
            annotations: annotations(embedded.annotations.as_ref()),
            meta: guest_meta(embedded.meta.as_deref()),
        },
    }
}

/// The contents of a resource as the wire has them.
pub(super) fn resource_contents(contents: &ResourceContents) -> WireResource<'_> {
    let (text, blob) = match &contents.body {
        ResourceBody::Text(text) => (Some(text.as_str()), None),
        ResourceBody::Blob(bytes) => (None, Some(STANDARD.encode(bytes))),
    };
    WireResource {
        uri: &contents.uri,
        mime_type: contents.mime_type.as_deref(),
        text,
        blob,
        meta: guest_meta(contents.meta.as_deref()),
    }
}

/// A role's name on the wire.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Annotations of a guest; a priority outside 0 to 1 is left out, for clients reject it.
pub(crate) fn annotations(annotations: Option<&Annotations>) -> Option<WireAnnotations<'_>> {
    annotations.map(|annotations| WireAnnotations {
        audience: annotations.audience.iter().copied().map(role).collect(),
        priority: annotations
            .priority
            .filter(|priority| (0.0..=1.0).contains(priority)),
        last_modified: annotations
            .last_modified
            .as_deref()
            .filter(|time| time.parse::<jiff::Timestamp>().is_ok()),
    })
}

/// Icons of a guest; only `https:` and `data:` ones, for a client would fetch them.
pub(crate) fn icons(icons: &[Icon]) -> Vec<WireIcon<'_>> {
    let safe = |icon: &&Icon| {
        let fetched = icon.src.starts_with("https://") || icon.src.starts_with("data:");
        fetched && check::uri(&icon.src).is_ok()
    };
    icons
        .iter()
        .filter(safe)
        .map(|icon| WireIcon {
            src: &icon.src,
            mime_type: icon.mime_type.as_deref(),
            sizes: icon.sizes.iter().map(String::as_str).collect(),
            theme: icon.theme.map(|theme| match theme {
                IconTheme::Light => "light",
                IconTheme::Dark => "dark",
            }),
        })
        .collect()
}

/// A guest's `_meta`, without the keys that are reserved for the protocol and the host.
pub(crate) fn guest_meta(meta: Option<&str>) -> Option<Map<String, Value>> {
    let meta = meta.filter(|meta| json::check(meta, "meta").is_ok())?;
    let mut meta: Map<String, Value> = serde_json::from_str(meta).ok()?;
    drop_reserved(&mut meta);
    (!meta.is_empty()).then_some(meta)
}

/// Leave of a guest's `_meta` what a guest may say.
pub(crate) fn drop_reserved(meta: &mut Map<String, Value>) {
    meta.retain(|key, _| {
        let reserved = is_reserved(key);
        if reserved {
            tracing::warn!(key, "a plugin set a reserved key of _meta; it was dropped");
        }
        !reserved
    });
}

/// Prefixes whose second label is `modelcontextprotocol` or `mcp` (MCP 2026-07-28, "General fields", `_meta`), and the host's own.
fn is_reserved(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    prefix == "longshore"
        || matches!(
            prefix.split('.').nth(1),
            Some("modelcontextprotocol" | "mcp")
        )
}

/// A guest's `_meta` of a result, with the name of the server, and what the run used if that is to be told.
pub(super) fn answer_meta(meta: Option<&str>, usage: Option<&Usage>) -> Cow<'static, RawValue> {
    match (meta, usage) {
        (None, None) => Cow::Borrowed(&PLAIN_META),
        _ => Cow::Owned(written_meta(meta, usage)),
    }
}

/// `_meta` of an answer to which nobody adds anything: the same in each, so it is written once.
static PLAIN_META: LazyLock<Box<RawValue>> = LazyLock::new(|| written_meta(None, None));

fn written_meta(meta: Option<&str>, usage: Option<&Usage>) -> Box<RawValue> {
    let mut meta = guest_meta(meta).unwrap_or_default();
    meta.insert(SERVER_INFO.to_owned(), server_info());
    if let Some(usage) = usage {
        meta.insert(USAGE.to_owned(), usage_object(usage));
    }
    // A map with text as keys.
    to_raw_value(&meta).expect("an object is JSON")
}

fn usage_object(usage: &Usage) -> Value {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let mut told = Map::new();
    if let Some(fuel) = usage.fuel {
        told.insert("fuel".to_owned(), fuel.into());
    }
    told.insert("memoryBytes".to_owned(), usage.memory_bytes.into());
    told.insert("wallMicros".to_owned(), micros(usage.wall).into());
    told.insert("cpuMicros".to_owned(), micros(usage.cpu).into());
    told.into()
}

/// The key of `_meta` under which a result names its server.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The key of `_meta` under which a result tells what its run used.
const USAGE: &str = "longshore/usage";

/// The key of `_meta` under which a question names the plugin that asks.
pub(super) const PLUGIN: &str = "longshore/plugin";

/// JSON text of a guest, in one line; `None` if it is no JSON, which the runtime has excluded.
pub(crate) fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(one_line(text).into_owned()).ok()
}

/// JSON text without line breaks: between tokens they mean nothing, and within strings they are escaped.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    // Most text has none, and may be megabytes.
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_runtime::contract::MediaContent;

    fn text(text: &str, meta: Option<&str>) -> ContentBlock {
        ContentBlock::Text(TextContent {
            text: text.to_owned(),
            annotations: None,
            meta: meta.map(str::to_owned),
        })
    }

    fn result(content: Vec<ContentBlock>, structured: Option<&str>) -> Value {
        let result = CallResult {
            content,
            structured_content: structured.map(str::to_owned),
            is_error: false,
            meta: None,
        };
        serde_json::from_str(&call_result(&result, None)).unwrap()
    }

    #[test]
    fn bytes_are_encoded() {
        let image = ContentBlock::Image(MediaContent {
            data: vec![0xff, 0x00, 0xee],
            mime_type: "image/png".to_owned(),
            annotations: None,
            meta: None,
        });
        let wire = result(vec![image], None);
        let expected =
            serde_json::json!([{"type": "image", "data": "/wDu", "mimeType": "image/png"}]);
        assert_eq!(wire["content"], expected);
    }

    #[test]
    fn null_and_absent_structured_content_differ() {
        assert!(
            result(vec![], Some("null"))
                .as_object()
                .unwrap()
                .contains_key("structuredContent")
        );
        assert!(
            !result(vec![], None)
                .as_object()
                .unwrap()
                .contains_key("structuredContent")
        );
    }

    #[test]
    fn numbers_of_a_guest_pass_unchanged_and_in_one_line() {
        let guest = CallResult {
            content: vec![],
            structured_content: Some("{\n\"n\":\r\n 18446744073709551617.50}".to_owned()),
            is_error: false,
            meta: None,
        };
        let wire = call_result(&guest, None);
        assert!(wire.contains("18446744073709551617.50"));
        assert!(!wire.contains('\n') && !wire.contains('\r'));
    }

    #[test]
    fn reserved_keys_of_meta_are_dropped() {
        let meta = r#"{"io.modelcontextprotocol/serverInfo":1,"dev.mcp/x":2,"longshore/usage":5,"com.example/y":3,"z":4}"#;
        let wire = result(vec![text("a", Some(meta))], None);
        assert_eq!(
            wire["content"][0]["_meta"],
            serde_json::json!({"com.example/y": 3, "z": 4})
        );
    }
}
