//! As much of HTTP/1.1 as the tests need, over any stream of bytes: a message is a head and a body that comes in pieces.
//!
//! Written here because the tests send what no client library would: broken heads, endless bodies, two of one header.

use std::io::{self, BufRead, Read};

/// The first line of a message, and its headers.
#[derive(Clone, Debug)]
pub struct Head {
    /// Request line or status line.
    pub start: String,
    /// Name, in lower case, and value.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Reads one; none if the stream ends before it.
    ///
    /// # Errors
    /// If the stream fails or ends within it.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some(start) = line(from)? else {
            return Ok(None);
        };
        let mut headers = Vec::new();
        loop {
            let line = line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if line.is_empty() {
                return Ok(Some(Self { start, headers }));
            }
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| io::Error::other(format!("no header: {line:?}")))?;
            headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
        }
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The status, if this is the head of a response.
    pub fn status(&self) -> u16 {
        let code = self.start.split(' ').nth(1);
        code.and_then(|code| code.parse().ok()).unwrap_or_default()
    }
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// So many bytes are to come.
    Sized(usize),
    /// Chunks, and a last one of no length.
    Chunked,
    /// Until the stream ends.
    Open,
    /// No more.
    Ended,
}

impl Body {
    /// The body of a response with this head.
    pub fn of_response(head: &Head) -> Self {
        match (head.status(), head.header("content-length")) {
            (204 | 304, _) => Self::Ended,
            _ if is_chunked(head) => Self::Chunked,
            (_, Some(length)) => Self::Sized(length.parse().unwrap_or_default()),
            _ => Self::Open,
        }
    }

    /// The body of a request with this head.
    pub fn of_request(head: &Head) -> Self {
        if is_chunked(head) {
            return Self::Chunked;
        }
        let length = head.header("content-length");
        Self::Sized(length.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// If the stream fails or ends before the body does.
    pub fn read(&mut self, from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
        match *self {
            Self::Ended | Self::Sized(0) => Ok(None),
            Self::Sized(left) => {
                let piece = some(from, left)?;
                *self = Self::Sized(left - piece.len());
                Ok(Some(piece))
            }
            Self::Chunked => self.read_chunk(from),
            Self::Open => {
                let piece = from.fill_buf()?.to_vec();
                from.consume(piece.len());
                Ok(Some(piece).filter(|piece| !piece.is_empty()))
            }
        }
    }

    fn read_chunk(&mut self, from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
        let size = line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = size.split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size];
        from.read_exact(&mut chunk)?;
        line(from)?;
        if size == 0 {
            *self = Self::Ended;
            return Ok(None);
        }
        Ok(Some(chunk))
    }

    /// The next piece as text: as much more as is needed for no character to be cut.
    ///
    /// # Errors
    /// As [`Body::read`], and if it is no text.
    pub fn read_text(&mut self, from: &mut impl BufRead) -> io::Result<Option<String>> {
        let Some(mut bytes) = self.read(from)? else {
            return Ok(None);
        };
        loop {
            match String::from_utf8(bytes) {
                Ok(text) => return Ok(Some(text)),
                Err(cut) if cut.utf8_error().error_len().is_none() => {
                    bytes = cut.into_bytes();
                    bytes.extend(self.read(from)?.ok_or(io::ErrorKind::UnexpectedEof)?);
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// All the rest.
    ///
    /// # Errors
    /// As [`Body::read`].
    pub fn read_all(mut self, from: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = self.read(from)? {
            all.extend(piece);
        }
        Ok(all)
    }
}

fn is_chunked(head: &Head) -> bool {
    head.header("transfer-encoding") == Some("chunked")
}

/// What is there, at least one byte and at most so many.
fn some(from: &mut impl BufRead, most: usize) -> io::Result<Vec<u8>> {
    let there = from.fill_buf()?;
    if there.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let piece = there[..there.len().min(most)].to_vec();
    from.consume(piece.len());
    Ok(piece)
}

/// One line without its end; none at the end of the stream.
fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    // Longer than any head that a test gets.
    from.by_ref().take(64 << 10).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// The data of the events in a piece of an event stream; what is left of an event that is not whole yet stays in `text`.
pub fn take_events(text: &mut String) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(end) = text.find("\n\n") {
        let event: String = text.drain(..end + 2).collect();
        let data: Vec<_> = event
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        // One without data only names a place to come back to.
        let data = data.join("\n");
        if !data.is_empty() {
            events.push(data);
        }
    }
    events
}
