//! Answers that nobody reads: who does not take them loses them after a while, and others lose nothing.

use longshore_tests::client::{Message, VERSION};
use longshore_tests::schema;
use longshore_tests::server::{FIXTURES, Server, VERSION_A};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::io::{Cursor, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

const SHORT: &str = "[http]\nwrite_timeout_ms = 1000\n";

const LARGE: usize = 200_000;

fn echo(length: usize) -> Message {
    Message::call("echo", json!({ "text": "x".repeat(length) }))
}

fn listen() -> Message {
    let filter = json!({ "toolsListChanged": true });
    Message::new("subscriptions/listen").param("notifications", filter)
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection() {
    let server = Server::start(&[FIXTURES], SHORT);
    let mut quiet = server.stream(&listen());
    quiet.message().unwrap().expect("the acknowledgement");
    let mut unread = TcpStream::connect(server.address()).unwrap();
    unread.set_write_timeout(Some(PATIENCE)).unwrap();
    let call = echo(1 << 20).bytes(server.address());
    // What the system keeps for both sides is full at some time. From then on the server waits.
    let error = loop {
        if let Err(error) = unread.write_all(&call) {
            break error;
        }
    };
    let broken = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(broken.contains(&error.kind()), "{error}");
    // Nothing was to be written here for longer than that.
    server.home.install(VERSION_A);
    let change = quiet.message().unwrap().expect("the stream goes on");
    assert_eq!(change["method"], "notifications/tools/list_changed");
}

/// The system may keep megabytes for a connection, and says that there is room again when a part of that was read.
#[test]
fn a_client_that_reads_slowly_and_steadily_loses_nothing() {
    let server = Server::start(&[FIXTURES], "[http]\nwrite_timeout_ms = 2000\n");
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    let call = echo(3 << 20).bytes(server.address());
    let mut writer = slow.try_clone().unwrap();
    // More than is read here.
    thread::spawn(move || (0..4).try_for_each(|_| writer.write_all(&call)));
    let (mut read, mut piece) = (0, vec![0; 64 << 10]);
    while read < 6 << 20 {
        let bytes = slow.read(&mut piece).unwrap();
        assert!(bytes > 0, "the connection ended after {read} bytes");
        read += bytes;
        // 530 KB a second.
        thread::sleep(Duration::from_millis(120));
    }
}

type Client = (h2::client::SendRequest<Cursor<String>>, SocketAddr);

/// A client with room for so many bytes on each stream, and for all that there is on all of them.
async fn client(address: SocketAddr, room_bytes: u32) -> Client {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(room_bytes);
    builder.initial_connection_window_size(1 << 24);
    let (client, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(connection);
    (client, address)
}

/// Sends a message; the body of its answer.
async fn send((client, address): &Client, message: &Message) -> h2::RecvStream {
    let mut request = http::Request::post(format!("http://{address}/mcp"))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", VERSION)
        .header("Mcp-Method", message.method());
    if let Some(name) = message.json()["params"]["name"].as_str() {
        request = request.header("Mcp-Name", name);
    }
    let mut client = client.clone().ready().await.unwrap();
    let request = request.body(()).unwrap();
    let (response, mut body) = client.send_request(request, false).unwrap();
    let text = message.json().to_string();
    body.send_data(Cursor::new(text), true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

/// Reads what there is room for; why no more comes.
async fn end(body: &mut h2::RecvStream) -> Option<h2::Reason> {
    // Nothing says to the server that there is room again.
    while let Some(piece) = body.data().await {
        if let Err(error) = piece {
            return error.reason();
        }
    }
    None
}

/// Reads until a text has come; all that came.
async fn read_until(body: &mut h2::RecvStream, text: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let piece = body.data().await.expect("more is to come").unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        read.extend(piece);
    }
    String::from_utf8(read).unwrap()
}

/// The message of a body, or of the one event in it.
fn judged(method: &str, text: &str) -> Value {
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    let message = serde_json::from_str(data.unwrap_or(text)).unwrap();
    schema::reply(method, &message).unwrap();
    message
}

#[tokio::test]
async fn an_http2_stream_that_nobody_reads_is_reset() {
    let server = Server::start(&[FIXTURES], SHORT);
    let address = server.address();
    let mut streams = JoinSet::new();
    // No room, room for a bit, room for most of it; more than is handed out at once, and less.
    for (room_bytes, length) in [(0, 10), (0, LARGE), (1, 10), (1, LARGE), (190_000, LARGE)] {
        streams.spawn(async move {
            let client = client(address, room_bytes).await;
            let mut unread = send(&client, &echo(length)).await;
            let reason = timeout(PATIENCE, end(&mut unread)).await;
            (room_bytes, length, reason.expect("the end of the stream"))
        });
    }
    for (room_bytes, length, reason) in streams.join_all().await {
        let told = format!("{length} bytes, and room for {room_bytes}");
        assert_eq!(reason, Some(h2::Reason::CANCEL), "{told}");
    }
}

#[tokio::test]
async fn a_task_whose_handle_was_not_read_is_cancelled() {
    let settings = "[tasks]\nopen_per_principal_max = 1\n";
    let server = Arc::new(Server::start(&[FIXTURES], settings));
    let client = client(server.address(), 0).await;
    let make = Message::call("sleep_required", json!({ "ms": 60_000 })).tasks();
    let handle = send(&client, &make).await;
    let (other, maker) = (make.clone(), Arc::clone(&server));
    let busy = spawn_blocking(move || maker.send(&other)).await.unwrap();
    assert_eq!(busy.code(), -32603, "{busy:?}");
    // Nobody reads it any more: its stream is reset.
    drop(handle);
    let another = spawn_blocking(move || {
        wait_for("the task to make room", PATIENCE, || {
            let reply = server.send(&make);
            reply.response().get("result").is_some().then_some(())
        });
        server.log()
    });
    let log = another.await.unwrap();
    assert!(log.contains("went away before it had the handle"), "{log}");
}

/// Some clients reset a stream when they have what they want, and do not wait for its end.
#[tokio::test]
async fn a_task_whose_handle_was_read_goes_on() {
    let server = Arc::new(Server::start(&[FIXTURES], ""));
    let make = Message::call("sleep_required", json!({ "ms": 60_000 })).tasks();
    let client = client(server.address(), 65_535).await;
    let mut ids = Vec::new();
    for _ in 0..30 {
        let mut body = send(&client, &make).await;
        let handle = read_until(&mut body, "}}}").await;
        let handle = judged("tools/call", &handle);
        ids.push(handle["result"]["taskId"].as_str().unwrap().to_owned());
    }
    drop(client);
    let seen = spawn_blocking(move || {
        for id in ids {
            assert_eq!(server.task(&id).get()["status"], "working");
        }
        server.log()
    });
    let log = seen.await.unwrap();
    assert!(!log.contains("went away before it had the handle"), "{log}");
}

#[tokio::test]
async fn the_other_streams_of_an_http2_connection_go_on() {
    let server = Server::start(&[FIXTURES], SHORT);
    let client = client(server.address(), 65_535).await;
    let mut quiet = send(&client, &listen()).await;
    let granted = read_until(&mut quiet, "\n\n").await;
    judged("subscriptions/listen", &granted);
    let mut unread = send(&client, &echo(LARGE)).await;
    let reason = timeout(PATIENCE, end(&mut unread)).await;
    assert_eq!(reason.unwrap(), Some(h2::Reason::CANCEL));
    let mut read = send(&client, &echo(LARGE)).await;
    let all = timeout(PATIENCE, read_until(&mut read, "}}}")).await;
    judged("tools/call", &all.expect("the answer"));
    server.home.install(VERSION_A);
    let change = read_until(&mut quiet, "\n\n");
    let change = timeout(PATIENCE, change).await.expect("the change");
    judged("subscriptions/listen", &change);
}
