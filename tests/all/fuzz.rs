//! Random guests: values of all kinds at the boundary, from a guest that has them from its seed, and components of random bytes.
//! Whatever they give, the server is alive, nothing has panicked, and each of its messages is right.
//!
//! A short run of the same seeds every time; `cargo xtask fuzz guests` takes others, for as long as one likes.

use longshore_tests::client::{Message, Reply};
use longshore_tests::legacy::{LATEST, Session, asks_all};
use longshore_tests::server::{Server, VERSION_A, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;

/// The first seed of a run; it is written here for `cargo xtask fuzz`.
const SEED: &str = "LONGSHORE_TESTS_FUZZ_SEED";

/// Plugins of one run, each with a seed of its own.
const PLUGINS: u64 = 12;

/// Rounds of questions that are answered.
const ROUNDS: usize = 4;

fn first_seed() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "how a longer run tells its seed")]
    let stated = std::env::var(SEED).ok();
    stated.map_or(1, |seed| seed.parse().expect("a number"))
}

/// A server with guests that give whatever their seeds say.
fn chaotic() -> Server {
    let mut config = "
[log]
level = \"error\"
[lists]
page_size = 1000
[tasks]
grace_ms = 100
[limits]
wall_time_ms = 5000
"
    .to_owned();
    let first = first_seed();
    for plugin in 0..PLUGINS {
        let seed = first + plugin;
        let _ = write!(
            config,
            "[plugins.chaos-{plugin}]\nprefix = \"c{plugin}.\"\n\
             [plugins.chaos-{plugin}.grants]\nsettings = {{ SEED = \"{seed}\" }}\n"
        );
    }
    let server = Server::start(&[VERSION_A], &config);
    let bytes = fs::read(component("guests/chaos/chaos.wasm")).unwrap();
    for plugin in 0..PLUGINS {
        let name = format!("chaos-{plugin}.wasm");
        server.home.install_as(&name, &bytes);
    }
    wait_for("the plugins to be served", 4 * PATIENCE, || {
        (served(&server) + server.refused().len() > PLUGINS as usize).then_some(())
    });
    assert_eq!(server.refused().len(), 0, "{:?}", server.refused());
    server
}

fn served(server: &Server) -> usize {
    let (_, ready) = server.get("/readyz");
    let ready: Value = serde_json::from_str(&ready).unwrap();
    ready["plugins"].as_array().unwrap().len()
}

fn check_well(server: &mut Server) {
    server.check_alive();
    assert_eq!(server.call("version", json!({})).text(), "a");
    let log = server.log();
    let panic = log.lines().find(|line| line.contains("panicked"));
    assert_eq!(panic, None);
}

fn listed(server: &Server, method: &str, list: &str) -> Vec<Value> {
    let reply = server.send(&Message::new(method));
    let entries = reply.result()[list].as_array().unwrap();
    // A header could say it only in code, and there is none for that here.
    let sayable = |entry: &&Value| !entry.to_string().contains("x-mcp-header");
    entries.iter().filter(sayable).cloned().collect()
}

/// A name or URI that can stand in a header as it is.
fn sayable(text: &Value) -> Option<&str> {
    let text = text.as_str().unwrap();
    text.bytes()
        .all(|byte| byte.is_ascii_graphic())
        .then_some(text)
}

const ARGUMENTS: [&str; 4] = ["{}", r#"{"a":"x"}"#, r#"{"a":1,"b":2.5}"#, r#"{"n":3}"#];

/// What a client says to a question: mostly what is asked for, and now and then what is not.
fn response(method: &str, turn: usize) -> Value {
    match (method, turn % 4) {
        (_, 3) => json!({ "action": "decline" }),
        ("elicitation/create", 0) => json!({ "action": "accept", "content": {} }),
        ("elicitation/create", _) => json!({ "action": "accept", "content": { "a": "x" } }),
        ("sampling/createMessage", _) => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "\u{0}" },
        }),
        _ => json!({ "roots": [{ "uri": "file:///x" }] }),
    }
}

fn responses(asked: &Value, turn: usize) -> Value {
    let asked = asked.as_object().unwrap().iter();
    let answer = |(at, (key, request)): (usize, (&String, &Value))| {
        let method = request["method"].as_str().unwrap();
        (key.clone(), response(method, at + turn))
    };
    Value::Object(asked.enumerate().map(answer).collect())
}

/// Goes on with what was asked, and to the end of what became a task.
fn follow(server: &Server, message: &Message, mut reply: Reply) {
    for turn in 0..ROUNDS {
        let Some(result) = reply.response().get("result").cloned() else {
            return;
        };
        match result["resultType"].as_str() {
            Some("input_required") => {
                let answers = responses(&result["inputRequests"], turn);
                let next = message.clone().param("inputResponses", answers);
                reply = server.send(&next.param("requestState", result["requestState"].clone()));
            }
            Some("task") => return follow_task(server, result["taskId"].as_str().unwrap()),
            _ => return,
        }
    }
}

