//! Plugins in JavaScript and Python: they load within the default limits, and do what those in Rust do, also after a crash.
//!
//! What they bring along makes them the hardest guests to run again: their engines read clocks thousands of times a second,
//! wait through event loops, and draw random numbers. What a run saw before a question is in the question, and its result says
//! what the last run saw: the two must agree.

use longshore_tests::client::{Message, accept, answer, decline, text_of};
use longshore_tests::server::{Home, Server, Shared, Task, binary, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::{Once, OnceLock};
use std::time::Duration;

const JAVASCRIPT: &str = "plugins/javascript-timer.wasm";
const PYTHON: &str = "plugins/python-statistics.wasm";

/// Their engines take 10 to 20 s of one core to compile: long before the host's own limit, and too long for a start beside
/// other tests.
const COMPILE: Duration = Duration::from_secs(300);

/// Checks both, which leaves them compiled in the cache that all servers of the tests share.
fn compile() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let home = Home::new(&[], "");
        for path in [JAVASCRIPT, PYTHON] {
            let mut check = Command::new(binary());
            check.args(["plugin", "check", "--config"]);
            check.arg(home.config()).arg(component(path));
            let mut child = check.stdout(Stdio::null()).spawn().unwrap();
            let status = wait_for("the compiler", COMPILE, || child.try_wait().unwrap());
            assert!(status.success(), "{path}: {status}");
        }
    });
}

fn start(config: &str) -> Server {
    compile();
    Server::start(&[JAVASCRIPT, PYTHON], config)
}

/// One server whose waiting guests linger, and one that keeps none in memory.
fn servers() -> [Shared; 2] {
    static SLOTS: [OnceLock<Server>; 2] = [OnceLock::new(), OnceLock::new()];
    let configs = ["", "[tasks]\nlinger_ms = 0\n"];
    let start = |n: usize| SLOTS[n].get_or_init(|| start(configs[n]).ends_with_tests());
    [Shared(start(0)), Shared(start(1))]
}

fn server() -> Shared {
    let [server, _] = servers();
    server
}

#[test]
fn they_load_within_the_default_limits() {
    compile();
}

