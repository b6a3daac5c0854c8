//! Replay: a run that is made again from its record sees the same world.
//!
//! The probe asks twice, and each question has a hash in it of all that the guest saw until then; its result tells what it saw
//! in the end. So the test can hash again: what the last run saw before a question must be what the first one saw.

use crate::servers::with_and_without_lingering;
use longshore_tests::client::{Message, accept, answer};
use longshore_tests::server::{FIXTURES, Server};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hasher};

/// The guest's own way to hash.
fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}

/// The hash in a question.
fn asked_hash(request: &Value) -> String {
    let message = request["params"]["message"].as_str().unwrap();
    let (_, rest) = message.split_once("(so far ").unwrap();
    rest.trim_end_matches(')').to_owned()
}

/// What was seen at the end agrees with what was seen at each question.
fn compare(seen: &str, hashes: &[String; 2]) {
    for (word, asked) in ["word one\n", "word two\n"].iter().zip(hashes) {
        let before = seen.split(word).next().unwrap();
        assert_ne!(before, seen, "no {word} in {seen}");
        assert_eq!(&hash(before), asked, "another world before {word}{seen}");
    }
    let (all, told) = seen.rsplit_once("hash ").unwrap();
    assert_eq!(hash(all), told);
    assert!(!seen.contains("cancelled true"), "{seen}");
}

/// The only question that is there: its key and its request.
fn only(requests: &Value) -> (String, Value) {
    let requests = requests.as_object().unwrap();
    assert_eq!(requests.len(), 1);
    let (key, request) = requests.iter().next().unwrap();
    (key.clone(), request.clone())
}

fn word(word: &str) -> Value {
    accept(json!({ "word": word }))
}

with_and_without_lingering! {
    /// As a task.
    fn a_task(server) {
        let task = server.call_task("replay_probe", json!({}));
        let (first, request) = only(&task.wait("input_required")["inputRequests"]);
        let one = asked_hash(&request);
        task.answer(&first, word("one"));
        let (second, request) = longshore_tests::wait::wait_for(
            "the second question",
            longshore_tests::wait::PATIENCE,
            || Some(only(&task.wait("input_required")["inputRequests"])).filter(|(key, _)| *key != first),
        );
        let two = asked_hash(&request);
        task.answer(&second, word("two"));
        compare(&task.wait_text(), &[one, two]);
    }

    /// As a plain call, whose record travels in the client's hands.
    fn a_plain_call(server) {
        let call = Message::call("replay_probe", json!({})).asks();
        let mut asked = server.send(&call).result().clone();
        let mut hashes = Vec::new();
        for said in ["one", "two"] {
            let (key, request) = only(&asked["inputRequests"]);
            hashes.push(asked_hash(&request));
            let next = call
                .clone()
                .param("inputResponses", answer(&key, word(said)))
                .param("requestState", asked["requestState"].clone());
            asked = server.send(&next).result().clone();
        }
        let seen = longshore_tests::client::text_of(&asked);
        compare(seen, &hashes.try_into().unwrap());
    }
}

#[test]
fn a_task_whose_process_is_killed_at_each_question() {
    let server = Server::start(&[FIXTURES], "");
    let task = server.call_task("replay_probe", json!({}));
    let id = task.id.clone();
    let (first, request) = only(&task.wait("input_required")["inputRequests"]);
    let one = asked_hash(&request);

    let server = Server::start_in(server.kill());
    let task = server.task(&id);
    let (again, request) = only(&task.wait("input_required")["inputRequests"]);
    assert_eq!((&again, asked_hash(&request)), (&first, one.clone()));
    task.answer(&first, word("one"));
    let (second, request) = longshore_tests::wait::wait_for(
        "the second question",
        longshore_tests::wait::PATIENCE,
        || {
            Some(only(&task.wait("input_required")["inputRequests"]))
                .filter(|(key, _)| *key != first)
        },
    );
    let two = asked_hash(&request);

    let server = Server::start_in(server.kill());
    let task = server.task(&id);
    task.answer(&second, word("two"));
    compare(&task.wait_text(), &[one, two]);
}
