//! `/healthz` and `/readyz`: for those who run the server.

use crate::app::App;
use crate::standing::{Detail, standing};
use crate::start;
use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use longshore_tasks::{EngineError, StoreError};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// The process is alive.
pub(super) fn health() -> Response {
    respond(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Whether requests are taken, with what was there at the start or after a while without it; and which plugins are served, for who
/// is told more: a page of another origin, behind a name of its own for this address, is not.
pub(super) async fn readiness(app: &App, is_told_more: bool) -> Response {
    let store = app.engine.probe().await.err().map(|error| worded(&error));
    let catalogue = app.catalogue.load_full();
    let ready =
        app.ready.load(Ordering::Acquire) && store.is_none() && start::is_listed(app, &catalogue);
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    if !is_told_more {
        return respond(status, &json!({ "ready": ready }));
    }
    let mut said = standing(app, Detail::Lines);
    said.insert("ready".to_owned(), ready.into());
    said.insert("store_error".to_owned(), store.into());
    said.insert("first_look_over".to_owned(), catalogue.settled.into());
    respond(status, &said.into())
}

/// Whoever reads it shall know what to do.
fn worded(error: &EngineError) -> String {
    let text = error.to_string();
    if matches!(error, EngineError::Store(StoreError::Corrupt(_))) && !text.contains("--damaged") {
        return format!(
            "{text}; stop the server, then put back a copy of the data folder, or save what is left with `longshore store export --damaged`"
        );
    }
    text
}

fn respond(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
