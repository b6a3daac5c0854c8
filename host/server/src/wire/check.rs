//! Whether what guests give can be passed on: media types and URIs are such.

use longshore_runtime::contract::{CallResult, ContentBlock, ResourceContents};

/// Whether the wire admits a result: media types and URIs are such. Bytes are encoded here, so base64 is always right.
pub(crate) fn result(result: &CallResult) -> Result<(), String> {
    result.content.iter().try_for_each(block)
}

/// Whether the wire admits a content block.
pub(crate) fn block(block: &ContentBlock) -> Result<(), String> {
    match block {
        ContentBlock::Text(_) => Ok(()),
        ContentBlock::Image(media) | ContentBlock::Audio(media) => media_type(&media.mime_type),
        ContentBlock::ResourceLink(link) => {
            uri(&link.uri)?;
            link.mime_type.as_deref().map_or(Ok(()), media_type)
        }
        ContentBlock::Resource(embedded) => contents(&embedded.contents),
    }
}

/// Whether the wire admits the contents of a resource.
pub(crate) fn contents(contents: &ResourceContents) -> Result<(), String> {
    uri(&contents.uri)?;
    contents.mime_type.as_deref().map_or(Ok(()), media_type)
}

/// RFC 9110, section 8.3.1: type, subtype, and parameters in visible ASCII.
pub(crate) fn media_type(text: &str) -> Result<(), String> {
    let token = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let essence = essence.trim_end_matches(' ').split_once('/');
    let visible = parameters
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if visible && essence.is_some_and(|(kind, subtype)| token(kind) && token(subtype)) {
        return Ok(());
    }
    Err(format!("{text:.60?} is no media type"))
}

/// RFC 3986, to the letter: clients may parse what the schema calls a URI.
pub(crate) fn uri(text: &str) -> Result<(), String> {
    fluent_uri::Uri::parse(text)
        .map_err(|_| no_uri(text))
        .map(drop)
}

/// The same, or the end of one.
pub(crate) fn reference(text: &str) -> Result<(), String> {
    let parsed = fluent_uri::UriRef::parse(text);
    parsed.map_err(|_| no_uri(text)).map(drop)
}

fn no_uri(text: &str) -> String {
    format!("{text:.60?} is no URI; what RFC 3986 does not admit in one has to be percent-encoded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_and_uris_are_such() {
        for right in [
            "image/png",
            "text/plain; charset=utf-8",
            "application/vnd.x+json",
        ] {
            assert!(media_type(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "png",
            "image/",
            "no media type\r\n",
            "image/png\n",
            "a/b;\u{1}",
        ] {
            assert!(media_type(wrong).is_err(), "{wrong}");
        }
        for right in ["test://a/b", "urn:x:y", "https://example.com/%C3%BC"] {
            assert!(uri(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "no uri",
            "/path",
            "1a:b",
            "a:b c",
            "a:\n",
            "a://b/{c}",
            "a:ü",
            "a:%",
        ] {
            assert!(uri(wrong).is_err(), "{wrong}");
        }
    }
}
