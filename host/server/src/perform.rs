//! What a request does, once its shape was found right: rungs 20 and on of the ladder, and the method. The same for both eras.
//!
//! It must not know of transports, nor how a request came to be right.

use crate::app::App;
use crate::catalogue::{Catalogue, Kind};
use crate::listen::Listener;
use crate::outcome::{Notices, Outcome};
use crate::params::Checked;
use crate::resolve::Caller;
use crate::wire::{WireError, given};
use crate::{call, follow, listen, lists, resolve, task_methods};
use http::HeaderMap;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Where a request is served.
pub(crate) struct Site<'a> {
    pub(crate) app: &'a Arc<App>,
    /// One catalogue for the whole request.
    pub(crate) catalogue: &'a Arc<Catalogue>,
    /// The headers that mirror arguments; `None`: there are none to check.
    pub(crate) headers: Option<&'a HeaderMap>,
    /// Its id.
    pub(crate) id: &'a RawValue,
}

/// Do what a request wants.
///
/// # Errors
/// Why it has no result.
pub(crate) async fn perform(
    site: Site<'_>,
    checked: Checked,
    caller: Caller,
    notices: &Notices,
) -> Result<Outcome, WireError> {
    let Site {
        app,
        catalogue,
        headers,
        id,
    } = site;
    let result = match checked {
        Checked::Discover => Ok(lists::discover(app, catalogue)),
        Checked::List { kind, cursor } => list(app, catalogue, kind, cursor.as_deref()),
        Checked::CallTool(params, rounds) => {
            let request = resolve::tool(catalogue, *params, rounds, headers, caller)?;
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
            let peer = caller.peer;
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
    catalogue: &Arc<Catalogue>,
    kind: Kind,
    cursor: Option<&str>,
) -> Result<String, WireError> {
    match kind {
        Kind::Tool => lists::page(app, catalogue, |served| &served.tools, cursor),
        Kind::Prompt => lists::page(app, catalogue, |served| &served.prompts, cursor),
        Kind::Resource => lists::page(app, catalogue, |served| &served.resources, cursor),
        Kind::Template => lists::page(app, catalogue, |served| &served.templates, cursor),
    }
}
