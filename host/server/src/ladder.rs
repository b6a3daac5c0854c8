//! The ladder of checks of a modern request, from rung 10 on; the first rung that fails answers. Then the method.
//!
//! Rungs are functions in their order. What is compared with headers and what is executed come from one parse. This is the
//! same for every transport but for the headers.

use crate::app::App;
use crate::catalogue::CatalogueTool;
use crate::headers::{decode, single};
use crate::message::Request;
use crate::meta::{Meta, VERSION_KEY};
use crate::outcome::{Notices, Outcome};
use crate::params::{CallRequest, object, optional_string, string};
use crate::wire::error::shortened;
use crate::wire::{VERSION, VERSIONS, WireError};
use crate::{call, lists, strict, task_methods};
use http::{HeaderMap, HeaderName};
use longshore_tasks::Principal;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

/// The methods that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Discover,
    ListTools,
    CallTool,
    GetTask,
    UpdateTask,
    CancelTask,
}

impl Method {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "server/discover" => Self::Discover,
            "tools/list" => Self::ListTools,
            "tools/call" => Self::CallTool,
            "tasks/get" => Self::GetTask,
            "tasks/update" => Self::UpdateTask,
            "tasks/cancel" => Self::CancelTask,
            _ => return None,
        })
    }

    fn is_of_tasks(self) -> bool {
        matches!(self, Self::GetTask | Self::UpdateTask | Self::CancelTask)
    }

    /// The member of params that `Mcp-Name` repeats.
    fn name_member(self) -> Option<&'static str> {
        match self {
            Self::CallTool => Some("name"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            Self::Discover | Self::ListTools => None,
        }
    }
}

/// A request whose shape was found right.
enum Checked {
    Discover,
    ListTools {
        cursor: Option<String>,
    },
    CallTool(Box<ToolCall>),
    GetTask {
        id: String,
    },
    UpdateTask {
        id: String,
        responses: Box<RawValue>,
    },
    CancelTask {
        id: String,
    },
}

/// A call before its tool was looked for.
struct ToolCall {
    name: String,
    text: String,
    arguments: Value,
    meta: Meta,
    input_responses: Option<Box<RawValue>>,
    request_state: Option<Box<RawValue>>,
}

/// Serve one request. Dropping the future ends it.
pub(crate) async fn dispatch(
    app: Arc<App>,
    request: Request,
    headers: HeaderMap,
    notices: Notices,
) -> Outcome {
    let method = shortened(&request.method);
    let outcome = Box::pin(serve(app, request, headers, notices)).await;
    let code = outcome.result.as_ref().err().map(|error| error.code);
    tracing::debug!(method, code, "a request was answered");
    outcome
}

async fn serve(app: Arc<App>, request: Request, headers: HeaderMap, notices: Notices) -> Outcome {
    // Until there is authentication all callers are one.
    let principal = Principal::anonymous();
    let checked = match climb(&app, request, &headers) {
        Ok(checked) => checked,
        Err(error) => return Outcome::error(error),
    };
    let result = match checked {
        Checked::Discover => Ok(lists::discover(&app)),
        Checked::ListTools { cursor } => lists::tools(&app, cursor.as_deref()),
        Checked::CallTool(call) => {
            return match resolve(&app, *call, &headers, principal) {
                Ok(request) => Box::pin(call::call(&app, request, &notices)).await,
                Err(error) => Outcome::error(error),
            };
        }
        Checked::GetTask { id } => task_methods::get(&app, &principal, &id).await,
        Checked::UpdateTask { id, responses } => {
            task_methods::update(&app, &principal, &id, &responses).await
        }
        Checked::CancelTask { id } => task_methods::cancel(&app, &principal, &id).await,
    };
    result.map_or_else(Outcome::error, Outcome::result)
}

/// Rungs 10 to 18.
fn climb(app: &App, request: Request, headers: &HeaderMap) -> Result<Checked, WireError> {
    check_era(&request, headers)?;
    check_version(&request, headers)?;
    let method = check_method(&request, headers)?;
    check_name(app, method, &request, headers)?;
    let meta = Meta::read(&request.meta)?;
    if method.is_of_tasks() && !meta.has_tasks() {
        return Err(WireError::tasks_required(&request.method));
    }
    shape(method, request, meta)
}

/// Rung 10: whether this is a modern request. There is no other era yet.
fn check_era(request: &Request, headers: &HeaderMap) -> Result<(), WireError> {
    if request.meta.get(VERSION_KEY).is_some() {
        return Ok(());
    }
    let header = single(headers, &VERSION_HEADER);
    if request.method == "initialize" {
        let requested = request.params.string("protocolVersion");
        let requested = requested
            .as_deref()
            .or(header.ok().flatten())
            .unwrap_or_default();
        return Err(WireError::no_handshake(requested));
    }
    match header.map_err(WireError::header_mismatch)? {
        Some(VERSION) => Err(Meta::no_version()),
        Some(other) => Err(WireError::unsupported_version(other)),
        None => Err(missing(&VERSION_HEADER, VERSION)),
    }
}

