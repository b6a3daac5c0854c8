//! Media types: what a body is, and what the client takes (rung 5 of the ladder).

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// What a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accept {
    /// JSON; notifications are not sent.
    Json,
    /// Anything: it does not say whether it can read a stream of events.
    Any,
    /// A stream of events.
    Events,
    /// JSON, or a stream of events where there are notifications.
    Both,
}

impl Accept {
    /// The same for a method whose answer is a stream: who takes anything takes that.
    pub(super) fn for_stream(self) -> Self {
        match self {
            Self::Any => Self::Both,
            stated => stated,
        }
    }
}

/// Whether the body is JSON, not compressed.
///
/// # Errors
/// What it would have to be.
pub(super) fn check_body(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let stated = types
        .next()
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let (essence, parameters) = stated.split_once(';').unwrap_or((stated, ""));
    let utf8 = parameters.split(';').all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"');
        !name.trim().eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8")
    });
    if types.next().is_some() || !essence.trim().eq_ignore_ascii_case(JSON) || !utf8 {
        return Err("the header Content-Type must be application/json, in UTF-8");
    }
    let plain = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        return Err("the body must not be compressed (Content-Encoding)");
    }
    Ok(())
}

/// What the client takes; `None` if neither JSON nor events.
pub(super) fn accepted(headers: &HeaderMap) -> Option<Accept> {
    let ranges: Vec<Range> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(Range::parse)
        .collect();
    if ranges.is_empty() && !headers.contains_key(ACCEPT) {
        return Some(Accept::Any);
    }
    let takes = |kind: &str, least: u8| {
        let matching = ranges
            .iter()
            .filter_map(|range| Some((range.precision(kind)?, range.wanted)));
        matching
            .max_by_key(|(precision, _)| *precision)
            .is_some_and(|(precision, wanted)| wanted && precision >= least)
    };
    match (takes(JSON, 0), takes(EVENTS, 1)) {
        (true, true) => Some(Accept::Both),
        (true, false) if takes(EVENTS, 0) => Some(Accept::Any),
        (true, false) => Some(Accept::Json),
        (false, true) => Some(Accept::Events),
        // `*/*` with JSON excluded.
        (false, false) => takes(EVENTS, 0).then_some(Accept::Events),
    }
}

/// One entry of `Accept`.
struct Range<'a> {
    essence: &'a str,
    /// Its weight is not zero.
    wanted: bool,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next().filter(|essence| essence.contains('/'))?;
        let weight = parts.find_map(|parameter| parameter.strip_prefix("q="));
        let wanted = weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|q| q > 0.0));
        Some(Self { essence, wanted })
    }

    /// How precisely it means this type, if it does: 0 is anything.
    fn precision(&self, kind: &str) -> Option<u8> {
        let (main, _) = kind.split_once('/')?;
        let is = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
        match self.essence {
            essence if is(essence, kind) => Some(2),
            "*/*" => Some(0),
            essence => {
                let all = essence.strip_suffix("/*")?;
                is(all, main).then_some(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn accept_is_refused_only_if_it_admits_neither() {
        for (accept, expected) in [
            ("application/json, text/event-stream", Some(Accept::Both)),
            ("text/event-stream, application/json", Some(Accept::Both)),
            ("text/event-stream;q=0.5, */*", Some(Accept::Both)),
            ("*/*", Some(Accept::Any)),
            ("application/*", Some(Accept::Json)),
            ("application/json", Some(Accept::Json)),
            ("application/json, */*;q=0.1", Some(Accept::Any)),
            ("APPLICATION/JSON; q=0.9", Some(Accept::Json)),
            ("text/event-stream", Some(Accept::Events)),
            (
                "text/event-stream, application/json;q=0",
                Some(Accept::Events),
            ),
            ("text/html", None),
            ("application/json;q=0", None),
            ("", None),
        ] {
            assert_eq!(
                accepted(&headers(&[("accept", accept)])),
                expected,
                "{accept}"
            );
        }
        assert_eq!(accepted(&HeaderMap::new()), Some(Accept::Any));
        let two = headers(&[
            ("accept", "application/json"),
            ("accept", "text/event-stream"),
        ]);
        assert_eq!(accepted(&two), Some(Accept::Both));
    }

    #[test]
    fn a_body_is_json_in_utf8() {
        for good in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
        ] {
            assert!(
                check_body(&headers(&[("content-type", good)])).is_ok(),
                "{good}"
            );
        }
        for wrong in [
            "text/plain",
            "application/json; charset=latin1",
            "application/jsonp",
            "",
        ] {
            assert!(
                check_body(&headers(&[("content-type", wrong)])).is_err(),
                "{wrong}"
            );
        }
        assert!(check_body(&HeaderMap::new()).is_err());
        let json = ("content-type", "application/json");
        assert!(check_body(&headers(&[json, ("content-encoding", "gzip")])).is_err());
        assert!(check_body(&headers(&[json, ("content-encoding", "identity")])).is_ok());
    }
}
