//! A client that nobody here wrote: `rmcp`, over HTTP and over standard input and output, on both wires. A tap or a relay lets the
//! schemas judge what both say.

use crate::servers::tapped;
use longshore_tests::client::text_of;
use longshore_tests::relay::Relay;
use longshore_tests::server::FIXTURES;
use longshore_tests::tap::Tap;
use longshore_tests::wait::{PATIENCE, Watch};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ClientConfig, CompletionContext, GetPromptRequestParams, GetTaskParams, GetTaskResult,
    Implementation, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
    ServerNotification, SubscriptionFilter, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::service::{RunningService, SubscriptionEnd};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

type Client = RunningService<RoleClient, ClientConfig>;

const TASKS: &str = r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const PLAIN: &str = r#"{"elicitation":{}}"#;

/// How a client reaches a server, and on which wire.
#[derive(Clone, Copy)]
struct Way {
    over_stdio: bool,
    legacy: bool,
}

const MODERN_HTTP: Way = Way {
    over_stdio: false,
    legacy: false,
};
const MODERN_STDIO: Way = Way {
    over_stdio: true,
    legacy: false,
};
const LEGACY_HTTP: Way = Way {
    over_stdio: false,
    legacy: true,
};
const LEGACY_STDIO: Way = Way {
    over_stdio: true,
    legacy: true,
};

/// A test for each of these ways.
macro_rules! ways {
    ($test:ident: $($name:ident $way:ident),*) => {
        mod $test {
            $(#[tokio::test]
            async fn $name() {
                super::$test(super::$way).await;
            })*
        }
    };
    ($test:ident) => {
        ways!($test: modern_http MODERN_HTTP, modern_stdio MODERN_STDIO, legacy_http LEGACY_HTTP, legacy_stdio LEGACY_STDIO);
    };
    ($test:ident modern) => {
        ways!($test: modern_http MODERN_HTTP, modern_stdio MODERN_STDIO);
    };
}

impl Way {
    fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        if self.legacy {
            ClientLifecycleMode::Initialize
        } else {
            ClientLifecycleMode::Discover { preferred_versions }
        }
    }
}

/// What listens to a client.
enum Ear {
    Tap(Tap),
    Relay(Relay, tokio::process::Child),
}

async fn connect(way: Way, capabilities: &str) -> (Client, Ear) {
    connect_by(way, capabilities, way.lifecycle()).await
}

async fn connect_by(way: Way, capabilities: &str, mode: ClientLifecycleMode) -> (Client, Ear) {
    let capabilities: ClientCapabilities = serde_json::from_str(capabilities).unwrap();
    let config = ClientConfig::new(capabilities, Implementation::new("tests", "1"));
    if way.over_stdio {
        let relay = Relay::new(&[FIXTURES]);
        let mut server = tokio::process::Command::from(relay.process());
        let server = server.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = server.stderr(Stdio::null()).spawn().unwrap();
        let transport = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let client = config.serve_with_lifecycle(transport, mode).await.unwrap();
        return (client, Ear::Relay(relay, server));
    }
    let tap = Tap::before(tapped().address());
    let url = format!("http://{}/mcp", tap.address());
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = config.serve_with_lifecycle(transport, mode).await.unwrap();
    (client, Ear::Tap(tap))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(object(arguments))
}

/// The code of an error of the protocol.
fn code(error: &ServiceError) -> i32 {
    match error {
        ServiceError::McpError(error) => error.code.0,
        other => panic!("no error of the protocol: {other:?}"),
    }
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

/// The end: everything that was said fits the schemas, and is of the wire that was meant.
async fn finish(way: Way, client: Client, ear: Ear, methods: &[&str]) {
    client.cancel().await.unwrap();
    let heard = match ear {
        Ear::Tap(tap) => tap.judge(),
        Ear::Relay(relay, mut server) => {
            let ended = tokio::time::timeout(PATIENCE, server.wait()).await;
            ended.expect("the server ends with its input").unwrap();
            relay.judge()
        }
    };
    for method in methods {
        assert!(
            heard.iter().any(|one| one == method),
            "no {method} in {heard:?}"
        );
    }
    let begun = heard.iter().any(|one| one == "initialize");
    assert_eq!(begun, way.legacy, "{heard:?}");
}

ways!(lists_and_calls);

async fn lists_and_calls(way: Way) {
    let (client, ear) = connect(way, PLAIN).await;
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "echo"));
    let result = client
        .call_tool(call("echo", json!({ "text": "hello" })))
        .await
        .unwrap();
    assert_eq!(text(&result), "hello");
    assert_ne!(result.is_error, Some(true));
    finish(way, client, ear, &["tools/list", "tools/call"]).await;
}

