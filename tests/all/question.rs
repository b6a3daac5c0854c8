//! Questions of tasks, answered while the guest lingers and by a replay.

use crate::servers::with_and_without_lingering;
use longshore_tests::client::{Message, accept, answer, decline};
use longshore_tests::server::{HOSTILE, Server};
use serde_json::json;

with_and_without_lingering! {
    /// Accept, decline and cancel all reach the guest.
    fn one_question(server) {
        for (reply, text) in [
            (accept(json!({ "number": 42 })), "the number is 42"),
            (decline(), "declined"),
            (json!({ "action": "cancel" }), "cancelled"),
        ] {
            let task = server.call_task("ask_one", json!({}));
            let asked = task.wait("input_required");
            let request = &asked["inputRequests"]["number"];
            assert_eq!(request["method"], "elicitation/create");
            assert_eq!(request["params"]["message"], "fixtures asks: Which number?");
            task.answer("number", reply);
            assert_eq!(task.wait_text(), text);
        }
    }

    /// Two questions in turn.
    fn two_questions(server) {
        let task = server.call_task("ask2", json!({}));
        task.answer("name", accept(json!({ "name": "Ada" })));
        task.answer("color", accept(json!({ "color": "green" })));
        assert_eq!(task.wait_text(), "Ada likes green");
    }

    /// One name, used again and again: every key is new.
    fn the_same_question_again(server) {
        let task = server.call_task("ask_again", json!({ "times": 4 }));
        let mut keys = Vec::new();
        for turn in 1..=4 {
            let asked = task.wait_questions();
            assert_eq!(asked.len(), 1);
            let key = asked[0].clone();
            assert!(!keys.contains(&key), "{key} again");
            task.answer(&key, accept(json!({ "name": format!("n{turn}") })));
            keys.push(key);
            if let Some(next) = keys.get(turn) {
                assert_ne!(next, &keys[turn - 1]);
            }
            wait_until_taken(&task, &keys[turn - 1]);
        }
        assert_eq!(keys[0], "name");
        assert_eq!(task.wait_text(), "n1, n2, n3, n4");
    }

    /// Partial answers keep the rest outstanding; the guest goes on with all of them.
    fn partial_answers(server) {
        let task = server.call_task("ask_all", json!({}));
        assert_eq!(task.wait_questions().len(), 4);
        let model = json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "hi" },
        });
        for (left, key, reply) in [
            (3, "roots", json!({ "roots": [] })),
            (2, "sampling", model),
            (1, "name", decline()),
        ] {
            task.update(answer(key, reply)).result();
            assert_eq!(task.wait_questions().len(), left);
        }
        task.update(answer("page", json!({ "action": "accept" }))).result();
        assert_eq!(task.wait_text(), "declined; opened; hi; ");
    }

    /// An answer that does not fit is asked for again.
    fn an_answer_off_its_schema(server) {
        let task = server.call_task("ask_form", json!({}));
        let order = |boxes: u64| json!({
            "name": "Ada", "boxes": boxes, "insured": true, "size": "large", "ways": ["sea"],
        });
        task.wait_questions();
        for wrong in [accept(order(10)), accept(json!({})), accept(json!({ "name": 1 }))] {
            task.update(answer("order", wrong)).result();
            assert_eq!(task.wait_questions(), ["order"]);
        }
        task.answer("order", accept(order(9)));
        assert!(task.wait_text().contains("\"boxes\":9"));
    }

    /// A tool that asks first: rounds, then a task, then questions in the task.
    fn rounds_and_then_a_task(server) {
        let call = Message::call("ask_first", json!({})).tasks().asks();
        let first = server.send(&call);
        let asked = first.result();
        assert_eq!(asked["resultType"], "input_required");
        assert!(asked["inputRequests"].get("name").is_some(), "{asked:#}");
        let mut again = call.param("inputResponses", answer("name", accept(json!({ "name": "Ada" }))));
        if let Some(state) = asked.get("requestState") {
            again = again.param("requestState", state.clone());
        }
        let reply = server.send(&again);
        let task = server.task(reply.task_id());
        task.answer("color", accept(json!({ "color": "blue" })));
        assert_eq!(task.wait_text(), "Ada likes blue");
    }

    /// The keys of the rounds are no keys of the task: a name that was used before is free again.
    fn keys_of_rounds_are_not_those_of_the_task(server) {
        let call = Message::call("ask_first_again", json!({})).tasks().asks();
        let answers = |name: &str| answer("name", accept(json!({ "name": name })));
        let asked = server.send(&call);
        let state = asked.result()["requestState"].clone();
        let begun = call.param("inputResponses", answers("Ada")).param("requestState", state);
        let reply = server.send(&begun);
        let task = server.task(reply.task_id());
        assert_eq!(task.wait_questions(), ["name"]);
        task.update(answers("Bob")).result();
        assert_eq!(task.wait_text(), "Ada, then Bob");
    }

    /// What the client did not declare is not asked: the tool is told, and the error names what it needs.
    fn a_client_that_cannot_answer(server) {
        let call = Message::call("ask_one", json!({})).tasks();
        let reply = server.send(&call);
        let error = match reply.response().get("error") {
            Some(error) => error.clone(),
            None => server.task(reply.task_id()).wait("failed")["error"].clone(),
        };
        assert_eq!(error["code"], -32021, "{error:#}");
        assert!(error["data"]["requiredCapabilities"]["elicitation"].is_object(), "{error:#}");
    }

    /// Cancelled while it asks.
    fn cancelled_while_asking(server) {
        let task = server.call_task("ask2", json!({}));
        task.answer("name", accept(json!({ "name": "Ada" })));
        task.cancel().result();
        task.wait("cancelled");
    }
}

