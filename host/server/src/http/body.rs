//! Reading a body: bounded in size before it is kept, and in time (rung 6 of the ladder).

use crate::config::Http;
use axum::body::Body;
use http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is passed over of a body: four times what a request may have, and the time that it takes over a slow line.
const PASSED_OVER_BYTES_MAX: u64 = 16 << 20;
const PASSED_OVER_TIME: Duration = Duration::from_secs(5);

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
pub(super) async fn read(body: &mut Body, config: &Http) -> Result<Vec<u8>, Unread> {
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

/// Read what nobody wants of a request that was refused early, so that the connection does not break under a client that still
/// sends: it would not see the answer (RFC 9112, section 9.6). Not more than so much, not for longer, and not beyond the stop: who
/// sends without end loses the connection.
pub(super) fn pass_over(mut body: Body, stopping: CancellationToken) {
    let announced = body.size_hint().lower();
    if body.is_end_stream() || announced > PASSED_OVER_BYTES_MAX {
        return;
    }
    let read = async move {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await
            && bytes < PASSED_OVER_BYTES_MAX
        {
            bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
    };
    tokio::spawn(tokio::time::timeout(
        PASSED_OVER_TIME,
        stopping.run_until_cancelled_owned(read),
    ));
}

async fn collect(body: &mut Body, bytes_max: u64) -> Result<Vec<u8>, Unread> {
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