ways!(finds_the_modern_wire_by_itself modern);

async fn finds_the_modern_wire_by_itself(way: Way) {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let (client, ear) = connect_by(way, PLAIN, mode).await;
    let result = client.call_tool(call("ver", json!({}))).await.unwrap();
    assert!(!text(&result).is_empty());
    finish(way, client, ear, &["server/discover", "tools/call"]).await;
}

ways!(follows_a_task_to_its_end modern);

async fn follows_a_task_to_its_end(way: Way) {
    let (client, ear) = connect(way, TASKS).await;
    let id = task(&client, "sleep", json!({ "ms": 600 })).await;
    let (seen, view) = wait(&client, &id, TaskStatus::Completed).await;
    assert_eq!(seen, [TaskStatus::Working, TaskStatus::Completed]);
    let TaskPayload::Completed { result } = view.task.payload else {
        panic!("{view:?}");
    };
    assert_eq!(text_of(&Value::Object(result)), "slept 600 ms");
    finish(way, client, ear, &["tools/call", "tasks/get"]).await;
}

ways!(answers_a_question_of_a_task modern);

async fn answers_a_question_of_a_task(way: Way) {
    let (client, ear) = connect(way, TASKS).await;
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
    finish(
        way,
        client,
        ear,
        &["tools/call", "tasks/get", "tasks/update"],
    )
    .await;
}

ways!(answers_a_question_in_rounds);

async fn answers_a_question_in_rounds(way: Way) {
    let (client, ear) = connect(way, PLAIN).await;
    // Its own handler declines all questions.
    let result = client.call_tool(call("ask2", json!({}))).await.unwrap();
    assert_eq!(text(&result), "declined likes declined");
    finish(way, client, ear, &["tools/call"]).await;
}

ways!(cancels_a_task modern);

async fn cancels_a_task(way: Way) {
    let (client, ear) = connect(way, TASKS).await;
    let id = task(&client, "sleep_required", json!({ "ms": 60_000 })).await;
    client
        .cancel_task(CancelTaskParams::new(&*id))
        .await
        .unwrap();
    wait(&client, &id, TaskStatus::Cancelled).await;
    finish(
        way,
        client,
        ear,
        &["tools/call", "tasks/get", "tasks/cancel"],
    )
    .await;
}

ways!(is_told_of_bad_arguments_and_unknown_names);

async fn is_told_of_bad_arguments_and_unknown_names(way: Way) {
    let (client, ear) = connect(way, TASKS).await;
    let result = client
        .call_tool(call("echo", json!({ "text": 7 })))
        .await
        .unwrap();
    assert_eq!(result.is_error, Some(true));
    let unknown = client.call_tool(call("no_such", json!({}))).await;
    assert_eq!(code(&unknown.unwrap_err()), -32602);
    if !way.legacy {
        let gone = GetTaskParams::new("0123456789abcdef0123456789abcdef01234567");
        assert_eq!(code(&client.get_task(gone).await.unwrap_err()), -32602);
    }
    let prompt = GetPromptRequestParams::new("no_such");
    assert_eq!(code(&client.get_prompt(prompt).await.unwrap_err()), -32602);
    let resource = ReadResourceRequestParams::new("fixture://no/such");
    let unknown = client.read_resource(resource).await.unwrap_err();
    assert_eq!(code(&unknown), if way.legacy { -32002 } else { -32602 });
    let methods = ["tools/call", "prompts/get", "resources/read"];
    finish(way, client, ear, &methods).await;
}

ways!(is_told_what_a_tool_needs modern);

async fn is_told_what_a_tool_needs(way: Way) {
    let (client, ear) = connect(way, PLAIN).await;
    let required = client.call_tool(call("sleep_required", json!({ "ms": 1 })));
    assert_eq!(code(&required.await.unwrap_err()), -32021);
    finish(way, client, ear, &["tools/call"]).await;
}

ways!(fills_in_prompts);

