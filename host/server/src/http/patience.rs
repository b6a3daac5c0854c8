//! Clients that do not take what they asked for: an answer that gets on by nothing for a while is let go, with all that it holds.
//!
//! - [`Patient`]: a socket. A client that does not read it loses its connection.
//! - [`Streams`], [`in_pieces`]: HTTP/2, where a client may read its socket and still leave no room for one answer. That stream is
//!   reset, and others of its connection go on.
//!
//! Only what is to be written and is not counts: a stream with nothing to say may be silent for ever. It must not know what is
//! answered.

use super::pause;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::ready;
use futures::stream::unfold;
use http::header::CONTENT_LENGTH;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::rt::Executor;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::timeout;

/// A socket whose writes fail when none of them got on for a while.
pub(super) struct Patient<S> {
    socket: S,
    patience: Duration,
    /// Over when it is. There while a write waits.
    waits: Option<BoxFuture<'static, ()>>,
}

impl<S> Patient<S> {
    pub(super) fn new(socket: S, patience: Duration) -> Self {
        Self {
            socket,
            patience,
            waits: None,
        }
    }

    fn judge(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(pause(patience)));
        ready!(waits.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: fmt::Debug> fmt::Debug for Patient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Patient").field(&self.socket).finish()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// A socket keeps nothing to be flushed.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// What of an HTTP/2 answer is handed out at once, in bytes; so much is taken in time, or the stream is reset. It is less than
/// a frame may have: a hundred streams share one line, and each has to get on.
const PIECE_BYTES: usize = 8 << 10;

tokio::task_local! {
    /// Whether a piece is on its way: of the HTTP/2 stream whose task this is.
    static ON_ITS_WAY: watch::Sender<bool>;
}

/// Where hyper puts the tasks of HTTP/2 streams. A stream is reset by dropping its task: hyper asks for no more of an answer
/// while there is no room for what it has, so nothing below it could end it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) patience: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        tokio::spawn(watched(stream, self.patience));
    }
}

async fn watched(stream: impl Future, patience: Duration) {
    let (on_its_way, moves) = watch::channel(false);
    tokio::select! {
        biased;
        _ = ON_ITS_WAY.scope(on_its_way, stream) => {}
        () = stalled(moves, patience) => {
            tracing::debug!("an HTTP/2 stream is reset: its client takes nothing of the answer");
        }
    }
}

/// Resolves when a piece has been on its way for too long.
async fn stalled(mut moves: watch::Receiver<bool>, patience: Duration) {
    while moves.wait_for(|on_its_way| *on_its_way).await.is_ok() {
        match timeout(patience, moves.changed()).await {
            Ok(Ok(())) => {}
            // The stream is over.
            Ok(Err(_)) => break,
            Err(_) => return,
        }
    }
    std::future::pending::<()>().await;
}

/// An answer as it is written. In the task of an HTTP/2 stream it goes piece by piece, the next one when the one before has left,
/// and ends when the last one has: so nothing of it is anywhere when the task is over.
pub(super) fn in_pieces(response: Response) -> Response {
    let Ok(on_its_way) = ON_ITS_WAY.try_with(Clone::clone) else {
        return response;
    };
    let (mut head, body) = response.into_parts();
    if body.is_end_stream() {
        return Response::from_parts(head, body);
    }
    // What hyper does where it sees the whole.
    if let Some(bytes) = body.size_hint().exact() {
        let length = head.headers.entry(CONTENT_LENGTH);
        length.or_insert(bytes.into());
    }
    let pieces = unfold((body, Bytes::new()), move |(mut body, mut rest)| {
        let on_its_way = on_its_way.clone();
        async move {
            // It is there, for this one is.
            let _ = on_its_way.subscribe().wait_for(|is| !is).await;
            while rest.is_empty() {
                match body.frame().await? {
                    Ok(frame) => rest = frame.into_data().unwrap_or_default(),
                    Err(error) => return Some((Err(error), (body, rest))),
                }
            }
            let bytes = rest.split_to(rest.len().min(PIECE_BYTES));
            on_its_way.send_replace(true);
            let piece = Bytes::from_owner(Piece { bytes, on_its_way });
            Some((Ok(piece), (body, rest)))
        }
    });
    Response::from_parts(head, Body::from_stream(pieces))
}

