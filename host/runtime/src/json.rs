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
        .map_err(|error| format!("{place} is no JSON: {error}"))?;
    if has_half_a_character(text) {
        return Err(format!(
            "{place} has half a surrogate pair, which is no character"
        ));
    }
    Ok(())
}

/// Whether an escape in this JSON text stands for half of a pair. The grammar allows it; most readers do not.
fn has_half_a_character(text: &str) -> bool {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(next) = next_backslash(bytes, at) {
        at = next + 2;
        match unit(next) {
            Some(0xd800..=0xdbff) if matches!(unit(next + 6), Some(0xdc00..=0xdfff)) => {
                at = next + 12;
            }
            Some(0xd800..=0xdfff) => return true,
            _ => {}
        }
    }
    false
}

/// Where the next backslash is.
fn next_backslash(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    Some(from + rest.iter().position(|byte| *byte == b'\\')?)
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
        assert!(check(&deep(LEVELS_MAX), "x").is_ok());
        assert!(check(&deep(LEVELS_MAX + 1), "x").is_err());
    }
}
