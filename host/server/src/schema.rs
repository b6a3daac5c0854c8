//! JSON Schemas of strangers, compiled once and checked with bounds: no remote reference is followed, a pattern may not
//! backtrack without end, and a schema is no larger or deeper than a person would write.

use crate::wire::error::shortened;
use jsonschema::{PatternOptions, Validator};
use longshore_runtime::json::is_nested_deeper;
use serde_json::Value;

/// Size of a schema, in bytes. The longest of known servers have some 30 KiB.
const SCHEMA_BYTES_MAX: usize = 256 << 10;

/// How deep a schema may be nested.
const LEVELS_MAX: usize = 64;

/// Steps back that one match of one pattern may take.
const BACKTRACKS_MAX: usize = 100_000;

/// Size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Errors that are told at once.
const ERRORS_MAX: usize = 3;

/// Size of the text of one error, in characters: it may repeat a value of the arguments.
const ERROR_CHARACTERS_MAX: usize = 300;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema(Validator);

impl Schema {
    /// Compile a schema. Without `$schema` it is of the dialect 2020-12.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS_MAX)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(schema)
            .map(Self)
            .map_err(|error| format!("is not valid: {}", clipped(&error.to_string())))
    }

    /// Check a value.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.0.is_valid(value) {
            return Ok(());
        }
        let errors = self.0.iter_errors(value).take(ERRORS_MAX).map(|error| {
            let place = match error.instance_path().as_str() {
                "" => "at the top".to_owned(),
                path => format!("at {}", shortened(path)),
            };
            format!("{place}: {}", clipped(&error.to_string()))
        });
        Err(errors.collect::<Vec<_>>().join("; "))
    }
}

/// Parse the text of a schema.
///
/// # Errors
/// Why it is none.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!(
            "has {} bytes; at most {SCHEMA_BYTES_MAX} are allowed",
            text.len()
        ));
    }
    if is_nested_deeper(text, LEVELS_MAX) {
        return Err(format!("is nested deeper than {LEVELS_MAX} levels"));
    }
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    if !schema.is_object() {
        return Err("must be an object".to_owned());
    }
    Ok(schema)
}

/// Arguments are objects, and the schema must say so.
pub(crate) fn require_object(schema: &Value) -> Result<(), String> {
    match &schema["type"] {
        Value::String(kind) if kind == "object" => Ok(()),
        _ => Err("must have \"type\": \"object\"".to_owned()),
    }
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(ERROR_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(text: &str) -> Result<Schema, String> {
        parse(text).and_then(|schema| Schema::compile(&schema))
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for (text, reason) in [
            ("nonsense", "no JSON"),
            ("true", "object"),
            (r#"{"type":"int"}"#, "not valid"),
            (r#"{"$ref":"https://example.com/schema.json"}"#, "not valid"),
            (r#"{"$ref":"file:///etc/passwd"}"#, "not valid"),
            (r##"{"$ref":"#/$defs/missing"}"##, "not valid"),
            (r#"{"pattern":"("}"#, "not valid"),
        ] {
            let error = compile(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(require_object(&json!({"type": "string"})).is_err());
        assert!(require_object(&json!({})).is_err());
        assert!(require_object(&json!({"type": "object"})).is_ok());
    }

    #[test]
    fn an_error_names_the_place() {
        let schema = compile(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#).unwrap();
        assert!(schema.check(&json!({"n": 1})).is_ok());
        let error = schema.check(&json!({"n": "x".repeat(10_000)})).unwrap_err();
        assert!(
            error.starts_with("at /n: ") && error.len() < 1_000,
            "{error}"
        );
    }

    #[test]
    fn a_pattern_cannot_run_without_end() {
        let schema = compile(r#"{"pattern":"^(a|a)*(?=b)$"}"#).unwrap();
        assert!(schema.check(&json!("a".repeat(10_000))).is_err());
    }

    #[test]
    fn references_that_go_round_are_refused_or_end() {
        if let Ok(schema) = compile(r##"{"$ref":"#"}"##) {
            let _ = schema.check(&json!({}));
        }
    }
}
