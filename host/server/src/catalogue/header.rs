//! Arguments that are mirrored into headers `Mcp-Param-*`, by `x-mcp-header` in the input schema (MCP 2026-07-28, "Streamable
//! HTTP", custom headers).

use crate::headers::{decode, single};
use crate::wire::WireError;
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

const KEYWORD: &str = "x-mcp-header";

/// The largest whole number that every JSON reader agrees on.
const INTEGER_MAX: i64 = (1 << 53) - 1;

/// Keywords whose value is one schema, or a list of them.
const SCHEMA_KEYWORDS: [&str; 17] = [
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "unevaluatedItems",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "extends",
];

/// Keywords whose value is a map of schemas.
const MAP_KEYWORDS: [&str; 4] = [
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];

/// The mirrored arguments of a tool.
#[derive(Debug, Default)]
pub(crate) struct HeaderParams(Vec<HeaderParam>);

#[derive(Debug)]
struct HeaderParam {
    header: HeaderName,
    /// The names that lead to the argument.
    path: Vec<String>,
}

impl HeaderParams {
    /// Find them in a schema.
    ///
    /// # Errors
    /// If an annotation breaks a rule of the specification; the text says which.
    pub(crate) fn find(schema: &Value) -> Result<Self, String> {
        let mut found = Self::default();
        if let Value::Object(schema) = schema {
            found.visit(schema, Some(&[]))?;
        }
        Ok(found)
    }

    /// `path`: how the schema is reached by properties alone; `None` if it is not.
    fn visit(
        &mut self,
        schema: &Map<String, Value>,
        path: Option<&[String]>,
    ) -> Result<(), String> {
        if let Some(name) = schema.get(KEYWORD) {
            self.add(name, schema, path)?;
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (name, property) in properties {
                let path = path.map(|path| [path, std::slice::from_ref(name)].concat());
                self.visit_value(property, path.as_deref())?;
            }
        }
        for keyword in SCHEMA_KEYWORDS {
            match schema.get(keyword) {
                Some(Value::Array(schemas)) => {
                    schemas
                        .iter()
                        .try_for_each(|schema| self.visit_value(schema, None))?;
                }
                Some(schema) => self.visit_value(schema, None)?,
                None => {}
            }
        }
        for keyword in MAP_KEYWORDS {
            if let Some(Value::Object(schemas)) = schema.get(keyword) {
                schemas
                    .values()
                    .try_for_each(|schema| self.visit_value(schema, None))?;
            }
        }
        Ok(())
    }

    fn visit_value(&mut self, schema: &Value, path: Option<&[String]>) -> Result<(), String> {
        match schema {
            Value::Object(schema) => self.visit(schema, path),
            _ => Ok(()),
        }
    }

    fn add(
        &mut self,
        name: &Value,
        schema: &Map<String, Value>,
        path: Option<&[String]>,
    ) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("has {KEYWORD} {name}, {why}"));
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return refuse("which is not on a property that is reached by properties alone");
        };
        if !is_primitive(schema) {
            return refuse("which is not on a string, integer or boolean");
        }
        let header = match name.as_str() {
            Some(name) if !name.is_empty() => format!("mcp-param-{name}").parse::<HeaderName>(),
            _ => return refuse("which is no name"),
        };
        let Ok(header) = header else {
            return refuse("which is no name for a header");
        };
        if self.0.iter().any(|other| other.header == header) {
            return refuse("which is there twice; upper and lower case are the same");
        }
        self.0.push(HeaderParam {
            header,
            path: path.to_vec(),
        });
        Ok(())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Check that headers say what the arguments say.
    ///
    /// # Errors
    /// -32020, naming the header.
    pub(crate) fn check(&self, headers: &HeaderMap, arguments: &Value) -> Result<(), WireError> {
        self.0.iter().try_for_each(|param| {
            param
                .check(headers, arguments)
                .map_err(WireError::header_mismatch)
        })
    }
}

impl HeaderParam {
    fn check(&self, headers: &HeaderMap, arguments: &Value) -> Result<(), String> {
        let Self { header, path } = self;
        let argument = path
            .iter()
            .try_fold(arguments, |value, name| value.get(name));
        let place = path.join(".");
        let stated = single(headers, header)?
            .map(|value| decode(value).map_err(|error| format!("the header {header}: {error}")))
            .transpose()?;
        match (argument, stated) {
            (None | Some(Value::Null), None) => Ok(()),
            (None | Some(Value::Null), Some(_)) => Err(format!(
                "the header {header} is there, and the argument {place} is not; leave out the header"
            )),
            // The input schema will not admit it.
            (Some(Value::Object(_) | Value::Array(_)), _) => Ok(()),
            (Some(_), None) => Err(format!(
                "the header {header} is missing; it must say what the argument {place} says"
            )),
            (Some(argument), Some(stated)) if is_same(argument, &stated) => Ok(()),
            (Some(_), Some(_)) => Err(format!(
                "the header {header} does not say what the argument {place} says"
            )),
        }
    }
}

