//! Cases of headers, versions, capabilities and verbs, and of ids of tasks.

use crate::servers::shared;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_tests::client::{META_CAPABILITIES, META_VERSION, Message, TASKS, VERSION};
use longshore_tests::legacy::{EARLIER, LATEST};
use longshore_tests::schema;
use longshore_tests::server::{FIXTURES, Server};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};

fn encoded(text: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(text))
}

#[test]
fn p10_an_encoded_name_is_decoded_before_it_is_compared() {
    let server = shared();
    let call = Message::call("echo", json!({ "text": "hello" }));
    let reply = server.send(&call.clone().header("Mcp-Name", &encoded("echo")));
    assert_eq!(reply.text(), "hello");
    let reply = server.send(&call.header("Mcp-Name", &encoded("grüße-世界")));
    assert_eq!((reply.status(), reply.code()), (400, -32020));

    let task = server.call_task("sleep_required", json!({ "ms": 60_000 }));
    let name = encoded(&task.id);
    let get = Message::task("tasks/get", &task.id).header("Mcp-Name", &name);
    assert_eq!(server.send(&get).result()["taskId"], task.id.as_str());
    let update = Message::task("tasks/update", &task.id).param("inputResponses", json!({}));
    server.send(&update.header("Mcp-Name", &name)).result();
    let cancel = Message::task("tasks/cancel", &task.id).header("Mcp-Name", &name);
    server.send(&cancel).result();
    task.wait("cancelled");
}

#[test]
fn p10_a_name_that_no_tool_can_have_is_an_unknown_tool() {
    let server = shared();
    let name = "grüße-世界";
    let call = Message::call(name, json!({})).header("Mcp-Name", &encoded(name));
    let reply = server.send(&call);
    assert_eq!((reply.status(), reply.code()), (200, -32602));
}

#[test]
fn p12_header_matrix() {
    let server = shared();
    let task = server.call_task("ask_one", json!({}));
    let call = Message::call("echo", json!({ "text": "x" }));
    let list = Message::new("tools/list");
    let get = Message::task("tasks/get", &task.id);
    for message in [&call, &list, &get] {
        let method = message.method().to_owned();
        for (header, right) in [("MCP-Protocol-Version", VERSION), ("Mcp-Method", &method)] {
            refused(&server, &message.clone().no_header(header));
            refused(&server, &message.clone().header(header, "wrong"));
            accepted(
                &server,
                &message.clone().header(&header.to_lowercase(), right),
            );
            accepted(
                &server,
                &message.clone().header(&header.to_uppercase(), right),
            );
        }
        refused(
            &server,
            &message.clone().header("Mcp-Method", &method.to_uppercase()),
        );
    }
    refused(&server, &call.clone().no_header("Mcp-Name"));
    accepted(&server, &get.clone().no_header("Mcp-Name"));
    refused(&server, &call.clone().header("Mcp-Name", "ECHO"));
    refused(&server, &call.clone().header("Mcp-Name", "other"));
    refused(&server, &get.clone().header("Mcp-Name", "other"));
    refused(
        &server,
        &get.clone().header("Mcp-Name", &task.id.to_uppercase()),
    );
    accepted(&server, &call.clone().header("mcp-name", "echo"));
    accepted(&server, &get.header("MCP-NAME", &task.id));
    // The list has no name: nothing to compare.
    accepted(&server, &list.header("Mcp-Name", "whatever"));
    // Twice the same is one; two that differ are none.
    refused(
        &server,
        &call.also_header("MCP-Protocol-Version", "2025-11-25"),
    );
    task.cancel().result();
}

fn refused(server: &Server, message: &Message) {
    let reply = server.send(message);
    let got = (reply.status(), reply.code());
    assert_eq!(got, (400, -32020), "{message:?}");
}

fn accepted(server: &Server, message: &Message) {
    let reply = server.send(message);
    assert!(
        reply.response().get("result").is_some(),
        "{message:?}: {reply:?}"
    );
    assert_eq!(reply.status(), 200);
}

#[test]
fn p12_a_gateway_can_require_the_task_in_the_header() {
    let server = Server::start(&[FIXTURES], "[routing]\nrequire_task_name = true\n");
    let task = server.call_task("sleep_required", json!({ "ms": 1 }));
    for method in ["tasks/get", "tasks/cancel"] {
        refused(
            &server,
            &Message::task(method, &task.id).no_header("Mcp-Name"),
        );
        accepted(&server, &Message::task(method, &task.id));
    }
    let update = Message::task("tasks/update", &task.id).param("inputResponses", json!({}));
    refused(&server, &update.clone().no_header("Mcp-Name"));
    accepted(&server, &update);
}

