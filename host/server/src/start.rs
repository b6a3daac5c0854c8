//! The start: requests are taken while the plugins are looked at for the first time, and wait for what they need of them.
//!
//! A call waits until its tool is there, a list until it is whole; each only for so long, for one plugin may never be done. It
//! must not know how plugins are loaded, nor what a method does.

use crate::app::App;
use crate::catalogue::Catalogue;
use crate::message::Request;
use crate::method::Method;
use std::sync::Arc;
use std::time::Duration;

/// For the tool, prompt or resource that a request is about. Clients wait a minute.
const SUBJECT_WAIT: Duration = Duration::from_secs(30);

/// For all that there is. Clients ask for lists when they begin, and some give up on a server that is silent for ten seconds.
const LIST_WAIT: Duration = Duration::from_millis(LIST_WAIT_MS);

/// For what a server says of itself first. A warm start takes less; else nobody is kept waiting for it.
const GREETING_WAIT: Duration = Duration::from_millis(250);

/// The same, in milliseconds.
const LIST_WAIT_MS: u64 = 5_000;

type Wanted = Box<dyn Fn(&Catalogue) -> bool + Send + Sync>;

/// The catalogue by which to serve a request.
pub(crate) async fn catalogue(app: &App, request: &Request) -> Arc<Catalogue> {
    let current = app.catalogue.load_full();
    if current.settled {
        return current;
    }
    match Method::parse(&request.method).and_then(|method| wanted(method, request)) {
        Some((patience, wanted)) => {
            let wait = |served: &Catalogue| served.settled || wanted(served);
            app.catalogue.wait(patience, wait).await
        }
        None => current,
    }
}

/// The catalogue by which to begin a session, which is told once what there is.
pub(crate) async fn greeting(app: &App) -> Arc<Catalogue> {
    app.catalogue
        .wait(GREETING_WAIT, |served| served.settled)
        .await
}

/// Whether lists are answered from this catalogue: it has all, or nobody waits for the rest any more. Before that no client has
/// seen a list, and the server is not ready.
pub(crate) fn is_listed(app: &App, catalogue: &Catalogue) -> bool {
    let waited_until_ms = app.started_ms.saturating_add(LIST_WAIT_MS);
    catalogue.settled || app.clock.now_ms() >= waited_until_ms
}

/// The plugin of a resource is there, or will not come.
pub(crate) async fn resource(app: &App, uri: Option<&str>) {
    let there = |served: &Catalogue| uri.is_some_and(|uri| served.plugin_of_uri(uri).is_some());
    let wait = |served: &Catalogue| served.settled || there(served);
    app.catalogue.wait(SUBJECT_WAIT, wait).await;
}

/// The first look is over, or a call that needs it would not wait any more.
pub(crate) async fn over(app: &App) {
    app.catalogue
        .wait(SUBJECT_WAIT, |served| served.settled)
        .await;
}

/// How long to wait, and for what less than all.
fn wanted(method: Method, request: &Request) -> Option<(Duration, Wanted)> {
    let named = |member| request.params.string(member).unwrap_or_default();
    let subject = |wanted: Wanted| Some((SUBJECT_WAIT, wanted));
    match method {
        Method::CallTool => {
            let name = named("name");
            subject(Box::new(move |served| served.tools.get(&name).is_some()))
        }
        Method::GetPrompt => {
            let name = named("name");
            subject(Box::new(move |served| served.prompts.get(&name).is_some()))
        }
        Method::ReadResource => {
            let uri = named("uri");
            subject(Box::new(move |served| served.plugin_of_uri(&uri).is_some()))
        }
        Method::Complete => {
            let target = request.params.value("ref").unwrap_or_default();
            subject(Box::new(move |served| {
                let prompt = target["name"].as_str();
                let uri = target["uri"].as_str();
                prompt.is_some_and(|name| served.prompts.get(name).is_some())
                    || uri.is_some_and(|uri| served.templates.get(uri).is_some())
            }))
        }
        // A stream begins with what it listens to, which some plugin must have.
        Method::ListTools
        | Method::ListPrompts
        | Method::ListResources
        | Method::ListTemplates
        | Method::Listen => Some((LIST_WAIT, Box::new(|_| false))),
        Method::Discover => Some((GREETING_WAIT, Box::new(|_| false))),
        Method::GetTask | Method::UpdateTask | Method::CancelTask => None,
    }
}
