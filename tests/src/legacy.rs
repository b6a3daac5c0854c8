//! A client of the versions that begin with a handshake, over HTTP: its session, its requests, its streams.
//!
//! Every message that comes is judged by the schema of the version, and every request that is served.

use crate::client::Connection;
use crate::era::Said;
use crate::http::{Body, Head};
use crate::legacy_schema::revision;
use crate::schema::Source;
use crate::server::Server;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;

/// 2025-11-25
pub const LATEST: &str = "2025-11-25";
/// 2025-06-18
pub const EARLIER: &str = "2025-06-18";

/// Everything that a client can be asked.
pub fn asks_all() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// One HTTP request as it is.
#[derive(Clone, Debug)]
pub struct Raw {
    verb: &'static str,
    headers: Vec<(&'static str, String)>,
    message: Option<Value>,
    /// The version of its session.
    session: Source,
}

impl Raw {
    /// A request with this verb, and no body.
    pub fn new(verb: &'static str) -> Self {
        let accept = "application/json, text/event-stream".to_owned();
        Self {
            verb,
            headers: vec![("Accept", accept)],
            message: None,
            session: Source::Latest,
        }
    }

    /// A POST of a message.
    pub fn post(message: &Value) -> Self {
        let mut raw = Self::new("POST").header("Content-Type", "application/json");
        raw.message = Some(message.clone());
        raw
    }

    /// Sets a header.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn bytes(&self, host: SocketAddr) -> Vec<u8> {
        let mut text = format!("{} /mcp HTTP/1.1\r\nHost: {host}\r\n", self.verb);
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let body = self.message.as_ref().map(Value::to_string);
        let body = body.unwrap_or_default();
        let _ = write!(text, "Content-Length: {}\r\n\r\n{body}", body.len());
        text.into_bytes()
    }

    /// Sends it, and reads the head of the response.
    ///
    /// # Panics
    /// If there is none.
    pub fn send(&self, server: &Server) -> Incoming {
        let mut connection = server.connect();
        connection.write(&self.bytes(server.address())).unwrap();
        Incoming::read(connection, self.said(), self.session).unwrap()
    }

    fn said(&self) -> Said {
        let mut said = self.message.as_ref().map(Said::of).unwrap_or_default();
        let mut headers = self.headers.iter();
        let version = headers.find(|(name, _)| *name == "MCP-Protocol-Version");
        let is_other = |version: &str| ![EARLIER, LATEST].contains(&version);
        // Who names another version is refused, in the words of the modern era; a handshake names its own.
        said.is_modern |=
            said.method != "initialize" && version.is_some_and(|(_, text)| is_other(text));
        said
    }
}

/// A response that is read as it comes.
#[derive(Debug)]
pub struct Incoming {
    /// Status line and headers.
    pub head: Head,
    connection: Connection,
    body: Body,
    text: String,
    /// The id of the last event that was read.
    pub last_id: Option<String>,
    said: Said,
    session: Source,
}

impl Incoming {
    fn read(mut connection: Connection, said: Said, session: Source) -> io::Result<Self> {
        let head = connection.head()?;
        let body = Body::of_response(&head);
        Ok(Self {
            head,
            connection,
            body,
            text: String::new(),
            last_id: None,
            said,
            session,
        })
    }

    /// Its status.
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// Is it a stream of events?
    pub fn is_stream(&self) -> bool {
        let kind = self.head.header("content-type").unwrap_or_default();
        kind.starts_with("text/event-stream")
    }

    /// The whole body as text.
    ///
    /// # Panics
    /// If the connection ends first.
    pub fn text(&mut self) -> String {
        while let Some(piece) = self.connection.piece(&mut self.body).unwrap() {
            self.text += &piece;
        }
        std::mem::take(&mut self.text)
    }

    /// The next message, of an event or alone; none at the end.
    ///
    /// # Panics
    /// If the connection fails, what comes is no JSON, or the schemas find a fault.
    pub fn message(&mut self) -> Option<Value> {
        if !self.is_stream() {
            let text = self.text();
            return (!text.is_empty()).then(|| self.judged(&text));
        }
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                if let Some(data) = self.take(&event) {
                    return Some(self.judged(&data));
                }
            }
            let piece = self.connection.piece(&mut self.body).unwrap()?;
            self.text += &piece;
        }
    }

    fn judged(&mut self, text: &str) -> Value {
        let message: Value = serde_json::from_str(text).unwrap();
        let agreed = message["result"]["protocolVersion"].as_str();
        if let ("initialize", Some(agreed)) = (self.said.method.as_str(), agreed) {
            self.session = revision(agreed);
        }
        if let Err(fault) = self.said.reply(self.session, &message) {
            panic!("{:?}, reply to {}: {fault}", self.session, self.said.method);
        }
        message
    }

    fn take(&mut self, event: &str) -> Option<String> {
        let field = |name: &str| {
            let mut lines = event.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        if let Some(id) = field("id") {
            self.last_id = Some(id.to_owned());
        }
        let data = field("data")?.to_owned();
        (!data.is_empty()).then_some(data)
    }

    /// Closes the connection.
    pub fn close(self) {
        self.connection.close();
    }
}

/// A session.
#[derive(Debug)]
pub struct Session<'a> {
    server: &'a Server,
    revision: &'static str,
    /// Its id.
    pub id: String,
    /// The result of `initialize`.
    pub initialized: Value,
    token: Option<String>,
}

