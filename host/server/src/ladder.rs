//! The ladder of checks of a modern request, from rung 10 on; the first rung that fails answers. Then the method.
//!
//! Rungs are functions in their order. What is compared with headers and what is executed come from one parse. This is the
//! same for every transport but for the headers.

use crate::app::App;
use crate::catalogue::{Catalogue, Kind};
use crate::headers::{decode, single};
use crate::listen::Listener;
use crate::message::Request;
use crate::meta::{Meta, VERSION_KEY};
use crate::method::Method;
use crate::outcome::{Notices, Outcome};
use crate::params::{Checked, shape};
use crate::resolve::Caller;
use crate::wire::error::shortened;
use crate::wire::{VERSION, VERSIONS, WireError, given};
use crate::{call, follow, listen, lists, resolve, task_methods};
use http::{HeaderMap, HeaderName};
use longshore_tasks::Principal;
use serde_json::value::RawValue;
use std::net::IpAddr;
use std::sync::Arc;

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

/// What a transport knows of a request beside the message.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// The address that it comes from.
    pub(crate) peer: Option<IpAddr>,
}

/// Serve one request. Dropping the future ends it.
pub(crate) async fn dispatch(
    app: Arc<App>,
    request: Request,
    envelope: Envelope,
    notices: Notices,
) -> Outcome {
    let method = shortened(&request.method);
    let outcome = Box::pin(serve(app, request, envelope, notices)).await;
    let code = outcome.result.as_ref().err().map(|error| error.code);
    tracing::debug!(method, code, "a request was answered");
    outcome
}

async fn serve(app: Arc<App>, request: Request, envelope: Envelope, notices: Notices) -> Outcome {
    let id = request.id.clone();
    // One catalogue for the whole request.
    let catalogue = app.catalogue.load_full();
    let climbed = climb(&app, &catalogue, request, &envelope.headers);
    let served = match climbed {
        Ok((checked, meta)) => {
            // Until there is authentication all callers are one.
            let principal = Principal::anonymous();
            let caller = Caller { meta, principal };
            let site = Site {
                app: &app,
                catalogue: &catalogue,
                envelope: &envelope,
                id: &id,
            };
            Box::pin(run(site, checked, caller, &notices)).await
        }
        Err(error) => Err(error),
    };
    served.unwrap_or_else(Outcome::error)
}

/// Where a request is served.
struct Site<'a> {
    app: &'a Arc<App>,
    catalogue: &'a Catalogue,
    envelope: &'a Envelope,
    id: &'a RawValue,
}

/// The rungs from 20 on, and the method.
async fn run(
    site: Site<'_>,
    checked: Checked,
    caller: Caller,
    notices: &Notices,
) -> Result<Outcome, WireError> {
    let Site {
        app,
        catalogue,
        envelope,
        id,
    } = site;
    let result = match checked {
        Checked::Discover => Ok(lists::discover(app, catalogue)),
        Checked::List { kind, cursor } => list(app, catalogue, kind, cursor.as_deref()),
        Checked::CallTool(params, rounds) => {
            let request = resolve::tool(catalogue, *params, rounds, &envelope.headers, caller)?;
            return Box::pin(call::call(app, &request, notices)).await;
        }
        Checked::GetPrompt {
            name,
            arguments,
            rounds,
        } => {
            let errand = resolve::prompt(catalogue, (name, arguments), rounds, caller)?;
            return follow::plainly(app, &errand, notices).await;
        }
        Checked::ReadResource { uri, rounds } => {
            let errand = resolve::resource(catalogue, uri, rounds, caller)?;
            return follow::plainly(app, &errand, notices).await;
        }
        Checked::Complete(params) => match resolve::completion(catalogue, *params, caller)? {
            Some(errand) => return follow::plainly(app, &errand, notices).await,
            None => Ok(given::no_completion()),
        },
        Checked::Listen(filter) => {
            let peer = envelope.peer;
            let listener = Listener { id, peer, notices };
            return Box::pin(listen::listen(app, *filter, caller, listener)).await;
        }
        Checked::GetTask { id } => task_methods::get(app, &caller.principal, &id).await,
        Checked::UpdateTask { id, responses } => {
            task_methods::update(app, &caller.principal, &id, &responses).await
        }
        Checked::CancelTask { id } => task_methods::cancel(app, &caller.principal, &id).await,
    };
    result.map(Outcome::result)
}

fn list(
    app: &App,
    catalogue: &Catalogue,
    kind: Kind,
    cursor: Option<&str>,
) -> Result<String, WireError> {
    match kind {
        Kind::Tool => lists::page(app, &catalogue.tools, cursor),
        Kind::Prompt => lists::page(app, &catalogue.prompts, cursor),
        Kind::Resource => lists::page(app, &catalogue.resources, cursor),
        Kind::Template => lists::page(app, &catalogue.templates, cursor),
    }
}

/// Rungs 10 to 19.
fn climb(
    app: &App,
    catalogue: &Catalogue,
    request: Request,
    headers: &HeaderMap,
) -> Result<(Checked, Meta), WireError> {
    check_era(&request, headers)?;
    check_version(&request, headers)?;
    let method = check_method(catalogue, &request, headers)?;
    check_name(app, method, &request, headers)?;
    let meta = Meta::read(&request.meta)?;
    if method.is_of_tasks() && !meta.has_tasks() {
        return Err(WireError::tasks_required(&request.method));
    }
    let checked = shape(method, request)?;
    if matches!(&checked, Checked::Listen(filter) if filter.task_ids.is_some()) && !meta.has_tasks()
    {
        return Err(WireError::tasks_required("params.notifications.taskIds"));
    }
    Ok((checked, meta))
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
fn check_method(
    catalogue: &Catalogue,
    request: &Request,
    headers: &HeaderMap,
) -> Result<Method, WireError> {
    let header = single(headers, &METHOD_HEADER)
        .map_err(WireError::header_mismatch)?
        .ok_or_else(|| missing(&METHOD_HEADER, "the method"))?;
    if header != request.method {
        return Err(differs(&METHOD_HEADER, "method"));
    }
    Method::parse(&request.method)
        .filter(|method| method.is_offered(catalogue))
        .ok_or_else(|| WireError::unknown_method(&request.method))
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
