//! JSON Schemas of Rust types, each whole in itself.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// The schema of a tool that takes no arguments.
pub(crate) fn of_nothing() -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

/// What `T` is read from.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    root::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// What `T` is written as.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    root::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn root<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        // Readers need not follow references; a recursive type still gets `$defs`, which are local.
        settings.inline_subschemas = true;
        // 2020-12 is what the protocol assumes.
        settings.meta_schema = None;
        settings
            .transforms
            .push(Box::new(RecursiveTransform(without_rust_format)));
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type says nothing to a client.
    schema.remove("title");
    schema.to_value()
}

/// Takes out "uint32", "double" and their like: no client knows them, and some warn of each.
fn without_rust_format(schema: &mut Schema) {
    let number = |kind: &Value| kind == "integer" || kind == "number";
    let numeric = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(number),
        Some(kind) => number(kind),
        None => false,
    };
    if numeric {
        schema.remove("format");
    }
}
