//! The ladder of checks, as one table: each rung, and each pair of neighbours, where a request that fails both must get the
//! answer of the earlier one. Authentication (3) has a server and a table of its own; so has admission (25), part of it in `rate`.

use longshore_tests::client::{
    META_CAPABILITIES, META_LOG_LEVEL, META_VERSION, Message, TASKS, VERSION,
};
use longshore_tests::server::{CONFORMANCE, FIXTURES, Server, token};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// In what time a request is refused by its head: far from the ten seconds that a body may take.
const WITHOUT_BODY: Duration = Duration::from_secs(5);

/// What a request must get.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// A status; the body is free.
    Status(u16),
    /// A status and an error.
    Error(u16, i64),
    /// The same, and its message has this in it: neighbours that share a code are told apart.
    Says(u16, i64, &'static str),
    /// 401, with what is wanted.
    Stranger,
    /// A result of a tool that says it failed.
    Failed,
    /// A result.
    Good,
}

use Expected::{Error, Failed, Good, Says, Status, Stranger};

impl Expected {
    /// Whether the request was read, so that its id is known.
    fn is_of_a_request(self) -> bool {
        !matches!(self, Status(_) | Stranger)
    }
}

/// The rungs or pair of rungs, the request, and what it must get.
pub(crate) type Row = (&'static str, Message, Expected);

pub(crate) const CONFIG: &str = "
[http]
body_bytes_max = 65536
body_timeout_ms = 2000
[lists]
page_size = 5
[plugins.conformance.tools.test_custom_header]
task_support = \"optional\"
[plugins.fixtures.tools.echo]
task_support = \"required\"
";

fn list() -> Message {
    Message::new("tools/list")
}

fn stats() -> Message {
    Message::call("stats", json!({ "text": "a b" }))
}

fn get(id: &str) -> Message {
    Message::task("tasks/get", id)
}

fn prompt(name: &str) -> Message {
    Message::new("prompts/get").param("name", name)
}

fn read(uri: &str) -> Message {
    Message::new("resources/read").param("uri", uri)
}

fn listen(filter: Value) -> Message {
    Message::new("subscriptions/listen").param("notifications", filter)
}

/// Of the right shape, and nobody's.
const NO_TASK: &str = "0000000000000000000000000000000000000000";

fn evil(message: Message) -> Message {
    message.header("Origin", "http://evil.example")
}

fn wrong_name(message: Message) -> Message {
    message.header("Mcp-Name", "other")
}

fn wrong_method(message: Message) -> Message {
    message.header("Mcp-Method", "other")
}

fn old(message: Message) -> Message {
    message
        .header("MCP-Protocol-Version", "1900-01-01")
        .meta(META_VERSION, "1900-01-01")
}

/// The version before, in which there were sessions.
const OLDER: &str = "2025-11-25";

fn older(message: Message) -> Message {
    message
        .header("MCP-Protocol-Version", OLDER)
        .meta(META_VERSION, OLDER)
}

fn no_capabilities(message: Message) -> Message {
    message.no_meta(META_CAPABILITIES).malformed()
}

fn bare(message: Message) -> Message {
    message.no_param("_meta").malformed()
}

fn too_long(message: Message) -> Message {
    message.header("Content-Length", "65537")
}

fn headers(message: Message, count: usize) -> Message {
    (0..count).fold(message, |message, n| {
        message.also_header(&format!("X-{n}"), "x")
    })
}

fn text_of(message: &Message) -> String {
    message.json().to_string()
}

/// The JSON of a message, with this in the place of that.
fn replaced(message: Message, that: &str, this: &str) -> Message {
    let text = text_of(&message);
    assert!(text.contains(that), "{that} is not in {text}");
    message.body(text.replacen(that, this, 1))
}

/// Rows, each on a line of its own: rungs, request, what it must get.
macro_rules! rows {
    ($($rungs:literal => $message:expr => $expected:expr;)*) => {
        vec![$(($rungs, $message, $expected)),*]
    };
}

/// Before the body is parsed.
fn transport() -> Vec<Row> {
    rows! {
        "-" => list() => Good;
        "1: path" => list().path("/other") => Status(404);
        "1: bytes" => list().header("X-Long", &"x".repeat(100_000)) => Status(431);
        "1: count" => headers(list(), 2_000) => Status(431);
        "1+2" => evil(list().path("/other")) => Status(404);
        "2: origin" => evil(list()) => Status(403);
        "2: host" => list().header("Host", "evil.example") => Status(403);
        "2: every verb" => evil(list().verb("GET")) => Status(403);
        "2+5" => evil(list()).header("Content-Type", "text/plain") => Status(403);
        "4" => list().verb("PUT") => Status(405);
        "4+5" => list().verb("PUT").header("Content-Type", "text/plain") => Status(405);
        "4+5: accept" => list().verb("PUT").header("Accept", "text/html") => Status(405);
        "5: type" => list().header("Content-Type", "text/plain") => Status(415);
        "5: no type" => list().no_header("Content-Type") => Status(415);
        "5: charset" => list().header("Content-Type", "application/json; charset=utf-8") => Good;
        "5: accept" => list().header("Accept", "text/html") => Status(406);
        "5: anything" => list().header("Accept", "*/*") => Good;
        "5: no accept" => list().no_header("Accept") => Good;
        "5: one will do" => list().header("Accept", "application/json") => Good;
        "5+6" => too_long(list()).header("Content-Type", "text/plain") => Status(415);
        "5+6: accept" => too_long(list()).header("Accept", "text/html") => Status(406);
        "6" => too_long(list()) => Status(413);
        "6+7" => too_long(list()).body("{") => Status(413);
    }
}

/// The text, and the shape of a message.
fn message() -> Vec<Row> {
    let doubled = |that: &str, this: &str| replaced(list(), that, this);
    let version = format!(r#""{META_VERSION}":"{VERSION}""#);
    let two_versions = format!("{version},{version}");
    let twice = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list","#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}"#;
    rows! {
        "7: JSON" => list().body("{") => Error(400, -32700);
        "7: UTF-8" => list().body(b"{\"jsonrpc\":\"\xff\xfe\"}") => Error(400, -32700);
        "7: depth" => list().body("[".repeat(10_000) + &"]".repeat(10_000)) => Error(400, -32700);
        "7+8: double id" => list().body(twice) => Error(400, -32700);
        "7+8: batch" => list().body(r#"[{"jsonrpc":"2.0""#) => Error(400, -32700);
        "8: batch" => list().body(format!("[{}]", text_of(&list()))) => Error(400, -32600);
        "8: version" => list().edit(|json| json["jsonrpc"] = json!("1.0")).malformed() => Error(400, -32600);
        "8: id" => list().id(Value::Null).malformed() => Error(400, -32600);
        "8: fraction" => list().id(json!(1.5)).malformed() => Error(400, -32600);
        "8: method" => list().edit(|json| json["method"] = json!(7)).malformed() => Error(400, -32600);
        "8: params" => list().edit(|json| json["params"] = json!([1])).malformed() => Error(400, -32600);
        "8: double, top" => doubled(r#""id":1"#, r#""id":1,"id":1"#) => Error(400, -32600);
        "8: double, params" => doubled(r#""params":{"#, r#""params":{"x":1,"x":2,"#) => Error(400, -32600);
        "8: double, _meta" => doubled(&version, &two_versions) => Error(400, -32600);
        "8: unknown members" => list().edit(|json| json["x"] = json!({})) => Good;
        "8+9" => list().body(note) => Error(400, -32600);
    }
}

/// Notifications, eras, versions.
fn version() -> Vec<Row> {
    let unknown = || Message::new("no/such");
    rows! {
        "9" => bare(list().notification()) => Status(202);
        "9+10" => bare(list().notification()).header("MCP-Protocol-Version", "1900-01-01") => Status(202);
        "9+13" => wrong_method(list().notification()) => Status(202);
        "10: this version" => bare(list()) => Error(400, -32602);
        "10: unknown" => bare(list()).header("MCP-Protocol-Version", "1900-01-01") => Error(400, -32022);
        "10: wrong with a session" => bare(list()).header("Mcp-Session-Id", "x") => Error(400, -32602);
        "10, and 11" => bare(list()).no_header("MCP-Protocol-Version") => Error(400, -32020);
        "10+13" => wrong_method(bare(list())) => Error(400, -32602);
        "10: session" => list().header("Mcp-Session-Id", "x") => Good;
        "10: handshake" => Message::new("initialize").malformed() => Error(404, -32601);
        "10: session, 11" => list().header("Mcp-Session-Id", "x").header("MCP-Protocol-Version", OLDER) => Error(400, -32020);
        "10: session, 12" => older(list()).header("Mcp-Session-Id", "x") => Error(400, -32022);
        "11: header" => list().header("MCP-Protocol-Version", "1900-01-01") => Error(400, -32020);
        "11: absent" => list().no_header("MCP-Protocol-Version") => Error(400, -32020);
        "11: twice" => list().also_header("MCP-Protocol-Version", "x") => Error(400, -32020);
        "11: twice the same" => list().also_header("MCP-Protocol-Version", VERSION) => Good;
        "11: bytes" => list().header("MCP-Protocol-Version", "2026-07-28\u{e9}") => Error(400, -32020);
        "11: no string to compare" => list().meta(META_VERSION, 7).malformed() => Error(400, -32602);
        "11+12: header" => list().header("MCP-Protocol-Version", "1900-01-01") => Error(400, -32020);
        "11+12: body" => list().meta(META_VERSION, "1900-01-01") => Error(400, -32020);
        "12" => old(list()) => Error(400, -32022);
        "12: one with sessions" => older(list()) => Error(400, -32022);
        "12+13" => wrong_method(old(list())) => Error(400, -32022);
        "12+14" => old(unknown()) => Error(400, -32022);
    }
}

/// Where a request goes, and what its headers say of that.
fn route() -> Vec<Row> {
    let unknown = || Message::new("no/such");
    rows! {
        "13" => wrong_method(list()) => Error(400, -32020);
        "13: absent" => list().no_header("Mcp-Method") => Error(400, -32020);
        "13+14" => wrong_method(unknown()) => Error(400, -32020);
        "14" => unknown() => Error(404, -32601);
        "14: of sessions" => Message::new("resources/subscribe").param("uri", "fixture://plain").malformed() => Error(404, -32601);
        "14+15" => wrong_name(Message::new("no/such").param("name", "x")) => Error(404, -32601);
        "14+16" => no_capabilities(unknown()) => Error(404, -32601);
        "15" => wrong_name(stats()) => Error(400, -32020);
        "15: absent" => stats().no_header("Mcp-Name") => Error(400, -32020);
        "15: prompt" => wrong_name(prompt("greet")) => Error(400, -32020);
        "15: prompt, absent" => prompt("greet").no_header("Mcp-Name") => Error(400, -32020);
        "15: uri" => wrong_name(read("fixture://plain")) => Error(400, -32020);
        "15: uri, absent" => read("fixture://plain").no_header("Mcp-Name") => Error(400, -32020);
        "15: uri, encoded" => read("fixture://plain").header("Mcp-Name", "=?base64?Zml4dHVyZTovL3BsYWlu?=") => Good;
        "15: no base64" => stats().header("Mcp-Name", "=?base64?!?=") => Error(400, -32020);
        "15: task" => wrong_name(get(NO_TASK)) => Error(400, -32020);
        "15: nothing to compare" => wrong_name(stats().no_param("name")).malformed() => Error(200, -32602);
        "15+16" => no_capabilities(wrong_name(stats())) => Error(400, -32020);
        "15+17" => wrong_name(get(NO_TASK)).meta(META_CAPABILITIES, json!({})) => Error(400, -32020);
    }
}

/// What the client declares, and the shape of the parameters.
fn params() -> Vec<Row> {
    let undeclared = |message: Message| message.meta(META_CAPABILITIES, json!({}));
    let null = |message: Message| message.param("arguments", Value::Null).malformed();
    let update = || Message::task("tasks/update", NO_TASK).param("inputResponses", json!({}));
    rows! {
        "16" => no_capabilities(list()) => Error(400, -32602);
        "16: no object" => list().meta(META_CAPABILITIES, 1).malformed() => Error(400, -32602);
        "16: token" => list().progress(json!(1.5)).malformed() => Says(400, -32602, "progressToken");
        "16: token, null" => list().progress(Value::Null).malformed() => Says(400, -32602, "progressToken");
        "16: level" => list().meta(META_LOG_LEVEL, 7).malformed() => Says(400, -32602, META_LOG_LEVEL);
        "16: no level" => list().meta(META_LOG_LEVEL, "loud").malformed() => Says(400, -32602, META_LOG_LEVEL);
        "16+17" => no_capabilities(get(NO_TASK)) => Error(400, -32602);
        "16+18" => no_capabilities(null(stats())) => Says(400, -32602, META_CAPABILITIES);
        "17" => undeclared(get(NO_TASK)) => Error(400, -32021);
        "17: no object" => get(NO_TASK).capability("extensions", json!({ TASKS: 1 })).malformed() => Error(400, -32021);
        "17+18" => undeclared(get("x").param("taskId", 7)).malformed() => Error(400, -32021);
        "17+20" => undeclared(update()) => Error(400, -32021);
        "18" => null(stats()) => Says(200, -32602, "arguments");
        "18: no name" => wrong_name(stats().no_param("name")).malformed() => Says(200, -32602, "name");
        "18: no task" => get("x").no_param("taskId").malformed() => Says(200, -32602, "taskId");
        "18: no answers" => update().no_param("inputResponses").malformed() => Says(200, -32602, "inputResponses");
        "18: prompt" => prompt("greet").param("arguments", json!({ "name": 7 })).malformed() => Says(200, -32602, "strings");
        "18: uri" => wrong_name(read("x").param("uri", 7)).malformed() => Says(200, -32602, "uri");
        "18: completion" => Message::new("completion/complete").malformed() => Says(200, -32602, "ref");
        "18: filter" => Message::new("subscriptions/listen").malformed() => Says(200, -32602, "notifications");
        "18+19" => listen(json!({ "taskIds": 7 })).malformed() => Says(200, -32602, "taskIds");
        "19" => listen(json!({ "taskIds": [NO_TASK] })) => Error(400, -32021);
        "19: none" => listen(json!({ "taskIds": [] })) => Error(400, -32021);
        "18+20" => null(Message::call("no_such", json!({}))) => Says(200, -32602, "arguments");
        "18+20: task" => update().param("inputResponses", 1).malformed() => Says(200, -32602, "inputResponses");
    }
}

/// The tool, the task, and what they need.
fn tool() -> Vec<Row> {
    let state = |message: Message| message.param("requestState", "junk");
    let header = || Message::call("test_custom_header", json!({ "value": "v" }));
    rows! {
        "20: tool" => Message::call("no_such", json!({})) => Says(200, -32602, "no_such");
        "20: prompt" => prompt("no_such") => Says(200, -32602, "no_such");
        "20: prompt's argument" => prompt("greet") => Says(200, -32602, "name");
        "20: resource" => read("fixture://no/such") => Says(200, -32602, "no/such");
        "20: cursor of another list" => Message::new("prompts/list").param("cursor", "dG9vbHMgMSBh") => Says(200, -32602, "cursor");
        "20: task" => get(NO_TASK) => Error(200, -32602);
        "20: cursor" => list().param("cursor", "junk") => Says(200, -32602, "cursor");
        "20: empty cursor" => list().param("cursor", "") => Says(200, -32602, "cursor");
        "20+22" => state(Message::call("no_such", json!({}))) => Says(200, -32602, "no_such");
        "21: absent" => header().tasks() => Error(400, -32020);
        "21: wrong" => header().header("Mcp-Param-Value", "w").tasks() => Error(400, -32020);
        "21+22" => header() => Error(400, -32020);
        "21: right" => header().header("Mcp-Param-Value", "v").tasks() => Good;
        "21: others" => stats().header("Mcp-Param-Value", "w") => Good;
        "21+23" => state(header()).tasks() => Error(400, -32020);
        "21+24" => header().param("arguments", json!({})).header("Mcp-Param-Value", "v").tasks() => Error(400, -32020);
        "22" => Message::call("echo", json!({ "text": "x" })) => Error(400, -32021);
        "22: asks first" => Message::call("ask_first", json!({})) => Error(400, -32021);
        "22+23" => state(Message::call("echo", json!({ "text": "x" }))) => Error(400, -32021);
        "22+24" => Message::call("echo", json!({ "text": 7 })) => Error(400, -32021);
        "23: state" => state(stats()) => Says(200, -32602, "requestState");
        "23: no text" => stats().param("requestState", 7).malformed() => Error(200, -32602);
        "23: answers" => stats().param("inputResponses", json!({ "a": 7 })).malformed() => Error(200, -32602);
        "23+24" => state(stats().param("arguments", json!({ "text": 7 }))) => Error(200, -32602);
        "24" => stats().param("arguments", json!({ "text": 7 })) => Failed;
        "24: as a task" => Message::call("echo", json!({ "text": 7 })).tasks() => Failed;
        "24: absent is empty" => Message::call("ver", json!({})).no_param("arguments") => Good;
    }
}

/// Who calls, where callers have tokens.
fn caller(token: &str) -> Vec<Row> {
    let known = |message: Message| message.header("Authorization", &format!("Bearer {token}"));
    let unknown = |message: Message| message.header("Authorization", "Bearer x");
    rows! {
        "3: none" => list() => Stranger;
        "3: unknown" => unknown(list()) => Stranger;
        "3: known" => known(list()) => Good;
        "1+3" => list().path("/other") => Status(404);
        "2+3" => evil(list()) => Status(403);
        "2+3: host" => unknown(list()).header("Host", "evil.example") => Status(403);
        "2: with a token" => evil(known(list())) => Status(403);
        "3+4" => list().verb("PUT") => Stranger;
        "4: with a token" => known(list()).verb("PUT") => Status(405);
        "3+5" => list().header("Content-Type", "text/plain") => Stranger;
        "3+5: accept" => unknown(list()).header("Accept", "text/html") => Stranger;
        "3+6" => too_long(list()) => Stranger;
        "6: with a token" => too_long(known(list())) => Status(413);
        "3+7" => list().body("{") => Stranger;
        "3+9" => list().notification() => Stranger;
        "3+10" => unknown(list()).header("Mcp-Session-Id", "x") => Stranger;
    }
}

/// All rows from the body on.
pub(crate) fn rows_of_messages() -> Vec<Row> {
    [message(), version(), route(), params(), tool()]
        .into_iter()
        .flatten()
        .collect()
}

fn check(server: &Server, rows: impl IntoIterator<Item = Row>) {
    let mut faults = String::new();
    for (rungs, message, expected) in rows {
        if let Some(got) = fault(server, &message, expected) {
            let _ = writeln!(faults, "rung {rungs}: not {expected:?}, but {got}");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn each_rung_and_each_pair_of_neighbours() {
    let mut server = Server::start(&[FIXTURES, CONFORMANCE], CONFIG);
    let rows = transport().into_iter().chain(rows_of_messages());
    check(&server, rows);
    server.check_alive();
}

#[test]
fn authentication_is_the_third_rung() {
    let (alice, lines) = token("alice");
    let server = Server::start(&[FIXTURES], &format!("{CONFIG}{lines}"));
    check(&server, caller(&alice));
}

#[test]
fn the_first_rungs_want_no_byte_of_a_body() {
    let (alice, lines) = token("alice");
    let server = Server::start(&[FIXTURES], &lines);
    let known = list().header("Authorization", &format!("Bearer {alice}"));
    let put = known.clone().verb("PUT");
    for (message, status) in [(list(), 401), (evil(known), 403), (put, 405)] {
        // Ten gigabytes are said to come, and none does.
        let head = message.header("Content-Length", "10737418240").body("");
        let mut connection = server.connect();
        connection.write(&head.bytes(server.address())).unwrap();
        let reply = within("the refusal", WITHOUT_BODY, || {
            connection.reply("tools/list")
        });
        assert_eq!(reply.unwrap().status(), status);
    }
}

/// What came, if it is not what was expected.
fn fault(server: &Server, message: &Message, expected: Expected) -> Option<String> {
    let mut connection = server.connect();
    // The server may refuse a request before it has all of it.
    let _ = connection.write(&message.bytes(server.address()));
    let reply = match connection.reply(message.method()) {
        Ok(reply) => reply,
        Err(error) => return Some(format!("{error}")),
    };
    let response = reply.messages.last().cloned().unwrap_or_default();
    let code = response["error"]["code"].as_i64().unwrap_or_default();
    let text = response["error"]["message"].as_str().unwrap_or_default();
    let as_wished = match expected {
        Status(status) => reply.status() == status,
        Error(status, wished) => (reply.status(), code) == (status, wished),
        Says(status, wished, word) => {
            (reply.status(), code) == (status, wished) && text.contains(word)
        }
        Stranger => reply.status() == 401 && reply.head.header("www-authenticate").is_some(),
        Failed => response["result"]["isError"] == true,
        Good => reply.status() == 200 && response["result"]["isError"] != true && code == 0,
    };
    // What no request was read from is not answered under an id.
    let no_id_invented =
        expected.is_of_a_request() || response.get("id").is_none_or(Value::is_null);
    (!as_wished || !no_id_invented).then(|| format!("{} {response}", reply.head.start))
}

#[test]
fn the_last_rung_is_admission() {
    let config =
        "[limits]\nconcurrent_runs = 1\nqueued_calls = 0\n[tasks]\nopen_per_principal_max = 1\n";
    let mut server = Server::start(&[FIXTURES], config);
    let task = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let full = wait_for("the one slot to be taken", PATIENCE, || {
        let reply = server.call("ver", json!({}));
        reply.response().get("error").is_some().then_some(reply)
    });
    assert_eq!((full.status(), full.code()), (200, -32603));
    assert_eq!(full.error()["data"]["reason"], "busy");
    // 24 before 25.
    let bad = server.call("stats", json!({ "text": 7 }));
    assert_eq!(bad.result()["isError"], true);
    // 23 before 25.
    let state = Message::call("stats", json!({ "text": "x" })).param("requestState", "junk");
    assert_eq!(server.send(&state).code(), -32602);
    // The caller has as many tasks as it may: the same order.
    let sleep = |arguments: Value| Message::call("sleep_required", arguments).tasks();
    let bad = server.send(&sleep(json!({ "ms": "x" })));
    assert_eq!(bad.result()["isError"], true);
    let state = sleep(json!({ "ms": 1 })).param("requestState", "junk");
    assert_eq!(server.send(&state).code(), -32602);
    let one_more = server.send(&sleep(json!({ "ms": 1 })));
    assert_eq!(one_more.error()["data"]["reason"], "open_tasks");
    // Requests that run nothing need no slot.
    assert_eq!(task.get()["status"], "working");
    task.cancel().result();
    task.wait("cancelled");
    assert_eq!(
        server.call("stats", json!({ "text": "x" })).result()["isError"],
        Value::Null
    );
    server.check_alive();
}
