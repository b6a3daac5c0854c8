//! Prompts and resources that misbehave.

use longshore_plugin::{Content, Message, PromptResult, ResourceBody, ResourceContents};
use std::hint::black_box;

/// More than any limit of a result.
const BIG_BYTES: usize = 8 << 20;

pub(crate) fn big() -> String {
    "x".repeat(BIG_BYTES)
}

pub(crate) fn big_blob() -> Vec<u8> {
    vec![7; BIG_BYTES]
}

pub(crate) fn spin() -> &'static str {
    loop {
        black_box(());
    }
}

pub(crate) fn trap() -> &'static str {
    panic!("trapped on purpose")
}

pub(crate) fn bad_meta() -> ResourceContents {
    ResourceContents {
        uri: "hostile://bad-meta".into(),
        mime_type: None,
        body: ResourceBody::Text("bad meta".into()),
        meta: Some("[1]".into()),
    }
}

pub(crate) fn empty() -> Vec<ResourceContents> {
    Vec::new()
}

pub(crate) fn bad_media() -> ResourceContents {
    ResourceContents {
        uri: "no uri\r\n".into(),
        mime_type: Some("no media type\r\n".into()),
        body: ResourceBody::Blob(vec![1]),
        meta: None,
    }
}

pub(crate) fn bad_prompt() -> PromptResult {
    PromptResult {
        description: None,
        messages: vec![Message::user(Content::image([1], "no media type\r\n"))],
        meta: Some("{not json".into()),
    }
}
