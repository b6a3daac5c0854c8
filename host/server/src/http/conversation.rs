//! `/mcp` for clients with a session: POST, GET and DELETE (MCP 2025-11-25, "Streamable HTTP").
//!
//! A call goes on when its connection is lost; what it says is kept in its stream. It must not know what a method does.

use super::answer::{KEEP_ALIVE, events, json_text, refusal};
use super::endpoint::{accepted, session_id};
use super::media::Accept;
use super::session::{HttpSession, Listening, Owner};
use super::stream::{End, EventId, EventStream, Reader};
use crate::app::App;
use crate::headers::single;
use crate::in_flight::Place;
use crate::legacy::{self, handshake};
use crate::listen::hub::Seat;
use crate::message::{Notification, Request, Response as ClientResponse};
use crate::outcome::{Notices, Outcome, last_words};
use crate::rate::Who;
use crate::wire::legacy::Revision;
use crate::wire::{WireError, rpc};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::unfold;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use longshore_tasks::Principal;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The header that names a session.
pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");

/// How long an answer may take before it becomes a stream, so that a client that loses its connection can come again.
const OPENS_AFTER: Duration = Duration::from_millis(250);

/// `initialize`: a session begins.
pub(super) async fn initialize(app: &Arc<App>, request: &Request, owner: Owner) -> Response {
    let begun = handshake::initialize(app, request, (owner.principal.clone(), owner.peer)).await;
    let (session, result) = match begun {
        Ok(begun) => begun,
        Err(error) => return refusal(Some(&request.id), error),
    };
    let id = match app.sessions.begin(session, owner, app.clock.now_ms()) {
        Ok(id) => id,
        Err(full) => {
            let message = format!(
                "{} sessions are open and none of them is idle; end one (DELETE), or try again later",
                full.sessions_max
            );
            let busy = WireError::internal("busy", message);
            let busy = busy.with_status(StatusCode::SERVICE_UNAVAILABLE);
            return refusal(Some(&request.id), busy);
        }
    };
    let mut response = json_text(rpc::response(Some(&request.id), &Ok(result)));
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    response
}

/// The session that a request names.
///
/// # Errors
/// 404 if there is none, or it is another's: the client has to begin a new one.
pub(super) fn find(
    app: &App,
    headers: &HeaderMap,
    principal: &Principal,
) -> Result<Arc<HttpSession>, WireError> {
    let id = session_id(headers).unwrap_or_default();
    let found = app.sessions.get(id, principal, app.clock.now_ms());
    found.ok_or_else(|| {
        let message = "there is no such session; begin a new one with initialize";
        WireError::invalid_request(message).with_status(StatusCode::NOT_FOUND)
    })
}

/// A notification of a session.
pub(super) fn notify(http: &HttpSession, notification: &Notification) -> Response {
    http.session.take_notification(notification);
    accepted()
}

/// An answer to a question.
pub(super) fn respond(http: &HttpSession, response: ClientResponse) -> Response {
    http.session.take_response(response);
    accepted()
}

/// A request of a session. Dropping the future ends nothing.
pub(super) async fn call(
    app: &Arc<App>,
    http: &Arc<HttpSession>,
    request: Request,
    accept: Accept,
) -> Response {
    let place = match http.session.in_flight.enter(&request.id) {
        Ok(place) => place,
        Err(error) => return refusal(Some(&request.id), error),
    };
    let (number, stream) = http.open();
    let is_read = accept != Accept::Json;
    if is_read && http.session.revision == Revision::Latest {
        stream.prime();
    }
    let going = Going {
        app: app.clone(),
        http: http.clone(),
        number,
        stream: stream.clone(),
        place,
    };
    tokio::spawn(going.carry(request, is_read));
    let end = match accept {
        Accept::Json => Some(stream.ended().await),
        Accept::Events => None,
        Accept::Both | Accept::Any => timeout(OPENS_AFTER, stream.opened()).await.ok().flatten(),
    };
    match end {
        Some(End::Answered(response)) => {
            http.forget(number);
            json_text(response.to_string())
        }
        // The answer to a request is a stream or JSON, and here there is none: a stream with nothing in it.
        Some(End::Cancelled) if accept == Accept::Json => accepted(),
        _ => read(app, http, stream.reader(), Told::Call(number)),
    }
}

/// A request that goes on, whether anyone reads or not.
struct Going {
    app: Arc<App>,
    http: Arc<HttpSession>,
    number: u64,
    stream: Arc<EventStream>,
    place: Place,
}

