//! The stdio transport: one message a line, in and out, both eras (MCP 2026-07-28 and 2025-11-25, "stdio").
//!
//! Requests are served at once and beside each other; answers come as they are ready. Nothing but messages goes to standard
//! output: logs and errors go to standard error. It must not know what a method does.

pub(crate) mod input;

use crate::app::{App, Stop};
use crate::era::{self, Era};
use crate::in_flight::{InFlight, Place};
use crate::ladder::{self, Envelope};
use crate::legacy::session::Session;
use crate::legacy::{self, handshake};
use crate::message::{self, Message, Notification, Request};
use crate::outcome::{Notices, Outcome, last_words};
use crate::start;
use crate::wire::{WireError, rpc, subscription};
use futures::future::BoxFuture;
use input::{Input, Line};
use longshore_tasks::Principal;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Lines that wait to be written. A client that does not read makes its requests wait.
const LINES_MAX: usize = 256;

/// How long requests may go on when the input has ended: enough for what was asked last, and short of what launchers wait.
const LAST_REQUESTS: Duration = Duration::from_secs(3);

/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_millis(500);

/// How long an answer may wait for room when no other message can be taken meanwhile.
const UNREAD_MAX: Duration = Duration::from_secs(3);

/// Serve until the input ends, the output is closed, or the stop.
pub(crate) async fn serve(app: &Arc<App>, stop: &Stop) {
    let (out, lines) = mpsc::channel(LINES_MAX);
    let writer = tokio::spawn(write(tokio::io::stdout(), lines));
    let desk = Desk {
        app: app.clone(),
        out: out.clone(),
        in_flight: Arc::default(),
        session: Mutex::default(),
    };
    let bytes_max = usize::try_from(app.config.http.body_bytes_max).unwrap_or(usize::MAX);
    let mut input = Input::new(tokio::io::stdin(), bytes_max);
    let is_read = loop {
        let line = tokio::select! {
            line = input.next() => line,
            () = stop.begin.cancelled() => None,
            () = out.closed() => None,
        };
        let Some(line) = line else { break true };
        tokio::select! {
            () = desk.take(line) => {}
            () = stop.begin.cancelled() => break true,
            // The end of the input cannot be seen behind what is not taken.
            _ = timeout(UNREAD_MAX, std::future::pending::<()>()) => {
                tracing::warn!("the client does not read the answers; it is taken for gone");
                break false;
            }
        }
    };
    desk.close(stop, is_read).await;
    drop((desk, out));
    if timeout(LAST_LINES, writer).await.is_err() {
        tracing::warn!("the client did not read the last lines");
    }
}

/// Write lines until there are none any more, or nobody reads.
async fn write(output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<String>) {
    let mut output = BufWriter::new(output);
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            // Written through when no other line is there.
            if lines.is_empty() {
                output.flush().await?;
            }
            std::io::Result::Ok(())
        };
        if let Err(error) = written.await {
            tracing::info!(%error, "nobody reads the answers any more");
            return;
        }
    }
    // Nobody can be told.
    let _ = output.flush().await;
}

/// Takes messages and has them served.
struct Desk {
    app: Arc<App>,
    out: mpsc::Sender<String>,
    in_flight: Arc<InFlight>,
    /// The session, once a handshake began one.
    session: Mutex<Option<Arc<Session>>>,
}

