//! JSON text of strangers: whether it is JSON, and not too deep for those who will read it.
//!
//! It must not know what any text means.

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// How deep JSON text may be nested: what parsers that recurse take by default.
pub const LEVELS_MAX: usize = 128;

/// How deep that of a guest may be: around it comes a message, and readers count its levels too.
pub const GUEST_LEVELS_MAX: usize = 112;

/// Whether JSON text is nested deeper than this. It looks at brackets outside of strings only, without recursion, so it may be
/// given anything.
pub fn is_nested_deeper(text: &str, levels_max: usize) -> bool {
    // Most texts have fewer brackets than may be nested; to count them is quick.
    let is_opening = |byte: &u8| matches!(byte, b'{' | b'[');
    if text.bytes().filter(is_opening).count() <= levels_max {
        return false;
    }
    let (mut levels, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                levels += 1;
                if levels > levels_max {
                    return true;
                }
            }
            b'}' | b']' => levels = levels.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Whether this is one JSON value that every reader takes: at most [`GUEST_LEVELS_MAX`] levels deep, without numbers that are
/// too large for a double, and without halves of characters. The grammar allows both. `place` names it in the error.
///
/// # Errors
/// What is wrong.
pub fn check(text: &str, place: &str) -> Result<(), String> {
    if is_nested_deeper(text, GUEST_LEVELS_MAX) {
        return Err(format!(
            "{place} is nested deeper than {GUEST_LEVELS_MAX} levels"
        ));
    }
    serde_json::from_str::<Seen>(text)
        .map(drop)
        .map_err(|error| format!("{place} is no JSON: {error}"))
}

/// A value that was looked at, and not kept: to look is to decode each text and each number.
struct Seen;

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Look)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Seen, E> {
        Ok(Seen)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Seen, E> {
        Ok(Seen)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Seen, E> {
        Ok(Seen)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Seen, E> {
        Ok(Seen)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Seen, E> {
        Ok(Seen)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Seen, E> {
        Ok(Seen)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Seen, A::Error> {
        while entries.next_element::<Seen>()?.is_some() {}
        Ok(Seen)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Seen, A::Error> {
        while members.next_entry::<Seen, Seen>()?.is_some() {}
        Ok(Seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        assert!(!is_nested_deeper(r#"{"a":["[[[[","\"{{"]}"#, 2));
        assert!(is_nested_deeper("[[[]]]", 2));
        assert!(!is_nested_deeper("[[],[],[]]", 2));
        assert!(!is_nested_deeper("[[]]", 2));
        assert!(!is_nested_deeper(r#"{"[[[":"\"[[["}"#, 1));
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_refused() {
        for right in ["null", "18446744073709551617.50", "1e308", "1e-999", "-0.0"] {
            assert!(check(right, "x").is_ok(), "{right}");
        }
        for wrong in ["", "{", "{} {}", "nul", "\u{1}", "NaN", "1e400", "[-1e999]"] {
            assert!(check(wrong, "x").is_err(), "{wrong}");
        }
        for halves in [
            r#""\ud800""#,
            r#""\udc00""#,
            r#"{"\udfff":1}"#,
            r#""\ud800\ud800""#,
        ] {
            assert!(check(halves, "x").is_err(), "{halves}");
        }
        for whole in [
            r#""\ud83e\udd80""#,
            r#""\\ud800""#,
            r#""\u0000""#,
            r#""é\\""#,
        ] {
            assert!(check(whole, "x").is_ok(), "{whole}");
        }
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(check(&deep(GUEST_LEVELS_MAX), "x").is_ok());
        assert!(check(&deep(GUEST_LEVELS_MAX + 1), "x").is_err());
    }
}
