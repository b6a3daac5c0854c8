//! Typed values from JSON text.

use serde::de::DeserializeOwned;
use serde_json::{Result, Value, from_str, from_value};

/// The largest integer that all readers of JSON keep, and its negative the smallest.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// Reads a value. JSON has numbers of one kind: an integer may come as `10.0` or `1e1` (JSON Schema 2020-12 Core, section 4.2.3),
/// which the host's check of the schema admits, and serde for a field that is one does not.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    from_str(text).or_else(|error| {
        let mut value: Value = from_str(text)?;
        make_integers(&mut value);
        // The error of the text as it was says what its author knows.
        from_value(value).map_err(|_| error)
    })
}

fn make_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|number| number.fract() == 0.0 && number.abs() <= INTEGER_MAX);
            if let (true, Some(whole)) = (number.is_f64(), whole) {
                #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
                let integer = whole as i64;
                *value = integer.into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_integers),
        Value::Object(members) => members.values_mut().for_each(make_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Sizes {
        count: u64,
        more: Vec<i8>,
        share: f64,
    }

    #[test]
    fn an_integer_may_be_written_with_a_fraction_of_zero() {
        let expected = Sizes {
            count: 10,
            more: vec![-1, 20],
            share: 2.0,
        };
        for text in [
            r#"{"count":10,"more":[-1,20],"share":2}"#,
            r#"{"count":10.0,"more":[-1.0,2e1],"share":2.0}"#,
        ] {
            assert_eq!(read::<Sizes>(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_integer_is_refused_as_it_was_written() {
        for wrong in ["10.5", "-1.0", "1e300", "\"10\""] {
            let text = format!(r#"{{"count":{wrong},"more":[],"share":0}}"#);
            let error = read::<Sizes>(&text).unwrap_err();
            let plain = from_str::<Sizes>(&text).unwrap_err();
            assert_eq!(error.to_string(), plain.to_string());
        }
    }
}