/// Whether all that was handed out of an answer has left. `None` elsewhere than in the task of an HTTP/2 stream, where it cannot be
/// known.
pub(super) fn has_left() -> Option<bool> {
    ON_ITS_WAY.try_with(|on_its_way| !*on_its_way.borrow()).ok()
}

/// A piece of an answer. The connection drops it when it has been written; the task of its stream, when that ends before the
/// connection has it.
struct Piece {
    bytes: Bytes,
    on_its_way: watch::Sender<bool>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if has_left().is_none() {
            self.on_its_way.send_replace(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(30);
    const NEARLY: Duration = Duration::from_secs(29);

    #[tokio::test(start_paused = true)]
    async fn a_socket_that_nobody_reads_fails_in_time() {
        let (socket, _unread) = duplex(10);
        let mut socket = Patient::new(socket, PATIENCE);
        let begun = Instant::now();
        let error = socket.write_all(&[0; 11]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= PATIENCE && begun.elapsed() < PATIENCE * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_that_is_read_slowly_or_silent_goes_on() {
        let (socket, mut read) = duplex(1);
        let mut socket = Patient::new(socket, PATIENCE);
        let reader = tokio::spawn(async move {
            let mut bytes = Vec::new();
            while bytes.len() < 10 {
                pause(NEARLY).await;
                bytes.push(read.read_u8().await.unwrap());
            }
            bytes
        });
        for byte in 0..5 {
            socket.write_all(&[byte, byte]).await.unwrap();
            pause(PATIENCE * 3).await;
        }
        assert_eq!(reader.await.unwrap(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    /// As a connection does, which has a task of its own.
    async fn write(piece: Bytes, takes: Duration) {
        let writing = tokio::spawn(async move {
            pause(takes).await;
            drop(piece);
        });
        writing.await.unwrap();
    }

    /// The task of a stream that reads an answer of so many pieces and keeps each for so long; how many it has read, and 100 more
    /// for the end.
    async fn read(pieces: usize, keeps: Duration) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let counts = count.clone();
        let stream = async move {
            let answer = Response::new(Body::from(vec![0; pieces * PIECE_BYTES]));
            let mut body = in_pieces(answer).into_body();
            while let Some(piece) = body.frame().await {
                let piece = piece.unwrap().into_data().unwrap();
                assert_eq!(piece.len(), PIECE_BYTES);
                counts.fetch_add(1, Ordering::Relaxed);
                write(piece, keeps).await;
                // Silence is no fault of the client's.
                pause(PATIENCE * 3).await;
            }
            counts.fetch_add(100, Ordering::Relaxed);
        };
        watched(stream, PATIENCE).await;
        count.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_a_piece_is_not_taken() {
        assert_eq!(read(3, NEARLY).await, 103);
        assert_eq!(read(3, PATIENCE * 2).await, 1);
        assert_eq!(read(1, PATIENCE * 2).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_piece_comes_when_the_one_before_has_left() {
        let stream = async {
            let answer = Response::new(Body::from(vec![0; PIECE_BYTES + 1]));
            let answer = in_pieces(answer);
            let length = (PIECE_BYTES + 1).to_string();
            assert_eq!(answer.headers()[CONTENT_LENGTH], length);
            let mut body = answer.into_body();
            for length in [PIECE_BYTES, 1] {
                let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
                assert_eq!(piece.len(), length);
                let next = timeout(NEARLY, body.frame()).await;
                assert!(next.is_err(), "{next:?}");
                write(piece, Duration::ZERO).await;
            }
            assert!(body.frame().await.is_none());
        };
        watched(stream, PATIENCE).await;
    }

    #[tokio::test]
    async fn a_piece_that_the_connection_never_had_has_not_left() {
        let stream = async {
            assert_eq!(has_left(), Some(true));
            let mut body = in_pieces(Response::new(Body::from("answer"))).into_body();
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(has_left(), Some(false));
            drop(piece);
            assert_eq!(has_left(), Some(false));
        };
        watched(stream, PATIENCE).await;
        assert_eq!(has_left(), None);
    }

    #[tokio::test]
    async fn elsewhere_an_answer_is_left_alone() {
        let answer = in_pieces(Response::new(Body::from(vec![0; 2 * PIECE_BYTES])));
        let frame = answer.into_body().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap().len(), 2 * PIECE_BYTES);
    }
}
