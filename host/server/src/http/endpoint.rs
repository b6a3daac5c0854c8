//! `/mcp`: the rungs of the ladder that are about HTTP, 1 to 10, in their order. The others are in `ladder`; what belongs to a
//! session is in `conversation`.

use super::conversation::{self, SESSION_HEADER};
use super::gate::Gate;
use super::media::{self, Accept};
use super::session::Owner;
use super::{Peer, answer, body, cors};
use crate::app::App;
use crate::auth::Stranger;
use crate::era::{self, Era};
use crate::headers::single;
use crate::ladder::{self, Envelope};
use crate::message::{self, Message, Request as Asked};
use crate::method;
use crate::outcome::Outcome;
use crate::wire::WireError;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ALLOW, CONNECTION, EXPECT, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use longshore_tasks::Principal;
use serde_json::value::RawValue;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What serves requests to `/mcp`.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) app: Arc<App>,
    pub(super) gate: Gate,
}

/// Serve one request. Dropping the future, or the body of the response, ends a modern call.
pub(super) async fn serve(endpoint: Arc<Endpoint>, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    // Such a client sends its body when it is asked to, and to read it asks.
    let waits = parts.headers.contains_key(EXPECT);
    let response = endpoint.respond(parts, &mut body).await;
    if !waits {
        body::pass_over(body, endpoint.app.stopping.clone());
    }
    if is_head {
        return answer::without_body(response);
    }
    response
}

impl Endpoint {
    async fn respond(&self, parts: Parts, body: &mut Body) -> Response {
        let origin = match self.admit(&parts) {
            Ok(()) => cors::origin(&parts.headers),
            Err(error) => return refused(None, error),
        };
        if cors::is_preflight(&parts) {
            return cors::preflight(&parts, origin);
        }
        let response = match self.authenticate(&parts) {
            Ok(principal) => self.serve_verb(parts, body, principal).await,
            Err(stranger) => unauthorized(stranger),
        };
        cors::allow(response, origin)
    }

    /// Rungs 1 and 2: what must be right before anything else is looked at.
    fn admit(&self, parts: &Parts) -> Result<(), WireError> {
        self.check_header_size(parts)?;
        self.gate.check(parts).map_err(|reason| {
            self.app.ends.tell_refused("foreign", &reason, peer(parts));
            refusal(StatusCode::FORBIDDEN, reason)
        })
    }

    /// Rung 3.
    fn authenticate(&self, parts: &Parts) -> Result<Principal, Stranger> {
        let known = self.app.config.auth.principal(&parts.headers);
        known.inspect_err(|stranger| {
            let ends = &self.app.ends;
            ends.tell_refused(stranger.reason(), stranger.message(), peer(parts));
        })
    }

    /// Rung 4. Only sessions have other verbs than POST.
    async fn serve_verb(&self, parts: Parts, body: &mut Body, principal: Principal) -> Response {
        let served = match parts.method {
            Method::POST => self.post(parts, body, principal).await,
            Method::GET if session_id(&parts.headers).is_some() => self.get(&parts, &principal),
            Method::DELETE if session_id(&parts.headers).is_some() => {
                era::check_session_version(&parts.headers)
                    .map(|()| conversation::delete(&self.app, &parts.headers, &principal))
            }
            ref other => Ok(not_allowed(other, session_id(&parts.headers).is_some())),
        };
        served.unwrap_or_else(|error| refused(None, error))
    }

    fn get(&self, parts: &Parts, principal: &Principal) -> Result<Response, WireError> {
        era::check_session_version(&parts.headers)?;
        let session = conversation::find(&self.app, &parts.headers, principal)?;
        match media::accepted(&parts.headers) {
            Some(Accept::Events | Accept::Both | Accept::Any) => {
                Ok(conversation::get(&self.app, &session, &parts.headers))
            }
            _ => {
                let reason = "the header Accept must admit text/event-stream";
                Err(refusal(StatusCode::NOT_ACCEPTABLE, reason))
            }
        }
    }

