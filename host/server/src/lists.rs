//! What is served, told to clients: `server/discover` and the lists.

use crate::app::App;
use crate::catalogue::{Catalogue, Entry, Shelf, cursor};
use crate::config::CacheScope;
use crate::wire::object::Object;
use crate::wire::{ALL_VERSIONS, TASKS, WireError};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What the entries of one page take, in bytes of JSON: common tools are about one kilobyte, so a page of 200 is far below. Many a
/// client refuses a message of more than a few megabytes, and for each page it is held once for every client that reads it.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// `server/discover`.
pub(crate) fn discover(app: &App, catalogue: &Catalogue) -> String {
    catalogue.greeting(|| greeting(app, catalogue))
}

fn greeting(app: &App, catalogue: &Catalogue) -> String {
    let mut capabilities = capabilities(catalogue);
    // The setting of the Tasks extension is empty: clients take any other for one they do not know.
    capabilities.insert("extensions".to_owned(), json!({ TASKS: {} }));
    let result = Object::result("complete")
        .value("supportedVersions", &ALL_VERSIONS)
        .value("capabilities", &capabilities);
    Freshness::of_lists(app).add_to(result).finish_result()
}

/// What is declared to clients of every version.
pub(crate) fn capabilities(catalogue: &Catalogue) -> Map<String, Value> {
    let mut declared = Map::new();
    let mut declare = |name: &str, settings: Value| declared.insert(name.to_owned(), settings);
    // Lists may change whatever is there now: another plugin may come.
    declare("tools", json!({ "listChanged": true }));
    if catalogue.offers_prompts() {
        declare("prompts", json!({ "listChanged": true }));
    }
    if catalogue.offers_resources() {
        declare(
            "resources",
            json!({ "listChanged": true, "subscribe": true }),
        );
    }
    if catalogue.offers_completions() {
        declare("completions", json!({}));
    }
    declare("logging", json!({}));
    declared
}

/// One page of a list, in the order of its keys: of the list that is served now, or of the one that the cursor is from.
///
/// # Errors
/// -32602 if the cursor was not given by this list, or the list it is from is not kept any more.
pub(crate) fn page<E: Entry>(
    app: &App,
    catalogue: &Arc<Catalogue>,
    shelf: fn(&Catalogue) -> &Shelf<E>,
    cursor: Option<&str>,
) -> Result<String, WireError> {
    let Some(cursor) = cursor else {
        let shelf = shelf(catalogue);
        return Ok(shelf.first_page(|| written(app, shelf, None)));
    };
    let method = E::KIND.list_method();
    let place = cursor::read(E::KIND, cursor).ok_or_else(|| {
        WireError::invalid_params(format!(
            "params.cursor is not one that {method} gave; leave it out to begin again"
        ))
    })?;
    if place.is_in(shelf(catalogue).print()) {
        return Ok(written(app, shelf(catalogue), Some(&place.key)));
    }
    let former = app
        .catalogue
        .former(|former| place.is_in(shelf(former).print()));
    let former = former.ok_or_else(|| {
        WireError::invalid_params(format!(
            "params.cursor is from a list that has changed since; call {method} without it to begin again"
        ))
    })?;
    Ok(written(app, shelf(&former), Some(&place.key)))
}

/// The page of a list behind this key.
fn written<E: Entry>(app: &App, shelf: &Shelf<E>, after: Option<&str>) -> String {
    let (page, more) = shelf.page(after, app.config.lists.page_size, PAGE_BYTES_MAX);
    let definitions: Vec<&str> = page.iter().map(|entry| entry.definition()).collect();
    let next = page
        .last()
        .filter(|_| more)
        .map(|entry| cursor::behind(E::KIND, shelf.print(), entry.key()));
    let result = Object::result("complete")
        .raw(
            E::KIND.list_member(),
            &format!("[{}]", definitions.join(",")),
        )
        .option("nextCursor", next.as_ref());
    Freshness::of_lists(app).add_to(result).finish_result()
}

/// How long and by whom an answer may be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freshness {
    ttl_ms: u64,
    scope: CacheScope,
}

impl Freshness {
    /// Of lists and of what the server says of itself, as the operator chose.
    pub(crate) fn of_lists(app: &App) -> Self {
        Self {
            ttl_ms: app.config.lists.ttl_ms,
            scope: app.config.lists.cache_scope,
        }
    }

    /// Of what is read, as the operator chose.
    pub(crate) fn of_reads(app: &App) -> Self {
        Self {
            ttl_ms: app.config.resources.ttl_ms,
            scope: app.config.resources.cache_scope,
        }
    }

    /// Not at all.
    pub(crate) fn none() -> Self {
        Self {
            ttl_ms: 0,
            scope: CacheScope::Private,
        }
    }

    /// Say it in a result.
    pub(crate) fn add_to(self, result: Object) -> Object {
        result
            .value("ttlMs", &self.ttl_ms)
            .value("cacheScope", &self.scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Method;

    /// A client that believes what is declared gets no "no such method".
    #[test]
    fn what_is_declared_is_served() {
        let nothing_yet = Catalogue::default();
        let mut nothing = Catalogue::default();
        nothing.settled = true;
        for (catalogue, is_there) in [(nothing_yet, true), (nothing, false)] {
            let declared = capabilities(&catalogue);
            for (feature, methods) in [
                ("prompts", &[Method::ListPrompts, Method::GetPrompt][..]),
                (
                    "resources",
                    &[
                        Method::ListResources,
                        Method::ListTemplates,
                        Method::ReadResource,
                    ],
                ),
                ("completions", &[Method::Complete]),
            ] {
                assert_eq!(declared.contains_key(feature), is_there, "{feature}");
                for method in methods {
                    assert_eq!(method.is_offered(&catalogue), is_there, "{method:?}");
                }
            }
        }
    }
}