fn follow_task(server: &Server, id: &str) {
    let task = server.task(id);
    let mut turn = 0;
    wait_for("the task to end", PATIENCE, || {
        let now = task.get();
        if now["status"] == "input_required" {
            turn += 1;
            if turn > ROUNDS {
                task.cancel();
            } else {
                // It may have gone on since, and then that is told.
                task.update(responses(&now["inputRequests"], turn));
            }
        }
        let over = ["completed", "failed", "cancelled"];
        over.contains(&now["status"].as_str().unwrap())
            .then_some(())
    });
}

fn send(server: &Server, message: &Message) {
    follow(server, message, server.send(message));
}

/// As a client that understands nothing more, that answers questions, and that understands tasks too.
fn send_in_all_ways(server: &Server, message: &Message) {
    send(server, message);
    send(server, &message.clone().asks());
    send(server, &message.clone().asks().tasks());
}

#[test]
fn random_components_are_served_or_refused() {
    let mut server = Server::start(&[VERSION_A], "[log]\nlevel = \"error\"\n");
    let one = component("guests/strangers/whole-0000.wasm");
    let mut count = 1;
    for entry in fs::read_dir(one.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let bytes = fs::read(entry.path()).unwrap();
        let name = entry.file_name().into_string().unwrap();
        server.home.install_as(&name, &bytes);
        count += 1;
    }
    wait_for("each to be served or refused", 4 * PATIENCE, || {
        (served(&server) + server.refused().len() == count).then_some(())
    });
    // Some of their code has run.
    assert!(
        served(&server) > 1
            || server
                .refused()
                .values()
                .any(|reason| reason.contains("when asked"))
    );
    for name in server.tools() {
        send_in_all_ways(&server, &Message::call(&name, json!({})));
    }
    check_well(&mut server);
}

#[test]
fn random_values_at_the_boundary() {
    let mut server = chaotic();
    for tool in listed(&server, "tools/list", "tools") {
        let name = tool["name"].as_str().unwrap();
        for arguments in ARGUMENTS {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            send_in_all_ways(&server, &Message::call(name, arguments));
        }
    }
    for prompt in listed(&server, "prompts/list", "prompts") {
        let Some(name) = sayable(&prompt["name"]) else {
            continue;
        };
        let none = Vec::new();
        let arguments = prompt["arguments"].as_array().unwrap_or(&none);
        let named = arguments
            .iter()
            .map(|argument| (argument["name"].as_str().unwrap().to_owned(), "x".into()));
        let get = Message::new("prompts/get").param("name", name);
        let filled = Value::Object(named.collect());
        send(&server, &get.param("arguments", filled.clone()).asks());
        for argument in filled.as_object().unwrap().keys() {
            let complete = Message::new("completion/complete")
                .param("ref", json!({ "type": "ref/prompt", "name": name }))
                .param("argument", json!({ "name": argument, "value": "x" }));
            send(&server, &complete);
        }
    }
    listed(&server, "resources/templates/list", "resourceTemplates");
    for resource in listed(&server, "resources/list", "resources") {
        if let Some(uri) = sayable(&resource["uri"]) {
            send(
                &server,
                &Message::new("resources/read").param("uri", uri).asks(),
            );
        }
    }
    check_well(&mut server);
}

#[test]
fn random_values_for_an_older_client() {
    let mut server = chaotic();
    let session = Session::begin(&server, LATEST, &asks_all());
    let mut turn = 0;
    let mut ask = |method: &str, params: Value| {
        let answer = |asked: &str, _: &Value| {
            turn += 1;
            json!({ "result": response(asked, turn) })
        };
        session.request(method, params, answer).0
    };
    let mut all = |method: &str, list: &str| {
        let response = ask(method, json!({}));
        response["result"][list].as_array().unwrap().clone()
    };
    let tools = all("tools/list", "tools");
    let prompts = all("prompts/list", "prompts");
    let resources = all("resources/list", "resources");
    all("resources/templates/list", "resourceTemplates");
    for tool in tools {
        for arguments in ARGUMENTS {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let params = json!({ "name": tool["name"], "arguments": arguments });
            ask("tools/call", params);
        }
    }
    for prompt in prompts {
        ask("prompts/get", json!({ "name": prompt["name"] }));
    }
    for resource in resources {
        let uri = json!({ "uri": resource["uri"] });
        for method in [
            "resources/subscribe",
            "resources/read",
            "resources/unsubscribe",
        ] {
            ask(method, uri.clone());
        }
    }
    check_well(&mut server);
}