/// The message by which a session begins.
pub fn initialize(revision: &str, capabilities: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": { "name": "old", "version": "1" },
        },
    })
}

impl<'a> Session<'a> {
    /// Begins one, and says that the client is ready.
    ///
    /// # Panics
    /// If the server does not agree, or to another version.
    pub fn begin(server: &'a Server, revision: &'static str, capabilities: &Value) -> Self {
        Self::begin_as(server, revision, capabilities, None)
    }

    /// The same with a token.
    ///
    /// # Panics
    /// As [`Session::begin`].
    pub fn begin_as(
        server: &'a Server,
        revision: &'static str,
        capabilities: &Value,
        token: Option<&str>,
    ) -> Self {
        let mut raw = Raw::post(&initialize(revision, capabilities));
        if let Some(token) = token {
            raw = raw.header("Authorization", &format!("Bearer {token}"));
        }
        let mut reply = raw.send(server);
        let message = reply.message().unwrap();
        assert_eq!(reply.status(), 200, "{message:#}");
        let id = reply.head.header("mcp-session-id").unwrap().to_owned();
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id:?}");
        let session = Self {
            server,
            revision,
            id,
            initialized: message["result"].clone(),
            token: token.map(str::to_owned),
        };
        assert_eq!(session.initialized["protocolVersion"], revision);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.raw(&ready).send(server).status(), 202);
        session
    }

    /// A message with the headers of the session.
    pub fn raw(&self, message: &Value) -> Raw {
        self.with_headers(Raw::post(message))
    }

    /// A request with the headers of the session.
    pub fn with_headers(&self, raw: Raw) -> Raw {
        let raw = raw.header("Mcp-Session-Id", &self.id);
        let mut raw = raw.header("MCP-Protocol-Version", self.revision);
        raw.session = revision(self.revision);
        match &self.token {
            Some(token) => raw.header("Authorization", &format!("Bearer {token}")),
            None => raw,
        }
    }

    /// Sends a message that wants no answer; its status.
    pub fn tell(&self, message: &Value) -> u16 {
        let mut reply = self.raw(message).send(self.server);
        assert_eq!(reply.text(), "");
        reply.status()
    }

    /// Sends a request; what comes is read by the caller.
    pub fn open(&self, id: i64, method: &str, params: impl Into<Value>) -> Incoming {
        let params = params.into();
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.raw(&message).send(self.server)
    }

    /// Sends a request and reads its response. Questions are answered by `answer`, from method and params to a response
    /// without its id; all other messages that came are told too.
    ///
    /// # Panics
    /// If there is no response, or a message is not of the version.
    pub fn request(
        &self,
        method: &str,
        params: Value,
        answer: impl FnMut(&str, &Value) -> Value,
    ) -> (Value, Vec<Value>) {
        let incoming = self.open(1, method, params);
        self.finish(method, incoming, answer)
    }

    /// Reads what comes to the end.
    ///
    /// # Panics
    /// As [`Session::request`].
    pub fn finish(
        &self,
        method: &str,
        mut incoming: Incoming,
        mut answer: impl FnMut(&str, &Value) -> Value,
    ) -> (Value, Vec<Value>) {
        // On a stream that is come back to, nothing else says it.
        method.clone_into(&mut incoming.said.method);
        let mut others = Vec::new();
        while let Some(message) = incoming.message() {
            match (message["method"].as_str(), message.get("id")) {
                (Some(asked), Some(id)) => {
                    let mut reply = answer(asked, &message["params"]);
                    reply["jsonrpc"] = "2.0".into();
                    reply["id"] = id.clone();
                    assert_eq!(self.tell(&reply), 202);
                    others.push(message);
                }
                (Some(_), None) => others.push(message),
                (None, _) => {
                    assert_eq!(incoming.message(), None, "more after the response");
                    return (message, others);
                }
            }
        }
        panic!("no response to {method}: {others:#?}");
    }

    /// Sends a request that asks nothing, and reads its result.
    ///
    /// # Panics
    /// If it is an error.
    pub fn result(&self, method: &str, params: Value) -> Value {
        let (response, _) = self.request(method, params, |asked, _| panic!("asked {asked}"));
        let result = response.get("result");
        result.unwrap_or_else(|| panic!("{response:#}")).clone()
    }

    /// Sends a request that asks nothing, and reads its error.
    ///
    /// # Panics
    /// If it is a result.
    pub fn error(&self, method: &str, params: Value) -> Value {
        let (response, _) = self.request(method, params, |asked, _| panic!("asked {asked}"));
        let error = response.get("error");
        error.unwrap_or_else(|| panic!("{response:#}")).clone()
    }

    /// Opens the stream that belongs to no request.
    pub fn listen(&self) -> Incoming {
        let incoming = self.with_headers(Raw::new("GET")).send(self.server);
        assert_eq!(incoming.status(), 200);
        incoming
    }

    /// Goes on behind an event.
    pub fn resume(&self, last: &str) -> Incoming {
        let raw = self.with_headers(Raw::new("GET"));
        raw.header("Last-Event-ID", last).send(self.server)
    }

    /// Ends it; the status.
    pub fn delete(&self) -> u16 {
        let raw = self.with_headers(Raw::new("DELETE"));
        raw.send(self.server).status()
    }
}
