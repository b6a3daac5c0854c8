//! HTTP requests, to hosts that the operator has granted the plugin.
//!
//! ```no_run
//! # fn main() -> longshore_plugin::Result<()> {
//! let response = longshore_plugin::http::get("https://api.example.com/weather?city=Bremen").send()?;
//! let weather: serde_json::Value = serde_json::from_slice(&response.body)?;
//! # Ok(()) }
//! ```
//!
//! The host checks where a request goes, and how large and how slow it may be. Redirects are not followed: they are responses
//! like others. A request is an effect, so the call cannot be run again from a record after it.

use std::fmt;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use wasip2::io::streams::StreamError;

/// What one write may hold, in bytes; the contract of WASI says so.
const WRITE_BYTES: usize = 4096;

/// What is asked of one read, in bytes.
const READ_BYTES: u64 = 64 << 10;

/// A request that is being made.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status, 404 for instance. A request that was answered is no error.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Clone, Debug)]
pub struct HttpError(String);

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HttpError {}

/// Get what is at a URL.
pub fn get(url: impl Into<String>) -> Request {
    request("GET", url)
}

/// A request of any method.
pub fn request(method: impl Into<String>, url: impl Into<String>) -> Request {
    Request {
        method: method.into(),
        url: url.into(),
        headers: Vec::new(),
        body: Vec::new(),
    }
}

impl Request {
    /// Add a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Send this body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Send it, and wait for the whole response.
    ///
    /// # Errors
    /// If it cannot be sent, was not granted, or met a limit.
    pub fn send(self) -> Result<Response, HttpError> {
        let outgoing = self.head()?;
        let body = outgoing.body().map_err(|()| broken("the body"))?;
        let pending = handle(outgoing, None).map_err(|error| failed(&self.url, &error))?;
        write(body, &self.body)?;
        pending.subscribe().block();
        let response = pending.get().ok_or_else(|| broken("the response"))?;
        let response = response.map_err(|()| broken("the response"))?;
        read(&response.map_err(|error| failed(&self.url, &error))?)
    }

    fn head(&self) -> Result<OutgoingRequest, HttpError> {
        let no_url = || HttpError(format!("{:?} is no http or https URL", self.url));
        let (scheme, rest) = self.url.split_once("://").ok_or_else(no_url)?;
        let scheme = match scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(no_url()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        let fields = self.headers.iter();
        let fields: Vec<_> = fields
            .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
            .collect();
        let fields = Fields::from_list(&fields)
            .map_err(|error| HttpError(format!("the headers cannot be sent: {error}")))?;
        let outgoing = OutgoingRequest::new(fields);
        outgoing
            .set_method(&method(&self.method))
            .and_then(|()| outgoing.set_scheme(Some(&scheme)))
            .and_then(|()| outgoing.set_authority(Some(authority)))
            .and_then(|()| outgoing.set_path_with_query(Some(&path)))
            .map_err(|()| no_url())?;
        Ok(outgoing)
    }
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), HttpError> {
    if !bytes.is_empty() {
        let stream = body.write().map_err(|()| broken("the body"))?;
        for piece in bytes.chunks(WRITE_BYTES) {
            stream
                .blocking_write_and_flush(piece)
                .map_err(|_| HttpError("the body could not be sent".to_owned()))?;
        }
    }
    OutgoingBody::finish(body, None).map_err(|error| HttpError(error.to_string()))
}

fn read(response: &IncomingResponse) -> Result<Response, HttpError> {
    let body = response.consume().map_err(|()| broken("the response"))?;
    let stream = body.stream().map_err(|()| broken("the response"))?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(READ_BYTES) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(HttpError(format!(
                    "the response broke off: {}",
                    error.to_debug_string()
                )));
            }
        }
    }
    Ok(Response {
        status: response.status(),
        headers: response.headers().entries(),
        body: bytes,
    })
}

fn broken(what: &str) -> HttpError {
    HttpError(format!("{what} is not to be had"))
}

fn failed(url: &str, error: &ErrorCode) -> HttpError {
    HttpError(match error {
        ErrorCode::HttpRequestDenied => format!("{url} is not granted to this plugin"),
        other => format!("{url}: {other}"),
    })
}