/// A string, integer or boolean; it may also be null, which is not mirrored.
fn is_primitive(schema: &Map<String, Value>) -> bool {
    let primitive = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            let mut real = kinds.iter().filter(|kind| *kind != "null");
            real.next().is_some_and(primitive) && real.next().is_none()
        }
        Some(kind) => primitive(kind),
        None => false,
    }
}

fn is_same(argument: &Value, stated: &str) -> bool {
    match argument {
        Value::String(text) => text == stated,
        Value::Bool(truth) => stated == if *truth { "true" } else { "false" },
        Value::Number(number) => {
            integer(stated).is_some() && integer(stated) == integer(&number.to_string())
        }
        _ => false,
    }
}

/// An integer in plain digits, whose fraction is none or all zeros, as far as all readers of JSON keep it.
fn integer(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
    let number = whole.parse::<i64>().ok()?;
    (is_plain && is_whole && number.abs() <= INTEGER_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(properties: &Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn annotations_that_break_a_rule_are_refused() {
        let good = json!({"type": "string", "x-mcp-header": "Region"});
        for wrong in [
            json!({"a": {"type": "number", "x-mcp-header": "A"}}),
            json!({"a": {"type": "object", "x-mcp-header": "A"}}),
            json!({"a": {"x-mcp-header": "A"}}),
            json!({"a": {"type": "string", "x-mcp-header": ""}}),
            json!({"a": {"type": "string", "x-mcp-header": 7}}),
            json!({"a": {"type": "string", "x-mcp-header": "a b"}}),
            json!({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}),
            json!({"a": good, "b": {"type": "string", "x-mcp-header": "REGION"}}),
            json!({"a": {"type": "array", "items": good}}),
            json!({"a": {"anyOf": [good]}}),
            json!({"a": {"if": good}}),
        ] {
            assert!(HeaderParams::find(&schema(&wrong)).is_err(), "{wrong}");
        }
        let in_defs = json!({"type": "object", "$defs": {"a": good}});
        assert!(HeaderParams::find(&in_defs).is_err());
        let at_root = json!({"type": "object", "x-mcp-header": "A"});
        assert!(HeaderParams::find(&at_root).is_err());
    }

    #[test]
    fn names_and_values_are_no_annotations() {
        let properties = json!({
            "x-mcp-header": {"type": "string"},
            "b": {"type": "object", "default": {"x-mcp-header": "B"}},
        });
        assert!(HeaderParams::find(&schema(&properties)).unwrap().is_empty());
    }

    fn check(argument: Option<Value>, header: Option<&str>) -> bool {
        let nested = json!({"deep": {"type": "object", "properties": {
            "a": {"type": ["string", "null"], "x-mcp-header": "A"}
        }}});
        let params = HeaderParams::find(&schema(&nested)).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-other", "ignored".parse().unwrap());
        if let Some(header) = header {
            headers.insert("Mcp-Param-A", header.parse().unwrap());
        }
        let arguments = match argument {
            Some(argument) => json!({"deep": {"a": argument}}),
            None => json!({}),
        };
        let checked = params.check(&headers, &arguments);
        assert!(
            checked
                .as_ref()
                .err()
                .is_none_or(|error| error.code == -32020)
        );
        checked.is_ok()
    }

    #[test]
    fn headers_say_what_the_arguments_say() {
        for (argument, header) in [
            (json!("x"), "x"),
            (json!("x"), "=?base64?eA==?="),
            (json!(42), "42"),
            (json!(42), "42.0"),
            (json!(42.0), "42"),
            (json!(0), "-0"),
            (json!(-7), "-7"),
            (json!(9_007_199_254_740_991_u64), "9007199254740991"),
            (json!(true), "true"),
        ] {
            assert!(
                check(Some(argument.clone()), Some(header)),
                "{argument} {header}"
            );
        }
        for (argument, header) in [
            (json!("x"), "X"),
            (json!("x"), "=?base64?eA?="),
            (json!(42), "43"),
            (json!(42), "0x2a"),
            (json!(42), "+42"),
            (json!(42), "42."),
            (json!(42), "41.99999999999999999999"),
            (json!(42), "42.000000000000001"),
            (json!(0), "-"),
            (json!(9_007_199_254_740_993_u64), "9007199254740993"),
            (json!(true), "True"),
            (json!("true"), "false"),
        ] {
            assert!(
                !check(Some(argument.clone()), Some(header)),
                "{argument} {header}"
            );
        }
    }

    #[test]
    fn an_absent_argument_has_no_header() {
        assert!(check(None, None));
        assert!(check(Some(Value::Null), None));
        assert!(!check(None, Some("x")));
        assert!(!check(Some(Value::Null), Some("null")));
        assert!(!check(Some(json!("x")), None));
    }
}
