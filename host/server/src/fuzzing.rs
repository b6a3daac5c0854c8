//! What fuzz targets call (`fuzz/`): the reading of messages, of headers against them, and of lines, with what must hold whatever
//! comes in.
//!
//! Nothing is executed. What would be goes to the judge, who has read the same input in another way: a message that is accepted must
//! mean the same to both.

mod judge;
#[cfg(test)]
mod tests;

use crate::era::{self, Era};
use crate::in_flight::{InFlight, Place};
use crate::ladder::{Rules, climb};
use crate::legacy::{self, handshake};
use crate::message::{self, Message, Request};
use crate::stdio::input::{Input, Line};
use futures::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use longshore_runtime::contract::ClientFeatures;
use serde_json::Value;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;

/// What more requests pass than with any other.
const RULES: Rules = Rules {
    require_task_name: false,
};

/// Size of a line, in bytes: room for a message of either era, and so little that longer ones come up.
const LINE_BYTES_MAX: usize = 320;

/// What was accepted: the kind of message, or the era and method of a request.
#[derive(Debug, PartialEq, Eq)]
enum Accepted {
    Notification,
    Response,
    Request(Era, &'static str),
}

/// A body or line, whatever it is.
pub fn message(body: &[u8]) {
    let _ = take(body);
}

fn take(body: &[u8]) -> Option<Accepted> {
    let other = judge::other_reading(body);
    let read = match message::read(body) {
        Ok(read) => read,
        Err(fault) => {
            judge::fault(&fault, other.as_ref());
            return None;
        }
    };
    let other = other?;
    match read {
        Message::Notification(read) => {
            judge::notification(&read, &other);
            Some(Accepted::Notification)
        }
        Message::Response(read) => {
            judge::response(&read, &other);
            Some(Accepted::Response)
        }
        Message::Request(read) => {
            judge::request(&read, &other);
            let era = era::of(&read);
            judge::era(era, &other);
            request_of(era, read, None, &other)
        }
    }
}

/// A request with headers: the first empty line parts them from the body, as on the wire.
pub fn request(input: &[u8]) {
    let _ = take_with_headers(input);
}

fn take_with_headers(input: &[u8]) -> Option<Accepted> {
    let end = input.windows(2).position(|pair| pair == b"\n\n")?;
    let headers: HeaderMap = input[..end]
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            Some((name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?))
        })
        .collect();
    let body = &input[end + 2..];
    let Ok(Message::Request(read)) = message::read(body) else {
        return None;
    };
    let other = judge::other_reading(body)?;
    let has_session = headers.contains_key("mcp-session-id");
    let era = era::of_http(&read, &headers, has_session).ok()?;
    judge::era(era, &other);
    request_of(era, read, Some(&headers), &other)
}

/// A request of an era, as its transport hands it on. All methods are offered.
fn request_of(
    era: Era,
    request: Request,
    headers: Option<&HeaderMap>,
    other: &Value,
) -> Option<Accepted> {
    let method = match era {
        Era::Modern => {
            let (checked, meta) = climb(RULES, |_| true, request, headers).ok()?;
            judge::modern(&checked, &meta, other);
            if let Some(headers) = headers {
                judge::mirrored(headers, &checked, other);
            }
            judge::method_of(&checked)
        }
        Era::Handshake => {
            let (revision, features) = handshake::read(&request).ok()?;
            judge::handshake(revision, features, other);
            "initialize"
        }
        Era::Session => {
            if let Some(headers) = headers {
                judge::headers_of_session(headers);
            }
            let features = ClientFeatures::empty();
            let (checked, meta) = legacy::read(|_| true, request, features, None).ok()?;
            judge::of_session(&checked, &meta, other);
            judge::method_of(&checked)
        }
    };
    Some(Accepted::Request(era, method))
}

/// The lines of an input, of both eras.
pub fn lines(input: &[u8]) {
    let lines = input.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| line.len() > LINE_BYTES_MAX || !line.trim_ascii().is_empty());
    // In two pieces, so that a line may come in parts.
    let (first, rest) = input.split_at(input.len() / 2);
    let mut reader = Input::new(first.chain(rest), LINE_BYTES_MAX);
    let mut next = || {
        reader
            .next()
            .now_or_never()
            .expect("a slice is read at once")
    };
    let mut connection = Connection::default();
    for line in lines {
        if line.len() > LINE_BYTES_MAX {
            assert!(matches!(next(), Some(Line::TooLong { .. })));
        } else {
            assert_eq!(next(), Some(Line::Whole(line.to_vec())));
            let _ = take(line);
            connection.take(line);
        }
    }
    assert_eq!(next(), None);
}

/// Requests that are not answered yet, and what the judge knows of them.
#[derive(Default)]
struct Connection {
    in_flight: Arc<InFlight>,
    going: Vec<Going>,
}

struct Going {
    id: Result<String, String>,
    place: Place,
    is_cancelled: bool,
}

impl Connection {
    /// An id means one request, and a cancellation that one, of whichever era they are.
    fn take(&mut self, line: &[u8]) {
        match message::read(line) {
            Ok(Message::Request(read)) => {
                let id = judge::id(&read.id);
                let is_new = self.going.iter().all(|going| going.id != id);
                let place = self.in_flight.enter(&read.id);
                assert_eq!(place.is_ok(), is_new);
                self.going.extend(place.ok().map(|place| Going {
                    id,
                    place,
                    is_cancelled: false,
                }));
            }
            Ok(Message::Notification(read)) if read.method == "notifications/cancelled" => {
                let Some(id) = read.params.get("requestId") else {
                    return;
                };
                self.in_flight.cancel(id);
                let id = judge::id(id);
                for going in &mut self.going {
                    going.is_cancelled |= going.id == id;
                    let is_cancelled = going.place.cancelled().now_or_never().is_some();
                    assert_eq!(is_cancelled, going.is_cancelled);
                }
            }
            _ => {}
        }
    }
}
