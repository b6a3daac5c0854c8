//! What guests give to other methods than `tools/call`: filled prompts, resources, suggestions.

use super::check;
use super::content::{answer_meta, block, resource_contents, role};
use super::object::Object;
use longshore_runtime::Usage;
use longshore_runtime::contract::{Completion, PromptResult, ResourceContents};
use serde_json::value::RawValue;

/// Suggestions in one answer. MCP 2026-07-28, "Completion Results".
const VALUES_MAX: usize = 100;

/// The result of `prompts/get`.
///
/// # Errors
/// What is wrong with what the guest gave.
pub(crate) fn prompt(result: &PromptResult, usage: Option<&Usage>) -> Result<String, String> {
    let mut messages = Vec::with_capacity(result.messages.len());
    for message in &result.messages {
        check::block(&message.content)?;
        let message = Object::new()
            .value("role", &role(message.role))
            .value("content", &block(&message.content));
        messages.push(raw(message.finish()));
    }
    Ok(Object::result("complete")
        .option("description", result.description.as_ref())
        .value("messages", &messages)
        .raw("_meta", answer_meta(result.meta.as_deref(), usage).get())
        .finish())
}

fn raw(json: String) -> Box<RawValue> {
    // It was written as JSON a moment ago.
    RawValue::from_string(json).expect("an object is JSON")
}

/// The result of `resources/read`, before what is said of caching.
///
/// # Errors
/// What is wrong with what the guest gave.
pub(crate) fn contents(contents: &[ResourceContents]) -> Result<Object, String> {
    // A client would take it for a resource that is there and says nothing.
    if contents.is_empty() {
        return Err("it was found, and has no contents".to_owned());
    }
    contents.iter().try_for_each(check::contents)?;
    let contents: Vec<_> = contents.iter().map(resource_contents).collect();
    Ok(Object::result("complete").value("contents", &contents))
}

/// The result of `completion/complete`.
pub(crate) fn completion(completion: &Completion, usage: Option<&Usage>) -> String {
    let values = &completion.values;
    let passed_on = &values[..values.len().min(VALUES_MAX)];
    let total = completion
        .total
        .filter(|total| *total as usize >= values.len());
    let inner = Object::new()
        .value("values", &passed_on)
        .option("total", total.as_ref())
        .value(
            "hasMore",
            &(completion.has_more || values.len() > VALUES_MAX),
        );
    Object::result("complete")
        .raw("completion", &inner.finish())
        .finish_answer(usage)
}

/// The result of `completion/complete` of a plugin that has no suggestions.
pub(crate) fn no_completion() -> String {
    let nothing = Completion {
        values: Vec::new(),
        total: None,
        has_more: false,
    };
    completion(&nothing, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_a_hundred_suggestions_and_the_rest_is_said() {
        let given = |count: u32, total, has_more| Completion {
            values: (0..count).map(|number| number.to_string()).collect(),
            total,
            has_more,
        };
        for (completion, count, total, has_more) in [
            (given(3, None, false), 3, None, false),
            (given(3, Some(9), true), 3, Some(9), true),
            (given(3, Some(2), false), 3, None, false),
            (given(101, Some(101), false), 100, Some(101), true),
        ] {
            let wire: serde_json::Value =
                serde_json::from_str(&super::completion(&completion, None)).unwrap();
            let wire = &wire["completion"];
            assert_eq!(wire["values"].as_array().unwrap().len(), count);
            assert_eq!(wire.get("total").and_then(|total| total.as_u64()), total);
            assert_eq!(wire["hasMore"], has_more);
        }
    }
}
