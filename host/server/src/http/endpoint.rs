//! `/mcp`: the rungs of the ladder that are about HTTP, 1 to 9, in their order. The others are in `ladder`.

use super::gate::Gate;
use super::media::{self, Accept};
use super::{Peer, answer, body};
use crate::app::App;
use crate::ladder::{self, Envelope};
use crate::message::{self, Message};
use crate::wire::WireError;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ALLOW, CONNECTION};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// What serves requests to `/mcp`.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) app: Arc<App>,
    pub(super) gate: Gate,
}

/// Serve one request. Dropping the future, or the body of the response, ends the call.
pub(super) async fn serve(endpoint: Arc<Endpoint>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let accept = match endpoint.admit(&parts) {
        Ok(accept) => accept,
        Err(refusal) => return refused(None, refusal),
    };
    let app = &endpoint.app;
    let bytes = match body::read(body, &app.config.http).await {
        Ok(bytes) => bytes,
        Err(unread) => {
            let mut response = refused(None, refusal(unread.status(), unread.message()));
            // The rest of the body is not read, so the connection is of no use any more.
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
    };
    let request = match message::read(&bytes) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification) => return accepted(),
        Err(fault) => return refused(fault.id.as_deref(), fault.error),
    };
    drop(bytes);
    let (id, app) = (request.id.clone(), app.clone());
    let keep_alive = Duration::from_millis(app.config.listening.keep_alive_ms);
    let envelope = Envelope {
        peer: parts.extensions.get::<Peer>().map(|peer| peer.0),
        headers: parts.headers,
    };
    answer::answer(id, accept, keep_alive, |notices| {
        Box::pin(ladder::dispatch(app, request, envelope, notices))
    })
    .await
}

impl Endpoint {
    /// All that can be said before the body is read.
    fn admit(&self, parts: &Parts) -> Result<Accept, WireError> {
        self.check_header_size(parts)?;
        self.gate.check(parts).map_err(|reason| {
            tracing::warn!(reason, "a request was refused");
            refusal(StatusCode::FORBIDDEN, reason)
        })?;
        if parts.method != Method::POST {
            let reason = format!("{} is not served; use POST", parts.method);
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, reason));
        }
        media::check_body(&parts.headers)
            .map_err(|reason| refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason))?;
        media::accepted(&parts.headers).ok_or_else(|| {
            let reason = "the header Accept must admit application/json or text/event-stream";
            refusal(StatusCode::NOT_ACCEPTABLE, reason)
        })
    }

    /// hyper bounds what it reads; this is the exact limit, the same for HTTP/1 and HTTP/2.
    fn check_header_size(&self, parts: &Parts) -> Result<(), WireError> {
        let config = &self.app.config.http;
        let size = parts
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len());
        let too_many = parts.headers.len() > config.headers_max as usize;
        if too_many || size.sum::<usize>() > config.header_bytes_max as usize {
            let reason = format!(
                "more than {} headers, or {} bytes of them",
                config.headers_max, config.header_bytes_max
            );
            return Err(refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, reason));
        }
        Ok(())
    }
}

fn refusal(status: StatusCode, reason: impl Into<String>) -> WireError {
    WireError::invalid_request(reason).with_status(status)
}

fn refused(id: Option<&RawValue>, error: WireError) -> Response {
    let mut response = answer::refusal(id, error);
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}
