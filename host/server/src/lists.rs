//! What is served, told to clients: `server/discover` and `tools/list`.

use crate::app::App;
use crate::catalogue::cursor;
use crate::wire::object::Object;
use crate::wire::{TASKS, VERSIONS, WireError};
use serde_json::json;

/// `server/discover`.
pub(crate) fn discover(app: &App) -> String {
    // The setting of the Tasks extension is empty: clients take any other for one they do not know.
    let capabilities = json!({ "tools": {}, "logging": {}, "extensions": { TASKS: {} } });
    let result = Object::result("complete")
        .value("supportedVersions", &VERSIONS)
        .value("capabilities", &capabilities);
    cacheable(result, app).finish_result()
}

/// `tools/list`: one page, in the order of names.
///
/// # Errors
/// -32602 if the cursor was not given by this method.
pub(crate) fn tools(app: &App, cursor: Option<&str>) -> Result<String, WireError> {
    let after = match cursor {
        Some(cursor) => Some(cursor::read(cursor).ok_or_else(|| {
            WireError::invalid_params(
                "params.cursor is not one that tools/list gave; leave it out to begin again",
            )
        })?),
        None => None,
    };
    let catalogue = app.catalogue.load();
    let (page, more) = catalogue.page(after.as_deref(), app.config.lists.page_size);
    let definitions: Vec<&str> = page.iter().map(|tool| tool.definition()).collect();
    let next = page
        .last()
        .filter(|_| more)
        .map(|tool| cursor::behind(tool.name()));
    let result = Object::result("complete")
        .raw("tools", &format!("[{}]", definitions.join(",")))
        .option("nextCursor", next.as_ref());
    Ok(cacheable(result, app).finish_result())
}

/// How long and by whom an answer may be kept.
fn cacheable(result: Object, app: &App) -> Object {
    let lists = &app.config.lists;
    result
        .value("ttlMs", &lists.ttl_ms)
        .value("cacheScope", &lists.cache_scope)
}