/// Rungs 11 and 12: the version, in header and body.
fn check_version(request: &Request, headers: &HeaderMap) -> Result<(), WireError> {
    let header = single(headers, &VERSION_HEADER)
        .map_err(WireError::header_mismatch)?
        .ok_or_else(|| missing(&VERSION_HEADER, VERSION))?;
    if request
        .meta
        .string(VERSION_KEY)
        .is_some_and(|stated| stated != header)
    {
        return Err(differs(
            &VERSION_HEADER,
            &format!("params._meta.{VERSION_KEY}"),
        ));
    }
    if VERSIONS.contains(&header) {
        Ok(())
    } else {
        Err(WireError::unsupported_version(header))
    }
}

/// Rungs 13 and 14: the method, in header and body.
fn check_method(request: &Request, headers: &HeaderMap) -> Result<Method, WireError> {
    let header = single(headers, &METHOD_HEADER)
        .map_err(WireError::header_mismatch)?
        .ok_or_else(|| missing(&METHOD_HEADER, "the method"))?;
    if header != request.method {
        return Err(differs(&METHOD_HEADER, "method"));
    }
    Method::parse(&request.method).ok_or_else(|| WireError::unknown_method(&request.method))
}

/// Rung 15: what the request is about, in header and body.
fn check_name(
    app: &App,
    method: Method,
    request: &Request,
    headers: &HeaderMap,
) -> Result<(), WireError> {
    let Some(member) = method.name_member() else {
        return Ok(());
    };
    let Some(header) = single(headers, &NAME_HEADER).map_err(WireError::header_mismatch)? else {
        let required = !method.is_of_tasks() || app.config.routing.require_task_name;
        let what = format!("params.{member}");
        return if required {
            Err(missing(&NAME_HEADER, &what))
        } else {
            Ok(())
        };
    };
    let header = decode(header).map_err(|error| {
        WireError::header_mismatch(format!("the header {NAME_HEADER}: {error}"))
    })?;
    match request.params.string(member) {
        Some(stated) if stated != header => Err(differs(&NAME_HEADER, &format!("params.{member}"))),
        _ => Ok(()),
    }
}

fn missing(header: &HeaderName, says: &str) -> WireError {
    WireError::header_mismatch(format!(
        "the header {header} is missing; it must say {says}"
    ))
}

fn differs(header: &HeaderName, place: &str) -> WireError {
    WireError::header_mismatch(format!(
        "the header {header} does not say what {place} says"
    ))
}

/// Rung 18: the shape of params.
fn shape(method: Method, request: Request, meta: Meta) -> Result<Checked, WireError> {
    let mut params = request.params;
    Ok(match method {
        Method::Discover => Checked::Discover,
        Method::ListTools => Checked::ListTools {
            cursor: optional_string(&params, "cursor")?,
        },
        Method::GetTask => Checked::GetTask {
            id: string(&params, "taskId")?,
        },
        Method::CancelTask => Checked::CancelTask {
            id: string(&params, "taskId")?,
        },
        Method::UpdateTask => Checked::UpdateTask {
            id: string(&params, "taskId")?,
            responses: object(&mut params, "inputResponses")?,
        },
        Method::CallTool => {
            let name = string(&params, "name")?;
            let text = params
                .take("arguments")
                .map_or_else(|| "{}".to_owned(), text_of);
            let arguments = strict::parse(&text)
                .map_err(|error| WireError::invalid_params(format!("params.arguments: {error}")))?;
            if !arguments.is_object() {
                return Err(WireError::invalid_params(
                    "params.arguments must be an object",
                ));
            }
            Checked::CallTool(Box::new(ToolCall {
                name,
                text,
                arguments,
                meta,
                input_responses: params.take("inputResponses"),
                request_state: params.take("requestState"),
            }))
        }
    })
}

fn text_of(json: Box<RawValue>) -> String {
    let text: Box<str> = json.into();
    text.into()
}

/// Rungs 20 and 21: the tool, and the headers that mirror its arguments.
fn resolve(
    app: &App,
    call: ToolCall,
    headers: &HeaderMap,
    principal: Principal,
) -> Result<CallRequest, WireError> {
    let tool: Arc<CatalogueTool> = app
        .catalogue
        .load()
        .tool(&call.name)
        .cloned()
        .ok_or_else(|| WireError::unknown_tool(&call.name))?;
    if tool.mirrors_arguments() {
        tool.check_headers(headers, &call.arguments)?;
    }
    Ok(CallRequest {
        tool,
        arguments: call.text,
        meta: call.meta,
        input_responses: call.input_responses,
        request_state: call.request_state,
        principal,
    })
}
