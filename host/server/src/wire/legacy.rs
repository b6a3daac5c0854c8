//! The shapes of the protocol versions that begin with a handshake: MCP 2025-11-25 and 2025-06-18.
//!
//! What is served is worded once, for 2026-07-28. Here it is made to fit: results lose what those versions do not know, errors
//! get the codes that they do, and questions become requests of the server.

use super::content::SERVER_INFO;
use super::object::Object;
use super::{WireError, rpc, server_info};
use crate::members::Members;
use http::StatusCode;
use longshore_runtime::contract::ClientFeatures;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// The latest of these versions.
pub(crate) const LATEST: &str = "2025-11-25";

/// The one before it.
pub(crate) const EARLIER: &str = "2025-06-18";

/// One of these versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    /// 2025-06-18
    Earlier,
    /// 2025-11-25
    Latest,
}

impl Revision {
    /// The version that a client is offered that asked for this one: the same, or the latest.
    pub(crate) fn offered(requested: &str) -> Self {
        if requested == EARLIER {
            Self::Earlier
        } else {
            Self::Latest
        }
    }

    /// Its name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Earlier => EARLIER,
            Self::Latest => LATEST,
        }
    }

    /// What of the declared features it knows.
    pub(crate) fn known(self, declared: ClientFeatures) -> ClientFeatures {
        let known = declared & !ClientFeatures::TASKS;
        match self {
            Self::Latest => known,
            Self::Earlier => {
                let later = ClientFeatures::ELICITATION_URL | ClientFeatures::SAMPLING_TOOLS;
                let mut known = known & !later;
                // There it was part of sampling, and not declared.
                if known.contains(ClientFeatures::SAMPLING) {
                    known |= ClientFeatures::SAMPLING_CONTEXT;
                }
                known
            }
        }
    }
}

/// The result of `initialize`.
pub(crate) fn initialized(revision: Revision, mut capabilities: Map<String, Value>) -> String {
    capabilities.remove("extensions");
    Object::new()
        .value("protocolVersion", &revision.name())
        .value("capabilities", &capabilities)
        .value("serverInfo", &server_info())
        .finish()
}

/// A result, as this version has it.
pub(crate) fn result(revision: Revision, method: &str, text: &str) -> String {
    let Ok(mut members) = Members::parse(text) else {
        // The answer to a subscription: there is nothing to say.
        return "{}".to_owned();
    };
    for later in ["resultType", "ttlMs", "cacheScope"] {
        members.take(later);
    }
    drop_server_info(&mut members);
    if method == "tools/call" {
        keep_object(&mut members, "structuredContent");
    }
    for list in ["tools", "prompts", "resources", "resourceTemplates"] {
        if method.ends_with("/list") {
            fit_list(revision, &mut members, list);
        }
    }
    members.to_json()
}

fn drop_server_info(members: &mut Members) {
    let Some(meta) = members.take("_meta") else {
        return;
    };
    let Ok(mut meta) = Members::parse(meta.get()) else {
        return;
    };
    meta.take(SERVER_INFO);
    if !meta.is_empty() {
        members.put("_meta", raw(meta.to_json()));
    }
}

/// Structured content is an object there, and its schema describes one.
fn keep_object(members: &mut Members, name: &str) {
    let other = |value: &RawValue| !value.get().starts_with('{');
    if members.get(name).is_some_and(other) {
        members.take(name);
    }
}

fn fit_list(revision: Revision, members: &mut Members, name: &str) {
    let Some(list) = members.get(name) else {
        return;
    };
    let Ok(entries) = serde_json::from_str::<Vec<Box<RawValue>>>(list.get()) else {
        return;
    };
    let fitted: Vec<_> = entries
        .into_iter()
        .map(|entry| fit_definition(revision, entry))
        .collect();
    if let Ok(list) = to_raw_value(&fitted) {
        members.put(name, list);
    }
}

fn fit_definition(revision: Revision, definition: Box<RawValue>) -> Box<RawValue> {
    let Ok(mut members) = Members::parse(definition.get()) else {
        return definition;
    };
    let of_objects = |schema: &Value| schema["type"] == "object";
    if !members
        .value("outputSchema")
        .is_some_and(|s| of_objects(&s))
    {
        members.take("outputSchema");
    }
    if revision == Revision::Earlier {
        members.take("icons");
    }
    raw(members.to_json())
}

