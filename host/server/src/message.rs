//! From the bytes of a body or line to one JSON-RPC message (rungs 7 to 9 of the ladder).
//!
//! An id is kept as the text it was written in, so that it can be echoed digit by digit; one that cannot be read is never
//! made up. It must not know of transports or methods.

use crate::members::{self, Members, Misfit, is_string_or_integer};
use crate::meta::VERSION_KEY;
use crate::wire::WireError;
use longshore_runtime::json::{LEVELS_MAX, is_nested_deeper};
use serde_json::value::RawValue;

/// Size of an id, in bytes of its JSON text: it is repeated in the response and in logs.
const ID_BYTES_MAX: usize = 1_024;

/// What a body is.
#[derive(Debug)]
pub(crate) enum Message {
    /// It wants an answer.
    Request(Request),
    /// It wants none.
    Notification(Notification),
    /// It answers a request of this server; only sessions have those.
    Response(Response),
}

/// A notification, which may be unknown.
#[derive(Debug)]
pub(crate) struct Notification {
    /// The method.
    pub(crate) method: String,
    /// The params; empty if there are none.
    pub(crate) params: Members,
}

impl Notification {
    /// Whether it says that its sender speaks the protocol without sessions.
    pub(crate) fn is_modern(&self) -> bool {
        let meta = self.params.get("_meta").map(RawValue::get);
        let meta = meta.and_then(|meta| Members::parse(meta).ok());
        meta.is_some_and(|meta| meta.get(VERSION_KEY).is_some())
    }
}

/// An answer to a request of this server.
#[derive(Debug)]
pub(crate) struct Response {
    /// The id of the request.
    pub(crate) id: Box<RawValue>,
    /// The text of a result, or of an error; what it should be is not looked at yet.
    pub(crate) answer: Result<String, String>,
}

/// A request, not yet checked beyond its shape.
#[derive(Debug)]
pub(crate) struct Request {
    /// A JSON string or integer, as it was written.
    pub(crate) id: Box<RawValue>,
    /// The method, which may be unknown.
    pub(crate) method: String,
    /// The params; empty if there are none.
    pub(crate) params: Members,
    /// `_meta` of the params; empty if there is none, or it is no object.
    pub(crate) meta: Members,
}

/// Why a body is no message, with its id if that could be read.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The id to answer with.
    pub(crate) id: Option<Box<RawValue>>,
    /// -32700 or -32600.
    pub(crate) error: WireError,
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        Self { id: None, error }
    }
}

/// Read a body.
///
/// # Errors
/// If it is no JSON, or not one request or notification.
pub(crate) fn read(body: &[u8]) -> Result<Message, Fault> {
    let text = std::str::from_utf8(body)
        .map_err(|error| WireError::parse(format!("the body is not UTF-8: {error}")))?;
    if is_nested_deeper(text, LEVELS_MAX) {
        let message = format!("the body is nested deeper than {LEVELS_MAX} levels");
        return Err(WireError::parse(message).into());
    }
    let mut members = Members::parse_message(text).map_err(|misfit| Fault {
        id: members::only(text, "id").filter(|id| is_id(id)),
        error: misread(text, misfit),
    })?;
    let id = members.take("id");
    if let Some(id) = &id
        && !is_id(id)
    {
        let message = format!("id must be a string or an integer of at most {ID_BYTES_MAX} bytes");
        return Err(WireError::invalid_request(message).into());
    }
    if members.get("method").is_none()
        && (members.get("result").is_some() || members.get("error").is_some())
    {
        // Its id is one of ours: an error under it would be taken for the answer to a request of the client.
        let wrong = "a response has an id, and a result or an error";
        let answer = take_answer(&mut members);
        let response = id.zip(answer).map(|(id, answer)| Response { id, answer });
        let response = response.ok_or_else(|| WireError::invalid_request(wrong))?;
        return Ok(Message::Response(response));
    }
    match shape(&mut members) {
        Ok((method, params, meta)) => Ok(match id {
            Some(id) => Message::Request(Request {
                id,
                method,
                params,
                meta,
            }),
            None => Message::Notification(Notification { method, params }),
        }),
        Err(message) => Err(Fault {
            id,
            error: WireError::invalid_request(message),
        }),
    }
}

fn is_id(id: &RawValue) -> bool {
    id.get().len() <= ID_BYTES_MAX && is_string_or_integer(id)
}

fn misread(text: &str, misfit: Misfit) -> WireError {
    match (misfit, text.trim_start().as_bytes().first()) {
        (Misfit::Syntax(error), _) => WireError::parse(format!("the body is no JSON: {error}")),
        (Misfit::Shape(error), Some(b'{')) => WireError::invalid_request(error),
        (Misfit::Shape(_), Some(b'[')) => {
            WireError::invalid_request("batches are not served; send one request or notification")
        }
        (Misfit::Shape(_), _) => WireError::invalid_request("the body must be an object"),
    }
}

/// The answer in a response: a result or an error, not both.
fn take_answer(members: &mut Members) -> Option<Result<String, String>> {
    if members.text("jsonrpc").as_deref() != Some("2.0") {
        return None;
    }
    let text = |json: Box<RawValue>| String::from(Box::<str>::from(json));
    let error = members.take("error").filter(|error| error.get() != "null");
    match (members.take("result"), error) {
        (Some(result), None) => Some(Ok(text(result))),
        (None, Some(error)) => Some(Err(text(error))),
        _ => None,
    }
}

