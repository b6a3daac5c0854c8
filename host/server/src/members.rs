//! One JSON object, taken apart once: its members by name, their values as the text they were written in.
//!
//! An object with two members of one name is refused: readers disagree on which one counts, so what was checked would not be
//! what is executed.

use crate::wire::object::Object;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Members that most objects of the protocol have no more of.
const USUAL_MEMBERS: usize = 4;

/// Why a text is no such object.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// It is no JSON.
    Syntax(String),
    /// It is no object, or has two members of one name.
    Shape(String),
}

/// The members of an object, in the order of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// Take an object apart.
    ///
    /// # Errors
    /// If it is no object, or has two members of one name; the text says which.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| without_place(&error))
    }

    /// Take a whole message apart, of which nothing is known yet.
    ///
    /// # Errors
    /// If it is no JSON; else if it is no object, or has two members of one name.
    pub(crate) fn parse_message(text: &str) -> Result<Self, Misfit> {
        let parsed = serde_json::from_str(text);
        parsed.map_err(|error: serde_json::Error| match error.classify() {
            // Behind a wrong member there may be what is no JSON.
            Category::Data => match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => Misfit::Shape(without_place(&error)),
                Err(error) => Misfit::Syntax(error.to_string()),
            },
            Category::Io | Category::Syntax | Category::Eof => Misfit::Syntax(error.to_string()),
        })
    }

    /// The text of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        let place = self.place(name).ok()?;
        Some(&self.0[place].1)
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| own.as_str().cmp(name))
    }

    /// Take a member out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        let place = self.place(name).ok()?;
        Some(self.0.remove(place).1)
    }

    /// A member that is a string. One of another type is none.
    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.text(name).map(Cow::into_owned)
    }

    /// The same, to look at.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let json = self.get(name)?.get();
        let inner = json.strip_prefix('"')?.strip_suffix('"')?;
        // What has no escapes stands for itself.
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(inner.into());
        }
        serde_json::from_str(json).ok().map(Cow::Owned)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Put a member in, in the place of one of the same name.
    pub(crate) fn put(&mut self, name: &str, value: Box<RawValue>) {
        match self.place(name) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (name.to_owned(), value)),
        }
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

/// The value of a member that is there once, of an object that may have others twice.
pub(crate) fn only(text: &str, name: &str) -> Option<Box<RawValue>> {
    let Pairs(pairs) = serde_json::from_str(text).ok()?;
    let mut values = pairs.into_iter().filter(|(own, _)| own == name);
    let (_, value) = values.next()?;
    values.next().is_none().then_some(value)
}

/// The members of an object as they come.
struct Pairs(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Pairs(mut members) = Pairs::deserialize(deserializer)?;
        members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let twice = members.windows(2).find(|pair| pair[0].0 == pair[1].0);
        if let Some([(name, _), _]) = twice {
            let name = crate::wire::error::shortened(name);
            return Err(D::Error::custom(format!(
                "the member {name:?} is there twice"
            )));
        }
        Ok(Self(members))
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut members = Vec::with_capacity(USUAL_MEMBERS);
                while let Some(member) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push(member);
                }
                Ok(Pairs(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The message of an error; its position would count from the start of this object.
fn without_place(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    message
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
    fn members_are_found_put_and_taken_by_name() {
        let mut members = Members::parse(r#"{"c":3,"a":1,"b":2}"#).unwrap();
        members.put("b", RawValue::from_string("20".to_owned()).unwrap());
        members.put("aa", RawValue::from_string("11".to_owned()).unwrap());
        assert_eq!(members.to_json(), r#"{"a":1,"aa":11,"b":20,"c":3}"#);
        assert_eq!(members.take("aa").unwrap().get(), "11");
        assert!(members.take("aa").is_none() && members.get("d").is_none());
        assert_eq!(members.to_json(), r#"{"a":1,"b":20,"c":3}"#);
    }

    #[test]
    fn what_is_no_json_and_what_is_no_object_of_ours_differ() {
        for (text, is_json) in [
            ("[1]", true),
            ("7", true),
            (r#"{"a":1,"a":1}"#, true),
            (r#"{"a":1,"a":1,}"#, false),
            (r#"{"a":1,"a":1} x"#, false),
            ("[1", false),
            ("", false),
        ] {
            let misfit = Members::parse_message(text).unwrap_err();
            assert_eq!(matches!(misfit, Misfit::Shape(_)), is_json, "{text}");
        }
    }

    #[test]
    fn values_keep_their_text() {
        let members = Members::parse(r#"{"n": 1.50e0 , "s":"x"}"#).unwrap();
        assert_eq!(members.get("n").unwrap().get(), "1.50e0");
        assert_eq!(members.string("s").as_deref(), Some("x"));
        assert_eq!(members.string("n"), None);
        let members = Members::parse(r#"{"e":"a\u0062\"","h":"\ud800"}"#).unwrap();
        assert_eq!(members.text("e").as_deref(), Some("ab\""));
        assert_eq!(members.text("h"), None);
    }
}