fn raw(json: String) -> Box<RawValue> {
    // It was written as JSON a moment ago.
    RawValue::from_string(json).expect("an object is JSON")
}

/// An error, as these versions have it. It travels with status 200, for there only the transport has others.
pub(crate) fn error(method: &str, error: WireError) -> WireError {
    let of_resource = matches!(method, "resources/read" | "resources/subscribe");
    let names_uri = error.data.as_ref().is_some_and(|data| {
        let data = Members::parse(data.get());
        data.is_ok_and(|data| data.get("uri").is_some())
    });
    let code = match error.code {
        // Resource not found.
        -32602 if of_resource && names_uri => -32002,
        // A missing capability has no code of its own there.
        -32021 => -32603,
        code => code,
    };
    WireError { code, ..error }.with_status(StatusCode::OK)
}

/// A question, as a request of the server.
///
/// # Errors
/// If the version has no such question.
pub(crate) fn question(revision: Revision, id: u64, question: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Question {
        method: String,
        params: Map<String, Value>,
    }
    let Question { method, mut params } = serde_json::from_str(question)
        .map_err(|error| format!("the question is damaged: {error}"))?;
    match revision {
        Revision::Earlier => fit_question(&mut params)?,
        Revision::Latest if params.get("mode").is_some_and(|mode| mode == "url") => {
            let named = format!("elicitation-{id}");
            params.insert("elicitationId".to_owned(), named.into());
        }
        Revision::Latest => keep_structured_objects(&mut params),
    }
    Ok(Object::new()
        .value("jsonrpc", &"2.0")
        .value("id", &id)
        .value("method", &method)
        .value("params", &params)
        .finish())
}

/// The structured content of a tool's result was an object; another is left out, and the text says the same.
fn keep_structured_objects(params: &mut Map<String, Value>) {
    let messages = params.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        let blocks = match &mut message["content"] {
            Value::Array(blocks) => blocks.as_mut_slice(),
            block => std::slice::from_mut(block),
        };
        for block in blocks.iter_mut().filter_map(Value::as_object_mut) {
            if block
                .get("structuredContent")
                .is_some_and(|content| !content.is_object())
            {
                block.remove("structuredContent");
            }
        }
    }
}

/// 2025-06-18 knew forms only, and no name for them; a choice had its titles beside it, and was of one.
fn fit_question(params: &mut Map<String, Value>) -> Result<(), String> {
    params.remove("mode");
    part_contents(params);
    let properties = params
        .get_mut("requestedSchema")
        .and_then(|schema| schema["properties"].as_object_mut());
    for (name, property) in properties.into_iter().flatten() {
        if property["type"] == "array" {
            return Err(format!(
                "the field {name:?} is a choice of several, which the client's protocol version does not know"
            ));
        }
        let Some(Value::Array(choices)) = property.get("oneOf").cloned() else {
            continue;
        };
        let column = |key: &str| choices.iter().map(|choice| choice[key].clone()).collect();
        let (values, titles): (Vec<Value>, Vec<Value>) = (column("const"), column("title"));
        if let Some(property) = property.as_object_mut() {
            property.remove("oneOf");
            property.insert("enum".to_owned(), values.into());
            property.insert("enumNames".to_owned(), titles.into());
        }
    }
    Ok(())
}

/// A message there has one block of content; one with several becomes several.
fn part_contents(params: &mut Map<String, Value>) {
    let Some(Value::Array(messages)) = params.get_mut("messages") else {
        return;
    };
    *messages = std::mem::take(messages)
        .into_iter()
        .flat_map(|message| match message["content"].as_array() {
            None => vec![message],
            Some(blocks) => {
                let one = |block| json!({ "role": message["role"], "content": block });
                blocks.iter().map(one).collect()
            }
        })
        .collect();
}

/// `notifications/cancelled`: a request of the server is not waited for any more.
pub(crate) fn cancelled(id: u64, reason: &str) -> String {
    let params = Object::new()
        .value("requestId", &id)
        .value("reason", &reason);
    rpc::notification("notifications/cancelled", &params.finish())
}

