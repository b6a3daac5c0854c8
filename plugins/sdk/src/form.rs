//! Forms: the flat schema of a Rust struct, and the filled form read back into it.
//!
//! Clients draw a form from a small part of JSON Schema: an object of texts, numbers, booleans, enumerations and lists of
//! enumerated texts. A type that needs more is refused when it is first asked for, by the name of the field.

use crate::ask::{question_methods, reply};
use crate::contract::longshore::plugin::task::{FormRequest, InputAnswer, InputKind, InputRequest};
use crate::{AskError, Question, Reply, schema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::marker::PhantomData;

/// A form for the user to fill in.
#[derive(Debug, Clone)]
pub struct Form<T> {
    name: String,
    message: String,
    schema: Option<String>,
    filled: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> Form<T> {
    /// `message` says what is asked. The question has the name of the type: `ShipTo` is `ship_to`.
    pub fn new(message: &str) -> Self {
        Self {
            name: snake_case(&T::schema_name()),
            message: message.into(),
            schema: None,
            filled: PhantomData,
        }
    }

    /// A JSON Schema for the form, sent as it stands instead of the derived one. `T` must be able to take what fits it;
    /// [`serde_json::Value`] takes everything.
    #[must_use]
    pub fn schema(mut self, json: impl Into<String>) -> Self {
        self.schema = Some(json.into());
        self
    }

    question_methods!();
}

impl<T: DeserializeOwned + JsonSchema> Question for Form<T> {
    type Answer = Reply<T>;

    fn request(&self) -> Result<InputRequest, AskError> {
        let schema = match &self.schema {
            Some(json) => json.clone(),
            None => flat(&schema::of_input::<T>())
                .map_err(|why| AskError::Invalid(format!("form `{}`: {why}", T::schema_name())))?
                .to_string(),
        };
        let form = FormRequest {
            message: self.message.clone(),
            schema,
        };
        Ok(InputRequest {
            name: self.name.clone(),
            kind: InputKind::Form(form),
        })
    }

    fn read(&self, answer: InputAnswer) -> Result<Reply<T>, AskError> {
        reply(answer, |content| {
            // A form without a filled field may come back without content.
            crate::json::read(content.as_deref().unwrap_or("{}"))
                .map_err(|error| AskError::Unreadable(error.to_string()))
        })
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        snake.push(if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        });
    }
    snake
}

/// The part of `schema` that a form can say, or what it cannot.
fn flat(schema: &Value) -> Result<Value, String> {
    if schema["type"] != "object" {
        return Err("it must be a struct with named fields".into());
    }
    let mut properties = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let field = field(property).map_err(|why| format!("field `{name}`: {why}"))?;
        properties.insert(name.clone(), field);
    }
    let mut flat = json!({ "type": "object", "properties": properties });
    if let Some(required) = schema.get("required") {
        flat["required"] = required.clone();
    }
    Ok(flat)
}

/// Members that any field may have.
const COMMON: [&str; 3] = ["title", "description", "default"];

fn field(schema: &Value) -> Result<Value, String> {
    let schema = without_null(schema);
    if let Some(options) = options(&schema) {
        let mut field = json!({ "type": "string" });
        keep(&schema, &COMMON, &mut field);
        options.put(&mut field, "oneOf");
        return Ok(field);
    }
    let kind = schema["type"].as_str().unwrap_or("any");
    let mut field = json!({ "type": kind });
    keep(&schema, &COMMON, &mut field);
    match kind {
        "string" => {
            refuse(&schema, &["pattern"])?;
            keep(&schema, &["minLength", "maxLength"], &mut field);
            if let Some("email" | "uri" | "date" | "date-time") = schema["format"].as_str() {
                keep(&schema, &["format"], &mut field);
            }
        }
        "integer" | "number" => {
            refuse(
                &schema,
                &["exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
            )?;
            keep(&schema, &["minimum", "maximum"], &mut field);
        }
        "boolean" => {}
        "array" => {
            let options = options(&schema["items"])
                .ok_or("a list in a form can only hold values of an enumeration")?;
            keep(&schema, &["minItems", "maxItems"], &mut field);
            let mut items = Value::Object(Map::new());
            options.put(&mut items, "anyOf");
            if items.get("enum").is_some() {
                items["type"] = "string".into();
            }
            field["items"] = items;
        }
        other => {
            return Err(format!(
                "a form holds texts, numbers, booleans, enumerations and lists of these, not `{other}`"
            ));
        }
    }
    Ok(field)
}

fn keep(from: &Value, members: &[&str], into: &mut Value) {
    for member in members {
        if let Some(value) = from.get(member).filter(|value| !value.is_null()) {
            into[*member] = value.clone();
        }
    }
}

/// What would be lost on the way is better refused than dropped.
fn refuse(schema: &Value, members: &[&str]) -> Result<(), String> {
    match members.iter().find(|member| schema.get(**member).is_some()) {
        Some(member) => Err(format!("a form cannot say `{member}`")),
        None => Ok(()),
    }
}

/// The schema of `T` out of that of `Option<T>`: in a form, what is not required may be left out, and nothing is null.
fn without_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    for member in ["type", "enum"] {
        if let Some(values) = schema.get_mut(member).and_then(Value::as_array_mut) {
            values.retain(|value| !value.is_null() && value != "null");
        }
    }
    if let Some([only]) = schema["type"].as_array().map(Vec::as_slice) {
        schema["type"] = only.clone();
    }
    for member in ["anyOf", "oneOf"] {
        let Some(choices) = schema.get(member).and_then(Value::as_array) else {
            continue;
        };
        let not_null = |choice: &&Value| choice["type"] != "null";
        let rest: Vec<&Value> = choices.iter().filter(not_null).collect();
        if let ([only], true) = (rest.as_slice(), choices.len() == 2) {
            let mut only = (*only).clone();
            keep(&schema, &COMMON, &mut only);
            return only;
        }
    }
    schema
}

