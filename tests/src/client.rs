//! A client of the modern wire: builds requests, right ones and wrong ones, and reads what comes back.
//!
//! Every message that comes is judged by the schemas, and every message that goes, unless the test says that it is malformed.

use crate::http::{self, Body, Head};
use crate::schema;
use crate::wait::PATIENCE;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, BufReader, ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a look at a connection waits.
const GLANCE: Duration = Duration::from_millis(2);

/// The revision that all speak here.
pub const VERSION: &str = "2026-07-28";
/// The name of the Tasks extension.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The member of `_meta` with the revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with the client's capabilities.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of `_meta` with the log level.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// One request or notification, not yet sent. Right as it is made; each method changes one thing.
#[derive(Clone, Debug)]
pub struct Message {
    verb: String,
    path: String,
    json: Value,
    /// Headers that are set, or left out, after those that follow from the JSON.
    headers: Vec<(String, Option<String>)>,
    more_headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    judged: bool,
}

impl Message {
    /// A request with nothing but `_meta`; no capability is declared.
    pub fn new(method: &str) -> Self {
        let meta = json!({ META_VERSION: VERSION, META_CAPABILITIES: {} });
        Self {
            verb: "POST".into(),
            path: "/mcp".into(),
            json: json!({
                "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": meta },
            }),
            headers: Vec::new(),
            more_headers: Vec::new(),
            body: None,
            judged: true,
        }
    }

    /// A call of a tool.
    pub fn call(tool: &str, arguments: Value) -> Self {
        let message = Self::new("tools/call").param("name", tool);
        message.param("arguments", arguments)
    }

    /// One of the `tasks/*` requests. The extension is declared.
    pub fn task(method: &str, id: &str) -> Self {
        Self::new(method).param("taskId", id).tasks()
    }

    /// Sets the JSON-RPC id.
    pub fn id(self, id: impl Into<Value>) -> Self {
        let id = id.into();
        self.edit(|json| json["id"] = id)
    }

    /// Makes it a notification.
    pub fn notification(self) -> Self {
        self.edit(|json| {
            json.as_object_mut().unwrap().remove("id");
        })
    }

    /// Changes the JSON.
    pub fn edit(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.json);
        self
    }

    /// Sets a member of `params`.
    pub fn param(self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.edit(|json| json["params"][name] = value)
    }

    /// Leaves out a member of `params`.
    pub fn no_param(self, name: &str) -> Self {
        self.edit(|json| {
            json["params"].as_object_mut().unwrap().remove(name);
        })
    }

    /// Sets a member of `_meta`.
    pub fn meta(self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.edit(|json| json["params"]["_meta"][name] = value)
    }

    /// Leaves out a member of `_meta`.
    pub fn no_meta(self, name: &str) -> Self {
        self.edit(|json| {
            let meta = json["params"]["_meta"].as_object_mut().unwrap();
            meta.remove(name);
        })
    }

    /// Declares a capability.
    pub fn capability(self, name: &str, value: Value) -> Self {
        self.edit(|json| json["params"]["_meta"][META_CAPABILITIES][name] = value)
    }

    /// Declares the Tasks extension.
    pub fn tasks(self) -> Self {
        self.capability("extensions", json!({ TASKS: {} }))
    }

    /// Declares that the client answers questions of every kind.
    pub fn asks(self) -> Self {
        self.capability("elicitation", json!({ "form": {}, "url": {} }))
            .capability("sampling", json!({}))
            .capability("roots", json!({}))
    }

    /// Asks for progress.
    pub fn progress(self, token: impl Into<Value>) -> Self {
        self.meta("progressToken", token)
    }

    /// Sets a header in place of its usual value.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Leaves out a header.
    pub fn no_header(mut self, name: &str) -> Self {
        self.headers.push((name.into(), None));
        self
    }

    /// Sends one more header, also if there is one of that name.
    pub fn also_header(mut self, name: &str, value: &str) -> Self {
        self.more_headers.push((name.into(), value.into()));
        self
    }

    /// Sets the verb.
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = verb.into();
        self
    }

    /// Sets the path.
    pub fn path(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// Sends these bytes instead of the JSON. The headers still follow from the JSON.
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = Some(bytes.into());
        self.malformed()
    }

    /// It is wrong on purpose: the schemas do not judge it. The reply is judged all the same.
    pub fn malformed(mut self) -> Self {
        self.judged = false;
        self
    }

    /// Its method.
    pub fn method(&self) -> &str {
        self.json["method"].as_str().unwrap_or_default()
    }

    /// Its JSON.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Its bytes, as they go to a server at this address.
    ///
    /// # Panics
    /// If the schemas find a fault, and it is not said to be malformed.
    pub fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        if self.judged
            && let Err(fault) = schema::request(&self.json)
        {
            panic!("the test's own request is wrong: {fault}");
        }
        let text = || self.json.to_string().into_bytes();
        let body = self.body.clone().unwrap_or_else(text);
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.verb, self.path).into_bytes();
        for (name, value) in self.all_headers(address, body.len()) {
            bytes.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(body);
        bytes
    }

    fn all_headers(&self, address: SocketAddr, length: usize) -> Vec<(String, String)> {
        let mut headers = vec![
            ("Host".to_owned(), address.to_string()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            (
                "Accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
            ("MCP-Protocol-Version".to_owned(), VERSION.to_owned()),
            ("Mcp-Method".to_owned(), self.method().to_owned()),
            ("Content-Length".to_owned(), length.to_string()),
        ];
        if let Some(name) = self.name() {
            headers.push(("Mcp-Name".to_owned(), name.to_owned()));
        }
        for (name, value) in &self.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.extend(value.clone().map(|value| (name.clone(), value)));
        }
        headers.extend(self.more_headers.iter().cloned());
        headers
    }

    fn name(&self) -> Option<&str> {
        let member = match self.method() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        self.json["params"][member].as_str()
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let stream = BufReader::new(stream);
        Ok(Self { address, stream })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If the server does not take them.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a message and reads all of its reply.
    ///
    /// # Errors
    /// If the connection ends first.
    ///
    /// # Panics
    /// If the schemas find a fault in the request or in the reply.
    pub fn exchange(&mut self, message: &Message) -> io::Result<Reply> {
        self.write(&message.bytes(self.address))?;
        self.reply(message.method())
    }

    /// Reads the reply to a request of this method.
    ///
    /// # Errors
    /// If the connection ends first.
    ///
    /// # Panics
    /// If the schemas find a fault in it.
    pub fn reply(&mut self, method: &str) -> io::Result<Reply> {
        let (head, body) = self.plain_reply()?;
        Ok(Reply::new(method, head, body))
    }

    /// Reads a reply that is not of the protocol: its head and its body.
    ///
    /// # Errors
    /// If the connection ends first.
    pub fn plain_reply(&mut self) -> io::Result<(Head, Vec<u8>)> {
        let head = Head::read(&mut self.stream)?.ok_or(ErrorKind::UnexpectedEof)?;
        let body = Body::of_response(&head).read_all(&mut self.stream)?;
        Ok((head, body))
    }

    /// Has the server begun to answer, or closed the connection?
    pub fn has_answer(&mut self) -> bool {
        let stream = self.stream.get_ref();
        let _ = stream.set_read_timeout(Some(GLANCE));
        let there = match stream.peek(&mut [0]) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        let _ = stream.set_read_timeout(Some(PATIENCE));
        there
    }

    /// Sends a message and reads the head of its reply; what follows is read as it comes.
    ///
    /// # Errors
    /// If the connection ends first.
    pub fn stream(mut self, message: &Message) -> io::Result<Stream> {
        self.write(&message.bytes(self.address))?;
        let head = Head::read(&mut self.stream)?.ok_or(ErrorKind::UnexpectedEof)?;
        let body = Body::of_response(&head);
        Ok(Stream {
            method: message.method().to_owned(),
            connection: self,
            head,
            body,
            text: String::new(),
            ready: Vec::new(),
        })
    }

    /// Closes it, as a client does that goes away.
    pub fn close(self) {
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
    }
}

/// A whole reply.
#[derive(Clone)]
pub struct Reply {
    /// Status line and headers.
    pub head: Head,
    /// The body as it came.
    pub body: Vec<u8>,
    /// Its JSON-RPC messages: one, or those of its event stream.
    pub messages: Vec<Value>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.head.start)?;
        self.messages
            .iter()
            .try_for_each(|message| write!(f, "\n{message}"))
    }
}