    async fn post(
        &self,
        parts: Parts,
        body: &mut Body,
        principal: Principal,
    ) -> Result<Response, WireError> {
        media::check_body(&parts.headers)
            .map_err(|reason| refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason))?;
        let accept = media::accepted(&parts.headers).ok_or_else(|| {
            let reason = "the header Accept must admit application/json or text/event-stream";
            refusal(StatusCode::NOT_ACCEPTABLE, reason)
        })?;
        let bytes = match body::read(body, &self.app.config.http).await {
            Ok(bytes) => bytes,
            Err(unread) => {
                let mut response = refused(None, refusal(unread.status(), unread.message()));
                // The rest of the body is not read, so the connection is of no use any more.
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
                return Ok(response);
            }
        };
        let message = match message::read(&bytes) {
            Ok(message) => message,
            Err(fault) => return Ok(refused(fault.id.as_deref(), fault.error)),
        };
        drop(bytes);
        self.take(message, parts, (accept, principal)).await
    }

    /// One message, which is what it says it is.
    async fn take(
        &self,
        message: Message,
        parts: Parts,
        (accept, principal): (Accept, Principal),
    ) -> Result<Response, WireError> {
        let app = &self.app;
        let has_session = session_id(&parts.headers).is_some();
        let session = || {
            era::check_session_version(&parts.headers)?;
            conversation::find(app, &parts.headers, &principal)
        };
        match message {
            Message::Request(request) => {
                Ok(self.request(request, parts, (accept, principal)).await)
            }
            Message::Notification(notification) if has_session && !notification.is_modern() => {
                Ok(conversation::notify(&*session()?, &notification))
            }
            Message::Notification(_) => Ok(accepted()),
            Message::Response(response) if has_session => {
                Ok(conversation::respond(&*session()?, response))
            }
            // Its id is one of ours, if of anyone; the error is about no request of the client.
            Message::Response(_) => Err(WireError::invalid_request(
                "responses are taken in a session only",
            )),
        }
    }

    /// Rung 10.
    async fn request(
        &self,
        request: Asked,
        parts: Parts,
        (accept, principal): (Accept, Principal),
    ) -> Response {
        let app = &self.app;
        let id = request.id.clone();
        let peer = peer(&parts);
        let has_session = session_id(&parts.headers).is_some();
        match era::of_http(&request, &parts.headers, has_session) {
            Ok(Era::Modern) => {
                let accept = match method::Method::parse(&request.method) {
                    Some(method::Method::Listen) => accept.for_stream(),
                    _ => accept,
                };
                let envelope = Envelope {
                    peer,
                    headers: Some(parts.headers),
                    principal,
                };
                let keep_alive = Duration::from_millis(app.config.listening.keep_alive_ms);
                let app = app.clone();
                answer::answer(id, accept, keep_alive, |notices| {
                    let cut_off = app.cut_off.clone();
                    let call = ladder::dispatch(app, request, envelope, notices);
                    Box::pin(unless(cut_off, call))
                })
                .await
            }
            Ok(Era::Handshake) => {
                conversation::initialize(app, &request, Owner { principal, peer }).await
            }
            Ok(Era::Session) => match conversation::find(app, &parts.headers, &principal) {
                Ok(session) => conversation::call(app, &session, request, accept).await,
                Err(error) => refused(Some(&id), error),
            },
            Err(error) => refused(Some(&id), error),
        }
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

/// A call, or that it was cut off.
async fn unless(cut_off: CancellationToken, call: impl Future<Output = Outcome>) -> Outcome {
    tokio::select! {
        biased;
        outcome = call => outcome,
        () = cut_off.cancelled() => Outcome::cut_off(),
    }
}

/// The address that a request comes from.
fn peer(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<Peer>().map(|peer| peer.0)
}

fn refusal(status: StatusCode, reason: impl Into<String>) -> WireError {
    WireError::invalid_request(reason).with_status(status)
}

fn refused(id: Option<&RawValue>, error: WireError) -> Response {
    answer::refusal(id, error)
}

fn not_allowed(verb: &Method, has_session: bool) -> Response {
    let (reason, allowed) = if has_session {
        (format!("{verb} is not served"), "GET, POST, DELETE")
    } else {
        let reason = format!("{verb} is not served without a session; use POST");
        (reason, "POST")
    };
    let mut response = refused(None, refusal(StatusCode::METHOD_NOT_ALLOWED, reason));
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn unauthorized(stranger: Stranger) -> Response {
    let challenge = match stranger {
        Stranger::Nobody => "Bearer",
        Stranger::Unknown => "Bearer error=\"invalid_token\"",
    };
    let refusal = refusal(StatusCode::UNAUTHORIZED, stranger.message());
    let mut response = refused(None, refusal);
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

/// The id of the session that a request names; one that cannot be one is kept, to be found unknown.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers
        .contains_key(SESSION_HEADER)
        .then(|| single(headers, &SESSION_HEADER).ok().flatten())
        .map(Option::unwrap_or_default)
}

/// 202: there is nothing to say.
pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}
