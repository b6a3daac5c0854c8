//! Questions of plain calls: rounds of requests, with what was learned sealed in `requestState`.

use crate::servers::{shared, with_and_without_lingering};
use longshore_tests::client::{Message, accept, answer, decline};
use longshore_tests::server::{FIXTURES, Server, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};

/// The next round of a call: the same call, with answers and the state that came.
fn next(call: &Message, asked: &Value, answers: Value) -> Message {
    let next = call.clone().param("inputResponses", answers);
    next.param("requestState", asked["requestState"].clone())
}

fn ask(server: &Server, call: &Message) -> Value {
    let asked = server.send(call).result().clone();
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    asked
}

fn keys(asked: &Value) -> Vec<&str> {
    let requests = asked["inputRequests"].as_object().unwrap();
    requests.keys().map(String::as_str).collect()
}

fn one() -> Message {
    Message::call("ask_one", json!({})).asks()
}

fn number(number: u64) -> Value {
    answer("number", accept(json!({ "number": number })))
}

with_and_without_lingering! {
    /// Accepted and declined.
    fn one_round(server) {
        for (reply, text) in [
            (accept(json!({ "number": 42 })), "the number is 42"),
            (decline(), "declined"),
        ] {
            let asked = ask(server, &one());
            assert_eq!(keys(&asked), ["number"]);
            assert!(asked["requestState"].is_string());
            let done = server.send(&next(&one(), &asked, answer("number", reply)).id("second"));
            assert_eq!(done.text(), text);
        }
    }

    /// Several rounds; each has a state of its own.
    fn several_rounds(server) {
        let call = Message::call("ask_again", json!({ "times": 3 })).asks();
        let mut asked = ask(server, &call);
        let mut states = vec![asked["requestState"].clone()];
        for turn in 1..=3 {
            let key = keys(&asked)[0].to_owned();
            let answers = answer(&key, accept(json!({ "name": format!("n{turn}") })));
            let reply = server.send(&next(&call, &asked, answers));
            if turn == 3 {
                assert_eq!(reply.text(), "n1, n2, n3");
                return;
            }
            asked = reply.result().clone();
            assert!(!states.contains(&asked["requestState"]));
            states.push(asked["requestState"].clone());
        }
    }

    /// Some answers now, the others later; those that do not fit are asked for again.
    fn partial_answers(server) {
        let call = Message::call("ask_all", json!({})).asks();
        let asked = ask(server, &call);
        assert_eq!(keys(&asked).len(), 4);
        let some = json!({
            "roots": { "roots": [{ "uri": "file:///r" }] },
            "page": { "action": "accept" },
            "name": accept(json!({ "name": 5 })),
        });
        let asked = ask(server, &next(&call, &asked, some));
        let mut left = keys(&asked);
        left.sort_unstable();
        assert_eq!(left, ["name", "sampling"]);
        let rest = json!({
            "name": accept(json!({ "name": "Ada" })),
            "sampling": {
                "role": "assistant", "model": "m", "content": { "type": "text", "text": "hi" },
            },
        });
        let done = server.send(&next(&call, &asked, rest));
        assert_eq!(done.text(), "Ada; opened; hi; file:///r");
    }

    /// The state is used up by nothing: a request that is sent again gets the same answer.
    fn the_same_round_twice(server) {
        let asked = ask(server, &one());
        for _ in 0..2 {
            let done = server.send(&next(&one(), &asked, number(7)));
            assert_eq!(done.text(), "the number is 7");
        }
    }
}

#[test]
fn answers_on_the_first_call_are_taken_without_a_state() {
    let server = shared();
    let answers = json!({
        "number": accept(json!({ "number": 3 })), "unknown": decline(), "other": decline(),
    });
    let done = server.send(&one().param("inputResponses", answers));
    assert_eq!(done.text(), "the number is 3");
    // Wrong keys only: it is asked as if there were none.
    let asked = ask(
        &server,
        &one().param("inputResponses", answer("wrong", decline())),
    );
    assert_eq!(keys(&asked), ["number"]);
}

#[test]
fn no_answer_is_asked_again() {
    let server = shared();
    let asked = ask(&server, &one());
    let asked = ask(&server, &next(&one(), &asked, json!({})));
    let off = answer("number", accept(json!({ "number": "many" })));
    let asked = ask(&server, &next(&one(), &asked, off));
    let done = server.send(&next(&one(), &asked, number(1)));
    assert_eq!(done.text(), "the number is 1");
}

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
fn only_what_the_client_declared_is_asked() {
    let server = shared();
    let form = Message::call("ask_one", json!({})).capability("elicitation", json!({}));
    ask(&server, &form);
    for undeclared in [
        Message::call("ask_one", json!({})),
        Message::call("ask_one", json!({})).capability("elicitation", json!({ "url": {} })),
        Message::call("ask_all", json!({})).capability("elicitation", json!({})),
    ] {
        let reply = server.send(&undeclared);
        assert_eq!(
            (reply.status(), reply.code()),
            (400, -32021),
            "{undeclared:?}"
        );
        assert!(reply.error()["data"]["requiredCapabilities"].is_object());
    }
}

#[test]
fn a_call_that_asks_is_no_task_without_the_extension() {
    let server = shared();
    // With the extension the same call is a task that asks.
    let asked = ask(&server, &one());
    assert_eq!(asked.get("taskId"), None);
    let task = server.send(&one().tasks());
    assert_eq!(task.result()["resultType"], "task");
}

#[test]
fn a_question_comes_on_the_stream_if_progress_came_before() {
    let server = shared();
    let call = Message::call("ask_again", json!({ "times": 1 }))
        .asks()
        .progress("t");
    let reply = server.send(&call);
    assert_eq!(reply.head.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.notifications("notifications/progress").len(), 1);
    assert_eq!(reply.result()["resultType"], "input_required");
    // In the next round the progress of the replayed stretch is not sent again.
    let answers = answer("name", accept(json!({ "name": "x" })));
    let done = server.send(&next(&call, reply.result(), answers));
    assert_eq!(done.text(), "x");
    assert_eq!(done.notifications("notifications/progress").len(), 0);
}

#[test]
fn each_round_is_gated_by_its_own_request() {
    let server = shared();
    let call = Message::call("ask_again", json!({ "times": 2 }));
    let asked = ask(&server, &call.clone().asks());
    let name = answer("name", accept(json!({ "name": "x" })));
    let mute = server.send(&next(&call, &asked, name.clone()));
    assert_eq!((mute.status(), mute.code()), (400, -32021), "{mute:?}");
    // The round that failed has used up nothing.
    ask(&server, &next(&call.asks(), &asked, name));
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
