//! Questions to the client, as the wire has them. What comes back is `response`.

use super::content::PLUGIN;
use super::{check, content};
use crate::schema::Schema;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_runtime::contract::{
    IncludeContext, InputKind, InputRequest, MediaContent, ModelPreferences, SamplingContent,
    SamplingMessage, SamplingRequest, ToolChoice,
};
use longshore_runtime::json::{check as check_json, is_nested_deeper};
use longshore_tasks::Question;
use serde_json::{Map, Value, json};

/// Properties of a form. More would not fit on a screen.
const FORM_PROPERTIES_MAX: usize = 64;

/// Size of a form's schema, in bytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// How deep the schema of a form may be nested. A flat one has six levels.
const FORM_LEVELS_MAX: usize = 16;

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
    if is_nested_deeper(schema, FORM_LEVELS_MAX) {
        return Err(format!(
            "the schema of the form is nested deeper than {FORM_LEVELS_MAX} levels; forms are flat"
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
    Schema::form(&schema)
        .map(drop)
        .map_err(|wrong| format!("the schema of the form {wrong}"))
}

fn check_property(property: &Value) -> Result<(), String> {
    let all_are = |fits: fn(&Value) -> bool, names: &[&str]| {
        names.iter().all(|name| property.get(name).is_none_or(fits))
    };
    let titled = |list: &Value| {
        list.as_array().is_some_and(|list| {
            list.iter()
                .all(|choice| choice["const"].is_string() && choice["title"].is_string())
        })
    };
    let fits = match property["type"].as_str() {
        Some("string") => {
            let chosen = property.get("enum").is_some() || property.get("oneOf").is_some();
            property.get("enum").is_none_or(strings)
                && property.get("oneOf").is_none_or(titled)
                && property.get("enumNames").is_none_or(strings)
                && all_are(Value::is_string, &["default"])
                && (chosen || all_are(Value::is_u64, &["minLength", "maxLength"]))
                && (chosen || all_are(is_format, &["format"]))
        }
        Some("number" | "integer") => all_are(Value::is_number, &["default", "minimum", "maximum"]),
        Some("boolean") => all_are(Value::is_boolean, &["default"]),
        Some("array") => {
            let items = &property["items"];
            let choices = items["type"] == "string" && strings(&items["enum"]);
            (choices || titled(&items["anyOf"]))
                && all_are(strings, &["default"])
                && all_are(Value::is_u64, &["minItems", "maxItems"])
        }
        _ => false,
    };
    let fits = fits && all_are(Value::is_string, &["title", "description"]);
    let nested = ["properties", "$ref", "allOf", "not", "if"]
        .iter()
        .any(|key| property.get(key).is_some());
    if fits && !nested {
        return Ok(());
    }
    Err(
        "is no string, number, integer, boolean or list of choices as forms have them; forms are flat"
            .to_owned(),
    )
}

fn strings(list: &Value) -> bool {
    list.as_array()
        .is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
}

/// The formats that a form's text may have.
fn is_format(format: &Value) -> bool {
    let known = ["date", "date-time", "email", "uri"];
    format
        .as_str()
        .is_some_and(|format| known.contains(&format))
}

fn check_url(url: &str) -> Result<(), String> {
    check::uri(url)?;
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
    if request
        .temperature
        .is_some_and(|temperature| !temperature.is_finite())
    {
        return Err("the temperature of a model is a number".to_owned());
    }
    let texts = request.tools.iter().map(|tool| tool.input_schema.as_str());
    let inputs = request.messages.iter().flat_map(|message| &message.content);
    let inputs = inputs.filter_map(|content| match content {
        SamplingContent::ToolUse(tool) => Some(tool.input.as_str()),
        _ => None,
    });
    for text in texts.chain(inputs).chain(request.metadata.as_deref()) {
        let sound = check_json(text, "it").is_ok();
        if !sound || serde_json::from_str::<Map<String, Value>>(text).is_err() {
            return Err(format!("{text:.40?} is no JSON object"));
        }
    }
    let results = request.messages.iter().flat_map(|message| &message.content);
    for result in results {
        if let SamplingContent::ToolResult(result) = result
            && let Some(structured) = &result.structured_content
        {
            check_json(structured, "the structured content of a tool's result")?;
        }
    }
    let is_input = |schema: &Value| {
        let dialect = schema.get("$schema").is_none_or(Value::is_string);
        schema["type"] == "object" && dialect
    };
    let wrong = request
        .tools
        .iter()
        .find(|tool| !is_input(&parsed(&tool.input_schema)));
    match wrong {
        Some(tool) => Err(format!(
            "the input schema of the tool {:.40?} must have \"type\": \"object\"",
            tool.name
        )),
        None => Ok(()),
    }
}

/// A question of a plugin as the wire has it: method and parameters.
///
/// It names the plugin: for a person at the beginning of the message, where nothing that the plugin says can stand before it,
/// and for a program in `_meta`.
pub(crate) fn request_text(kind: &InputKind, plugin: &str) -> String {
    let mut request = match kind {
        InputKind::Form(form) => json!({
            "method": "elicitation/create",
            "params": { "mode": "form", "message": asked_by(plugin, &form.message), "requestedSchema": parsed(&form.schema) },
        }),
        InputKind::Url(page) => json!({
            "method": "elicitation/create",
            "params": { "mode": "url", "message": asked_by(plugin, &page.message), "url": page.url },
        }),
        InputKind::Roots => json!({ "method": "roots/list", "params": {} }),
        InputKind::Sampling(request) => json!({
            "method": "sampling/createMessage",
            "params": sampling_params(request),
        }),
    };
    request["params"]["_meta"] = json!({ PLUGIN: plugin });
    request.to_string()
}

fn asked_by(plugin: &str, message: &str) -> String {
    format!("{} asks: {message}", plugin.escape_debug())
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

/// Questions by key, as `inputRequests` has them.
pub(crate) fn input_requests<'a>(
    questions: impl Iterator<Item = &'a Question>,
) -> Map<String, Value> {
    questions
        .map(|asked| (asked.key.clone(), parsed(&asked.request)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str =
        r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

    #[test]
    fn flat_forms_are_taken_and_others_refused() {
        assert!(check_form(NAME).is_ok());
        let many: Vec<Value> = (0..500)
            .map(|n| json!({ "const": n.to_string(), "title": "x" }))
            .collect();
        let many = json!({ "type": "array", "items": { "anyOf": many }, "minItems": 1 });
        let properties: Map<String, Value> =
            (0..4).map(|n| (n.to_string(), many.clone())).collect();
        assert!(
            check_form(&json!({ "type": "object", "properties": properties }).to_string()).is_ok()
        );
        let of = |property: &str| {
            check_form(&format!(
                r#"{{"type":"object","properties":{{"a":{property}}}}}"#
            ))
        };
        for right in [
            r#"{"type":"string","format":"email","minLength":1,"default":"a@b.c"}"#,
            r#"{"type":"string","enum":["a"],"default":"a","title":"A"}"#,
            r#"{"type":"array","items":{"type":"string","enum":["a"]},"default":["a"]}"#,
            r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#,
            r#"{"type":"integer","minimum":0.5,"default":1}"#,
        ] {
            assert!(of(right).is_ok(), "{right}");
        }
        for wrong in [
            r#"{"type":"string","format":"uuid"}"#,
            r#"{"type":"string","minLength":"1"}"#,
            r#"{"type":"string","title":1}"#,
            r#"{"type":"string","default":1}"#,
            r#"{"type":"boolean","default":"true"}"#,
            r#"{"type":"number","maximum":"1"}"#,
            r#"{"type":"array","items":{"enum":["a"]}}"#,
            r#"{"type":"array","items":{"type":"string","enum":["a"]},"default":"a"}"#,
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "nonsense",
            r#"{"type":"string"}"#,
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{}}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}"#,
            r##"{"type":"object","properties":{},"allOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
            r##"{"type":"object","properties":{"a":{"type":"string","anyOf":[{"$dynamicRef":"#"}]}}}"##,
            r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^(a|a)*(?=b)$"}}}"#,
        ] {
            assert!(check_form(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_safe_urls_are_asked() {
        assert!(check_url("https://example.com/login?a=%7B").is_ok());
        assert!(check_url("http://localhost:8080/").is_ok());
        for wrong in [
            "http://example.com/",
            "https://good.example@evil.example/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "no url",
            "https://example.com/{a}",
        ] {
            assert!(check_url(wrong).is_err(), "{wrong}");
        }
    }
}