async fn fills_in_prompts(way: Way) {
    let (client, ear) = connect(way, PLAIN).await;
    let prompts = client.list_all_prompts().await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "greet"));
    let arguments = object(json!({ "name": "Ada", "times": "2" }));
    let greet = GetPromptRequestParams::new("greet").with_arguments(arguments);
    let filled = client.get_prompt(greet).await.unwrap();
    let texts: Vec<_> = filled
        .messages
        .iter()
        .map(|message| &*message.content.as_text().unwrap().text)
        .collect();
    assert_eq!(texts, ["Greet Ada.", "Greet Ada."]);
    // Its own handler declines all questions.
    let asks = GetPromptRequestParams::new("ask_prompt");
    let filled = client.get_prompt(asks).await.unwrap();
    let text = filled.messages[0].content.as_text().unwrap();
    assert_eq!(text.text, "Greet declined and declined.");
    finish(way, client, ear, &["prompts/list", "prompts/get"]).await;
}

ways!(reads_resources);

async fn reads_resources(way: Way) {
    let (client, ear) = connect(way, PLAIN).await;
    let resources = client.list_all_resources().await.unwrap();
    assert!(
        resources
            .iter()
            .any(|listed| listed.uri == "fixture://plain")
    );
    let templates = client.list_all_resource_templates().await.unwrap();
    assert!(
        templates
            .iter()
            .any(|listed| listed.uri_template == "fixture://seen/{ms}")
    );
    for (uri, contents) in [
        ("fixture://plain", "a plain text"),
        ("fixture://seen/7", "seen at 7"),
        ("fixture://ask", "written for declined"),
    ] {
        let read = client.read_resource(ReadResourceRequestParams::new(uri));
        match &read.await.unwrap().contents[0] {
            ResourceContents::TextResourceContents { text, .. } => assert_eq!(text, contents),
            other => panic!("no text: {other:?}"),
        }
    }
    let bytes = ReadResourceRequestParams::new("fixture://bytes");
    match &client.read_resource(bytes).await.unwrap().contents[0] {
        ResourceContents::BlobResourceContents { blob, .. } => assert_eq!(blob, "AAH+/w=="),
        other => panic!("no bytes: {other:?}"),
    }
    let methods = [
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ];
    finish(way, client, ear, &methods).await;
}

ways!(completes_arguments);

async fn completes_arguments(way: Way) {
    let (client, ear) = connect(way, PLAIN).await;
    let known = [("times".to_owned(), "twice".to_owned())].into();
    let context = Some(CompletionContext::with_arguments(known));
    let completed = client.complete_prompt_argument("greet", "name", "Ad", context);
    let completed = completed.await.unwrap();
    assert_eq!(completed.values.len(), 100);
    assert_eq!(completed.values[0], "Ad0 twice");
    assert_eq!(completed.has_more, Some(true));
    let values = client.complete_resource_simple("fixture://seen/{ms}", "ms", "");
    assert_eq!(values.await.unwrap(), ["0", "1"]);
    finish(way, client, ear, &["completion/complete"]).await;
}

ways!(hears_of_changes modern);

async fn hears_of_changes(way: Way) {
    let (client, ear) = connect(way, PLAIN).await;
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .resource_subscription("fixture://plain")
        .resource_subscription("fixture://no/such")
        .build();
    let mut changes = client.listen(filter).await.unwrap();
    let granted = changes.acknowledged();
    assert_eq!(granted.tools_list_changed, Some(true));
    assert_eq!(
        granted.resource_subscriptions.as_deref(),
        Some(&["fixture://plain".to_owned()][..])
    );
    let notify = |arguments| client.call_tool(call("notify", arguments));
    notify(json!({ "uri": "fixture://plain" })).await.unwrap();
    match changes.next().await.unwrap() {
        Some(ServerNotification::ResourceUpdatedNotification(updated)) => {
            assert_eq!(updated.params.uri, "fixture://plain");
        }
        other => panic!("not told of the resource: {other:?}"),
    }
    notify(json!({ "list": "tools" })).await.unwrap();
    let told = changes.next().await.unwrap();
    assert!(
        matches!(
            told,
            Some(ServerNotification::ToolListChangedNotification(_))
        ),
        "{told:?}"
    );
    changes.cancel().await.unwrap();
    assert!(matches!(changes.end(), Some(SubscriptionEnd::Cancelled)));
    finish(way, client, ear, &["subscriptions/listen", "tools/call"]).await;
}