/// The values of an enumeration, and what a person calls each.
struct Options(Vec<(Value, Option<Value>)>);

impl Options {
    fn put(self, into: &mut Value, titled: &str) {
        if self.0.iter().all(|(_, title)| title.is_none()) {
            into["enum"] = self.0.into_iter().map(|(value, _)| value).collect();
            return;
        }
        let choice = |(value, title): (Value, Option<Value>)| {
            let title = title.unwrap_or_else(|| value.clone());
            json!({ "const": value, "title": title })
        };
        into[titled] = self.0.into_iter().map(choice).collect();
    }
}

/// Reads the three forms an enumeration of texts has in a derived schema: `enum`, `const`, and `oneOf` of these.
fn options(schema: &Value) -> Option<Options> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let texts = values.iter().all(Value::is_string);
        return texts.then(|| Options(values.iter().map(|v| (v.clone(), None)).collect()));
    }
    if let Some(value) = schema.get("const").filter(|value| value.is_string()) {
        return Some(Options(vec![(value.clone(), None)]));
    }
    let mut all = Vec::new();
    for choice in schema.get("oneOf")?.as_array()? {
        let title = choice.get("title").or_else(|| choice.get("description"));
        let Options(values) = options(choice)?;
        all.extend(values.into_iter().map(|(value, _)| (value, title.cloned())));
    }
    Some(Options(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code, reason = "only its schema is of interest")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code, reason = "only its schema is of interest")]
    enum Way {
        /// By ship
        Sea,
        /// By plane
        Air,
    }

    fn four() -> u8 {
        4
    }

    /// Not part of the form.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    struct ShipTo {
        /// Who gets it
        #[schemars(title = "Name", length(min = 1))]
        name: String,
        #[schemars(email)]
        email: Option<String>,
        #[serde(default = "four")]
        boxes: u8,
        weight: Option<f64>,
        insured: bool,
        size: Size,
        spare: Option<Size>,
        /// How
        way: Way,
        ways: Vec<Way>,
        sizes: Option<Vec<Size>>,
    }

    #[test]
    fn a_struct_is_a_flat_form() {
        let form = Form::<ShipTo>::new("Where to?");
        let request = form.request().unwrap();
        assert_eq!(request.name, "ship_to");
        let InputKind::Form(form) = request.kind else {
            panic!("no form")
        };
        let ways = json!([{ "const": "sea", "title": "By ship" }, { "const": "air", "title": "By plane" }]);
        assert_eq!(
            serde_json::from_str::<Value>(&form.schema).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "title": "Name", "description": "Who gets it", "minLength": 1 },
                    "email": { "type": "string", "format": "email" },
                    "boxes": { "type": "integer", "default": 4, "minimum": 0, "maximum": 255 },
                    "weight": { "type": "number" },
                    "insured": { "type": "boolean" },
                    "size": { "type": "string", "enum": ["small", "large"] },
                    "spare": { "type": "string", "enum": ["small", "large"] },
                    "way": { "type": "string", "description": "How", "oneOf": ways },
                    "ways": { "type": "array", "items": { "anyOf": ways } },
                    "sizes": { "type": "array", "items": { "type": "string", "enum": ["small", "large"] } },
                },
                "required": ["name", "insured", "size", "way", "ways"],
            })
        );
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    struct Inner {
        x: u8,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    struct Deep {
        inner: Inner,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    struct Free {
        words: Vec<String>,
    }

    #[test]
    fn what_a_form_cannot_hold_is_refused_by_name() {
        let why = |result: Result<InputRequest, AskError>| match result.unwrap_err() {
            AskError::Invalid(why) => why,
            other => panic!("{other}"),
        };
        let deep = why(Form::<Deep>::new("?").request());
        assert!(deep.contains("form `Deep`: field `inner`"), "{deep}");
        let free = why(Form::<Free>::new("?").request());
        assert!(free.contains("field `words`: a list"), "{free}");
    }

    #[test]
    fn names_are_in_snake_case() {
        let names = ["ShipTo", "Address2", "URL", "Map_of_string"].map(snake_case);
        assert_eq!(names, ["ship_to", "address2", "url", "map_of_string"]);
    }
}
