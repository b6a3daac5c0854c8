//! Clients of the protocol versions that begin with a handshake (MCP 2025-11-25 and 2025-06-18): what a session remembers, and
//! how their requests are served.
//!
//! A request there is the same work as a modern one, so it goes the same way, by `params` and `perform`. Different are what
//! the session knows instead of `_meta`, that the client is asked while a call goes on, and the shapes (`wire::legacy`).
//!
//! - `handshake`: `initialize`.
//! - `session`: what is remembered.
//!
//! It must not know of transports.

pub(crate) mod handshake;
pub(crate) mod session;

use crate::app::App;
use crate::members::Members;
use crate::message::Request;
use crate::meta::{LEVELS, Meta, level_named};
use crate::method::Method;
use crate::outcome::{Notices, Outcome};
use crate::params::{Checked, Rounds, shape};
use crate::perform::{Site, perform};
use crate::resolve::Caller;
use crate::start;
use crate::wire::error::shortened;
use crate::wire::{WireError, legacy};
use longshore_runtime::contract::{ClientFeatures, LogLevel};
use session::Session;
use std::sync::Arc;

/// The code of an error that says what a client would have to declare.
const MISSING_CAPABILITY: i32 = -32021;

/// Serve one request of a session. Dropping the future ends it.
pub(crate) async fn serve(
    app: Arc<App>,
    session: Arc<Session>,
    request: Request,
    notices: Notices,
) -> Outcome {
    let method = request.method.clone();
    let is_read = notices.are_read();
    let served = Box::pin(answer(&app, &session, request, &notices)).await;
    let result = match served {
        Ok(text) => Ok(legacy::result(session.revision, &method, &text)),
        Err(error) if error.code == MISSING_CAPABILITY && !is_read => {
            let message = "the client is to be asked, and can be on a stream only: send the header Accept with text/event-stream";
            Err(WireError::internal("not_a_stream", message))
        }
        Err(error) => Err(legacy::error(&method, error)),
    };
    let code = result.as_ref().err().map(|error| error.code);
    tracing::debug!(
        method = shortened(&method),
        code,
        "a request of a session was answered"
    );
    Outcome {
        result,
        undelivered: None,
    }
}

async fn answer(
    app: &Arc<App>,
    session: &Arc<Session>,
    request: Request,
    notices: &Notices,
) -> Result<String, WireError> {
    match request.method.as_str() {
        "ping" => Ok("{}".to_owned()),
        "logging/setLevel" => set_level(session, &request.params),
        "resources/subscribe" => subscribe(app, session, &request.params, true).await,
        "resources/unsubscribe" => subscribe(app, session, &request.params, false).await,
        _ => Box::pin(work(app, session, request, notices)).await,
    }
}

/// What both eras have.
async fn work(
    app: &Arc<App>,
    session: &Arc<Session>,
    request: Request,
    notices: &Notices,
) -> Result<String, WireError> {
    let catalogue = start::catalogue(app, &request).await;
    // Who does not read what is sent on the way cannot be asked.
    let features = if notices.are_read() {
        session.features
    } else {
        ClientFeatures::empty()
    };
    let offers = |method: Method| method.is_offered(&catalogue);
    let id = request.id.clone();
    let (checked, meta) = read(offers, request, features, session.log_level())?;
    let caller = Caller {
        meta,
        principal: session.principal.clone(),
        peer: session.peer,
        session: Some(session.clone()),
    };
    let site = Site {
        app,
        catalogue: &catalogue,
        headers: None,
        id: &id,
    };
    let outcome = Box::pin(perform(site, checked, caller, notices)).await?;
    outcome.result
}

/// Read what both eras have. `offers`: whether there is anything that a method could be about.
///
/// # Errors
/// -32601 if the method is none of them; -32602, naming the member.
pub(crate) fn read(
    offers: impl Fn(Method) -> bool,
    request: Request,
    features: ClientFeatures,
    log_level: Option<LogLevel>,
) -> Result<(Checked, Meta), WireError> {
    let method = Method::parse(&request.method)
        .filter(|method| method.is_in_sessions() && offers(*method))
        .ok_or_else(|| WireError::unknown_method(&request.method))?;
    let meta = Meta::in_session(&request.meta, features, log_level)?;
    Ok((without_rounds(shape(method, request)?), meta))
}

/// There the client is asked while a call goes on, so a request brings no answers.
fn without_rounds(checked: Checked) -> Checked {
    match checked {
        Checked::CallTool(params, _) => Checked::CallTool(params, Rounds::default()),
        Checked::GetPrompt {
            name, arguments, ..
        } => Checked::GetPrompt {
            name,
            arguments,
            rounds: Rounds::default(),
        },
        Checked::ReadResource { uri, .. } => Checked::ReadResource {
            uri,
            rounds: Rounds::default(),
        },
        other => other,
    }
}

fn set_level(session: &Session, params: &Members) -> Result<String, WireError> {
    let level = params.string("level");
    let level = level.as_deref().and_then(level_named).ok_or_else(|| {
        WireError::invalid_params(format!("params.level must be one of {LEVELS}"))
    })?;
    session.set_log_level(level);
    Ok("{}".to_owned())
}

async fn subscribe(
    app: &Arc<App>,
    session: &Arc<Session>,
    params: &Members,
    wanted: bool,
) -> Result<String, WireError> {
    let uri = params.string("uri");
    start::resource(app, uri.as_deref()).await;
    if !app.catalogue.load().offers_resources() {
        let method = if wanted { "subscribe" } else { "unsubscribe" };
        return Err(WireError::unknown_method(&format!("resources/{method}")));
    }
    let uri = uri.ok_or_else(|| WireError::invalid_params("params.uri must be a string"))?;
    if wanted {
        session.subscribe(app, uri).await?;
    } else {
        session.unsubscribe(&uri);
    }
    Ok("{}".to_owned())
}
