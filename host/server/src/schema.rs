//! JSON Schemas of strangers, compiled once and checked with bounds: no remote reference is followed, a pattern may not
//! backtrack without end, and a schema is no larger or deeper than a person would write. What may take long all the same is
//! checked in a process of its own.
//!
//! - `apart`: that process.
//! - `work`: how much work there may be, of `compiling` too; `graph` and `pattern` are what that is read from.

mod apart;
mod compiling;
mod graph;
mod pattern;
mod work;

use crate::wire::error::shortened;
use jsonschema::{PatternOptions, Validator};
use longshore_runtime::Failure;
use longshore_runtime::json::is_nested_deeper;
use serde_json::Value;
use std::fmt::{self, Write as _};
use work::{Survey, Work};

pub(crate) use apart::{CHECK_COMMAND, Checks, child_main};

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

/// Size of the text of one error, in bytes: it may repeat a value of the arguments.
const ERROR_BYTES_MAX: usize = 300;

/// Work of one schema to be compiled in this process: about 0.1 s.
const COMPILE_UNITS_MAX: u64 = 10_000;

/// The same of all schemas of a plugin: about a second.
const COMPILE_UNITS_OF_PLUGIN: u64 = 100_000;

/// Work of one check in this process: one to two milliseconds.
const CHECK_UNITS_MAX: u64 = 400_000;

/// The same if errors are gathered: times the size of the value, for each error may have a copy of it.
const TELL_UNITS_MAX: u64 = 20_000;

/// Calls in calls of one check in this process. Each takes some hundred bytes of a stack that has 2 MiB.
const CALLS_MAX: u64 = 1_000;

/// What compiling the schemas of a plugin in this process may still cost.
#[derive(Debug)]
pub(crate) struct Allowance(u64);

impl Default for Allowance {
    fn default() -> Self {
        Self(COMPILE_UNITS_OF_PLUGIN)
    }
}

impl Allowance {
    fn take(&mut self, units: u64) -> bool {
        let left = self.0.checked_sub(units);
        let left = left.filter(|_| units <= COMPILE_UNITS_MAX);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// A schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// `None`: whatever is checked against it is checked apart.
    here: Option<(Validator, Work)>,
}

/// What a check in this process finds.
enum Verdict {
    Fits,
    /// What is wrong, and where.
    Wrong(String),
    /// It may take more than this process does.
    Unknown,
}

/// Why a value is not taken.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// What is wrong, and where.
    Wrong(String),
    /// Whether it fits is not known.
    Failed(Failure),
}

impl Schema {
    /// Compile a schema. Without `$schema` it is of the dialect 2020-12. One that may take long is left for the checks.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn compile(schema: &Value, allowance: &mut Allowance) -> Result<Self, String> {
        let survey = Survey::of(schema);
        if !allowance.take(survey.compiling()) {
            return Ok(Self { here: None });
        }
        let validator = build(schema, false)?;
        let here = survey.checking().map(|work| (validator, work));
        Ok(Self { here })
    }

    /// Compile the schema of a form, with its formats. A form is flat and small; nothing of it is checked apart.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn form(schema: &Value) -> Result<Self, String> {
        let survey = Survey::of(schema);
        let is_little = survey.compiling() <= COMPILE_UNITS_MAX;
        let work = is_little.then(|| survey.checking()).flatten();
        let Some(work) = work.filter(Work::is_bounded) else {
            return Err("makes too much work; forms are flat".to_owned());
        };
        let validator = build(schema, true)?;
        let here = Some((validator, work));
        Ok(Self { here })
    }

    /// Check the content of a form.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(crate) fn check_content(&self, content: &Value) -> Result<(), String> {
        match self.judge(content) {
            Verdict::Fits => Ok(()),
            Verdict::Wrong(wrong) => Err(wrong),
            Verdict::Unknown => Err("it is wrong, or too large to be checked".to_owned()),
        }
    }

    /// Whether everything is checked apart.
    pub(crate) fn is_apart(&self) -> bool {
        self.here.is_none()
    }

    fn judge(&self, value: &Value) -> Verdict {
        let Some((validator, work)) = &self.here else {
            return Verdict::Unknown;
        };
        let bill = work.bill(value);
        if bill.units > CHECK_UNITS_MAX || bill.calls > CALLS_MAX {
            return Verdict::Unknown;
        }
        if validator.is_valid(value) {
            return Verdict::Fits;
        }
        if bill.units.saturating_mul(work::size(value)) > TELL_UNITS_MAX {
            return Verdict::Unknown;
        }
        Verdict::Wrong(told(validator, value))
    }
}