fn shape(members: &mut Members) -> Result<(String, Members, Members), String> {
    if members.text("jsonrpc").as_deref() != Some("2.0") {
        return Err("jsonrpc must be \"2.0\"".to_owned());
    }
    let Some(method) = members.string("method") else {
        return Err("method must be a string".to_owned());
    };
    let params = match members.take("params") {
        Some(params) => Members::parse(params.get()).map_err(|error| format!("params: {error}"))?,
        None => Members::default(),
    };
    let meta = match params.get("_meta") {
        Some(meta) if meta.get().starts_with('{') => {
            Members::parse(meta.get()).map_err(|error| format!("params._meta: {error}"))?
        }
        _ => Members::default(),
    };
    Ok((method, params, meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str) -> Request {
        match read(body.as_bytes()) {
            Ok(Message::Request(request)) => request,
            other => panic!("{body}: {other:?}"),
        }
    }

    fn fault(body: &str) -> (i32, Option<String>) {
        let fault = read(body.as_bytes()).unwrap_err();
        (fault.error.code, fault.id.map(|id| id.get().to_owned()))
    }

    #[test]
    fn ids_keep_type_and_digits() {
        for id in [
            "1",
            "\"1\"",
            "\"init-1\"",
            "\"\"",
            "-7",
            "0",
            "9007199254740993",
            "\"\\u00e9\"",
        ] {
            let body = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"m"}}"#);
            assert_eq!(request(&body).id.get(), id);
        }
    }

    #[test]
    fn ids_that_are_none_are_left_out() {
        let long = format!("\"{}\"", "x".repeat(ID_BYTES_MAX));
        for id in [
            "null",
            "1.5",
            "1.0",
            "1e3",
            "true",
            "{}",
            "[1]",
            "\"\\ud800\"",
            &long,
        ] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            assert_eq!(fault(&body), (-32600, None), "{id}");
        }
    }

    #[test]
    fn what_is_no_json_and_what_is_no_message_differ() {
        for body in [
            "",
            " ",
            r#"{"jsonrpc":"2.0","id":"#,
            "{]",
            "[1,",
            "nul",
            "{} {}",
        ] {
            assert_eq!(fault(body), (-32700, None), "{body}");
        }
        for body in [
            "[]",
            "[1]",
            "null",
            "\"x\"",
            "7",
            "{}",
            r#"[{"jsonrpc":"2.0"}]"#,
        ] {
            assert_eq!(fault(body), (-32600, None), "{body}");
        }
        assert_eq!(read(b"\xff\xfe").unwrap_err().error.code, -32700);
    }

    #[test]
    fn a_bad_request_is_answered_under_its_id() {
        for rest in [
            r#""method":"m""#,
            r#""jsonrpc":"1.0","method":"m""#,
            r#""jsonrpc":"2.0""#,
            r#""jsonrpc":"2.0","method":7"#,
            r#""jsonrpc":"2.0","method":"m","params":[]"#,
            r#""jsonrpc":"2.0","method":"m","params":{"a":1,"a":1}"#,
            r#""jsonrpc":"2.0","method":"m","params":{"_meta":{"a":1,"a":1}}"#,
        ] {
            let body = format!(r#"{{"id":"q",{rest}}}"#);
            assert_eq!(fault(&body), (-32600, Some("\"q\"".to_owned())), "{body}");
        }
        let twice = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#;
        assert_eq!(fault(twice), (-32600, None));
    }

    #[test]
    fn a_response_has_a_result_or_an_error() {
        let read = |rest: &str| read(format!(r#"{{"jsonrpc":"2.0",{rest}}}"#).as_bytes());
        for (rest, fine) in [
            (r#""id":1,"result":{}"#, true),
            (r#""id":1,"result":{},"error":null"#, true),
            (r#""id":1,"error":{"code":1,"message":"m"}"#, false),
        ] {
            match read(rest) {
                Ok(Message::Response(response)) => assert_eq!(response.answer.is_ok(), fine),
                other => panic!("{rest}: {other:?}"),
            }
        }
        for wrong in [
            r#""result":{}"#,
            r#""id":1,"result":{},"error":{}"#,
            r#""id":1,"error":null"#,
        ] {
            let fault = read(wrong).unwrap_err();
            assert_eq!(
                (fault.error.code, fault.id.is_none()),
                (-32600, true),
                "{wrong}"
            );
        }
    }

    #[test]
    fn without_an_id_it_is_a_notification() {
        let body = br#"{"jsonrpc":"2.0","method":"tools/list"}"#;
        assert!(matches!(read(body), Ok(Message::Notification(_))));
    }

    #[test]
    fn depth_is_bounded_wherever_it_is() {
        let nest = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body = |levels| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"m","x":{}}}"#,
                nest(levels)
            )
        };
        assert!(read(body(LEVELS_MAX - 1).as_bytes()).is_ok());
        assert_eq!(fault(&body(LEVELS_MAX)), (-32700, None));
        assert_eq!(fault(&nest(200_000)), (-32700, None));
    }
}
