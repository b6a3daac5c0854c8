//! Which of the two eras a request is of (rung 10 of the ladder): modern ones stand for themselves, older ones need a session.

use crate::headers::single;
use crate::ladder::VERSION_HEADER;
use crate::message::Request;
use crate::meta::{Meta, VERSION_KEY};
use crate::wire::error::shortened;
use crate::wire::{ALL_VERSIONS, VERSION, WireError};
use http::HeaderMap;

/// The era of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// It says all that must be known.
    Modern,
    /// It begins a session.
    Handshake,
    /// It is one of a session.
    Session,
}

/// The era of a message that came alone.
pub(crate) fn of(request: &Request) -> Era {
    if request.meta.get(VERSION_KEY).is_some() {
        Era::Modern
    } else if request.method == "initialize" {
        Era::Handshake
    } else {
        Era::Session
    }
}

/// The era of a message that came with headers, one of which may name a session.
///
/// # Errors
/// If it can be of none; status 400.
pub(crate) fn of_http(
    request: &Request,
    headers: &HeaderMap,
    has_session: bool,
) -> Result<Era, WireError> {
    let era = of(request);
    if era != Era::Session {
        return Ok(era);
    }
    match single(headers, &VERSION_HEADER).map_err(WireError::header_mismatch)? {
        Some(VERSION) => Err(Meta::no_version()),
        Some(other) if !ALL_VERSIONS.contains(&other) => {
            Err(WireError::unsupported_version(other, &ALL_VERSIONS))
        }
        _ if has_session => Ok(era),
        Some(older) => Err(no_session(older)),
        None => Err(no_version()),
    }
}

/// The version that a message of a session states, if it does, must be one of those with sessions; which one was settled when
/// it began.
///
/// # Errors
/// -32022, status 400.
pub(crate) fn check_session_version(headers: &HeaderMap) -> Result<(), WireError> {
    let older = &ALL_VERSIONS[1..];
    match single(headers, &VERSION_HEADER).map_err(WireError::header_mismatch)? {
        Some(stated) if !older.contains(&stated) => {
            Err(WireError::unsupported_version(stated, older))
        }
        _ => Ok(()),
    }
}

/// The error of a request that says nothing of its version.
fn no_version() -> WireError {
    WireError::header_mismatch(format!(
        "the header {VERSION_HEADER} is missing; it must say {VERSION}, or, for {}, begin with initialize",
        ALL_VERSIONS[1..].join(" and ")
    ))
}

/// The error of a request that needs a session and names none.
fn no_session(version: &str) -> WireError {
    WireError::invalid_request(format!(
        "protocol version {} needs a session: send initialize first, then its Mcp-Session-Id with every request",
        shortened(version)
    ))
}

/// The error of a request that needs a session where none has begun.
pub(crate) fn not_initialized() -> WireError {
    WireError::invalid_request(format!(
        "send initialize first, or say params._meta.{VERSION_KEY}; served: {}",
        ALL_VERSIONS.join(", ")
    ))
}
