//! Judges every message of the versions that begin with a handshake, by the schema of the version.

use crate::legacy::EARLIER;
use crate::schema::{Source, Verdict, fits, must, without};
use serde_json::{Value, json};

/// The schema of this version: of the later one, where the server was asked for one that it does not have.
pub(crate) fn revision(version: &str) -> Source {
    if version == EARLIER {
        return Source::Earlier;
    }
    Source::Latest
}

/// Judges what a client says in a session: a request, a notification, or the answer to a question.
///
/// # Errors
/// What is wrong.
pub(crate) fn said(session: Source, message: &Value) -> Verdict {
    let kind = match (message.get("method"), message.get("id")) {
        (None, _) => "JSONRPCResponse",
        (_, None) => "JSONRPCNotification",
        _ => "ClientRequest",
    };
    fits(session, kind, message)
}

/// Judges what a server says in a session, in reply to a request of this method where there is one.
///
/// # Errors
/// What is wrong.
pub(crate) fn reply(session: Source, method: &str, message: &Value) -> Verdict {
    if let Some(name) = message["method"].as_str() {
        let rule = "a task has no place here";
        must(
            !name.contains("tasks/") && !name.ends_with("/tasks"),
            rule,
            message,
        )?;
        let kind = match message.get("id") {
            Some(_) => "ServerRequest",
            None => "ServerNotification",
        };
        return fits(session, kind, message);
    }
    if let Some(error) = message.get("error") {
        let modern = matches!(error["code"].as_i64(), Some(-32022..=-32020));
        must(!modern, "a code of the modern wire", error)?;
        let kind = match session {
            Source::Earlier => "JSONRPCError",
            _ => "JSONRPCErrorResponse",
        };
        return fits(session, kind, message);
    }
    let kind = match session {
        Source::Earlier => "JSONRPCResponse",
        _ => "JSONRPCResultResponse",
    };
    fits(session, kind, message)?;
    result(session, method, &message["result"])
}

fn result(session: Source, method: &str, result: &Value) -> Verdict {
    without(result, &["resultType", "ttlMs", "cacheScope", "task"])?;
    let info = result.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
    must(info.is_none(), "serverInfo in `_meta`", result)?;
    let name = match method {
        "initialize" => "InitializeResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            return must(*result == json!({}), "not an empty object", result);
        }
        // A stream that was come back to, and nobody knows what was asked.
        "" => return Ok(()),
        _ => return Err(format!("a result of {method}, which is not there")),
    };
    fits(session, name, result)
}
