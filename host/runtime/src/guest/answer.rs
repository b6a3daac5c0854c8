//! Whether an answer may leave: its size, and the JSON texts in it.
//!
//! It must not know what the wire says of content.

use super::Guest;
use crate::contract::{
    CallResult, ContentBlock, PromptResult, ReadOutcome, ResourceBody, ResourceContents,
};
use crate::json;
use crate::limits::Limit;
use crate::run::Answer;

/// Each part of an answer also costs its frame on the wire.
const FRAME_BYTES: usize = 64;

impl Guest {
    pub(crate) fn check_answer(&mut self, answer: &Answer) -> Result<(), String> {
        let bytes = answer_bytes(answer) as u64;
        if bytes > self.limits().result_bytes {
            self.refusals.exceed(Limit::ResultBytes);
            return Err(format!(
                "the result has {bytes} bytes; limits.result_bytes = {}",
                self.limits().result_bytes
            ));
        }
        if let Answer::Tool(CallResult {
            structured_content: Some(structured),
            ..
        }) = answer
        {
            json::check(structured, "structured-content")?;
        }
        metas(answer).into_iter().try_for_each(|meta| {
            json::check(meta, "meta")?;
            if meta.trim_start().starts_with('{') {
                return Ok(());
            }
            Err("meta is not a JSON object".to_owned())
        })
    }
}

/// Text and decoded bytes of all parts.
fn answer_bytes(answer: &Answer) -> usize {
    match answer {
        Answer::Tool(result) => {
            let blocks: usize = result.content.iter().map(block_bytes).sum();
            blocks + length(&result.structured_content) + length(&result.meta)
        }
        Answer::Prompt(filled) => {
            let messages = filled.messages.iter();
            let blocks: usize = messages.map(|message| block_bytes(&message.content)).sum();
            blocks + length(&filled.description) + length(&filled.meta)
        }
        Answer::Resource(ReadOutcome::Found(contents)) => contents.iter().map(contents_bytes).sum(),
        Answer::Completion(found) => found
            .values
            .iter()
            .map(|value| FRAME_BYTES + value.len())
            .sum(),
        Answer::Resource(ReadOutcome::NotFound) | Answer::Done => 0,
    }
}

fn length(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn contents_bytes(contents: &ResourceContents) -> usize {
    let body = match &contents.body {
        ResourceBody::Text(text) => text.len(),
        ResourceBody::Blob(bytes) => bytes.len(),
    };
    FRAME_BYTES + contents.uri.len() + length(&contents.mime_type) + body + length(&contents.meta)
}

fn block_bytes(block: &ContentBlock) -> usize {
    let body = match block {
        ContentBlock::Text(text) => text.text.len() + length(&text.meta),
        ContentBlock::Image(media) | ContentBlock::Audio(media) => {
            media.data.len() + media.mime_type.len() + length(&media.meta)
        }
        ContentBlock::ResourceLink(link) => {
            link.uri.len()
                + link.name.len()
                + length(&link.title)
                + length(&link.description)
                + link.icons.iter().map(|icon| icon.src.len()).sum::<usize>()
                + length(&link.meta)
        }
        ContentBlock::Resource(embedded) => {
            contents_bytes(&embedded.contents) + length(&embedded.meta)
        }
    };
    FRAME_BYTES + body
}

/// Each `meta` of an answer.
fn metas(answer: &Answer) -> Vec<&String> {
    match answer {
        Answer::Tool(CallResult { content, meta, .. }) => {
            content.iter().flat_map(block_metas).chain(meta).collect()
        }
        Answer::Prompt(PromptResult { messages, meta, .. }) => {
            let blocks = messages.iter().map(|message| &message.content);
            blocks.flat_map(block_metas).chain(meta).collect()
        }
        Answer::Resource(ReadOutcome::Found(contents)) => contents
            .iter()
            .filter_map(|contents| contents.meta.as_ref())
            .collect(),
        Answer::Resource(ReadOutcome::NotFound) | Answer::Completion(_) | Answer::Done => {
            Vec::new()
        }
    }
}

fn block_metas(block: &ContentBlock) -> impl Iterator<Item = &String> {
    let metas = match block {
        ContentBlock::Text(text) => [text.meta.as_ref(), None],
        ContentBlock::Image(media) | ContentBlock::Audio(media) => [media.meta.as_ref(), None],
        ContentBlock::ResourceLink(link) => [link.meta.as_ref(), None],
        ContentBlock::Resource(embedded) => {
            [embedded.meta.as_ref(), embedded.contents.meta.as_ref()]
        }
    };
    metas.into_iter().flatten()
}
