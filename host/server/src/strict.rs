//! JSON values without two members of one name in any object.
//!
//! Arguments are read by several: by us against headers and schema, and by the guest. Readers disagree on which of two members
//! counts; refusing such objects is what makes all of them see the same.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Parse a value.
///
/// # Errors
/// If it is no JSON, or has an object with two members of one name; the text says which.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str::<Strict>(text)
        .map(|Strict(value)| value)
        .map_err(|error| error.to_string())
}

/// The text of a value in one way: without blanks, members in the order of their names, strings and numbers as this program writes
/// them, a whole number without a fraction. What is no JSON stays as it is.
pub(crate) fn canonical(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return text.to_owned();
    };
    value.sort_all_objects();
    write_whole_numbers(&mut value);
    value.to_string()
}

/// The largest integer that all readers of JSON keep.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

fn write_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            let whole = whole.filter(|number| number.abs() <= INTEGER_MAX);
            if let (true, Some(whole)) = (number.is_f64(), whole) {
                #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
                let integer = whole as i64;
                *value = integer.into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(write_whole_numbers),
        Value::Object(members) => members.values_mut().for_each(write_whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Strict(value))) = map.next_entry::<String, _>()? {
            if members.contains_key(&name) {
                let name = crate::wire::error::shortened(&name);
                return Err(A::Error::custom(format!(
                    "the member {name:?} is there twice"
                )));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_others_read() {
        for text in [
            "null",
            "true",
            "-1",
            "18446744073709551615",
            "1.5",
            "\"\\u00e9\"",
            r#"[{"a":[]},{}]"#,
        ] {
            assert_eq!(
                parse(text).unwrap(),
                serde_json::from_str::<Value>(text).unwrap(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_the_same_value_has_one_canonical_text() {
        let canonical_text = r#"{"a":["é",1.5,true],"b":{"c":1,"d":null}}"#;
        for text in [
            canonical_text,
            r#" { "b" : {"d":null,"c":1}, "a" : ["\u00e9", 1.50, true] } "#,
            r#"{"\u0062":{"d":null,"c":1},"a":["é",15e-1,true]}"#,
        ] {
            assert_eq!(canonical(text), canonical_text, "{text}");
        }
        assert_ne!(canonical("[1,2]"), canonical("[2,1]"));
        assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
        assert_eq!(canonical("[1.0,1e0,-0.0,0]"), canonical("[1,1,0,0]"));
        assert_ne!(canonical("1.5"), canonical("1"));
        assert_eq!(canonical("{ no"), "{ no");
    }

    #[test]
    fn two_members_of_one_name_are_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert!(
                parse(text).unwrap_err().contains("\"a\" is there twice"),
                "{text}"
            );
        }
    }
}
