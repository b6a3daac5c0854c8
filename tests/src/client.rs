//! A client of the modern wire: sends requests and reads what comes back, whole or as it comes.
//!
//! Every message that comes is judged by the schemas, and every message that goes, unless the test says that it is malformed.

pub use crate::message::{
    META_CAPABILITIES, META_LOG_LEVEL, META_VERSION, Message, TASKS, VERSION,
};

use crate::http::{self, Body, Head};
use crate::schema;
use crate::wait::{PATIENCE, Watch};
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, BufReader, ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a look at a connection waits.
const GLANCE: Duration = Duration::from_millis(2);

/// How long a stream may have comments only: longer than any test waits for a message, and short enough to end a hang.
const SILENCE: Duration = Duration::from_secs(120);

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

    /// Reads the head of a reply.
    ///
    /// # Errors
    /// If the connection ends first.
    pub fn head(&mut self) -> io::Result<Head> {
        Head::read(&mut self.stream)?.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// Reads the next piece of a body, a text.
    ///
    /// # Errors
    /// If the connection ends first.
    pub fn piece(&mut self, body: &mut Body) -> io::Result<Option<String>> {
        body.read_text(&mut self.stream)
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

    /// Breaks it, as a client does that dies.
    ///
    /// # Panics
    /// If the system does not know how.
    pub fn reset(self) {
        let socket = socket2::SockRef::from(self.stream.get_ref());
        socket.set_linger(Some(Duration::ZERO)).unwrap();
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
        let messages = messages_of(&head, &body);
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

/// The messages in a body: one, or those of an event stream as far as they are whole.
pub(crate) fn messages_of(head: &Head, body: &[u8]) -> Vec<Value> {
    let kind = head.header("content-type").unwrap_or_default();
    let text = || String::from_utf8(body.to_vec()).unwrap();
    if kind.starts_with("text/event-stream") {
        let events = http::take_events(&mut text());
        events.iter().map(|data| parse(data)).collect()
    } else if kind.starts_with("application/json") {
        vec![parse(&text())]
    } else {
        Vec::new()
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
    /// If it is no event stream, the schemas find a fault, or nothing but comments comes for long.
    pub fn message(&mut self) -> io::Result<Option<Value>> {
        let kind = self.head.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "{:?}", self.head);
        let watch = Watch::start();
        while self.ready.is_empty() {
            assert!(watch.elapsed() < SILENCE, "a stream without a message");
            let Some(piece) = self.piece()? else {
                return Ok(None);
            };
            self.text += &piece;
            let events = http::take_events(&mut self.text);
            self.ready.extend(events.iter().map(|data| parse(data)));
        }
        let message = self.ready.remove(0);
        judge(&self.method, &message);
        Ok(Some(message))
    }

    /// The next piece as it comes, with what is no message; none at its end.
    ///
    /// # Errors
    /// If the connection ends within the stream.
    pub fn piece(&mut self) -> io::Result<Option<String>> {
        self.connection.piece(&mut self.body)
    }

    /// Closes the connection within the stream.
    pub fn close(self) {
        self.connection.close();
    }

    /// Breaks the connection within the stream.
    ///
    /// # Panics
    /// If the system does not know how.
    pub fn reset(self) {
        self.connection.reset();
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
