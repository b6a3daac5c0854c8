//! `initialize`: the handshake by which a session begins.

use super::session::{Client, Session};
use crate::app::App;
use crate::lists;
use crate::message::Request;
use crate::meta::features;
use crate::start;
use crate::wire::WireError;
use crate::wire::error::shortened;
use crate::wire::legacy::{self, Revision};
use http::StatusCode;
use longshore_runtime::contract::ClientFeatures;
use longshore_tasks::Principal;
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;

/// A session that begins, and the text of the result that says so.
///
/// # Errors
/// -32602 if the params are not right.
pub(crate) async fn initialize(
    app: &Arc<App>,
    request: &Request,
    (principal, peer): (Principal, Option<IpAddr>),
) -> Result<(Session, String), WireError> {
    let (revision, features) = read(request)?;
    let client = Client {
        revision,
        features,
        principal,
        peer,
    };
    let result = legacy::initialized(revision, lists::capabilities(&*start::greeting(app).await));
    Ok((Session::begin(app, client), result))
}

/// The version that a client is offered, and what of its features that version knows.
///
/// # Errors
/// -32602 if the params are not right.
pub(crate) fn read(request: &Request) -> Result<(Revision, ClientFeatures), WireError> {
    let wrong = |what: &str| {
        let error = WireError::invalid_params(format!("params.{what}"));
        error.with_status(StatusCode::BAD_REQUEST)
    };
    let requested = request.params.text("protocolVersion");
    let requested = requested.ok_or_else(|| wrong("protocolVersion must be a string"))?;
    let declared = request.params.value("capabilities");
    let declared = declared
        .filter(Value::is_object)
        .ok_or_else(|| wrong("capabilities must be an object"))?;
    let revision = Revision::offered(&requested);
    tracing::debug!(
        requested = shortened(&requested),
        offered = revision.name(),
        "a client asks for a session"
    );
    Ok((revision, revision.known(features(&declared))))
}
