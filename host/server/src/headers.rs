//! Request headers that mirror the body: reading and decoding them (MCP 2026-07-28, "Streamable HTTP", request metadata).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// What a header says, if it is there.
///
/// # Errors
/// If it is there twice with different values, or has bytes that a header must not have; the text names it.
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.any(|value| value != first) {
        return Err(format!(
            "the header {name} is there twice, with different values"
        ));
    }
    // `to_str` admits visible ASCII, space and tab, as the specification does.
    let text = first.to_str().map_err(|_| {
        format!("the header {name} has other characters than visible ASCII; encode it as {PREFIX}...{SUFFIX}")
    })?;
    Ok(Some(text.trim_matches([' ', '\t'])))
}

/// The text of a header value that may be wrapped as base64.
///
/// # Errors
/// If it is wrapped, and what is inside is no base64 (with its padding) of UTF-8.
pub(crate) fn decode(value: &str) -> Result<String, String> {
    let wrapped = value
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX));
    let Some(encoded) = wrapped else {
        return Ok(value.to_owned());
    };
    let bytes = STANDARD.decode(encoded).map_err(|error| {
        format!("what stands between {PREFIX} and {SUFFIX} is no base64: {error}")
    })?;
    String::from_utf8(bytes)
        .map_err(|_| format!("what stands between {PREFIX} and {SUFFIX} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_values_are_decoded_and_others_are_literal() {
        for (value, text) in [
            ("us-west1", "us-west1"),
            ("=?base64?SGVsbG8=?=", "Hello"),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
            ("=?base64?IHBhZGRlZCA=?=", " padded "),
            ("=?base64??=", ""),
            ("SGVsbG8=", "SGVsbG8="),
            ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
            ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
            ("=?base64?=", "=?base64?="),
        ] {
            assert_eq!(decode(value).as_deref(), Ok(text), "{value}");
        }
        for value in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?/w==?=",
        ] {
            assert!(decode(value).is_err(), "{value}");
        }
    }

    #[test]
    fn a_header_has_one_value() {
        let name = HeaderName::from_static("mcp-name");
        let mut headers = HeaderMap::new();
        assert_eq!(single(&headers, &name), Ok(None));
        headers.append(&name, "a ".parse().unwrap());
        assert_eq!(single(&headers, &name), Ok(Some("a")));
        headers.append(&name, "b".parse().unwrap());
        assert!(single(&headers, &name).is_err());
        headers.insert(&name, http::HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(single(&headers, &name).is_err());
    }
}
