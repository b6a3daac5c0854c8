//! The HTTP transport: connections, their limits, their end; and the endpoints.
//!
//! - `answer`: answers, as JSON or as a stream of events.
//! - `body`: reading bodies.
//! - `conversation`, `session`, `stream`: clients with a session, their sessions, and streams that outlive connections.
//! - `cors`: pages of other origins.
//! - `endpoint`: `/mcp`, the rungs of the ladder that are about HTTP.
//! - `gate`: `Host` and `Origin`.
//! - `health`: `/healthz`, `/readyz`.
//! - `media`: media types.
//! - `patience`: clients that do not take what they asked for.
//!
//! It must not know what a method does.

mod answer;
mod body;
mod conversation;
mod cors;
mod endpoint;
pub(crate) mod gate;
mod health;
mod media;
mod patience;
mod session;
mod stream;

use crate::app::{App, Stop};
use crate::config::Http;
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use endpoint::Endpoint;
use futures::future::{BoxFuture, Either};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _};
use gate::Gate;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use patience::{Patient, Streams, in_pieces};
pub(crate) use session::Sessions;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// How long clients may take to hear that their calls were cut off.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How long to wait after a connection could not be accepted: most often because of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serve until the stop, and until the calls that go on then have ended, or their time is over.
pub(crate) async fn serve(app: &Arc<App>, listener: TcpListener, stop: &Stop) -> io::Result<()> {
    // What is cut off here when the drain time is over is connections only.
    let stop = &Stop {
        begin: stop.begin.clone(),
        now: stop.now.child_token(),
    };
    let config = &app.config.http;
    let gate = Gate::new(listener.local_addr()?, config);
    let endpoint = Arc::new(Endpoint {
        app: app.clone(),
        gate,
    });
    let others = others(endpoint.clone());
    let seats = Arc::new(Semaphore::new(config.connections_max as usize));
    let (builder, open) = (Arc::new(builder(config)), TaskTracker::new());
    loop {
        let accepted = tokio::select! {
            () = stop.begin.cancelled() => break,
            accepted = accept(&listener, &seats) => accepted,
        };
        let Some((stream, peer, seat)) = accepted else {
            continue;
        };
        let connection = Connection {
            endpoint: endpoint.clone(),
            others: others.clone(),
            builder: builder.clone(),
            stop: stop.clone(),
            peer,
        };
        let patience = Patience {
            first_request: Duration::from_millis(config.header_timeout_ms),
            write: Duration::from_millis(config.write_timeout_ms),
        };
        open.spawn(async move {
            connection.serve(stream, patience).await;
            drop(seat);
        });
    }
    drop(listener);
    open.close();
    tokio::select! {
        () = open.wait() => {}
        () = stop.now.cancelled() => {}
        () = pause(Duration::from_millis(config.drain_ms)) => {
            tracing::warn!(connections = open.len(), "calls are cut off: the drain time is over");
            app.cut_off.cancel();
            let _ = tokio::time::timeout(LAST_ANSWERS, open.wait()).await;
        }
    }
    stop.now.cancel();
    open.wait().await;
    Ok(())
}

/// What the system keeps of what is to be written to one connection, in bytes (Linux doubles it for its own bookkeeping).
///
/// Without it that grows to 4 MiB, and a socket can be written to again once a third of it is free: a client that reads all the
/// time at 40 KB/s would seem to take nothing for `http.write_timeout_ms`. With it 6 KB/s are enough.
const SEND_BUFFER_BYTES: u32 = 256 << 10;

/// Connections that wait to be accepted: they wait here when all seats are taken, too.
const BACKLOG: u32 = 1_024;

/// Listen at an address.
///
/// # Errors
/// If it is taken, or none of this machine's.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // After a restart connections of the former server may still be on their way out.
    socket.set_reuseaddr(true)?;
    // Its connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The path of the endpoint. It is told apart from the others by hand: the way through a router costs as much as the parsing
/// of a request.
const ENDPOINT: &str = "/mcp";

fn others(endpoint: Arc<Endpoint>) -> Router {
    let ready = async move |request: axum::extract::Request| {
        let (parts, _) = request.into_parts();
        let is_told_more = endpoint.gate.check(&parts).is_ok();
        health::readiness(&endpoint.app, is_told_more).await
    };
    Router::new()
        .route("/healthz", get(async || health::health()))
        .route("/readyz", get(ready))
        .fallback(async || {
            (
                StatusCode::NOT_FOUND,
                "there is nothing here; the MCP endpoint is /mcp\n",
            )
        })
}

