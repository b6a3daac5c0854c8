//! Reading a body: bounded in size before it is kept, and in time (rung 6 of the ladder).

use crate::config::Http;
use axum::body::Body;
use http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt;
use std::time::Duration;

/// Why a body was not read.
#[derive(Debug)]
pub(super) enum Unread {
    /// It is larger than this many bytes.
    TooLarge(u64),
    /// It took longer than this many milliseconds.
    TooSlow(u64),
    /// The client stopped sending.
    Broken(axum::Error),
}

impl Unread {
    /// Its status.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// What is wrong, and what to do.
    pub(super) fn message(&self) -> String {
        match self {
            Self::TooLarge(bytes_max) => format!(
                "the body has more than {bytes_max} bytes; send less, or have the operator raise http.body_bytes_max"
            ),
            Self::TooSlow(ms) => format!("the body did not arrive within {ms} ms; send it again"),
            Self::Broken(error) => format!("the body broke off: {error}"),
        }
    }
}

/// Read a body.
///
/// # Errors
/// If it is too large or too slow. What was read is dropped.
pub(super) async fn read(body: Body, config: &Http) -> Result<Vec<u8>, Unread> {
    let bytes_max = config.body_bytes_max;
    // Its announced length is enough to refuse it.
    if body.size_hint().lower() > bytes_max {
        return Err(Unread::TooLarge(bytes_max));
    }
    let time_ms = config.body_timeout_ms;
    tokio::time::timeout(Duration::from_millis(time_ms), collect(body, bytes_max))
        .await
        .unwrap_or(Err(Unread::TooSlow(time_ms)))
}

async fn collect(mut body: Body, bytes_max: u64) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Unread::Broken)?.into_data() else {
            continue;
        };
        if (bytes.len() + data.len()) as u64 > bytes_max {
            return Err(Unread::TooLarge(bytes_max));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
