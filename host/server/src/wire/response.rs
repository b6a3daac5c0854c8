//! Answers of the client to questions.
//!
//! A question travels and is stored as its wire text; whatever comes back is read against that text alone, so a task that was
//! asked by another process is answered by the same rules.

use crate::schema::Schema;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_runtime::contract::{
    ElicitAction, ElicitAnswer, InputAnswer, MediaContent, Role, Root, SamplingAnswer,
    SamplingContent, TextContent, ToolResult, ToolUse,
};
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Why an answer is not taken: it does not fit what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misfit(String);

/// Read an answer against the question it is for; both are wire texts.
pub(crate) fn read_answer(question: &str, answer: &str) -> Result<InputAnswer, Misfit> {
    let question: WireQuestion<'_> = serde_json::from_str(question)
        .map_err(|error| Misfit(format!("the stored question is damaged: {error}")))?;
    match question.method {
        "elicitation/create" => read_elicited(question.params, answer).map(InputAnswer::Elicited),
        "sampling/createMessage" => read_sampled(answer).map(InputAnswer::Sampled),
        "roots/list" => read_roots(answer).map(InputAnswer::Roots),
        other => Err(Misfit(format!(
            "the stored question has the unknown method {other}"
        ))),
    }
}

#[derive(Deserialize)]
struct WireQuestion<'a> {
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
}

fn misfit(what: &str) -> impl Fn(serde_json::Error) -> Misfit {
    move |error| Misfit(format!("it is not {what}: {error}"))
}

fn read_elicited(params: &RawValue, answer: &str) -> Result<ElicitAnswer, Misfit> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Action {
        Accept,
        Decline,
        Cancel,
    }
    #[derive(Deserialize)]
    struct Wire {
        action: Action,
        content: Option<Value>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        requested_schema: Option<Value>,
    }
    let wire: Wire = serde_json::from_str(answer).map_err(misfit("an elicitation result"))?;
    let action = match wire.action {
        Action::Accept => ElicitAction::Accept,
        // What a user declined needs no form, and is never checked against one.
        Action::Decline => {
            return Ok(ElicitAnswer {
                action: ElicitAction::Decline,
                content: None,
            });
        }
        Action::Cancel => {
            return Ok(ElicitAnswer {
                action: ElicitAction::Cancel,
                content: None,
            });
        }
    };
    let params: Params = serde_json::from_str(params.get()).map_err(misfit("a question"))?;
    let Some(schema) = params.requested_schema else {
        return Ok(ElicitAnswer {
            action,
            content: None,
        });
    };
    let content = wire.content.unwrap_or_else(|| json!({}));
    check_against(&schema, &content)?;
    Ok(ElicitAnswer {
        action,
        content: Some(content.to_string()),
    })
}

fn check_against(schema: &Value, content: &Value) -> Result<(), Misfit> {
    let schema =
        Schema::form(schema).map_err(|wrong| Misfit(format!("the stored form {wrong}")))?;
    schema
        .check_content(content)
        .map_err(|wrong| Misfit(format!("the content does not fit the form, {wrong}")))
}

fn read_roots(answer: &str) -> Result<Vec<Root>, Misfit> {
    #[derive(Deserialize)]
    struct Wire {
        roots: Vec<WireRoot>,
    }
    #[derive(Deserialize)]
    struct WireRoot {
        uri: String,
        name: Option<String>,
    }
    let wire: Wire = serde_json::from_str(answer).map_err(misfit("a list of roots"))?;
    Ok(wire
        .roots
        .into_iter()
        .map(|root| Root {
            uri: root.uri,
            name: root.name,
        })
        .collect())
}

fn read_sampled(answer: &str) -> Result<SamplingAnswer, Misfit> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        role: WireRole,
        content: Value,
        model: String,
        stop_reason: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum WireRole {
        User,
        Assistant,
    }
    let wire: Wire = serde_json::from_str(answer).map_err(misfit("a sampling result"))?;
    let blocks = match wire.content {
        Value::Array(blocks) => blocks,
        block => vec![block],
    };
    Ok(SamplingAnswer {
        role: match wire.role {
            WireRole::User => Role::User,
            WireRole::Assistant => Role::Assistant,
        },
        content: blocks
            .into_iter()
            .map(read_block)
            .collect::<Result<_, _>>()?,
        model: wire.model,
        stop_reason: wire.stop_reason,
    })
}