#[test]
fn inspect_says_in_plain_words_what_they_can_reach() {
    compile();
    let inspect = |path: &str, json: bool| {
        let home = Home::new(&[], "[plugins.python-statistics.limits]\nquestions = 7\n");
        let mut inspect = Command::new(binary());
        inspect
            .args(["plugin", "inspect", "--config"])
            .arg(home.config());
        inspect.args(json.then_some("--json")).arg(component(path));
        let output = inspect.output().unwrap();
        assert!(output.status.success(), "{path}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let script = inspect(JAVASCRIPT, false);
    for line in [
        "  clocks and waits",
        "  random numbers",
        "  files: none, unless folders are granted",
        "  questions 64",
        "  days_between (task forbidden): Counts the days",
    ] {
        assert!(script.contains(line), "no {line:?} in {script}");
    }
    assert!(
        !script.contains("sockets") && !script.contains("wasi:http"),
        "{script}"
    );
    let python: Value = serde_json::from_str(&inspect(PYTHON, true)).unwrap();
    let reach = python["reach"].as_array().unwrap();
    assert!(
        reach.contains(&json!("sockets: none; every connection is refused")),
        "{reach:?}"
    );
    assert!(
        reach
            .iter()
            .all(|line| !line.as_str().unwrap().contains('@')),
        "{reach:?}"
    );
    assert_eq!(python["limits"]["questions"], 7);
    assert!(python["component_bytes"].as_u64().unwrap() > 10_000_000);
}

#[test]
fn their_tools_are_listed_with_their_schemas() {
    let reply = server().send(&Message::new("tools/list"));
    let tools = reply.result()["tools"].as_array().unwrap().clone();
    let tool = |name: &str| {
        let found = tools.iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    };
    assert_eq!(tools.len(), 6);
    let days = tool("days_between");
    assert_eq!(days["inputSchema"]["required"], json!(["from", "to"]));
    assert_eq!(days["annotations"]["readOnlyHint"], true);
    assert_eq!(
        tool("focus")["outputSchema"]["properties"]["done"]["type"],
        "boolean"
    );
    // From the types of the function.
    let bootstrap = tool("bootstrap");
    assert!(bootstrap["description"].as_str().unwrap().contains("95 %"));
    let properties = &bootstrap["inputSchema"]["properties"];
    assert_eq!(bootstrap["inputSchema"]["required"], json!(["numbers"]));
    assert_eq!(properties["numbers"]["items"]["type"], "number");
    assert_eq!(properties["resamples"]["default"], 2_000);
    assert_eq!(
        tool("describe")["outputSchema"]["properties"]["count"]["type"],
        "integer"
    );
}

#[test]
fn plain_calls() {
    let server = server();
    let days = server.call(
        "days_between",
        json!({ "from": "2026-01-31", "to": "2026-12-24" }),
    );
    let expected = json!({ "days": 327, "weekday": "Thursday" });
    assert_eq!(days.result()["structuredContent"], expected);
    assert_eq!(
        serde_json::from_str::<Value>(days.text()).unwrap(),
        expected
    );
    let described = server.call("describe", json!({ "numbers": [1, 2, 3.5, 10] }));
    let content = &described.result()["structuredContent"];
    assert_eq!(
        (&content["count"], &content["mean"]),
        (&json!(4), &json!(4.125))
    );
}

#[test]
fn what_fails_is_told() {
    let server = server();
    // Refused by the host.
    for (tool, arguments, word) in [
        ("days_between", json!({ "from": "2026-01-31" }), "to"),
        ("describe", json!({ "numbers": [1] }), "numbers"),
    ] {
        let reply = server.call(tool, arguments);
        assert_eq!(reply.result()["isError"], true);
        assert!(reply.text().contains(word), "{}", reply.text());
    }
    // Refused by the tool: an exception is a result that says so.
    let reply = server.call(
        "days_between",
        json!({ "from": "soon", "to": "2026-12-24" }),
    );
    assert_eq!(reply.result()["isError"], true);
    assert_eq!(reply.text(), "soon is no date; write it as in 2026-12-24");
    // What the client cannot answer.
    for (tool, arguments) in [
        ("focus", json!({})),
        ("estimate", json!({ "numbers": [1, 2], "seconds": 0.01 })),
    ] {
        let reply = server.call(tool, arguments);
        assert_eq!(reply.code(), -32021, "{tool}");
        assert!(reply.error()["data"]["requiredCapabilities"]["elicitation"].is_object());
    }
}

#[test]
fn every_call_draws_other_random_numbers() {
    let arguments = json!({ "numbers": [1, 2, 4, 8, 16, 32, 64.5, 129], "resamples": 101 });
    let draw = || {
        server()
            .call("bootstrap", arguments.clone())
            .text()
            .to_owned()
    };
    let drawn = [draw(), draw(), draw()];
    assert!(drawn[0] != drawn[1] || drawn[1] != drawn[2], "{drawn:?}");
}

#[test]
fn tasks_with_progress() {
    let server = server();
    let timer = server.call_task("timer", json!({ "seconds": 2, "label": "The tea" }));
    wait_for("progress", PATIENCE, || {
        let task = timer.get();
        let message = task["statusMessage"].as_str().unwrap_or_default();
        assert_ne!(task["status"], "completed");
        message.starts_with("The tea: ").then_some(())
    });
    assert_eq!(timer.wait_text(), "The tea: 2 seconds are up.");

    let call = Message::call(
        "bootstrap",
        json!({ "numbers": [1, 2, 3], "resamples": 20_000 }),
    );
    let reply = server.send(&call.progress("draws"));
    let told = reply.notifications("notifications/progress");
    assert!(!told.is_empty());
    for progress in told {
        assert_eq!(progress["progressToken"], "draws");
        assert_eq!(progress["total"], 20_000.0);
    }
    assert!(
        reply.text().ends_with("from 20000 samples."),
        "{}",
        reply.text()
    );
}

#[test]
fn a_cancelled_wait_ends_early() {
    // Longer than the test has patience: the guest itself must come to an end.
    let server = start("[tasks]\ngrace_ms = 60000\n");
    let task = server.call_task("timer", json!({ "seconds": 1_200 }));
    task.cancel().result();
    task.wait("cancelled");
}

/// A call that asks twice.
struct Conversation {
    tool: &'static str,
    arguments: Value,
    answers: [Value; 2],
    /// Whether the result agrees with the messages of the two questions.
    agrees: fn(&Value, &[String]) -> bool,
}

fn conversations() -> [Conversation; 2] {
    let numbers: Vec<_> = (1..40).map(|n| f64::from(n * n % 37) + 0.1).collect();
    [
        Conversation {
            tool: "focus",
            // 0.3 s, in 20 waits.
            arguments: json!({ "minutes": 0.005 }),
            answers: [
                json!({ "goal": "moor" }),
                json!({ "done": true, "note": "windy" }),
            ],
            agrees: |result, asked| {
                let told = &result["structuredContent"];
                let times = [&told["began"], &told["ended"]].map(|time| time.as_str().unwrap());
                told["goal"] == "moor"
                    && told["note"] == "windy"
                    && times.iter().all(|time| asked[1].contains(time))
            },
        },
        Conversation {
            tool: "estimate",
            // How much it draws until then depends on readings of the clock, and on waits.
            arguments: json!({ "numbers": numbers, "seconds": 0.15 }),
            answers: [json!({ "enough": false }), json!({ "enough": true })],
            agrees: |result, asked| {
                let told: Vec<_> = text_of(result).lines().collect();
                let asked: Vec<_> = asked
                    .iter()
                    .map(|text| text.replace("python-statistics asks: ", ""))
                    .map(|text| text.replace(" Is that good enough?", ""))
                    .collect();
                told == asked
            },
        },
    ]
}

impl Conversation {
    fn check(&self, result: &Value, asked: &[String]) {
        assert!(
            (self.agrees)(result, asked),
            "another world: {asked:#?}, then {result:#}"
        );
    }
}

/// The only question that is there: its key and its message.
fn only(requests: &Value) -> (String, String) {
    let requests = requests.as_object().unwrap();
    assert_eq!(requests.len(), 1);
    let (key, request) = requests.iter().next().unwrap();
    (
        key.clone(),
        request["params"]["message"].as_str().unwrap().to_owned(),
    )
}

/// The question of a task, once it is another one than that.
fn question(task: &Task<'_>, before: &str) -> (String, String) {
    wait_for("another question", PATIENCE, || {
        Some(only(&task.wait("input_required")["inputRequests"])).filter(|(key, _)| key != before)
    })
}

#[test]
fn questions_of_tasks() {
    for server in servers() {
        for conversation in conversations() {
            let task = server.call_task(conversation.tool, conversation.arguments.clone());
            let (mut key, mut asked) = (String::new(), Vec::new());
            for reply in &conversation.answers {
                let (next, message) = question(&task, &key);
                task.answer(&next, accept(reply.clone()));
                asked.push(message);
                key = next;
            }
            conversation.check(&task.wait("completed")["result"], &asked);
        }
    }
}

#[test]
fn questions_of_plain_calls() {
    for server in servers() {
        for conversation in conversations() {
            let call = Message::call(conversation.tool, conversation.arguments.clone()).asks();
            let mut result = server.send(&call).result().clone();
            let mut asked = Vec::new();
            for reply in &conversation.answers {
                assert_eq!(result["resultType"], "input_required", "{result:#}");
                let (key, message) = only(&result["inputRequests"]);
                asked.push(message);
                let next = call
                    .clone()
                    .param("inputResponses", answer(&key, accept(reply.clone())));
                let next = next.param("requestState", result["requestState"].clone());
                result = server.send(&next).result().clone();
            }
            conversation.check(&result, &asked);
        }
    }
}

#[test]
fn declined_questions() {
    for server in servers() {
        let task = server.call_task("focus", json!({}));
        task.answer("plan", decline());
        let result = task.wait("completed")["result"].clone();
        assert_eq!(result["isError"], true);
        assert_eq!(
            text_of(&result),
            "Nothing was started: the user named no goal."
        );
        let task = server.call_task("estimate", json!({ "numbers": [1, 2], "seconds": 0.01 }));
        task.answer("enough", decline());
        assert!(task.wait_text().ends_with("samples."));
    }
}

#[test]
fn a_task_whose_process_is_killed_at_each_question() {
    for config in ["", "[tasks]\nlinger_ms = 0\n"] {
        let mut server = start(config);
        let conversations = conversations();
        let ids = conversations.each_ref().map(|conversation| {
            server
                .call_task(conversation.tool, conversation.arguments.clone())
                .id
        });
        let mut keys = [String::new(), String::new()];
        let mut asked = [Vec::new(), Vec::new()];
        for turn in 0..2 {
            for (n, id) in ids.iter().enumerate() {
                let (key, message) = question(&server.task(id), &keys[n]);
                keys[n] = key;
                asked[n].push(message);
            }
            server = Server::start_in(server.kill());
            for (n, id) in ids.iter().enumerate() {
                let task = server.task(id);
                let again = only(&task.wait("input_required")["inputRequests"]);
                assert_eq!(again, (keys[n].clone(), asked[n][turn].clone()));
                task.answer(&again.0, accept(conversations[n].answers[turn].clone()));
            }
        }
        for (n, id) in ids.iter().enumerate() {
            let result = server.task(id).wait("completed")["result"].clone();
            conversations[n].check(&result, &asked[n]);
        }
    }
}

#[test]
fn a_task_whose_process_is_killed_while_it_waits_goes_on() {
    let server = start("");
    let id = server.call_task("timer", json!({ "seconds": 1 })).id;
    let asked = server.call_task("focus", json!({ "minutes": 0.02 }));
    asked.answer("plan", accept(json!({ "goal": "moor" })));
    let focus = asked.id.clone();
    wait_for("the wait after the answer", PATIENCE, || {
        let task = asked.get();
        assert_ne!(task["status"], "completed");
        task["statusMessage"].is_string().then_some(())
    });
    let server = Server::start_in(server.kill());
    assert_eq!(server.task(&id).wait_text(), "The timer: 1 seconds are up.");
    let task = server.task(&focus);
    task.answer("review", accept(json!({ "done": false })));
    assert_eq!(
        task.wait("completed")["result"]["structuredContent"]["goal"],
        "moor"
    );
}
