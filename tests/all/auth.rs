//! Who calls: tokens, and what belongs to whom; and pages of other origins.

use longshore_tests::client::{Message, accept, answer};
use longshore_tests::legacy::{LATEST, Raw, Session};
use longshore_tests::server::{FIXTURES, Home, Server, binary, token};
use serde_json::json;
use std::process::Command;
use std::sync::Arc;

#[test]
fn only_a_name_that_can_be_one_gets_a_token() {
    for wrong in ["", "anonymous", "a\nb", &"x".repeat(129)] {
        let output = Command::new(binary())
            .args(["token", wrong])
            .output()
            .unwrap();
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{wrong:?}"
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("a name of 1 to 128 characters"), "{said}");
    }
}

fn bearer(message: Message, token: &str) -> Message {
    message.header("Authorization", &format!("Bearer {token}"))
}

#[test]
fn who_has_no_token_is_not_let_in() {
    let (alice, lines) = token("alice");
    let server = Server::start(&[FIXTURES], &lines);
    let list = || Message::new("tools/list");
    let refused = server.send(&list());
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.head.header("www-authenticate"), Some("Bearer"));
    for wrong in ["", "nonsense", &alice[1..], &alice.to_uppercase()] {
        let refused = server.send(&bearer(list(), wrong));
        assert_eq!(refused.status(), 401, "{wrong}");
        let challenge = refused.head.header("www-authenticate").unwrap();
        assert!(challenge.contains("invalid_token"), "{challenge}");
    }
    server.send(&bearer(list(), &alice)).result();
    // Before the verb, and before a byte of the body.
    assert_eq!(Raw::new("GET").send(&server).status(), 401);
    // Who runs the server needs none to ask how it is.
    assert_eq!(server.get("/healthz").0, 200);
    assert!(!server.log().contains(&alice));
}

#[test]
fn t11_a_task_answers_to_its_principal_alone() {
    let ((alice, alices), (bob, bobs)) = (token("alice"), token("bob"));
    let home = Arc::new(Home::new(&[FIXTURES], ""));
    // Made before there were tokens: nobody's from then on.
    let server = Server::start_in(home.clone());
    let before = server
        .call_task("sleep_required", json!({ "ms": 60_000 }))
        .id;
    server.terminate();
    home.configure(&format!("{alices}\n{bobs}"));
    let server = Server::start_in(home);
    let make = Message::call("ask_one", json!({})).tasks().asks();
    let made = server.send(&bearer(make, &alice));
    let id = made.task_id().to_owned();
    let unknown = "0".repeat(40);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let of = |id: &str| {
            let message = Message::task(method, id);
            let message = if method == "tasks/update" {
                message.param("inputResponses", answer("x", accept(json!({}))))
            } else {
                message
            };
            let reply = server.send(&bearer(message, &bob));
            (reply.status(), reply.error().clone())
        };
        assert_eq!(of(&id), of(&unknown), "{method}");
        assert_eq!(of(&before), of(&unknown), "{method}");
    }
    let listen = Message::new("subscriptions/listen").tasks();
    let listen = listen.param("notifications", json!({ "taskIds": [id, before, unknown] }));
    let mut stream = server.stream(&bearer(listen.clone(), &bob));
    let granted = stream.message().unwrap().unwrap();
    assert_eq!(granted["params"]["notifications"]["taskIds"], json!([]));
    let mut stream = server.stream(&bearer(listen, &alice));
    let granted = stream.message().unwrap().unwrap();
    assert_eq!(granted["params"]["notifications"]["taskIds"], json!([id]));
    let own = server.send(&bearer(Message::task("tasks/get", &id), &alice));
    assert_eq!(own.result()["taskId"], id.as_str());
}

#[test]
fn a_state_of_a_call_is_its_callers_alone() {
    let ((alice, alices), (bob, bobs)) = (token("alice"), token("bob"));
    let server = Server::start(&[FIXTURES], &format!("{alices}\n{bobs}"));
    let call = Message::call("ask_one", json!({})).asks();
    let asked = server.send(&bearer(call.clone(), &alice));
    let next = call
        .param(
            "inputResponses",
            answer("number", accept(json!({ "number": 1 }))),
        )
        .param("requestState", asked.result()["requestState"].clone());
    assert_eq!(server.send(&bearer(next.clone(), &bob)).code(), -32602);
    assert_eq!(server.send(&bearer(next, &alice)).text(), "the number is 1");
}