impl Going {
    async fn carry(self, request: Request, is_read: bool) {
        let id = request.id.clone();
        let (notices, mut feed) = if is_read {
            let (notices, feed) = Notices::channel();
            (notices, Some(feed))
        } else {
            (Notices::unread(), None)
        };
        let session = self.http.session.clone();
        let mut call = Box::pin(legacy::serve(self.app.clone(), session, request, notices));
        let outcome = loop {
            let notice = async {
                match &mut feed {
                    Some(feed) => feed.recv().await,
                    None => None,
                }
            };
            tokio::select! {
                biased;
                () = self.place.cancelled() => break None,
                Some(notice) = notice => self.stream.push(&notice),
                outcome = &mut call => break Some(outcome),
                () = self.app.cut_off.cancelled() => break Some(Outcome::cut_off()),
            }
        };
        match (&mut feed, &outcome) {
            (Some(feed), None) => {
                let words = last_words(call, feed);
                words.iter().for_each(|notice| self.stream.push(notice));
            }
            (Some(feed), Some(_)) => {
                while let Ok(notice) = feed.try_recv() {
                    self.stream.push(&notice);
                }
            }
            (None, _) => drop(call),
        }
        let response = outcome.map(|outcome| rpc::response(Some(&id), &outcome.result));
        self.stream.end(response);
        self.http.keep(self.number, self.app.clock.now_ms());
        // The id is free from here on.
        drop(self.place);
    }
}

/// GET: what belongs to no request; or the rest of a stream whose connection was lost.
pub(super) fn get(app: &Arc<App>, http: &Arc<HttpSession>, headers: &HeaderMap) -> Response {
    let who = Who::of(&http.session.principal, http.session.peer);
    let place = match Seat::take(&app.hub, who, BTreeSet::new()) {
        Ok(place) => place,
        Err(full) => {
            let busy = full.wire_error();
            return refusal(None, busy.with_status(StatusCode::SERVICE_UNAVAILABLE));
        }
    };
    let Ok(last) = single(headers, &LAST_EVENT_HEADER) else {
        return lost();
    };
    let Some(last) = last else {
        let standalone = http.standalone();
        let reader = standalone.reader_from_now();
        if http.session.revision == Revision::Latest {
            standalone.prime();
        }
        return read(app, http, reader, Told::Changes(place));
    };
    let Some(last) = EventId::parse(last) else {
        return lost();
    };
    match http.resume(last) {
        Some(reader) if last.is_standalone() => read(app, http, reader, Told::Changes(place)),
        Some(reader) => read(app, http, reader, Told::Rest(last.stream, place)),
        None => lost(),
    }
}

fn lost() -> Response {
    let message = "what came behind Last-Event-ID is not kept any more, or never was; ask again";
    refusal(None, WireError::invalid_request(message))
}

/// DELETE: the session is over.
pub(super) fn delete(app: &App, headers: &HeaderMap, principal: &Principal) -> Response {
    let id = session_id(headers).unwrap_or_default();
    if !app.sessions.end(id, principal) {
        let message = "there is no such session";
        let gone = WireError::invalid_request(message).with_status(StatusCode::NOT_FOUND);
        return refusal(None, gone);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// What a response tells. A GET has a place among all streams that are open, as `subscriptions/listen` has.
#[allow(dead_code, reason = "a place is held, not looked at")]
enum Told {
    /// The call of its request, on the stream of this number.
    Call(u64),
    /// The rest of a stream.
    Rest(u64, Seat),
    /// What changes in the server.
    Changes(Seat),
}

impl Told {
    fn tells_changes(&self) -> bool {
        matches!(self, Self::Changes(_))
    }
}

/// A response that reads a stream.
fn read(app: &Arc<App>, http: &Arc<HttpSession>, reader: Reader, told: Told) -> Response {
    let keep_alive = Duration::from_millis(app.config.listening.keep_alive_ms);
    let reading = Reading {
        app: app.clone(),
        http: http.clone(),
        reader,
        told,
        _listening: http.listening(),
    };
    let body = unfold(reading, move |mut reading| async move {
        let bytes = match timeout(keep_alive, reading.next()).await {
            Ok(event) => event?,
            Err(_) => KEEP_ALIVE.into(),
        };
        Some((Ok::<_, Infallible>(bytes), reading))
    });
    events(StatusCode::OK, Body::from_stream(body))
}

struct Reading {
    app: Arc<App>,
    http: Arc<HttpSession>,
    reader: Reader,
    told: Told,
    _listening: Listening,
}

impl Reading {
    /// The next event. Cancelling it loses nothing.
    async fn next(&mut self) -> Option<Bytes> {
        let session = &self.http.session;
        let tells = self.told.tells_changes();
        loop {
            tokio::select! {
                biased;
                event = self.reader.next() => {
                    if let (None, Told::Call(number) | Told::Rest(number, _)) = (&event, &self.told) {
                        self.http.was_read(*number);
                    }
                    return event;
                }
                change = session.next_change(), if tells => {
                    self.http.standalone().push(&change);
                }
                () = session.over.cancelled() => return None,
                () = self.app.stopping.cancelled(), if tells => return None,
            }
        }
    }
}
