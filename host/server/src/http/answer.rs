//! Answers as HTTP: JSON, or a stream of events that is opened at the first notification.
//!
//! The body of a stream moves its call on. So a client that is gone, and its body with it, ends the call; and a client that
//! does not read makes the call wait, until that has taken too long (`patience`).

use super::media::Accept;
use super::patience::has_left;
use crate::call::Undelivered;
use crate::outcome::{Notices, Outcome};
use crate::wire::{WireError, rpc};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Answer a request by what `dispatch` makes of it.
pub(super) async fn answer(
    id: Box<RawValue>,
    accept: Accept,
    keep_alive: Duration,
    dispatch: impl FnOnce(Notices) -> BoxFuture<'static, Outcome>,
) -> Response {
    // A stream is sent only to who names it.
    if matches!(accept, Accept::Json | Accept::Any) {
        let outcome = dispatch(Notices::unread()).await;
        return json(&id, outcome);
    }
    let (notices, mut feed) = Notices::channel();
    let mut call = dispatch(notices);
    tokio::select! {
        biased;
        // The first notification has come: the status is settled, the rest is a stream.
        Some(first) = feed.recv() => {
            let queue = VecDeque::from([event(&first)]);
            events(StatusCode::OK, Body::new(Answer { queue, live: Some(Live { id, feed, call, silence: Silence::new(keep_alive) }), undelivered: None }))
        }
        outcome = &mut call => {
            let early: VecDeque<Bytes> = drain(&mut feed).collect();
            if early.is_empty() && accept == Accept::Both {
                return json(&id, outcome);
            }
            let status = if early.is_empty() { status(&outcome) } else { StatusCode::OK };
            let mut answer = Answer { queue: early, live: None, undelivered: None };
            answer.end(&id, outcome);
            events(status, Body::new(answer))
        }
    }
}

/// Refuse a request that was not dispatched.
pub(super) fn refusal(id: Option<&RawValue>, error: WireError) -> Response {
    let status = error.http_status;
    let text = rpc::response(id, &Err(error));
    respond(status, "application/json", Body::from(text))
}

/// A response that is one message, with status 200.
pub(super) fn json_text(text: String) -> Response {
    respond(StatusCode::OK, "application/json", Body::from(text))
}

/// The answer to HEAD: what the headers say, and nothing more. For HTTP/1 hyper does it by itself.
pub(super) fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Some(bytes) = body.size_hint().exact() {
        parts.headers.insert(CONTENT_LENGTH, bytes.into());
    }
    Response::from_parts(parts, Body::empty())
}

fn status(outcome: &Outcome) -> StatusCode {
    outcome
        .result
        .as_ref()
        .err()
        .map_or(StatusCode::OK, |error| error.http_status)
}

fn json(id: &RawValue, outcome: Outcome) -> Response {
    let status = status(&outcome);
    let text = rpc::response(Some(id), &outcome.result);
    let body = match outcome.undelivered {
        None => Body::from(text),
        undelivered => Body::new(Answer {
            queue: VecDeque::from([Bytes::from(text)]),
            live: None,
            undelivered,
        }),
    };
    respond(status, "application/json", body)
}

/// A response that is a stream of events.
pub(super) fn events(status: StatusCode, body: Body) -> Response {
    let mut response = respond(status, "text/event-stream", body);
    // Tells proxies not to hold events back.
    let name = HeaderName::from_static("x-accel-buffering");
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static("no"));
    response
}

fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// One server-sent event; `message` is one line of JSON.
fn event(message: &str) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

fn drain(feed: &mut mpsc::Receiver<String>) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(|| feed.try_recv().ok()).map(|notice| event(&notice))
}

/// The body of an answer.
struct Answer {
    /// What can be written now.
    queue: VecDeque<Bytes>,
    /// The call, while it goes on.
    live: Option<Live>,
    /// What the last of the queue hands out.
    undelivered: Option<Undelivered>,
}

struct Live {
    id: Box<RawValue>,
    feed: mpsc::Receiver<String>,
    call: BoxFuture<'static, Outcome>,
    silence: Silence,
}

/// What is sent when nothing was for a while: a comment, so that no proxy takes the stream for dead.
pub(super) const KEEP_ALIVE: &[u8] = b": still there\n\n";

/// How long a stream has been silent.
struct Silence(Interval);

impl Silence {
    fn new(length: Duration) -> Self {
        let mut ends = tokio::time::interval_at(Instant::now() + length, length);
        // A client that did not read for long gets one comment, not all that it missed.
        ends.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(ends)
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        self.0.poll_tick(cx).map(|_| Bytes::from_static(KEEP_ALIVE))
    }
}

impl Answer {
    fn end(&mut self, id: &RawValue, outcome: Outcome) {
        self.queue
            .push_back(event(&rpc::response(Some(id), &outcome.result)));
        self.undelivered = outcome.undelivered;
    }

    /// Take the first of the queue. With the last one the handle is on its way: from here on the connection writes it, and only
    /// on HTTP/2 it is known when it has left.
    fn take(&mut self) -> Option<Bytes> {
        let bytes = self.queue.pop_front()?;
        if has_left().is_none() {
            self.deliver();
        }
        Some(bytes)
    }