#[test]
fn a_session_belongs_to_who_began_it() {
    let ((alice, alices), (bob, bobs)) = (token("alice"), token("bob"));
    let server = Server::start(&[FIXTURES], &format!("{alices}\n{bobs}"));
    let session = Session::begin_as(&server, LATEST, &json!({}), Some(&alice));
    session.result("ping", json!({}));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let foreign = |raw: Raw| {
        let raw = raw.header("Authorization", &format!("Bearer {bob}"));
        raw.send(&server).status()
    };
    assert_eq!(foreign(session.raw(&ping)), 404);
    assert_eq!(foreign(session.with_headers(Raw::new("GET"))), 404);
    assert_eq!(foreign(session.with_headers(Raw::new("DELETE"))), 404);
    session.result("ping", json!({}));
}

#[test]
fn a_page_that_is_let_in_can_read_what_it_gets() {
    let config = "[http]\nallowed_origins = [\"https://app.example.com\"]\n";
    let server = Server::start(&[FIXTURES], config);
    let preflight = |origin: &str| {
        let raw = Raw::new("OPTIONS").header("Origin", origin);
        let raw = raw.header("Access-Control-Request-Method", "POST");
        raw.header(
            "Access-Control-Request-Headers",
            "content-type,mcp-method,mcp-param-x",
        )
        .send(&server)
    };
    let allowed = preflight("https://app.example.com");
    assert_eq!(allowed.status(), 204);
    let header = |name: &str| allowed.head.header(name).unwrap_or_default();
    assert_eq!(
        header("access-control-allow-origin"),
        "https://app.example.com"
    );
    assert!(header("access-control-allow-headers").contains("mcp-param-x"));
    assert!(header("access-control-allow-methods").contains("DELETE"));
    assert_eq!(preflight("https://evil.example").status(), 403);
    let list = Message::new("tools/list").header("Origin", "https://app.example.com");
    let reply = server.send(&list);
    reply.result();
    let origin = reply.head.header("access-control-allow-origin");
    assert_eq!(origin, Some("https://app.example.com"));
    let exposed = reply.head.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("Mcp-Session-Id"));
    let alone = server.send(&Message::new("tools/list"));
    assert!(alone.head.header("access-control-allow-origin").is_none());
}

#[test]
fn each_caller_has_calls_of_its_own() {
    let ((alice, alices), (bob, bobs)) = (token("alice"), token("bob"));
    let limits = "[limits]\ncalls_per_minute = 12\n";
    let server = Server::start(&[FIXTURES], &format!("{limits}{alices}\n{bobs}"));
    let call = |token: &str| {
        let echo = Message::call("echo", json!({ "text": "x" }));
        server.send(&bearer(echo, token))
    };
    call(&alice).result();
    call(&alice).result();
    let refused = call(&alice);
    assert_eq!((refused.status(), refused.code()), (200, -32603));
    let data = &refused.error()["data"];
    assert_eq!(
        (&data["reason"], &data["limit"]),
        (&json!("rate"), &json!("calls_per_minute"))
    );
    assert!((1..=5_000).contains(&data["retryAfterMs"].as_u64().unwrap()));
    // Others are not held up, nor is anything but calls. A session is no way around.
    call(&bob).result();
    server
        .send(&bearer(Message::new("tools/list"), &alice))
        .result();
    let session = Session::begin_as(&server, LATEST, &json!({}), Some(&alice));
    let echo = json!({ "name": "echo", "arguments": { "text": "x" } });
    assert_eq!(session.error("tools/call", echo)["data"]["reason"], "rate");
}

#[test]
fn each_caller_has_streams_of_its_own() {
    let ((alice, alices), (bob, bobs)) = (token("alice"), token("bob"));
    let limits = "[subscriptions]\nstreams_per_client_max = 1\n";
    let server = Server::start(&[FIXTURES], &format!("{limits}{alices}\n{bobs}"));
    let listen = |token: &str| {
        let listen = Message::new("subscriptions/listen");
        bearer(
            listen.param("notifications", json!({ "toolsListChanged": true })),
            token,
        )
    };
    let of_alice = server.stream(&listen(&alice));
    assert_eq!(of_alice.head.status(), 200);
    let refused = server.send(&listen(&alice));
    assert_eq!(
        refused.error()["data"]["limit"],
        "subscriptions.streams_per_client_max"
    );
    let get = |token: &str| {
        let session = Session::begin_as(&server, LATEST, &json!({}), Some(token));
        session.with_headers(Raw::new("GET")).send(&server)
    };
    assert_eq!(get(&alice).status(), 503);
    // Both come from one address.
    let of_bob = get(&bob);
    assert_eq!(of_bob.status(), 200);
    drop((of_alice, of_bob));
}
