//! The ladder of checks of a modern request, from rung 11 on; the first rung that fails answers. Then the method, in `perform`.
//!
//! Rungs are functions in their order. What is compared with headers and what is executed come from one parse. This is the
//! same for every transport but for the headers.

use crate::app::App;
use crate::headers::{decode, single};
use crate::message::Request;
use crate::meta::{Meta, VERSION_KEY};
use crate::method::Method;
use crate::outcome::{Notices, Outcome};
use crate::params::{Checked, shape};
use crate::perform::{Site, perform};
use crate::resolve::Caller;
use crate::start;
use crate::wire::error::shortened;
use crate::wire::{VERSION, VERSIONS, WireError};
use http::{HeaderMap, HeaderName};
use longshore_tasks::Principal;
use std::net::IpAddr;
use std::sync::Arc;

/// The header of the protocol version.
pub(crate) const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

/// What a transport knows of a request beside the message.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// Its headers; `None` on a transport that has none.
    pub(crate) headers: Option<HeaderMap>,
    /// The address that it comes from.
    pub(crate) peer: Option<IpAddr>,
    /// Who calls.
    pub(crate) principal: Principal,
}

/// Serve one request. Dropping the future ends it.
pub(crate) async fn dispatch(
    app: Arc<App>,
    request: Request,
    envelope: Envelope,
    notices: Notices,
) -> Outcome {
    let told = tracing::enabled!(tracing::Level::DEBUG).then(|| shortened(&request.method));
    let outcome = serve(app, request, envelope, notices).await;
    if let Some(method) = told {
        let code = outcome.result.as_ref().err().map(|error| error.code);
        tracing::debug!(method, code, "a request was answered");
    }
    outcome
}

async fn serve(app: Arc<App>, request: Request, envelope: Envelope, notices: Notices) -> Outcome {
    let id = request.id.clone();
    // One catalogue for the whole request.
    let catalogue = start::catalogue(&app, &request).await;
    let rules = Rules {
        require_task_name: app.config.routing.require_task_name,
    };
    let offers = |method: Method| method.is_offered(&catalogue);
    let climbed = climb(rules, offers, request, envelope.headers.as_ref());
    let served = match climbed {
        Ok((checked, meta)) => {
            let caller = Caller {
                meta,
                principal: envelope.principal,
                peer: envelope.peer,
                session: None,
            };
            let site = Site {
                app: &app,
                catalogue: &catalogue,
                headers: envelope.headers.as_ref(),
                id: &id,
            };
            Box::pin(perform(site, checked, caller, &notices)).await
        }
        Err(error) => Err(error),
    };
    served.unwrap_or_else(Outcome::error)
}

/// What an operator may choose of the rungs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Whether `tasks/*` must carry `Mcp-Name`.
    pub(crate) require_task_name: bool,
}

/// Rungs 11 to 19. `offers`: whether there is anything that a method could be about.
pub(crate) fn climb(
    rules: Rules,
    offers: impl Fn(Method) -> bool,
    request: Request,
    headers: Option<&HeaderMap>,
) -> Result<(Checked, Meta), WireError> {
    check_version(&request, headers)?;
    let method = check_method(offers, &request, headers)?;
    if let Some(headers) = headers {
        check_name(rules, method, &request, headers)?;
    }
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

/// Rungs 11 and 12: the version, in header and body.
fn check_version(request: &Request, headers: Option<&HeaderMap>) -> Result<(), WireError> {
    let stated = request.meta.text(VERSION_KEY);
    let header = headers.map(version_header).transpose()?;
    if let (Some(stated), Some(header)) = (&stated, header)
        && stated != header
    {
        let place = format!("params._meta.{VERSION_KEY}");
        return Err(differs(&VERSION_HEADER, &place));
    }
    match header.or(stated.as_deref()) {
        Some(version) if !VERSIONS.contains(&version) => {
            Err(WireError::unsupported_version(version, &VERSIONS))
        }
        _ => Ok(()),
    }
}

fn version_header(headers: &HeaderMap) -> Result<&str, WireError> {
    single(headers, &VERSION_HEADER)
        .map_err(WireError::header_mismatch)?
        .ok_or_else(|| missing(&VERSION_HEADER, VERSION))
}

/// Rungs 13 and 14: the method, in header and body.
fn check_method(
    offers: impl Fn(Method) -> bool,
    request: &Request,
    headers: Option<&HeaderMap>,
) -> Result<Method, WireError> {
    if let Some(headers) = headers {
        let header = single(headers, &METHOD_HEADER)
            .map_err(WireError::header_mismatch)?
            .ok_or_else(|| missing(&METHOD_HEADER, "the method"))?;
        if header != request.method {
            return Err(differs(&METHOD_HEADER, "method"));
        }
    }
    Method::parse(&request.method)
        .filter(|method| offers(*method))
        .ok_or_else(|| WireError::unknown_method(&request.method))
}

/// Rung 15: what the request is about, in header and body.
fn check_name(
    rules: Rules,
    method: Method,
    request: &Request,
    headers: &HeaderMap,
) -> Result<(), WireError> {
    let Some(member) = method.name_member() else {
        return Ok(());
    };
    let Some(header) = single(headers, &NAME_HEADER).map_err(WireError::header_mismatch)? else {
        let required = !method.is_of_tasks() || rules.require_task_name;
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
    match request.params.text(member) {
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