#[test]
fn p13_version_and_capability_errors_have_their_exact_shape() {
    let server = shared();
    let list = Message::new("tools/list");
    let old = "1900-01-01";

    let both = list
        .clone()
        .header("MCP-Protocol-Version", old)
        .meta(META_VERSION, old);
    let reply = server.send(&both);
    assert_eq!((reply.status(), reply.code()), (400, -32022));
    assert_eq!(reply.error()["data"]["requested"], old);
    let supported = reply.error()["data"]["supported"]
        .as_array()
        .unwrap()
        .clone();
    assert!(supported.contains(&json!(VERSION)));
    let discover = server.send(&Message::new("server/discover"));
    let offered = discover.result()["supportedVersions"]
        .as_array()
        .unwrap()
        .clone();
    assert!(supported.iter().all(|version| offered.contains(version)));

    let header = list.clone().header("MCP-Protocol-Version", old);
    let reply = server.send(&header);
    assert_eq!((reply.status(), reply.code()), (400, -32020));

    let bare = list.no_meta(META_CAPABILITIES).malformed();
    let reply = server.send(&bare);
    assert_eq!((reply.status(), reply.code()), (400, -32602));

    let task = server.call_task("sleep_required", json!({ "ms": 1 }));
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let undeclared = Message::task(method, &task.id)
            .param("inputResponses", json!({}))
            .meta(META_CAPABILITIES, json!({}));
        needs_tasks(&server, &undeclared);
    }
    needs_tasks(
        &server,
        &Message::call("sleep_required", json!({ "ms": 1 })),
    );
    let filter = json!({ "taskIds": [task.id] });
    let listen = Message::new("subscriptions/listen").param("notifications", filter);
    needs_tasks(&server, &listen);
}

#[test]
fn a_version_that_nobody_knows_is_told_all_that_are_served() {
    // Without `_meta` it could be of either era.
    let unknown = Message::new("tools/list").no_param("_meta").malformed();
    let unknown = unknown.header("MCP-Protocol-Version", "1900-01-01");
    let refused = shared().send(&unknown);
    assert_eq!((refused.status(), refused.code()), (400, -32022));
    let expected = json!({
        "supported": [VERSION, LATEST, EARLIER], "requested": "1900-01-01",
    });
    assert_eq!(refused.error()["data"], expected);
}

fn needs_tasks(server: &Server, message: &Message) {
    let reply = server.send(message);
    assert_eq!((reply.status(), reply.code()), (400, -32021), "{message:?}");
    let needed = &reply.error()["data"]["requiredCapabilities"];
    assert_eq!(needed["extensions"], json!({ TASKS: {} }));
}

#[test]
fn p13_wrong_types_in_meta_count_as_missing() {
    let server = shared();
    for message in [
        Message::new("tools/list").meta(META_CAPABILITIES, json!([])),
        Message::new("tools/list").meta(META_CAPABILITIES, Value::Null),
        Message::new("tools/list").no_meta(META_VERSION),
        Message::new("tools/list").no_param("_meta"),
        Message::new("tools/list").param("_meta", 7),
    ] {
        let reply = server.send(&message.malformed());
        assert_eq!((reply.status(), reply.code()), (400, -32602));
    }
    // A setting that is no object declares nothing.
    let call = Message::call("sleep_required", json!({ "ms": 1 }));
    let call = call.capability("extensions", json!({ TASKS: true }));
    needs_tasks(&server, &call.malformed());
}

#[test]
fn p14_other_verbs_and_unknown_methods() {
    let server = shared();
    for verb in ["GET", "DELETE", "PUT"] {
        let reply = server.send(&Message::new("tools/list").verb(verb));
        assert_eq!(reply.status(), 405, "{verb}");
        assert_eq!(reply.head.header("allow"), Some("POST"), "{verb}");
    }
    for method in [
        "no/such",
        "tasks/list",
        "tasks/result",
        "initialize",
        "ping",
        "logging/setLevel",
    ] {
        let reply = server.send(&Message::new(method));
        assert_eq!((reply.status(), reply.code()), (404, -32601), "{method}");
        assert_eq!(reply.response()["id"], 1);
    }
    let stray = Message::new("tools/list")
        .header("Mcp-Session-Id", "abc")
        .header("Last-Event-ID", "7");
    let reply = server.send(&stray);
    reply.result();
    assert_eq!(reply.head.header("mcp-session-id"), None);
}

#[test]
fn p16_capabilities_are_of_one_request() {
    let server = shared();
    let slow = || Message::call("sleep", json!({ "ms": 400 }));
    let mut one = server.connect();
    let mut two = server.connect();
    for _ in 0..2 {
        let first = one.exchange(&slow().tasks()).unwrap();
        assert_eq!(first.result()["resultType"], "task");
        let second = one.exchange(&slow()).unwrap();
        assert_eq!(second.text(), "slept 400 ms");
        let other = two.exchange(&slow()).unwrap();
        assert_eq!(other.text(), "slept 400 ms");
        let third = two.exchange(&slow().tasks()).unwrap();
        assert_eq!(third.result()["resultType"], "task");
        let required = Message::call("sleep_required", json!({ "ms": 1 }));
        let refused = two.exchange(&required).unwrap();
        assert_eq!((refused.status(), refused.code()), (400, -32021));
    }
}