    fn deliver(&mut self) {
        if self.queue.is_empty()
            && self.live.is_none()
            && let Some(undelivered) = self.undelivered.take()
        {
            undelivered.delivered();
        }
    }

    /// Move the call on; ready when there is something to write, or nothing more will come.
    fn poll_live(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(live) = &mut self.live else {
            return Poll::Ready(());
        };
        if let Poll::Ready(Some(notice)) = live.feed.poll_recv(cx) {
            self.queue.push_back(event(&notice));
            live.silence.0.reset();
            return Poll::Ready(());
        }
        let outcome = live.call.as_mut().poll(cx);
        self.queue.extend(drain(&mut live.feed));
        if !self.queue.is_empty() {
            live.silence.0.reset();
        } else if outcome.is_pending()
            && let Poll::Ready(comment) = live.silence.poll_over(cx)
        {
            self.queue.push_back(comment);
        }
        if let Poll::Ready(outcome) = outcome
            && let Some(live) = self.live.take()
        {
            self.end(&live.id, outcome);
        }
        if self.queue.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if has_left() == Some(true) {
            self.deliver();
        }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let answer = self.get_mut();
        if answer.queue.is_empty() && answer.poll_live(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(answer.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.queue.is_empty() && self.live.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.live.is_some() {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.queue.iter().map(|bytes| bytes.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::pause;
    use http_body_util::BodyExt;
    use tokio::sync::oneshot;

    fn id() -> Box<RawValue> {
        RawValue::from_string("\"q\"".to_owned()).unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn kind(response: &Response) -> &str {
        response.headers()[CONTENT_TYPE].to_str().unwrap()
    }

    fn tells(
        count: usize,
        outcome: Outcome,
    ) -> impl FnOnce(Notices) -> BoxFuture<'static, Outcome> {
        move |notices| {
            Box::pin(async move {
                for number in 0..count {
                    notices.send(number.to_string());
                    tokio::task::yield_now().await;
                }
                outcome
            })
        }
    }

    const QUARTER: Duration = Duration::from_millis(250);
    const RESULT: &str = r#"{"jsonrpc":"2.0","id":"q","result":{}}"#;

    #[tokio::test]
    async fn without_notifications_it_is_json_with_its_status() {
        let fine = tells(0, Outcome::result("{}".to_owned()));
        let response = answer(id(), Accept::Both, QUARTER, fine).await;
        assert_eq!(
            (response.status().as_u16(), kind(&response)),
            (200, "application/json")
        );
        assert_eq!(text(response).await, RESULT);
        let wrong = tells(0, Outcome::error(WireError::unknown_method("m")));
        let response = answer(id(), Accept::Both, QUARTER, wrong).await;
        assert_eq!(
            (response.status().as_u16(), kind(&response)),
            (404, "application/json")
        );
    }

    #[tokio::test]
    async fn the_first_notification_opens_a_stream_and_all_come_before_the_result() {
        let call = tells(3, Outcome::result("{}".to_owned()));
        let response = answer(id(), Accept::Both, QUARTER, call).await;
        assert_eq!(
            (response.status().as_u16(), kind(&response)),
            (200, "text/event-stream")
        );
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let events: String = ["0", "1", "2", RESULT]
            .iter()
            .map(|message| format!("event: message\ndata: {message}\n\n"))
            .collect();
        assert_eq!(text(response).await, events);
    }

    #[tokio::test]
    async fn notifications_of_the_last_step_are_not_lost() {
        let call = |notices: Notices| -> BoxFuture<'static, Outcome> {
            Box::pin(async move {
                notices.send("0".to_owned());
                Outcome::result("{}".to_owned())
            })
        };
        let body = text(answer(id(), Accept::Both, QUARTER, call).await).await;
        assert!(
            body.starts_with("event: message\ndata: 0\n\n") && body.contains(RESULT),
            "{body}"
        );
    }

    #[tokio::test]
    async fn who_takes_only_one_kind_gets_that() {
        let call = tells(2, Outcome::result("{}".to_owned()));
        assert_eq!(
            text(answer(id(), Accept::Json, QUARTER, call).await).await,
            RESULT
        );
        let call = tells(0, Outcome::error(WireError::unknown_method("m")));
        let response = answer(id(), Accept::Events, QUARTER, call).await;
        assert_eq!(
            (response.status().as_u16(), kind(&response)),
            (404, "text/event-stream")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_gets_comments() {
        let call = |notices: Notices| -> BoxFuture<'static, Outcome> {
            Box::pin(async move {
                notices.send("0".to_owned());
                pause(QUARTER * 2 + QUARTER / 2).await;
                Outcome::result("{}".to_owned())
            })
        };
        let body = text(answer(id(), Accept::Both, QUARTER, call).await).await;
        let comment = std::str::from_utf8(KEEP_ALIVE).unwrap();
        assert_eq!(body.matches(comment).count(), 2, "{body}");
    }

    #[tokio::test]
    async fn a_body_that_is_dropped_ends_its_call() {
        let (alive, ended) = oneshot::channel::<()>();
        let call = move |notices: Notices| -> BoxFuture<'static, Outcome> {
            Box::pin(async move {
                let _alive = alive;
                notices.send("0".to_owned());
                std::future::pending().await
            })
        };
        drop(answer(id(), Accept::Both, QUARTER, call).await);
        assert!(ended.await.is_err());
    }
}