impl Reply {
    /// Reads the messages of a reply, and judges them.
    ///
    /// # Panics
    /// If one is no JSON, or the schemas find a fault.
    pub fn new(method: &str, head: Head, body: Vec<u8>) -> Self {
        let kind = head.header("content-type").unwrap_or_default().to_owned();
        let text = || String::from_utf8(body.clone()).unwrap();
        let messages = if kind.starts_with("text/event-stream") {
            let parse = |data: String| parse(&data);
            let events = http::take_events(&mut text());
            events.into_iter().map(parse).collect()
        } else if kind.starts_with("application/json") {
            vec![parse(&text())]
        } else {
            Vec::new()
        };
        let reply = Self {
            head,
            body,
            messages,
        };
        for message in &reply.messages {
            judge(method, message);
        }
        reply
    }

    /// Its status.
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// The response: the last message.
    pub fn response(&self) -> &Value {
        let last = self.messages.last();
        last.unwrap_or_else(|| panic!("no message: {:?}, {:?}", self.head, self.body))
    }

    /// The result.
    ///
    /// # Panics
    /// If it is an error.
    pub fn result(&self) -> &Value {
        let response = self.response();
        let result = response.get("result");
        result.unwrap_or_else(|| panic!("no result: {response:#}"))
    }

    /// The error.
    ///
    /// # Panics
    /// If it is a result.
    pub fn error(&self) -> &Value {
        let response = self.response();
        let error = response.get("error");
        error.unwrap_or_else(|| panic!("no error: {response:#}"))
    }

