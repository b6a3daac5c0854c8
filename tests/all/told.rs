//! What results and questions tell beside what the guest says: what the run used, and which plugin asks.

use crate::servers::with_and_without_lingering;
use longshore_tests::client::{Message, Reply, accept, answer};
use longshore_tests::legacy::{LATEST, Session, asks_all};
use longshore_tests::server::{FIXTURES, HOSTILE, Server};
use longshore_tests::wait::within;
use serde_json::{Value, json};
use std::time::Duration;

const TELLING: &str = "usage_in_results = true\n[tasks]\ngrace_ms = 300\n";

fn usage(result: &Value) -> &Value {
    &result["_meta"]["longshore/usage"]
}

/// What was used is there, and is something.
fn check_usage(result: &Value) {
    let told = usage(result);
    for name in ["fuel", "memoryBytes", "wallMicros", "cpuMicros"] {
        assert!(
            told[name].as_u64().is_some_and(|used| used > 0),
            "{name}: {result:#}"
        );
    }
}

#[test]
fn results_tell_what_their_run_used_if_the_operator_allows_it() {
    let silent = Server::start(&[FIXTURES], "");
    let reply = silent.call("echo", json!({ "text": "x" }));
    assert!(usage(reply.result()).is_null(), "{reply:?}");

    let server = Server::start(&[FIXTURES, HOSTILE], TELLING);
    check_usage(server.call("echo", json!({ "text": "x" })).result());
    let task = server.call_task("sleep_required", json!({ "ms": 1 }));
    check_usage(&task.wait("completed")["result"]);
    for (method, name, value) in [
        ("prompts/get", "name", "greet"),
        ("resources/read", "uri", "fixture://plain"),
    ] {
        let message = Message::new(method).param(name, value);
        let arguments = json!({ "name": "Ada", "times": "1" });
        let message = if name == "name" {
            message.param("arguments", arguments)
        } else {
            message
        };
        check_usage(server.send(&message).result());
    }
    let session = Session::begin(&server, LATEST, &asks_all());
    let params = json!({ "name": "echo", "arguments": { "text": "x" } });
    check_usage(&session.result("tools/call", params));

    // More work is more.
    let fuel = |millions: u64| {
        let reply = server.call("burn", json!({ "millions": millions }));
        usage(reply.result())["fuel"].as_u64().unwrap()
    };
    let (little, much) = (fuel(1), fuel(50));
    assert!(much > 10 * little, "{little} and {much}");
}

#[test]
fn a_result_that_tells_its_usage_stands_whatever_comes_after_it() {
    let server = Server::start(&[FIXTURES, HOSTILE], TELLING);
    for tool in ["complete_then_trap", "complete_then_fail", "complete_twice"] {
        let reply = server.call(tool, json!({}));
        assert_eq!(reply.text(), "the first result");
        check_usage(reply.result());
    }
    // What it does after its result is counted too, for the time that it is given.
    let bound = Duration::from_millis(300 + 1_000);
    let reply = within("a guest that never ends", bound, || {
        server.call("complete_then_spin", json!({}))
    });
    assert_eq!(reply.text(), "the first result");
    let spun = usage(reply.result())["cpuMicros"].as_u64().unwrap();
    assert!(spun > 1_000, "{spun} us");
}

#[test]
fn a_cancellation_finds_a_result_that_was_given_before() {
    // Longer than anything here waits: it is the cancellation that ends what comes after the result.
    let config = "usage_in_results = true\n[tasks]\ngrace_ms = 120000\n";
    let server = Server::start(&[FIXTURES], config);
    let task = server.call_task("early", json!({ "ms": 600_000 }));
    task.cancel().result();
    check_usage(&task.wait("completed")["result"]);
}

#[test]
fn a_guest_cannot_say_what_only_the_host_says() {
    let server = Server::start(&[HOSTILE], "");
    let reply = server.call("forge_meta", json!({}));
    let meta = &reply.result()["_meta"];
    assert_eq!(meta["example.com/own"], 1, "{meta:#}");
    assert!(meta["longshore/usage"].is_null(), "{meta:#}");
}

fn check_asker(request: &Value) {
    assert_eq!(
        request["params"]["_meta"]["longshore/plugin"], "fixtures",
        "{request:#}"
    );
    if let Some(message) = request["params"]["message"].as_str() {
        assert!(message.starts_with("fixtures asks: "), "{message}");
    }
}

/// All kinds of questions at once, as they stand in a result or a task.
fn check_askers(requests: &Value) {
    let requests = requests.as_object().unwrap();
    assert_eq!(requests.len(), 4);
    requests.values().for_each(check_asker);
}

with_and_without_lingering! {
    fn a_question_tells_which_plugin_asks(server) {
        let call = Message::call("ask_all", json!({})).asks();
        let reply: Reply = server.send(&call);
        check_askers(&reply.result()["inputRequests"]);
        let task = server.call_task("ask_all", json!({}));
        check_askers(&task.wait("input_required")["inputRequests"]);
        task.cancel().result();
        // The answer is to the guest's own question: it finds its way also to a run that is made again.
        let task = server.call_task("ask_one", json!({}));
        check_asker(&task.wait("input_required")["inputRequests"]["number"]);
        task.update(answer("number", accept(json!({ "number": 7 }))));
        assert_eq!(task.wait_text(), "the number is 7");

        let session = Session::begin(server, LATEST, &asks_all());
        let params = json!({ "name": "ask_all", "arguments": {} });
        let mut asked = 0;
        session.request("tools/call", params, |_, params| {
            check_asker(&json!({ "params": params }));
            asked += 1;
            json!({ "error": { "code": -1, "message": "no" } })
        });
        assert_eq!(asked, 4);
    }
}