/// `notifications/tools/list_changed` and its like.
pub(crate) fn list_changed(list: &str) -> String {
    rpc::notification(&format!("notifications/{list}/list_changed"), "{}")
}

/// `notifications/resources/updated`.
pub(crate) fn resource_updated(uri: &str) -> String {
    let params = Object::new().value("uri", &uri);
    rpc::notification("notifications/resources/updated", &params.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_loses_what_is_not_known_there() {
        let call = r#"{"resultType":"complete","content":[],"structuredContent":[1],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}}}"#;
        assert_eq!(
            result(Revision::Latest, "tools/call", call),
            r#"{"content":[]}"#
        );
        let own = r#"{"resultType":"complete","content":[],"structuredContent":{"n":1.50},"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{}}}"#;
        assert_eq!(
            result(Revision::Latest, "tools/call", own),
            r#"{"_meta":{"a":1},"content":[],"structuredContent":{"n":1.50}}"#
        );
        assert_eq!(result(Revision::Latest, "resources/subscribe", ""), "{}");
    }

    #[test]
    fn a_definition_keeps_an_output_schema_of_objects_only() {
        let list = r#"{"resultType":"complete","tools":[{"name":"a","icons":[],"outputSchema":{"type":"object"}},{"name":"b","outputSchema":{"type":"array"}}],"ttlMs":0,"cacheScope":"private"}"#;
        assert_eq!(
            result(Revision::Latest, "tools/list", list),
            r#"{"tools":[{"icons":[],"name":"a","outputSchema":{"type":"object"}},{"name":"b"}]}"#
        );
        assert_eq!(
            result(Revision::Earlier, "tools/list", list),
            r#"{"tools":[{"name":"a","outputSchema":{"type":"object"}},{"name":"b"}]}"#
        );
    }

    #[test]
    fn a_missing_resource_has_its_own_code() {
        let missing = WireError::no_such_resource("a:b");
        assert_eq!(error("resources/read", missing.clone()).code, -32002);
        assert_eq!(error("completion/complete", missing).code, -32602);
        let capability = WireError::tasks_required("x");
        assert_eq!(error("tools/call", capability).code, -32603);
    }

    #[test]
    fn a_question_is_a_request_of_its_version() {
        let form = r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{}}}"#;
        let text = question(Revision::Earlier, 7, form).unwrap();
        assert!(
            text.contains(r#""id":7"#) && !text.contains("mode"),
            "{text}"
        );
        assert!(
            question(Revision::Latest, 7, form)
                .unwrap()
                .contains(r#""mode":"form""#)
        );
        let url = r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example"}}"#;
        assert!(
            question(Revision::Latest, 7, url)
                .unwrap()
                .contains("elicitationId")
        );
    }

    #[test]
    fn a_choice_has_the_form_of_its_version() {
        let form = |property: &str| {
            format!(
                r#"{{"method":"elicitation/create","params":{{"requestedSchema":{{"properties":{{"a":{property}}}}}}}}}"#
            )
        };
        let one = form(r#"{"type":"string","oneOf":[{"const":"x","title":"X"}]}"#);
        let text = question(Revision::Earlier, 0, &one).unwrap();
        assert!(text.contains(r#""enum":["x"],"enumNames":["X"]"#), "{text}");
        assert!(
            question(Revision::Latest, 0, &one)
                .unwrap()
                .contains("oneOf")
        );
        let several = form(r#"{"type":"array","items":{"enum":["x"]}}"#);
        assert!(question(Revision::Earlier, 0, &several).is_err());
    }

    #[test]
    fn versions_know_their_own_features() {
        let all = ClientFeatures::all();
        assert!(!Revision::Latest.known(all).contains(ClientFeatures::TASKS));
        let earlier = Revision::Earlier.known(ClientFeatures::SAMPLING);
        assert_eq!(
            earlier,
            ClientFeatures::SAMPLING | ClientFeatures::SAMPLING_CONTEXT
        );
        assert!(
            !Revision::Earlier
                .known(all)
                .contains(ClientFeatures::ELICITATION_URL)
        );
    }
}
