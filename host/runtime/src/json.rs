//! JSON text of strangers: whether it is JSON, and not too deep for those who will read it.
//!
//! It must not know what any text means.

use serde::de::IgnoredAny;

/// How deep JSON text may be nested: what parsers that recurse take by default.
pub const LEVELS_MAX: usize = 128;

/// Whether JSON text is nested deeper than this. It looks at brackets outside of strings only, without recursion, so it may be
/// given anything.
pub fn is_nested_deeper(text: &str, levels_max: usize) -> bool {
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

/// Whether this is one JSON value, at most [`LEVELS_MAX`] levels deep. `place` names it in the error.
pub(crate) fn check(text: &str, place: &str) -> Result<(), String> {
    if is_nested_deeper(text, LEVELS_MAX) {
        return Err(format!("{place} is nested deeper than {LEVELS_MAX} levels"));
    }
    serde_json::from_str::<IgnoredAny>(text)
        .map(drop)
        .map_err(|error| format!("{place} is no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        assert!(!is_nested_deeper(r#"{"a":["[[[[","\"{{"]}"#, 2));
        assert!(is_nested_deeper("[[[]]]", 2));
        assert!(!is_nested_deeper("[[],[],[]]", 2));
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_refused() {
        assert!(check("null", "x").is_ok());
        for wrong in ["", "{", "{} {}", "nul", "\u{1}", "NaN"] {
            assert!(check(wrong, "x").is_err(), "{wrong}");
        }
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(check(&deep(LEVELS_MAX), "x").is_ok());
        assert!(check(&deep(LEVELS_MAX + 1), "x").is_err());
    }
}
