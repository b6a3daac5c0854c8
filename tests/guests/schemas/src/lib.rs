//! Schemas that are small, and that no value is checked against in the time that there is; and odd ones that are good.

use longshore_plugin::{Tool, tool};
use serde_json::{Value, json};

longshore_plugin::plugin! {
    tools: [
        double(),
        look_through(),
        chain(),
        expression(),
        output(),
        called("fine", r#"{"type":"object"}"#),
    ],
}

/// A schema of which each level means the one before it, so many times.
fn levels(count: usize, times: usize, rest: &str) -> String {
    let mut schema = format!(
        r##"{{"type":"object","$ref":"#/$defs/{count}"{rest},"$defs":{{"0":{{"type":"object"}}"##
    );
    for level in 1..=count {
        let before = format!(r##"{{"$ref":"#/$defs/{}"}}"##, level - 1);
        let all = vec![before; times].join(",");
        schema.push_str(&format!(r#","{level}":{{"allOf":[{all}]}}"#));
    }
    schema + "}}"
}

/// A schema whose check doubles with each level.
fn doubled() -> String {
    levels(40, 2, "")
}

const LOOKED_THROUGH: &str = r#","unevaluatedProperties":false"#;

fn called(name: &str, input_schema: &str) -> Tool {
    tool(name, || "called").input_schema(input_schema)
}

/// Checks that have no end.
fn double() -> Tool {
    called("double", &doubled())
}

/// Compiling it has no end.
fn look_through() -> Tool {
    called("look_through", &levels(40, 2, LOOKED_THROUGH))
}

/// One in another, more than a small stack can bear.
fn chain() -> Tool {
    called("chain", &levels(1_200, 1, LOOKED_THROUGH))
}

/// Expressions, as a person would write them: the bound of its work is far too high.
fn expression() -> Tool {
    let kinds: Vec<Value> = (0..20)
        .map(|kind| {
            json!({
                "type": "object",
                "properties": {
                    "kind": { "const": format!("kind {kind}") },
                    "left": { "$ref": "#/$defs/expression" },
                    "right": { "$ref": "#/$defs/expression" },
                },
                "required": ["kind"],
                "additionalProperties": false,
            })
        })
        .collect();
    let schema = json!({
        "type": "object",
        "properties": { "expression": { "$ref": "#/$defs/expression" } },
        "$defs": { "expression": { "anyOf": kinds } },
    });
    called("expression", &schema.to_string())
}

/// A result whose check has no end.
fn output() -> Tool {
    tool("output", || json!({})).output_schema(doubled())
}
