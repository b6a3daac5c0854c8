//! `/healthz` and `/readyz`: for those who run the server.

use crate::app::App;
use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// The process is alive.
pub(super) fn health() -> Response {
    respond(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Whether requests are taken, and which plugins are served.
pub(super) async fn readiness(app: &App) -> Response {
    let store = app
        .engine
        .probe()
        .await
        .err()
        .map(|error| error.to_string());
    let ready = app.ready.load(Ordering::Acquire) && store.is_none();
    let (snapshot, catalogue) = (app.runtime.snapshot(), app.catalogue.load());
    let plugins: Vec<Value> = snapshot
        .plugins
        .values()
        .map(|plugin| {
            let mut said = json!({ "name": plugin.name, "version": plugin.version });
            // It is loaded a moment before it is in the catalogue.
            if let Some((counts, left_out)) = catalogue.of_plugin(&plugin.name) {
                for (list, count) in counts {
                    said[list] = count.into();
                }
                said["left_out"] = json!(left_out);
            }
            said
        })
        .collect();
    let refused: Vec<Value> = snapshot
        .refused
        .values()
        .map(|refusal| {
            json!({
                "name": refusal.plugin,
                "reason": refusal.reason.to_string(),
                "still_serving": refusal.still_serving,
            })
        })
        .collect();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    respond(
        status,
        &json!({ "ready": ready, "store_error": store, "plugins": plugins, "refused": refused }),
    )
}

fn respond(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
