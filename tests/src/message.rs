//! One request or notification: right as it is made, and each method changes one thing, so that it can be wrong in any way.
//!
//! It must not know how it is sent, nor what comes back.

use crate::schema;
use serde_json::{Value, json};
use std::net::SocketAddr;

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

    /// Its body: the JSON, or what is sent instead.
    pub fn text(&self) -> Vec<u8> {
        let json = || self.json.to_string().into_bytes();
        self.body.clone().unwrap_or_else(json)
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
        let body = self.text();
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