impl Desk {
    async fn take(&self, line: Line) {
        let message = match line {
            Line::Whole(bytes) => message::read(&bytes),
            Line::TooLong { bytes_max } => {
                let message = format!("a message has at most {bytes_max} bytes");
                Err(WireError::invalid_request(message).into())
            }
        };
        match message {
            Ok(Message::Request(request)) => self.request(request).await,
            Ok(Message::Notification(notification)) => self.notification(&notification),
            Ok(Message::Response(response)) => {
                // Without a session nothing was asked.
                if let Some(session) = self.session() {
                    session.take_response(response);
                }
            }
            Err(fault) => self.say(fault.id.as_deref(), Err(fault.error)).await,
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().clone()
    }

    /// Cancelled at once when the client does not read and goes.
    async fn say(&self, id: Option<&RawValue>, answer: Result<String, WireError>) {
        // The writer ends when nobody reads; the input ends then too.
        let _ = self.out.send(rpc::response(id, &answer)).await;
    }

    fn notification(&self, notification: &Notification) {
        if notification.method == "notifications/cancelled" {
            if let Some(id) = notification.params.get("requestId") {
                self.in_flight.cancel(id);
            }
        } else if let Some(session) = self.session() {
            session.take_notification(notification);
        }
    }

    async fn request(&self, request: Request) {
        let id = request.id.clone();
        let place = match self.in_flight.enter(&id) {
            Ok(place) => place,
            Err(error) => return self.say(Some(&id), Err(error)).await,
        };
        let (notices, feed) = Notices::channel();
        let app = self.app.clone();
        let (call, teardown): (BoxFuture<'static, Outcome>, _) = match era::of(&request) {
            Era::Modern => {
                let envelope = Envelope {
                    headers: None,
                    peer: None,
                    principal: Principal::anonymous(),
                };
                let is_stream = request.method == "subscriptions/listen";
                let call = ladder::dispatch(app, request, envelope, notices);
                (Box::pin(call), is_stream)
            }
            Era::Handshake => return self.handshake(&request).await,
            Era::Session => match self.session() {
                Some(session) => (
                    Box::pin(legacy::serve(app, session, request, notices)),
                    false,
                ),
                None if request.method == "ping" => {
                    return self.say(Some(&id), Ok("{}".to_owned())).await;
                }
                None => return self.say(Some(&id), Err(era::not_initialized())).await,
            },
        };
        let going = Going {
            id,
            place,
            feed,
            out: self.out.clone(),
            cut_off: self.app.cut_off.clone(),
            teardown,
        };
        tokio::spawn(going.carry(call));
    }

    /// A session begins; one that was there is over.
    async fn handshake(&self, request: &Request) {
        let begun = handshake::initialize(&self.app, request, (Principal::anonymous(), None)).await;
        let result = match begun {
            Ok((session, result)) => {
                let session = Arc::new(session);
                tokio::spawn(tell(session.clone(), self.out.clone()));
                if let Some(former) = self.session.lock().replace(session) {
                    former.over.cancel();
                }
                Ok(result)
            }
            Err(error) => Err(error),
        };
        self.say(Some(&request.id), result).await;
    }

    /// The time of the last requests is over. It begins when their tools are there.
    async fn last_requests(&self, is_read: bool) {
        if is_read {
            start::over(&self.app).await;
            // It is over by waiting in vain.
            let _ = timeout(LAST_REQUESTS, std::future::pending::<()>()).await;
        }
    }

    /// The end: streams are closed, and what was asked has a little time, unless nobody would read it. What is not done then is
    /// told so.
    async fn close(&self, stop: &Stop, is_read: bool) {
        self.app.stopping.cancel();
        tokio::select! {
            () = self.in_flight.emptied() => {}
            () = self.last_requests(is_read) => {
                tracing::warn!("calls are cut off: their time was over after the end of the input");
            }
            () = self.out.closed() => {}
            () = stop.now.cancelled() => {}
        }
        self.app.cut_off.cancel();
        // They end as soon as they are polled; what they hold of the output goes with them.
        self.in_flight.emptied().await;
        stop.begin.cancel();
        if let Some(session) = self.session.lock().take() {
            session.over.cancel();
        }
    }
}

/// Tell the client of a session what changes.
async fn tell(session: Arc<Session>, out: mpsc::Sender<String>) {
    loop {
        tokio::select! {
            change = session.next_change() => {
                if out.send(change).await.is_err() {
                    return;
                }
            }
            () = session.over.cancelled() => return,
        }
    }
}

/// A request that is being served.
struct Going {
    id: Box<RawValue>,
    place: Place,
    feed: mpsc::Receiver<String>,
    out: mpsc::Sender<String>,
    cut_off: CancellationToken,
    /// It is a stream: when it ends, the client is told that it was cancelled by the server.
    teardown: bool,
}

impl Going {
    /// Move the call on, and write what it says, in order. A cancelled one only withdraws what it asked.
    async fn carry(mut self, mut call: BoxFuture<'static, Outcome>) {
        let (cancelled, cut_off) = (self.place.cancelled(), self.cut_off.clone());
        let done = tokio::select! {
            biased;
            () = cancelled => {
                for notice in last_words(call, &mut self.feed) {
                    self.write(notice).await;
                }
                return;
            }
            () = cut_off.cancelled() => false,
            () = self.follow(&mut call) => true,
        };
        if !done {
            let told = rpc::response(Some(&self.id), &Outcome::cut_off().result);
            let _ = timeout(LAST_LINES, self.out.send(told)).await;
        }
    }

    async fn follow(&mut self, call: &mut BoxFuture<'static, Outcome>) {
        let outcome = loop {
            tokio::select! {
                biased;
                // The call waits meanwhile: one who does not read gets the latest, not all.
                Some(notice) = self.feed.recv() => self.write(notice).await,
                outcome = &mut *call => break outcome,
            }
        };
        while let Ok(notice) = self.feed.try_recv() {
            self.write(notice).await;
        }
        if self.teardown && outcome.result.is_ok() {
            self.write(subscription::cancelled(&self.id)).await;
        }
        let response = rpc::response(Some(&self.id), &outcome.result);
        if self.out.send(response).await.is_ok()
            && let Some(handle) = outcome.undelivered
        {
            handle.delivered();
        }
    }

    async fn write(&self, line: String) {
        // Nobody reads: the call is cancelled in a moment.
        let _ = self.out.send(line).await;
    }
}