fn builder(config: &Http) -> Builder<Streams> {
    let mut builder = Builder::new(Streams {
        patience: Duration::from_millis(config.write_timeout_ms),
    });
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(config.header_timeout_ms))
        .max_headers(config.headers_max as usize)
        .max_buf_size(config.header_bytes_max as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(config.header_bytes_max)
        .max_concurrent_streams(config.streams_max)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

/// The next connection, once there is a seat for it.
async fn accept(
    listener: &TcpListener,
    seats: &Arc<Semaphore>,
) -> Option<(TcpStream, Peer, tokio::sync::OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let seat = seats.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, address)) => Some((stream, Peer(address.ip()), seat)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            pause(ACCEPT_PAUSE).await;
            None
        }
    }
}

struct Connection {
    endpoint: Arc<Endpoint>,
    others: Router,
    builder: Arc<Builder<Streams>>,
    stop: Stop,
    peer: Peer,
}

/// How long a connection may take.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// To send a first request.
    first_request: Duration,
    /// To take anything of what is to be written.
    write: Duration,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
struct Peer(IpAddr);

impl Connection {
    /// Serve one connection to its end. Dropping what it serves ends the calls.
    async fn serve(self, stream: TcpStream, patience: Patience) {
        // Small events must not wait for more; without it they are only later.
        let _ = stream.set_nodelay(true);
        let used = Arc::new(AtomicBool::new(false));
        let (endpoint, others) = (self.endpoint, TowerToHyperService::new(self.others));
        let (peer, flag) = (self.peer, used.clone());
        let answer = move |mut request: Request<Incoming>| {
            flag.store(true, Ordering::Relaxed);
            if request.uri().path() == ENDPOINT {
                request.extensions_mut().insert(peer);
                let served = endpoint::serve(endpoint.clone(), request.map(Body::new));
                return Either::Left(leave_together(served));
            }
            Either::Right(hyper::service::Service::call(&others, request))
        };
        let service = hyper::service::service_fn(move |request| answer(request).map_ok(in_pieces));
        let socket = TokioIo::new(Patient::new(stream, patience.write));
        let connection = self.builder.serve_connection(socket, service);
        tokio::pin!(connection);
        let mut turns = turns(&self.stop, patience.first_request);
        loop {
            let turn = tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended with an error");
                    }
                    return;
                }
                Some(turn) = turns.next() => turn,
            };
            match turn {
                Turn::Ends => connection.as_mut().graceful_shutdown(),
                Turn::IsCut => return,
                Turn::IsLate if !used.load(Ordering::Relaxed) => return,
                Turn::IsLate => {}
            }
        }
    }
}

/// An answer leaves when the thread has looked at everything else that is ready, so that answers of many connections are sent
/// right after each other. Whoever waits for several of them, a gateway for instance, is then woken once and not by each: to wake
/// a thread that sleeps on another core takes a fifth of a `tasks/get`.
async fn leave_together<T>(answer: impl Future<Output = T>) -> Result<T, Infallible> {
    let answer = answer.await;
    tokio::task::yield_now().await;
    Ok(answer)
}

/// What may come over a connection.
enum Turn {
    /// The stop has begun.
    Ends,
    /// The stop is to be done.
    IsCut,
    /// The time for a first request is over. hyper bounds the time of a request's headers, but not of the first bytes, by which it
    /// tells HTTP/1 from HTTP/2.
    IsLate,
}

/// Each once. Together they are woken apart from the connection: it is polled at every request, and they need not be.
fn turns(stop: &Stop, patience: Duration) -> FuturesUnordered<BoxFuture<'static, Turn>> {
    let (begin, now) = (stop.begin.clone(), stop.now.clone());
    let turns: [BoxFuture<'static, Turn>; 3] = [
        begin.cancelled_owned().map(|()| Turn::Ends).boxed(),
        now.cancelled_owned().map(|()| Turn::IsCut).boxed(),
        pause(patience).map(|()| Turn::IsLate).boxed(),
    ];
    turns.into_iter().collect()
}

#[allow(
    clippy::disallowed_methods,
    reason = "waits of connections; no task depends on them"
)]
async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
