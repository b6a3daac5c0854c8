//! Questions to the client, as the wire has them, and the answers back.
//!
//! A question travels and is stored as its wire text; whatever comes back is read against that text alone, so a task that was
//! asked by another process is answered by the same rules.

use super::content;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_runtime::contract::{
    ElicitAction, ElicitAnswer, IncludeContext, InputAnswer, InputKind, InputRequest, MediaContent,
    ModelPreferences, Role, Root, SamplingAnswer, SamplingContent, SamplingMessage,
    SamplingRequest, TextContent, ToolChoice, ToolResult, ToolUse,
};
use longshore_tasks::Question;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Properties of a form. More would not fit on a screen.
const FORM_PROPERTIES_MAX: usize = 64;

/// Size of a form's schema, in bytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// Whether the wire has such a question; the error tells the guest what is wrong.
pub(crate) fn check_question(request: &InputRequest) -> Result<(), String> {
    match &request.kind {
        InputKind::Form(form) => check_form(&form.schema),
        InputKind::Url(page) => check_url(&page.url),
        InputKind::Sampling(sampling) => check_sampling(sampling),
        InputKind::Roots => Ok(()),
    }
}

/// The flat subset of JSON Schema that forms may use (MCP 2026-07-28, "Elicitation", requested schema).
fn check_form(schema: &str) -> Result<(), String> {
    if schema.len() > FORM_BYTES_MAX {
        return Err(format!(
            "the schema of the form has more than {FORM_BYTES_MAX} bytes"
        ));
    }
    let schema: Value = serde_json::from_str(schema)
        .map_err(|error| format!("the schema of the form is no JSON: {error}"))?;
    if schema["type"] != "object" {
        return Err("the schema of a form has type object".to_owned());
    }
    let Some(properties) = schema["properties"].as_object() else {
        return Err("the schema of a form has properties".to_owned());
    };
    if properties.len() > FORM_PROPERTIES_MAX {
        return Err(format!(
            "a form has at most {FORM_PROPERTIES_MAX} properties"
        ));
    }
    for (name, property) in properties {
        check_property(property)
            .map_err(|wrong| format!("the property {name:?} of the form {wrong}"))?;
    }
    let required = schema.get("required").is_none_or(|required| {
        required.as_array().is_some_and(|names| {
            names.iter().all(|name| {
                name.as_str()
                    .is_some_and(|name| properties.contains_key(name))
            })
        })
    });
    if !required {
        return Err("`required` of a form lists names of its properties".to_owned());
    }
    jsonschema::validator_for(&schema)
        .map(drop)
        .map_err(|error| format!("the schema of the form is not valid: {error}"))
}

fn check_property(property: &Value) -> Result<(), String> {
    let strings = |list: &Value| {
        list.as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
    };
    let titled = |list: &Value| {
        list.as_array().is_some_and(|list| {
            list.iter()
                .all(|choice| choice["const"].is_string() && choice["title"].is_string())
        })
    };
    let fits = match property["type"].as_str() {
        Some("string") => {
            property.get("enum").is_none_or(strings)
                && property.get("oneOf").is_none_or(titled)
                && property.get("enumNames").is_none_or(strings)
        }
        Some("number" | "integer" | "boolean") => true,
        Some("array") => {
            let items = &property["items"];
            strings(&items["enum"]) || titled(&items["anyOf"])
        }
        _ => false,
    };
    let nested = ["properties", "$ref", "allOf", "not", "if"]
        .iter()
        .any(|key| property.get(key).is_some());
    if fits && !nested {
        return Ok(());
    }
    Err("is no string, number, integer, boolean or list of choices; forms are flat".to_owned())
}

fn check_url(url: &str) -> Result<(), String> {
    let parsed: http::Uri = url.parse().map_err(|_| format!("{url:?} is no URL"))?;
    // `https://trusted@other/` shows one host and opens another.
    if parsed
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err(format!("{url:?} names a user; a URL to open must not"));
    }
    let local = matches!(parsed.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match parsed.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if local => Ok(()),
        _ => Err(format!("{url:?} is no https: URL")),
    }
}

fn check_sampling(request: &SamplingRequest) -> Result<(), String> {
    if request.messages.is_empty() || request.max_tokens == 0 {
        return Err("sampling needs a message and at least one token".to_owned());
    }
    let texts = request.tools.iter().map(|tool| tool.input_schema.as_str());
    let inputs = request.messages.iter().flat_map(|message| &message.content);
    let inputs = inputs.filter_map(|content| match content {
        SamplingContent::ToolUse(tool) => Some(tool.input.as_str()),
        _ => None,
    });
    for text in texts.chain(inputs).chain(request.metadata.as_deref()) {
        if serde_json::from_str::<Map<String, Value>>(text).is_err() {
            return Err(format!("{text:.40?} is no JSON object"));
        }
    }
    Ok(())
}

/// A question as the wire has it: method and parameters.
pub(crate) fn request_text(kind: &InputKind) -> String {
    let request = match kind {
        InputKind::Form(form) => json!({
            "method": "elicitation/create",
            "params": { "mode": "form", "message": form.message, "requestedSchema": parsed(&form.schema) },
        }),
        InputKind::Url(page) => json!({
            "method": "elicitation/create",
            "params": { "mode": "url", "message": page.message, "url": page.url },
        }),
        InputKind::Roots => json!({ "method": "roots/list", "params": {} }),
        InputKind::Sampling(request) => json!({
            "method": "sampling/createMessage",
            "params": sampling_params(request),
        }),
    };
    request.to_string()
}

