//! `requestState`: whose it is, for what, for how long, and how large.

use crate::rounds::{ask, keys, next, number, one};
use crate::servers::shared;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_tests::client::{Message, accept, answer};
use longshore_tests::server::{FIXTURES, Server, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::json;
use std::fs::File;
use std::io::Read as _;

fn refused(server: &Server, message: &Message) {
    let reply = server.send(message);
    assert_eq!(
        (reply.status(), reply.code()),
        (200, -32602),
        "{}",
        message.json()
    );
}

#[test]
fn a_forged_state_is_refused() {
    let server = shared();
    let asked = ask(&server, &one());
    let good = asked["requestState"].as_str().unwrap();
    let mut swapped = good.to_owned().into_bytes();
    let middle = swapped.len() / 2;
    swapped[middle] = if swapped[middle] == b'A' { b'B' } else { b'A' };
    for state in [
        format!("{good}-TAMPERED"),
        format!("{good}="),
        format!("{good}A"),
        good[..good.len() - 1].to_owned(),
        good[1..].to_owned(),
        String::from_utf8(swapped).unwrap(),
        String::new(),
        "junk".to_owned(),
        "x".repeat(100_000),
    ] {
        refused(
            &server,
            &next(&one(), &asked, number(1)).param("requestState", state),
        );
    }
    let done = server.send(&next(&one(), &asked, number(1)));
    assert_eq!(done.text(), "the number is 1");
}

#[test]
fn a_state_is_bound_to_its_call() {
    let server = shared();
    let call = Message::call("ask_again", json!({ "times": 2 })).asks();
    let asked = ask(&server, &call);
    let name = answer("name", accept(json!({ "name": "x" })));
    // Other arguments, another tool.
    let other = Message::call("ask_again", json!({ "times": 3 })).asks();
    refused(&server, &next(&other, &asked, name.clone()));
    refused(
        &server,
        &next(
            &Message::call("ask2", json!({})).asks(),
            &asked,
            name.clone(),
        ),
    );
    // The same arguments, written otherwise, are the same.
    let text = call.json().to_string();
    let spaced = text.replace(r#"{"times":2}"#, r#"{ "times" : 2 }"#);
    assert_ne!(text, spaced);
    ask(&server, &next(&call, &asked, name));
}

#[test]
fn a_state_is_of_its_server_and_survives_a_restart() {
    let server = Server::start(&[FIXTURES], "");
    let asked = ask(&server, &one());
    refused(&shared(), &next(&one(), &asked, number(1)));
    let server = Server::start_in(server.kill());
    let done = server.send(&next(&one(), &asked, number(1)));
    assert_eq!(done.text(), "the number is 1");
}

#[test]
fn a_state_finishes_on_the_version_that_asked() {
    let server = Server::start(&[FIXTURES], "");
    let asked = ask(&server, &one());
    // Another version with the same tools: some bytes more, in a section that means nothing.
    let mut other = std::fs::read(component(FIXTURES)).unwrap();
    other.extend([0, 5, 1, b'x', 1, 2, 3]);
    server.home.install_as("fixtures.wasm", &other);
    wait_for("the other version", PATIENCE, || {
        let served = server.log().matches("serving the plugin").count();
        (served == 2).then_some(())
    });
    let done = server.send(&next(&one(), &asked, number(1)));
    assert_eq!(done.text(), "the number is 1");
}

#[test]
fn a_state_expires() {
    let server = Server::start(&[FIXTURES], "[limits]\ninput_time_ms = 400\n");
    let asked = ask(&server, &one());
    let error = wait_for("the state to expire", PATIENCE, || {
        let reply = server.send(&next(&one(), &asked, number(1)));
        assert_eq!(reply.status(), 200);
        reply.response().get("error").cloned()
    });
    assert_eq!(error["code"], -32602);
    assert!(
        error["message"].as_str().unwrap().contains("expired"),
        "{error:#}"
    );
    // Starting again is all that it takes.
    ask(&server, &one());
}

#[test]
fn a_call_whose_record_is_too_large_waits_under_a_name_that_is_good_once() {
    let server = Server::start(
        &[FIXTURES],
        "[plugins.fixtures.limits]\nrecord_bytes = 600\n",
    );
    let call = Message::call("ask_again", json!({ "times": 2 })).asks();
    let mut asked = ask(&server, &call);
    let long = accept(json!({ "name": "x".repeat(2_000) }));
    asked = ask(&server, &next(&call, &asked, answer("name", long)));
    let key = keys(&asked)[0].to_owned();
    let last = next(&call, &asked, answer(&key, accept(json!({ "name": "y" }))));
    // Others cannot use it, and do not use it up.
    let other = Message::call("ask_again", json!({ "times": 3 })).asks();
    refused(
        &server,
        &other.param("requestState", asked["requestState"].clone()),
    );
    assert!(server.send(&last).text().ends_with(", y"));
    let again = server.send(&last);
    assert_eq!((again.status(), again.code()), (200, -32602));
    assert!(again.error_text().contains("start again"), "{again:?}");
}

/// There is a tool and a prompt of this name, and both take nothing and ask the same.
#[test]
fn a_state_is_bound_to_its_method() {
    let server = shared();
    let prompt = Message::new("prompts/get").param("name", "ask_one");
    let prompt = prompt.param("arguments", json!({})).asks();
    let (called, got) = (ask(&server, &one()), ask(&server, &prompt));
    assert_eq!(called["inputRequests"], got["inputRequests"]);
    for other in [
        next(&prompt, &called, number(1)),
        next(&one(), &got, number(1)),
    ] {
        let reply = server.send(&other);
        assert_eq!((reply.status(), reply.code()), (200, -32602));
        assert!(reply.error_text().contains("another call"), "{reply:?}");
    }
    let done = server.send(&next(&one(), &called, number(1)));
    assert_eq!(done.text(), "the number is 1");
    let done = server.send(&next(&prompt, &got, number(1)));
    assert!(done.result()["messages"].is_array(), "{done:?}");
}

/// The largest state that is handed out.
const STATE_BYTES_MAX: usize = 65_536;

#[test]
fn what_does_not_fit_into_a_state_waits_under_a_name_that_is_good_once() {
    let server = shared();
    let call = Message::call("ask_again", json!({ "times": 2 })).asks();
    // It cannot be made smaller.
    let mut random = vec![0; 75 << 10];
    let mut source = File::open("/dev/urandom").unwrap();
    source.read_exact(&mut random).unwrap();
    let long = STANDARD.encode(&random);
    let name = accept(json!({ "name": long }));
    let asked = ask(
        &server,
        &next(&call, &ask(&server, &call), answer("name", name)),
    );
    let state = asked["requestState"].as_str().unwrap();
    assert!(state.len() <= STATE_BYTES_MAX, "{} bytes", state.len());
    let key = keys(&asked)[0];
    let last = next(&call, &asked, answer(key, accept(json!({ "name": "y" }))));
    assert_eq!(server.send(&last).text(), format!("{long}, y"));
    let again = server.send(&last);
    assert_eq!((again.status(), again.code()), (200, -32602));
    assert!(again.error_text().contains("start again"), "{again:?}");
}