fn build(schema: &Value, with_formats: bool) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS_MAX)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX);
    let options = jsonschema::options()
        .offline()
        .with_pattern_options(patterns);
    // Else the dialect decides.
    let options = if with_formats {
        options.should_validate_formats(true)
    } else {
        options
    };
    options
        .build(schema)
        .map_err(|error| format!("is not valid: {}", said(&error)))
}

/// What is wrong with a value that does not fit, and where.
fn told(validator: &Validator, value: &Value) -> String {
    let errors = validator.iter_errors(value).take(ERRORS_MAX).map(|error| {
        let place = match error.instance_path().as_str() {
            "" => "at the top".to_owned(),
            path => format!("at {}", shortened(path)),
        };
        format!("{place}: {}", said(&error))
    });
    errors.collect::<Vec<_>>().join("; ")
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

/// The text of an error. One that repeats a large value is not even written out.
fn said(error: &impl fmt::Display) -> String {
    let mut text = Clipped::default();
    match write!(text, "{error}") {
        Ok(()) => text.0,
        Err(fmt::Error) => text.0 + "...",
    }
}

/// A text that takes so much and no more.
#[derive(Default)]
struct Clipped(String);

impl fmt::Write for Clipped {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = ERROR_BYTES_MAX - self.0.len();
        let end = part.floor_char_boundary(room);
        self.0.push_str(&part[..end]);
        if end == part.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(text: &str) -> Result<Schema, String> {
        parse(text).and_then(|schema| Schema::compile(&schema, &mut Allowance::default()))
    }

    /// What is wrong with a value that is checked here.
    fn wrong(schema: &Schema, value: &Value) -> Option<String> {
        match schema.judge(value) {
            Verdict::Fits => None,
            Verdict::Wrong(wrong) => Some(wrong),
            Verdict::Unknown => panic!("{value:.80} is not checked here"),
        }
    }

    fn is_apart(schema: &Value, value: &Value) -> bool {
        let schema = Schema::compile(schema, &mut Allowance::default()).unwrap();
        matches!(schema.judge(value), Verdict::Unknown)
    }

    /// `$defs` of which each means the one before it.
    fn doubled(levels: usize, keyword: &str, last: &Value) -> Value {
        let mut schema = json!({ "$ref": format!("#/$defs/a{levels}"), "$defs": { "a0": last } });
        for level in 1..=levels {
            let before = json!({ "$ref": format!("#/$defs/a{}", level - 1) });
            schema["$defs"][format!("a{level}")] = json!({ keyword: [before, before] });
        }
        schema
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }))
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
        assert_eq!(wrong(&schema, &json!({"n": 1})), None);
        let error = wrong(&schema, &json!({"n": "x".repeat(10_000)})).unwrap();
        assert!(
            error.starts_with("at /n: ") && error.len() < 1_000,
            "{error}"
        );
    }

    #[test]
    fn what_may_take_long_is_not_done_here() {
        let object = json!({ "type": "object" });
        let mut looked_through = doubled(40, "allOf", &object);
        looked_through["unevaluatedProperties"] = json!(false);
        let mut long = doubled(2_000, "x", &object);
        for level in 1..=2_000 {
            long["$defs"][format!("a{level}")] =
                json!({ "$ref": format!("#/$defs/a{}", level - 1) });
        }
        let choices: Vec<Value> = (0..2_000)
            .map(|number| json!({ "const": number }))
            .collect();
        let list: Value = (0..2_000).map(|_| json!("no number")).collect();
        let tree =
            json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let pattern = json!({ "pattern": "^(a|a)*(?=b)$" });
        let wide = json!({ "pattern": "(a{99}){99}" });
        for (schema, value) in [
            (doubled(40, "allOf", &object), json!({})),
            (doubled(40, "oneOf", &object), json!({})),
            (looked_through, json!({})),
            (long, json!({})),
            (json!({ "items": { "anyOf": choices } }), list),
            (tree, nested(60)),
            (pattern, json!("a")),
            (wide, json!("a".repeat(1_000))),
            (json!({ "allOf": [{ "$ref": "#" }] }), json!({})),
            (
                json!({ "format": "regex", "$schema": "http://json-schema.org/draft-07/schema#" }),
                json!("a"),
            ),
            (json!({ "$dynamicRef": "#" }), json!({})),
            (
                json!({ "items": { "uniqueItems": true } }),
                json!([vec![nested(100); 1_000]]),
            ),
        ] {
            assert!(is_apart(&schema, &value), "{schema:.200}");
        }
    }

    #[test]
    fn what_people_write_is_checked_here() {
        let list = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$" },
                "tags": { "type": "array", "items": { "enum": ["a", "b", "c"] }, "uniqueItems": true },
                "next": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] },
            },
            "required": ["id"],
            "unevaluatedProperties": false,
        });
        let good = json!({ "id": "00000000-0000-000000000000", "tags": ["a", "b"], "next": { "id": "00000000-0000-000000000000" } });
        let schema = Schema::compile(&list, &mut Allowance::default()).unwrap();
        assert_eq!(wrong(&schema, &good), None);
        assert!(wrong(&schema, &json!({ "id": "x", "tags": ["a", "a"] })).is_some());
        let tree = json!({
            "$ref": "#/$defs/expression",
            "$defs": { "expression": { "oneOf": [
                { "type": "number" },
                { "type": "object", "properties": { "op": { "const": "add" }, "left": { "$ref": "#/$defs/expression" }, "right": { "$ref": "#/$defs/expression" } }, "required": ["op"] },
                { "type": "object", "properties": { "op": { "const": "negate" }, "of": { "$ref": "#/$defs/expression" } }, "required": ["op"] },
            ] } },
        });
        let sum = |left: Value| json!({ "op": "add", "left": left, "right": 1 });
        let schema = Schema::compile(&tree, &mut Allowance::default()).unwrap();
        assert_eq!(
            wrong(&schema, &sum(sum(json!({ "op": "negate", "of": 2 })))),
            None
        );
        let numbers: Value = (0..5_000).collect();
        let schema = json!({ "items": { "type": "number" } });
        assert!(!is_apart(&schema, &numbers));
        // What a schema does not look at is not counted.
        assert!(!is_apart(
            &json!({ "type": "object" }),
            &json!({ "a": [numbers] })
        ));
    }

    #[test]
    fn one_plugin_compiles_only_so_much_here() {
        let mut allowance = Allowance::default();
        let schema = json!({ "properties": { "a": { "pattern": "(a{99}){99}" } } });
        let apart = (0..1_000)
            .map(|_| Schema::compile(&schema, &mut allowance).unwrap())
            .filter(Schema::is_apart);
        assert!((1..950).contains(&apart.count()));
    }

    #[test]
    fn a_schema_that_means_itself_by_another_name_is_not_compiled_here() {
        for reference in [
            "json-schema:///#/$defs/a40",
            "https://example.com/s.json#/$defs/a40",
            "s.json#/$defs/a40",
            "https://json-schema.org/draft/2020-12/schema#/$defs/a40",
            "?#/$defs/a40",
        ] {
            let mut schema = doubled(40, "allOf", &json!({ "type": "object" }));
            let defs = schema["$defs"].as_object_mut().unwrap();
            for level in 1..=40 {
                let before = reference.replace("a40", &format!("a{}", level - 1));
                defs[&format!("a{level}")] =
                    json!({ "allOf": [{ "$ref": before }, { "$ref": before }] });
            }
            schema["$ref"] = json!(reference);
            schema["unevaluatedProperties"] = json!(false);
            for id in [None, Some("https://example.com/s.json")] {
                if let Some(id) = id {
                    schema["$id"] = json!(id);
                }
                // Where nothing has that name it is none.
                let compiled = Schema::compile(&schema, &mut Allowance::default());
                assert!(
                    compiled.is_err() || compiled.is_ok_and(|schema| schema.is_apart()),
                    "{reference}"
                );
            }
        }
    }

    #[test]
    fn a_form_is_compiled_where_it_is_asked_and_so_has_few_large_patterns() {
        let form = |count: usize| {
            let large = json!({ "type": "string", "pattern": r"^\p{L}{20}$" });
            let properties: serde_json::Map<_, _> = (0..count)
                .map(|number| (format!("a{number}"), large.clone()))
                .collect();
            Schema::form(&json!({ "type": "object", "properties": properties })).is_ok()
        };
        assert!(form(1) && !form(20));
    }
}
