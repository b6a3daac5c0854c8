//! Prompts and completions.

use crate::servers::{shared, with_and_without_lingering};
use longshore_tests::client::{Message, accept, answer, decline};
use longshore_tests::server::{FIXTURES, Server, VERSION_A};
use serde_json::{Value, json};

fn get(name: &str, arguments: Value) -> Message {
    Message::new("prompts/get")
        .param("name", name)
        .param("arguments", arguments)
}

fn texts(result: &Value) -> Vec<&str> {
    let messages = result["messages"].as_array().unwrap();
    let text = messages.iter().map(|message| &message["content"]["text"]);
    text.map(|text| text.as_str().unwrap()).collect()
}

fn complete(reference: Value, argument: &str, value: &str) -> Message {
    Message::new("completion/complete")
        .param("ref", reference)
        .param("argument", json!({ "name": argument, "value": value }))
}

#[test]
fn what_no_plugin_offers_is_no_method() {
    let server = Server::start(&[VERSION_A], "");
    let discovered = server.send(&Message::new("server/discover"));
    let capabilities = &discovered.result()["capabilities"];
    assert_eq!(capabilities["tools"], json!({ "listChanged": true }));
    for feature in ["prompts", "resources", "completions"] {
        assert_eq!(capabilities.get(feature), None, "{feature}");
    }
    for message in [
        Message::new("prompts/list"),
        get("x", json!({})),
        Message::new("resources/list"),
        Message::new("resources/templates/list"),
        Message::new("resources/read").param("uri", "a:b"),
        complete(json!({ "type": "ref/prompt", "name": "x" }), "y", ""),
    ] {
        let reply = server.send(&message);
        assert_eq!((reply.status(), reply.code()), (404, -32601), "{message:?}");
    }
}

#[test]
fn what_some_plugin_offers_is_declared() {
    let server = Server::start(&[FIXTURES, VERSION_A], "");
    let discovered = server.send(&Message::new("server/discover"));
    let capabilities = &discovered.result()["capabilities"];
    assert_eq!(capabilities["prompts"], json!({ "listChanged": true }));
    let resources = json!({ "listChanged": true, "subscribe": true });
    assert_eq!(capabilities["resources"], resources);
    assert_eq!(capabilities["completions"], json!({}));
}

#[test]
fn the_list_says_which_arguments_are_needed() {
    let server = shared();
    let listed = server.send(&Message::new("prompts/list"));
    let prompts = listed.result()["prompts"].as_array().unwrap();
    let names: Vec<_> = prompts
        .iter()
        .map(|prompt| prompt["name"].as_str())
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    let greet = prompts
        .iter()
        .find(|prompt| prompt["name"] == "greet")
        .unwrap();
    let needed = |name: &str| {
        let arguments = greet["arguments"].as_array().unwrap();
        let argument = arguments.iter().find(|argument| argument["name"] == name);
        argument.unwrap()["required"].clone()
    };
    assert_eq!(
        (needed("name"), needed("times")),
        (json!(true), json!(false))
    );
}

#[test]
fn a_prompt_is_filled_in() {
    let server = shared();
    let filled = server.send(&get("greet", json!({ "name": "Ada", "times": "2" })));
    assert_eq!(texts(filled.result()), ["Greet Ada.", "Greet Ada."]);
    assert_eq!(filled.result()["messages"][0]["role"], "user");
}

#[test]
fn wrong_requests_are_the_hosts_to_refuse() {
    let server = shared();
    for (message, word) in [
        (get("no_such", json!({})), "no_such"),
        (get("greet", json!({ "times": "1" })), "name"),
        (get("greet", json!({ "name": 1 })).malformed(), "strings"),
        (get("greet", Value::Null).malformed(), "arguments"),
    ] {
        let reply = server.send(&message);
        assert_eq!((reply.status(), reply.code()), (200, -32602), "{message:?}");
        assert!(reply.error_text().contains(word), "{}", reply.error_text());
    }
}

#[test]
fn a_prompt_that_fails_is_an_error_that_names_it() {
    let server = shared();
    let reply = server.send(&get("fail_prompt", json!({})));
    assert_eq!((reply.status(), reply.code()), (200, -32603));
    assert!(
        reply.error_text().contains("on purpose"),
        "{}",
        reply.error_text()
    );
}

with_and_without_lingering! {
    /// Two rounds; a state is good for its own prompt only.
    fn a_prompt_asks_in_rounds(server) {
        let call = get("ask_prompt", json!({})).asks();
        let mut asked = server.send(&call).result().clone();
        for (turn, given) in [accept(json!({ "name": "Ada" })), decline()].into_iter().enumerate() {
            assert_eq!(asked["resultType"], "input_required", "{asked:#}");
            let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
            assert_eq!(keys.len(), 1);
            let next = |call: &Message| {
                let answers = answer(keys[0], given.clone());
                let next = call.clone().param("inputResponses", answers);
                next.param("requestState", asked["requestState"].clone())
            };
            let foreign = next(&get("greet", json!({ "name": "x" })).asks());
            assert_eq!(server.send(&foreign).code(), -32602);
            let reply = server.send(&next(&call));
            if turn == 1 {
                assert_eq!(texts(reply.result()), ["Greet Ada and declined."]);
            }
            asked = reply.result().clone();
        }
    }
}

#[test]
fn only_what_the_client_declared_is_asked() {
    let server = shared();
    let reply = server.send(&get("ask_prompt", json!({})));
    assert_eq!((reply.status(), reply.code()), (400, -32021));
}

#[test]
fn suggestions_are_at_most_a_hundred() {
    let server = shared();
    let prompt = json!({ "type": "ref/prompt", "name": "greet" });
    let message = complete(prompt.clone(), "name", "Ad")
        .param("context", json!({ "arguments": { "times": "twice" } }));
    let completed = server.send(&message);
    let completion = &completed.result()["completion"];
    let values = completion["values"].as_array().unwrap();
    assert_eq!((values.len(), &values[0]), (100, &json!("Ad0 twice")));
    assert_eq!(completion["hasMore"], true);
    let none = server.send(&complete(prompt, "times", ""));
    assert_eq!(none.result()["completion"]["values"], json!([]));
}

#[test]
fn a_template_is_completed_by_itself_or_by_a_uri_of_it() {
    let server = shared();
    for uri in ["fixture://seen/{ms}", "fixture://seen/12"] {
        let reference = json!({ "type": "ref/resource", "uri": uri });
        let completed = server.send(&complete(reference, "ms", ""));
        assert_eq!(
            completed.result()["completion"]["values"],
            json!(["0", "1"])
        );
    }
}

#[test]
fn nothing_completes_what_is_not_there() {
    let server = shared();
    for reference in [
        json!({ "type": "ref/prompt", "name": "no_such" }),
        json!({ "type": "ref/resource", "uri": "fixture://no/such" }),
    ] {
        let reply = server.send(&complete(reference, "x", ""));
        assert_eq!((reply.status(), reply.code()), (200, -32602));
    }
}
