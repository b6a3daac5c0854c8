//! Letting plugins know which of their resources someone follows.
//!
//! It must not know how a change reaches those who follow.

use super::hub::Mark;
use crate::app::App;
use crate::errand::Errand;
use crate::follow;
use crate::outcome::Notices;
use crate::params::Rounds;
use crate::resolve::Caller;
use crate::wire::WireError;
use futures::future::join_all;
use longshore_runtime::Work;
use std::sync::Arc;
use std::time::Duration;

/// How long a plugin may take to hear that a resource is listened to; the client waits for the acknowledgement meanwhile.
const SUBSCRIBE_TIME: Duration = Duration::from_secs(2);

/// The resources that a stream or session follows. Their plugins know, until it is dropped.
pub(crate) struct Subscriptions {
    app: Arc<App>,
    uris: Vec<String>,
    caller: Caller,
}

impl Subscriptions {
    /// None yet.
    pub(crate) fn new(app: &Arc<App>, caller: &Caller) -> Self {
        Self {
            app: app.clone(),
            uris: Vec::new(),
            caller: caller.clone(),
        }
    }

    /// What is followed.
    pub(crate) fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Tell the plugins. What no plugin has, or its plugin refuses, is left out.
    pub(crate) async fn open(&mut self, uris: &[String]) {
        // Dropped on the way, those that heard already hear that it was for nothing.
        self.uris = uris.to_vec();
        let wish = |uri: &String| {
            let work = Work::Subscribe { uri: uri.clone() };
            let told = tell(self.app.clone(), work, self.caller.clone());
            let uri = uri.clone();
            async move { told.await.is_ok().then_some(uri) }
        };
        let agreed = join_all(uris.iter().map(wish)).await;
        self.uris = agreed.into_iter().flatten().collect();
    }

    /// Follow one more, whose plugin is told by [`tell`]. Whether it is new.
    pub(crate) fn add(&mut self, uri: &str) -> bool {
        let is_new = !self.uris.iter().any(|known| known == uri);
        if is_new {
            self.uris.push(uri.to_owned());
        }
        is_new
    }

    /// Follow it no more.
    pub(crate) fn remove(&mut self, uri: &str) {
        if self.uris.iter().any(|known| known == uri) {
            self.uris.retain(|known| known != uri);
            self.forget(uri.to_owned());
        }
    }

    /// Its plugin hears that nobody follows it, if that is so.
    fn forget(&self, uri: String) {
        let (app, caller) = (self.app.clone(), self.caller.clone());
        tokio::spawn(async move {
            if !app.hub.is_wanted(&Mark::Resource(uri.clone())) {
                // What it says to that changes nothing.
                let _ = tell(app, Work::Unsubscribe { uri }, caller).await;
            }
        });
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        if self.app.stopping.is_cancelled() {
            return;
        }
        for uri in std::mem::take(&mut self.uris) {
            self.forget(uri);
        }
    }
}

/// Let the plugin of a resource know.
///
/// # Errors
/// If there is no such resource, or its plugin does not agree, or not in time.
pub(crate) async fn tell(app: Arc<App>, work: Work, caller: Caller) -> Result<(), WireError> {
    let Some(plugin) = app.catalogue.load().plugin_of_uri(work.subject()).cloned() else {
        return Err(WireError::no_such_resource(work.subject()));
    };
    let errand = Errand {
        plugin,
        work,
        meta: caller.meta,
        rounds: Rounds::default(),
        principal: caller.principal,
        session: None,
    };
    let nobody = Notices::unread();
    let told = Box::pin(follow::plainly(&app, &errand, &nobody));
    match tokio::time::timeout(SUBSCRIBE_TIME, told).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => {
            let uri = errand.work.subject();
            tracing::debug!(
                uri,
                error = error.message,
                "a plugin did not take a subscription"
            );
            Err(error)
        }
        Err(_) => {
            let (uri, plugin) = (errand.work.subject(), &errand.plugin.name);
            tracing::warn!(uri, %plugin, "a plugin took too long to take a subscription");
            let message = format!(
                "the plugin {plugin} did not say within {} s whether the resource can be followed; try again",
                SUBSCRIBE_TIME.as_secs()
            );
            Err(WireError::internal("subscribe_time", message))
        }
    }
}
