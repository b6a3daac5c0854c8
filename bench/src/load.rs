//! Owns the load: many connections that each send one request after the other, and how long each answer took.
//!
//! Must not know what is sent. It runs on one thread with little work per answer: on two cores the load generator takes
//! from the server what it uses itself.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::measure::{Samples, Stopwatch};

/// No answer takes longer, but for a server that hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Load {
    /// How long each answer took, in microseconds.
    pub(crate) latency_us: Samples,
    /// Answers a second, all connections together.
    pub(crate) per_s: f64,
}

/// Send this request over so many connections for so long, each time when the former is answered. Any answer but a 200 that
/// has `expected` in it ends the bench.
///
/// # Errors
/// If a connection fails, or an answer is not what was expected.
pub(crate) fn repeat(
    address: SocketAddr,
    request: &[u8],
    expected: &str,
    connections: usize,
    time: Duration,
) -> Result<Load> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut clients = JoinSet::new();
        let watch = Stopwatch::start();
        for _ in 0..connections {
            let mut client = Client::connect(address).await?;
            let (request, expected) = (request.to_vec(), expected.to_owned());
            clients.spawn(async move {
                let mut latency_us = Samples::default();
                while watch.elapsed() < time {
                    let one = Stopwatch::start();
                    let answer = client.exchange(&request).await?;
                    latency_us.add(one.us());
                    if !contains(answer, expected.as_bytes()) {
                        bail!(
                            "an answer without {expected:?}: {}",
                            String::from_utf8_lossy(answer)
                        );
                    }
                }
                Ok(latency_us)
            });
        }
        let mut load = Load::default();
        while let Some(done) = clients.join_next().await {
            load.latency_us.extend(done??);
        }
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 answers")]
        let answers = load.latency_us.len() as f64;
        load.per_s = answers / watch.elapsed().as_secs_f64();
        Ok(load)
    })
}

/// One connection, kept alive.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    /// What has been read of the answer, and nothing of the next: requests do not overlap.
    buffer: Vec<u8>,
}

impl Client {
    /// Connect.
    ///
    /// # Errors
    /// If nobody listens there.
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let buffer = Vec::with_capacity(8 << 10);
        Ok(Self { stream, buffer })
    }

    /// Send a whole request, read a whole answer of status 200, and give its body (with the marks of its chunks, if it has
    /// any).
    ///
    /// # Errors
    /// If the connection fails, the answer is of another status, or none comes in time.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<&[u8]> {
        let body = tokio::time::timeout(PATIENCE, self.answer(request));
        let start = body.await.context("no answer in time")??;
        Ok(&self.buffer[start..])
    }

    /// Where the body begins in the buffer.
    async fn answer(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!(
                    "the server has closed the connection: {}",
                    String::from_utf8_lossy(&self.buffer)
                );
            }
            if let Some(start) = whole(&self.buffer) {
                if !self.buffer.starts_with(b"HTTP/1.1 200") {
                    bail!(
                        "not answered with 200: {}",
                        String::from_utf8_lossy(&self.buffer)
                    );
                }
                return Ok(start);
            }
        }
    }
}

/// Where the body begins, if the answer is whole.
fn whole(buffer: &[u8]) -> Option<usize> {
    let start = find(buffer, b"\r\n\r\n")? + 4;
    let head = &buffer[..start];
    match header(head, b"content-length") {
        Some(length) => {
            let length: usize = std::str::from_utf8(length).ok()?.trim().parse().ok()?;
            (buffer.len() >= start + length).then_some(start)
        }
        None => buffer.ends_with(b"0\r\n\r\n").then_some(start),
    }
}

fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    head.split(|&byte| byte == b'\n').find_map(|line| {
        let (found, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn an_answer_is_whole_when_its_body_is() {
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(whole(sized), Some(38));
        assert_eq!(whole(&sized[..sized.len() - 1]), None);
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        assert_eq!(whole(chunked), Some(47));
        assert_eq!(whole(&chunked[..chunked.len() - 5]), None);
    }
}
