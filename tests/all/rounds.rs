//! Questions of plain calls: rounds of requests, with what was learned sealed in `requestState`.

use crate::servers::{shared, with_and_without_lingering};
use longshore_tests::client::{Message, accept, answer, decline};
use longshore_tests::server::Server;
use serde_json::{Value, json};

/// The next round of a call: the same call, with answers and the state that came.
pub(crate) fn next(call: &Message, asked: &Value, answers: Value) -> Message {
    let next = call.clone().param("inputResponses", answers);
    next.param("requestState", asked["requestState"].clone())
}

pub(crate) fn ask(server: &Server, call: &Message) -> Value {
    let asked = server.send(call).result().clone();
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    asked
}

pub(crate) fn keys(asked: &Value) -> Vec<&str> {
    let requests = asked["inputRequests"].as_object().unwrap();
    requests.keys().map(String::as_str).collect()
}

pub(crate) fn one() -> Message {
    Message::call("ask_one", json!({})).asks()
}

pub(crate) fn number(number: u64) -> Value {
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

    /// A key is given once, whatever the plugin calls its questions.
    fn keys_are_never_given_twice(server) {
        let arguments = json!({ "keys": ["name-2", "name", "name"] });
        let issued = ["name-2", "name", "name-3"];
        let name = |key: &str| answer(key, accept(json!({ "name": key })));
        let call = Message::call("ask_keys", arguments.clone()).asks();
        let mut reply = server.send(&call);
        for key in issued {
            let asked = reply.result().clone();
            assert_eq!(keys(&asked), [key]);
            reply = server.send(&next(&call, &asked, name(key)));
        }
        assert_eq!(reply.text(), issued.join(", "));
        let task = server.call_task("ask_keys", arguments);
        for key in issued {
            task.answer(key, accept(json!({ "name": key })));
        }
        assert_eq!(task.wait_text(), issued.join(", "));
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
    // An empty object means forms, and forms only.
    let forms = Message::call("ask_all", json!({}))
        .capability("elicitation", json!({}))
        .capability("sampling", json!({}))
        .capability("roots", json!({}));
    let needed = &server.send(&forms).error()["data"]["requiredCapabilities"].clone();
    assert_eq!(*needed, json!({ "elicitation": { "url": {} } }));
}

#[test]
fn a_model_is_given_tools_and_context_only_where_that_was_declared() {
    let server = shared();
    for (arguments, member) in [
        (json!({ "tools": true }), "tools"),
        (json!({ "context": true }), "context"),
    ] {
        let call = Message::call("ask_model", arguments);
        let declaring = |sampling: Value| call.clone().capability("sampling", sampling);
        for other in [json!({}), json!({ "other": {} })] {
            let reply = server.send(&declaring(other));
            assert_eq!((reply.status(), reply.code()), (400, -32021), "{member}");
            let needed = &reply.error()["data"]["requiredCapabilities"];
            assert_eq!(*needed, json!({ "sampling": { member: {} } }));
        }
        let asked = ask(&server, &declaring(json!({ member: {} })));
        let params = &asked["inputRequests"]["sampling"]["params"];
        assert_eq!(params["tools"].is_array(), member == "tools", "{params:#}");
        let context = params["includeContext"] == "thisServer";
        assert_eq!(context, member == "context", "{params:#}");
    }
    let both = Message::call("ask_model", json!({ "tools": true, "context": true }));
    let reply = server.send(&both.capability("sampling", json!({ "tools": {} })));
    let needed = &reply.error()["data"]["requiredCapabilities"];
    assert_eq!(*needed, json!({ "sampling": { "context": {} } }));
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