/// JSON text of a guest that was checked when it was asked.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn sampling_params(request: &SamplingRequest) -> Value {
    let mut params = Map::new();
    let messages: Vec<Value> = request.messages.iter().map(sampling_message).collect();
    params.insert("messages".to_owned(), messages.into());
    params.insert("maxTokens".to_owned(), request.max_tokens.into());
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            params.insert(name.to_owned(), value);
        }
    };
    put(
        "systemPrompt",
        request.system_prompt.clone().map(Value::from),
    );
    put("temperature", request.temperature.map(Value::from));
    put(
        "stopSequences",
        (!request.stop_sequences.is_empty()).then(|| request.stop_sequences.clone().into()),
    );
    put(
        "modelPreferences",
        request.model_preferences.as_ref().map(model_preferences),
    );
    put(
        "includeContext",
        request.include_context.map(|context| match context {
            IncludeContext::ThisServer => "thisServer".into(),
            IncludeContext::AllServers => "allServers".into(),
        }),
    );
    let tools = request.tools.iter().map(|tool| {
        let mut wire = json!({ "name": tool.name, "inputSchema": parsed(&tool.input_schema) });
        if let Some(description) = &tool.description {
            wire["description"] = description.as_str().into();
        }
        wire
    });
    put(
        "tools",
        (!request.tools.is_empty()).then(|| tools.collect()),
    );
    put(
        "toolChoice",
        request.tool_choice.map(|choice| {
            let mode = match choice {
                ToolChoice::Auto => "auto",
                ToolChoice::Required => "required",
                ToolChoice::None => "none",
            };
            json!({ "mode": mode })
        }),
    );
    put("metadata", request.metadata.as_deref().map(parsed));
    params.into()
}

fn model_preferences(preferences: &ModelPreferences) -> Value {
    let mut wire = Map::new();
    if !preferences.hints.is_empty() {
        let hints: Vec<Value> = preferences
            .hints
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        wire.insert("hints".to_owned(), hints.into());
    }
    let weights = [
        ("costPriority", preferences.cost_priority),
        ("speedPriority", preferences.speed_priority),
        ("intelligencePriority", preferences.intelligence_priority),
    ];
    for (name, weight) in weights {
        if let Some(weight) = weight.filter(|weight| (0.0..=1.0).contains(weight)) {
            wire.insert(name.to_owned(), weight.into());
        }
    }
    wire.into()
}

fn sampling_message(message: &SamplingMessage) -> Value {
    let mut blocks: Vec<Value> = message.content.iter().map(sampling_block).collect();
    // One block stands alone: older clients know no lists here.
    let content = if blocks.len() == 1 {
        blocks.remove(0)
    } else {
        blocks.into()
    };
    json!({ "role": content::role(message.role), "content": content })
}

fn sampling_block(block: &SamplingContent) -> Value {
    let media = |kind: &str, media: &MediaContent| json!({ "type": kind, "data": STANDARD.encode(&media.data), "mimeType": media.mime_type });
    match block {
        SamplingContent::Text(text) => json!({ "type": "text", "text": text.text }),
        SamplingContent::Image(image) => media("image", image),
        SamplingContent::Audio(audio) => media("audio", audio),
        SamplingContent::ToolUse(tool) => json!({
            "type": "tool_use", "id": tool.id, "name": tool.name, "input": parsed(&tool.input),
        }),
        SamplingContent::ToolResult(result) => {
            let texts: Vec<Value> = result
                .content
                .iter()
                .map(|text| json!({ "type": "text", "text": text.text }))
                .collect();
            let mut wire = json!({
                "type": "tool_result", "toolUseId": result.tool_use_id, "content": texts,
                "isError": result.is_error,
            });
            if let Some(structured) = &result.structured_content {
                wire["structuredContent"] = parsed(structured);
            }
            wire
        }
    }
}

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
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| Misfit(format!("the stored form is damaged: {error}")))?;
    validator.validate(content).map_err(|error| {
        Misfit(format!(
            "the content does not fit the form, at {}: {error}",
            error.instance_path()
        ))
    })
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

/// Questions by key, as `inputRequests` has them.
pub(crate) fn input_requests<'a>(
    questions: impl Iterator<Item = &'a Question>,
) -> Map<String, Value> {
    questions
        .map(|asked| (asked.key.clone(), parsed(&asked.request)))
        .collect()
}

/// Size of one answer, in bytes of its JSON text. A record holds two of them; larger ones would pin the call to memory.
const ANSWER_BYTES_MAX: usize = 128 << 10;

/// `inputResponses`: an object whose values are objects. Each is kept as its text.
pub(crate) fn read_responses(responses: &RawValue) -> Result<Vec<(String, String)>, String> {
    let responses: Map<String, Value> = serde_json::from_str(responses.get())
        .map_err(|_| "inputResponses is not an object".to_owned())?;
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
    use longshore_runtime::contract::FormRequest;

    fn form(schema: &str) -> InputKind {
        InputKind::Form(FormRequest {
            message: "Sure?".to_owned(),
            schema: schema.to_owned(),
        })
    }

    const NAME: &str =
        r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

    #[test]
    fn flat_forms_are_taken_and_others_refused() {
        assert!(check_form(NAME).is_ok());
        for wrong in [
            "nonsense",
            r#"{"type":"string"}"#,
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{}}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}"#,
        ] {
            assert!(check_form(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_safe_urls_are_asked() {
        assert!(check_url("https://example.com/login").is_ok());
        assert!(check_url("http://localhost:8080/").is_ok());
        for wrong in [
            "http://example.com/",
            "https://good.example@evil.example/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "no url",
        ] {
            assert!(check_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_fits_its_question_or_is_not_taken() {
        let question = request_text(&form(NAME));
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
