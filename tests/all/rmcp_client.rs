//! A client that nobody here wrote: `rmcp`, over HTTP, on the modern wire. A tap lets the schemas judge what both say.

use longshore_tests::client::text_of;
use longshore_tests::server::{FIXTURES, Server, Shared};
use longshore_tests::tap::Tap;
use longshore_tests::wait::{PATIENCE, Watch};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ClientConfig, GetTaskParams, GetTaskResult, Implementation, ProtocolVersion, TaskPayload,
    TaskStatus, UpdateTaskParams,
};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

/// A server that takes the address of a tap for its own.
fn tapped() -> Shared {
    static SLOT: OnceLock<Server> = OnceLock::new();
    let config = "[http]\nallowed_hosts = [\"127.0.0.1\"]\n";
    let start = || Server::start(&[FIXTURES], config).ends_with_tests();
    Shared(SLOT.get_or_init(start))
}

type Client = RunningService<RoleClient, ClientConfig>;

const TASKS: &str = r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const PLAIN: &str = r#"{"elicitation":{}}"#;

fn discover() -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    ClientLifecycleMode::Discover { preferred_versions }
}

async fn connect(capabilities: &str, mode: ClientLifecycleMode) -> (Client, Tap) {
    let tap = Tap::before(tapped().address());
    let url = format!("http://{}/mcp", tap.address());
    let transport = StreamableHttpClientTransport::from_uri(url);
    let capabilities: ClientCapabilities = serde_json::from_str(capabilities).unwrap();
    let config = ClientConfig::new(capabilities, Implementation::new("tests", "1"));
    let client = config.serve_with_lifecycle(transport, mode).await.unwrap();
    (client, tap)
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}");
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

async fn task(client: &Client, tool: &'static str, arguments: Value) -> String {
    match client.call_tool_once(call(tool, arguments)).await.unwrap() {
        CallToolResponse::Task(created) => created.task.task_id,
        other => panic!("no task: {other:?}"),
    }
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// Polls until the task is in this status; tells the ones before, each once.
async fn wait(client: &Client, id: &str, status: TaskStatus) -> (Vec<TaskStatus>, GetTaskResult) {
    let watch = Watch::start();
    let mut seen = Vec::new();
    loop {
        let view = client.get_task(GetTaskParams::new(id)).await.unwrap();
        let now = view.task.status();
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        if now == status {
            return (seen, view);
        }
        assert!(watch.elapsed() < PATIENCE, "never {status:?}: {view:?}");
        #[allow(clippy::disallowed_methods, reason = "a client's poll interval")]
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The end: everything that was said fits the schemas.
async fn finish(client: Client, tap: Tap, methods: &[&str]) {
    client.cancel().await.unwrap();
    let heard = tap.judge();
    for method in methods {
        assert!(
            heard.iter().any(|one| one == method),
            "no {method} in {heard:?}"
        );
    }
    assert!(!heard.iter().any(|one| one == "initialize"), "{heard:?}");
}

#[tokio::test]
async fn lists_and_calls() {
    let (client, tap) = connect(PLAIN, discover()).await;
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "echo"));
    let result = client
        .call_tool(call("echo", json!({ "text": "hello" })))
        .await
        .unwrap();
    assert_eq!(text(&result), "hello");
    assert_ne!(result.is_error, Some(true));
    finish(
        client,
        tap,
        &["server/discover", "tools/list", "tools/call"],
    )
    .await;
}

#[tokio::test]
async fn finds_the_modern_wire_by_itself() {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let (client, tap) = connect(PLAIN, mode).await;
    let result = client.call_tool(call("ver", json!({}))).await.unwrap();
    assert!(!text(&result).is_empty());
    finish(client, tap, &["server/discover", "tools/call"]).await;
}

#[tokio::test]
async fn follows_a_task_to_its_end() {
    let (client, tap) = connect(TASKS, discover()).await;
    let id = task(&client, "sleep", json!({ "ms": 600 })).await;
    let (seen, view) = wait(&client, &id, TaskStatus::Completed).await;
    assert_eq!(seen, [TaskStatus::Working, TaskStatus::Completed]);
    let TaskPayload::Completed { result } = view.task.payload else {
        panic!("{view:?}");
    };
    assert_eq!(text_of(&Value::Object(result)), "slept 600 ms");
    finish(client, tap, &["tools/call", "tasks/get"]).await;
}

#[tokio::test]
async fn answers_a_question_of_a_task() {
    let (client, tap) = connect(TASKS, discover()).await;
    for (answer, end) in [
        (
            json!({ "action": "accept", "content": { "number": 7 } }),
            "the number is 7",
        ),
        (json!({ "action": "decline" }), "declined"),
    ] {
        let id = task(&client, "ask_one", json!({})).await;
        let (_, view) = wait(&client, &id, TaskStatus::InputRequired).await;
        let TaskPayload::InputRequired { input_requests } = view.task.payload else {
            panic!("{view:?}");
        };
        assert_eq!(input_requests.keys().collect::<Vec<_>>(), ["number"]);
        let answers = BTreeMap::from([("number".to_owned(), answer)]);
        client
            .update_task(UpdateTaskParams::new(&*id, answers))
            .await
            .unwrap();
        let (_, view) = wait(&client, &id, TaskStatus::Completed).await;
        let TaskPayload::Completed { result } = view.task.payload else {
            panic!("{view:?}");
        };
        assert_eq!(text_of(&Value::Object(result)), end);
    }
    finish(client, tap, &["tools/call", "tasks/get", "tasks/update"]).await;
}

#[tokio::test]
async fn answers_a_question_in_rounds() {
    let (client, tap) = connect(PLAIN, discover()).await;
    // Its own handler declines all questions.
    let result = client.call_tool(call("ask2", json!({}))).await.unwrap();
    assert_eq!(text(&result), "declined likes declined");
    finish(client, tap, &["tools/call"]).await;
}

#[tokio::test]
async fn cancels_a_task() {
    let (client, tap) = connect(TASKS, discover()).await;
    let id = task(&client, "sleep_required", json!({ "ms": 60_000 })).await;
    client
        .cancel_task(CancelTaskParams::new(&*id))
        .await
        .unwrap();
    wait(&client, &id, TaskStatus::Cancelled).await;
    finish(client, tap, &["tools/call", "tasks/get", "tasks/cancel"]).await;
}

#[tokio::test]
async fn is_told_of_bad_arguments_and_unknown_names() {
    let (client, tap) = connect(TASKS, discover()).await;
    let result = client
        .call_tool(call("echo", json!({ "text": 7 })))
        .await
        .unwrap();
    assert_eq!(result.is_error, Some(true));
    let unknown = client
        .call_tool(call("no_such", json!({})))
        .await
        .unwrap_err();
    let ServiceError::McpError(error) = unknown else {
        panic!("{unknown:?}");
    };
    assert_eq!(error.code.0, -32602);
    let gone = GetTaskParams::new("0123456789abcdef0123456789abcdef");
    let ServiceError::McpError(error) = client.get_task(gone).await.unwrap_err() else {
        panic!("no protocol error");
    };
    assert_eq!(error.code.0, -32602);
    finish(client, tap, &["tools/call", "tasks/get"]).await;
}