#[test]
fn p35_origin_and_host() {
    // One of its own: the lines that tell of such requests are few.
    let server = Server::start(&[FIXTURES], "");
    let port = server.address().port();
    let list = || Message::new("tools/list");
    for good in [
        format!("http://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        format!("http://[::1]:{port}"),
    ] {
        accepted(&server, &list().header("Origin", &good));
    }
    for good in [format!("localhost:{port}"), format!("LOCALHOST:{port}")] {
        accepted(&server, &list().header("Host", &good));
    }
    let good = format!("http://127.0.0.1:{port}");
    for bad in [
        list().header("Origin", "http://evil.example"),
        list().header("Origin", "null"),
        list().header("Origin", &format!("http://127.0.0.1.evil.example:{port}")),
        list().header("Origin", &format!("http://127.0.0.1:{port}@evil.example")),
        list().header("Origin", &format!("http://evil.example#{good}")),
        list()
            .header("Origin", &good)
            .also_header("Origin", "http://evil.example"),
        list().header("Host", "evil.example"),
        list().header("Host", &format!("127.0.0.1.evil.example:{port}")),
        list().header("Host", &format!("127.0.0.1:{}", port ^ 1)),
    ] {
        let reply = server.send(&bad);
        assert_eq!(reply.status(), 403, "{bad:?}: {reply:?}");
    }
    let reply = server.send(&list().no_header("Host"));
    assert!([400, 403].contains(&reply.status()), "{reply:?}");
    for word in ["http://evil.example", "evil.example is not served"] {
        wait_for(word, PATIENCE, || server.log().contains(word).then_some(()));
    }
}

/// Sends a list request over HTTP/2, which has no header Host: the status.
async fn over_http2(server: &Server, authority: &str, origin: &str) -> u16 {
    let stream = tokio::net::TcpStream::connect(server.address()).await;
    let (client, connection) = h2::client::handshake(stream.unwrap()).await.unwrap();
    tokio::spawn(connection);
    let list = Message::new("tools/list");
    let request = http::Request::post(format!("http://{authority}/mcp"))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", VERSION)
        .header("Mcp-Method", list.method())
        .header("Origin", origin);
    let mut client = client.ready().await.unwrap();
    let (response, mut body) = client
        .send_request(request.body(()).unwrap(), false)
        .unwrap();
    body.send_data(list.json().to_string().into(), true)
        .unwrap();
    let mut response = response.await.unwrap();
    let status = response.status().as_u16();
    let mut answer = Vec::new();
    while let Some(piece) = response.body_mut().data().await {
        answer.extend(piece.unwrap());
    }
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    schema::reply(list.method(), &answer).unwrap();
    assert_eq!(
        answer["result"]["tools"].is_array(),
        status == 200,
        "{answer:#}"
    );
    status
}

#[tokio::test]
async fn p35_http2_has_no_host_header_and_the_same_rules() {
    let server = shared();
    let port = server.address().port();
    let ours = format!("localhost:{port}");
    let origin = format!("http://{ours}");
    assert_eq!(over_http2(&server, &ours, &origin).await, 200);
    assert_eq!(over_http2(&server, &ours, "http://evil.example").await, 403);
    assert_eq!(over_http2(&server, "evil.example", &origin).await, 403);
}

#[test]
fn p36_fields_of_task_requests() {
    let server = shared();
    let task = server.call_task("sleep_required", json!({ "ms": 1 }));
    let extra = Message::task("tasks/get", &task.id).param("foo", 1);
    let extra = extra.edit(|json| json["bar"] = json!([1]));
    assert_eq!(server.send(&extra).result()["taskId"], task.id.as_str());

    // A header of 1 MiB would be refused as such.
    let long = "x".repeat(1 << 20);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [
            json!(7),
            Value::Null,
            json!(""),
            json!({}),
            json!(long),
            json!("../../x"),
            json!("a' OR 1=1--"),
            json!("0".repeat(31)),
            json!("0".repeat(33)),
            json!("\u{0}"),
        ] {
            let message = Message::task(method, "")
                .param("inputResponses", json!({}))
                .param("taskId", id.clone())
                .no_header("Mcp-Name")
                .malformed();
            let reply = server.send(&message);
            assert_eq!(
                (reply.status(), reply.code()),
                (200, -32602),
                "{method} {id:.50}"
            );
        }
        let missing = Message::task(method, "")
            .param("inputResponses", json!({}))
            .no_param("taskId")
            .malformed();
        let reply = server.send(&missing);
        assert_eq!((reply.status(), reply.code()), (200, -32602), "{method}");
    }
}