#[derive(Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum WireBlock {
    Text {
        text: String,
    },
    Image {
        data: String,
        mime_type: String,
    },
    Audio {
        data: String,
        mime_type: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        content: Vec<Value>,
        structured_content: Option<Value>,
        #[serde(default)]
        is_error: bool,
    },
}

fn read_block(block: Value) -> Result<SamplingContent, Misfit> {
    let text = |text: String| TextContent {
        text,
        annotations: None,
        meta: None,
    };
    let media = |data: &str, mime_type| {
        let data = STANDARD
            .decode(data)
            .map_err(|_| Misfit("its data is no base64".to_owned()))?;
        Ok(MediaContent {
            data,
            mime_type,
            annotations: None,
            meta: None,
        })
    };
    let block: WireBlock = serde_json::from_value(block).map_err(misfit("a content block"))?;
    Ok(match block {
        WireBlock::Text { text: words } => SamplingContent::Text(text(words)),
        WireBlock::Image { data, mime_type } => SamplingContent::Image(media(&data, mime_type)?),
        WireBlock::Audio { data, mime_type } => SamplingContent::Audio(media(&data, mime_type)?),
        WireBlock::ToolUse { id, name, input } => SamplingContent::ToolUse(ToolUse {
            id,
            name,
            input: Value::from(input).to_string(),
        }),
        WireBlock::ToolResult {
            tool_use_id,
            content,
            structured_content,
            is_error,
        } => {
            // A model's view of a tool's result is its text.
            let texts = content.iter().filter_map(|block| block["text"].as_str());
            SamplingContent::ToolResult(ToolResult {
                tool_use_id,
                content: texts.map(|words| text(words.to_owned())).collect(),
                structured_content: structured_content.map(|value| value.to_string()),
                is_error,
            })
        }
    })
}

/// Size of one answer, in bytes of its JSON text. A record holds two of them; larger ones would pin the call to memory.
const ANSWER_BYTES_MAX: usize = 128 << 10;

/// `inputResponses`: an object whose values are objects. Each is kept as its text.
pub(crate) fn read_responses(responses: &RawValue) -> Result<Vec<(String, String)>, String> {
    let responses: Map<String, Value> =
        serde_json::from_str(responses.get()).map_err(|error| match error.classify() {
            Category::Data => "inputResponses is not an object".to_owned(),
            // JSON by its grammar, but no value that can be kept.
            _ => format!("inputResponses cannot be read: {error}"),
        })?;
    let read = |(key, value): (String, Value)| {
        if !value.is_object() {
            return Err(format!(
                "inputResponses.{key} is no response: an object is expected"
            ));
        }
        let text = value.to_string();
        if text.len() > ANSWER_BYTES_MAX {
            return Err(format!(
                "inputResponses.{key} has {} bytes; at most {ANSWER_BYTES_MAX} are taken",
                text.len()
            ));
        }
        Ok((key, text))
    };
    responses.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::question::request_text;
    use longshore_runtime::contract::{FormRequest, InputKind};

    fn form(schema: &str) -> InputKind {
        InputKind::Form(FormRequest {
            message: "Sure?".to_owned(),
            schema: schema.to_owned(),
        })
    }

    const NAME: &str =
        r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

    #[test]
    fn an_answer_fits_its_question_or_is_not_taken() {
        let question = request_text(&form(NAME), "p");
        let accepted = read_answer(&question, r#"{"action":"accept","content":{"name":"Ada"}}"#);
        assert!(matches!(accepted, Ok(InputAnswer::Elicited(_))));
        for wrong in [
            r#"{"action":"accept","content":{"name":7}}"#,
            r#"{"action":"accept"}"#,
            r#"{"action":"perhaps"}"#,
            r#"{"roots":[]}"#,
        ] {
            assert!(read_answer(&question, wrong).is_err(), "{wrong}");
        }
        for unchecked in [
            r#"{"action":"decline"}"#,
            r#"{"action":"cancel","content":{"name":7}}"#,
        ] {
            assert!(read_answer(&question, unchecked).is_ok(), "{unchecked}");
        }
    }

    #[test]
    fn responses_are_objects() {
        let read = |text: &str| read_responses(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(read("{}").unwrap(), vec![]);
        for wrong in ["null", "[]", "7", r#"{"a":7}"#, r#"{"a":null}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
