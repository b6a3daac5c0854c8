//! Typed values from named texts: the arguments of a prompt, the variables of a URI template.
//!
//! A text is read as what the field's type wants: a number, a boolean, a variant by its name, or text as it is.

use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};

/// Reads a struct from names and texts.
pub(crate) fn read<T: DeserializeOwned>(values: &[(String, String)]) -> Result<T, Error> {
    let entries = values
        .iter()
        .map(|(name, text)| (name.as_str(), Text(text)));
    T::deserialize(MapDeserializer::new(entries))
}

/// One text, on its way to a type.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl<'de> IntoDeserializer<'de> for Text<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Number and boolean types: the text must be one.
macro_rules! parsed {
    ($($method:ident => $visit:ident),+ $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let value = self.0.parse().map_err(|error| {
                Error::custom(format_args!("{:?} cannot be used: {error}", self.0))
            })?;
            visitor.$visit(value)
        })+
    };
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    parsed! {
        deserialize_bool => visit_bool,
        deserialize_i8 => visit_i8,
        deserialize_i16 => visit_i16,
        deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64,
        deserialize_u8 => visit_u8,
        deserialize_u16 => visit_u16,
        deserialize_u32 => visit_u32,
        deserialize_u64 => visit_u64,
        deserialize_f32 => visit_f32,
        deserialize_f64 => visit_f64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    /// What is there is there; what is not has no entry.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mood {
        Glad,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Mixed {
        text: String,
        number: u16,
        mood: Mood,
        rest: Option<f64>,
        missing: Option<String>,
    }

    fn values(number: &str) -> Vec<(String, String)> {
        [
            ("text", "1"),
            ("number", number),
            ("mood", "glad"),
            ("rest", "1.5"),
        ]
        .map(|(name, text)| (name.into(), text.into()))
        .into()
    }

    #[test]
    fn a_text_becomes_what_its_field_wants() {
        let mixed: Mixed = read(&values("2026")).unwrap();
        assert_eq!(
            mixed,
            Mixed {
                text: "1".into(),
                number: 2026,
                mood: Mood::Glad,
                rest: Some(1.5),
                missing: None
            }
        );
    }

    #[test]
    fn what_is_no_number_is_named() {
        let error = read::<Mixed>(&values("many")).unwrap_err();
        assert!(
            error.to_string().contains(r#""many" cannot be used"#),
            "{error}"
        );
    }
}