/// The key is no longer outstanding.
fn wait_until_taken(task: &longshore_tests::server::Task<'_>, key: &str) {
    longshore_tests::wait::wait_for(
        "the answer to be taken",
        longshore_tests::wait::PATIENCE,
        || {
            let view = task.get();
            view["inputRequests"].get(key).is_none().then_some(())
        },
    );
}

#[test]
fn a_question_that_is_none_never_reaches_the_client() {
    let server = Server::start(&[HOSTILE], "");
    // To compile it would never end.
    let mut endless = json!({ "type": "object", "properties": {}, "unevaluatedProperties": false });
    endless["$defs"]["0"] = json!({ "type": "object" });
    for level in 1..=40 {
        let before = json!({ "$ref": format!("#/$defs/{}", level - 1) });
        endless["$defs"][level.to_string()] = json!({ "allOf": [before, before] });
    }
    endless["$ref"] = json!("#/$defs/40");
    for (tool, arguments) in [
        ("question_schema", json!({})),
        ("question_schema", json!({ "schema": "{" })),
        ("question_schema", json!({ "schema": endless.to_string() })),
        (
            "question_schema",
            json!({ "schema": r#"{"type":"string"}"# }),
        ),
        ("question_name", json!({})),
        ("question_url", json!({})),
        ("question_url", json!({ "url": "http://example.com/" })),
        (
            "question_url",
            json!({ "url": "https://trusted.example@other.example/" }),
        ),
    ] {
        let reply = server.send(&Message::call(tool, arguments).asks());
        let text = reply.text();
        assert!(text.starts_with("invalid: "), "{tool}: {text}");
    }
    // Two of one name have two keys.
    let both = server.send(&Message::call("question_same_name", json!({})).asks());
    let asked = both.result()["inputRequests"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["confirm", "confirm-2"]);
    // At home a page need not be secure.
    for url in ["http://localhost:8080/login", "https://example.com/login"] {
        let call = Message::call("question_url", json!({ "url": url })).asks();
        assert_eq!(
            server.send(&call).result()["resultType"],
            "input_required",
            "{url}"
        );
    }
}