    /// The code of the error.
    pub fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap()
    }

    /// The text of the error.
    pub fn error_text(&self) -> &str {
        self.error()["message"].as_str().unwrap()
    }

    /// The first text of a tool's result.
    ///
    /// # Panics
    /// If it is not complete or has no text.
    pub fn text(&self) -> &str {
        text_of(self.result())
    }

    /// The task's id, if this is the handle of one.
    ///
    /// # Panics
    /// If it is not.
    pub fn task_id(&self) -> &str {
        let result = self.result();
        assert_eq!(result["resultType"], "task", "no task: {result:#}");
        result["taskId"].as_str().unwrap()
    }

    /// The parameters of all notifications of this method.
    pub fn notifications(&self, method: &str) -> Vec<&Value> {
        let of_method = |message: &&Value| message["method"] == method;
        let found = self.messages.iter().filter(of_method);
        found.map(|message| &message["params"]).collect()
    }
}

/// The first text of a tool's result, also of one inside a task.
///
/// # Panics
/// If it has none.
pub fn text_of(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {result:#}"))
}

/// A reply that is read while it comes.
#[derive(Debug)]
pub struct Stream {
    /// Status line and headers.
    pub head: Head,
    method: String,
    connection: Connection,
    body: Body,
    text: String,
    ready: Vec<Value>,
}

impl Stream {
    /// The next message of the event stream; none at its end.
    ///
    /// # Errors
    /// If the connection ends within the stream.
    ///
    /// # Panics
    /// If it is no event stream, or the schemas find a fault.
    pub fn message(&mut self) -> io::Result<Option<Value>> {
        let kind = self.head.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "{:?}", self.head);
        while self.ready.is_empty() {
            let Some(piece) = self.body.read(&mut self.connection.stream)? else {
                return Ok(None);
            };
            self.text += &String::from_utf8(piece).map_err(io::Error::other)?;
            let events = http::take_events(&mut self.text);
            self.ready.extend(events.iter().map(|data| parse(data)));
        }
        let message = self.ready.remove(0);
        judge(&self.method, &message);
        Ok(Some(message))
    }

    /// Closes the connection within the stream.
    pub fn close(self) {
        self.connection.close();
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

fn judge(method: &str, message: &Value) {
    if let Err(fault) = schema::reply(method, message) {
        panic!("reply to {method}: {fault}");
    }
}

/// The answer to a form: accepted with this content.
pub fn accept(content: Value) -> Value {
    let action = ("action".to_owned(), json!("accept"));
    Value::Object(Map::from_iter([action, ("content".to_owned(), content)]))
}

/// The answer to a form or page: declined.
pub fn decline() -> Value {
    json!({ "action": "decline" })
}

/// One answer by its key.
pub fn answer(key: &str, answer: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), answer)]))
}
