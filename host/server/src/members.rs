//! One JSON object, taken apart once: its members by name, their values as the text they were written in.
//!
//! An object with two members of one name is refused: readers disagree on which one counts, so what was checked would not be
//! what is executed.

use crate::wire::object::Object;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// The members of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(BTreeMap<String, Box<RawValue>>);

impl Members {
    /// Take an object apart.
    ///
    /// # Errors
    /// If it is no object, or has two members of one name; the text says which.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| {
            // The position would count from the start of this object.
            let message = error.to_string();
            match message.rfind(" at line ") {
                Some(end) => message[..end].to_owned(),
                None => message,
            }
        })
    }

    /// The text of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(Box::as_ref)
    }

    /// Take a member out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.0.remove(name)
    }

    /// A member that is a string. One of another type is none.
    pub(crate) fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Put a member in, in the place of one of the same name.
    pub(crate) fn put(&mut self, name: &str, value: Box<RawValue>) {
        self.0.insert(name.to_owned(), value);
    }

    /// The object as JSON text, its members in the order of their names.
    pub(crate) fn to_json(&self) -> String {
        let members = self.0.iter();
        members
            .fold(Object::new(), |object, (name, value)| {
                object.raw(name, value.get())
            })
            .finish()
    }

    /// All members, by name, if all are strings.
    pub(crate) fn into_strings(self) -> Option<Vec<(String, String)>> {
        let string = |(name, value): (String, Box<RawValue>)| {
            Some((name, serde_json::from_str(value.get()).ok()?))
        };
        self.0.into_iter().map(string).collect()
    }

    /// A member, parsed.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    check_new(&members, &name)?;
                    members.insert(name, value);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn check_new<V, E: serde::de::Error>(members: &BTreeMap<String, V>, name: &str) -> Result<(), E> {
    if members.contains_key(name) {
        let name = crate::wire::error::shortened(name);
        return Err(E::custom(format!("the member {name:?} is there twice")));
    }
    Ok(())
}

/// Whether JSON text is a string, or an integer in plain digits.
pub(crate) fn is_string_or_integer(value: &RawValue) -> bool {
    let text = value.get();
    if text.starts_with('"') {
        return serde_json::from_str::<String>(text).is_ok();
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_of_one_name_are_refused_however_they_are_written() {
        assert!(Members::parse(r#"{"a":1,"b":2}"#).is_ok());
        for twice in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"":1,"":2}"#,
        ] {
            assert!(
                Members::parse(twice).unwrap_err().contains("twice"),
                "{twice}"
            );
        }
    }

    #[test]
    fn values_keep_their_text() {
        let members = Members::parse(r#"{"n": 1.50e0 , "s":"x"}"#).unwrap();
        assert_eq!(members.get("n").unwrap().get(), "1.50e0");
        assert_eq!(members.string("s").as_deref(), Some("x"));
        assert_eq!(members.string("n"), None);
    }
}
