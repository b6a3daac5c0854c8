//! What is called in a guest: the interfaces that it exports, each found by its name.
//!
//! It must not know of limits, nor of what a failure means.

use super::Answer;
use super::drive::{Seat, new_store};
use super::verdict::list_error;
use crate::call::Work;
use crate::contract::generated::exports::longshore::plugin::{
    completions, prompts, resources, tools,
};
use crate::contract::{PACKAGE, Prompt, ResourceEntry, ResourceTemplate, RpcError, Tool};
use crate::engine::Host;
use crate::guest::Guest;
use crate::plugin::{Plugin, PluginError};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

/// The version that names of exports are looked up with; a plugin built for another 0.1 is found too.
const CONTRACT_VERSION: &str = "0.1.0";

/// The interfaces that a component exports. What it exports decides what it offers.
#[derive(Clone)]
pub(crate) struct Exports {
    tools: Option<tools::GuestIndices>,
    prompts: Option<prompts::GuestIndices>,
    resources: Option<resources::GuestIndices>,
    completions: Option<completions::GuestIndices>,
}

impl Exports {
    /// Find them. `None`: there is none.
    ///
    /// # Errors
    /// If one has the right name and not the right functions.
    pub(crate) fn find(pre: &InstancePre<Guest>) -> Result<Option<Self>, PluginError> {
        let found = Self {
            tools: find(pre, "tools", tools::GuestIndices::new)?,
            prompts: find(pre, "prompts", prompts::GuestIndices::new)?,
            resources: find(pre, "resources", resources::GuestIndices::new)?,
            completions: find(pre, "completions", completions::GuestIndices::new)?,
        };
        let is_empty = found.tools.is_none()
            && found.prompts.is_none()
            && found.resources.is_none()
            && found.completions.is_none();
        Ok((!is_empty).then_some(found))
    }

    pub(crate) fn completes(&self) -> bool {
        self.completions.is_some()
    }

    pub(crate) fn has_resources(&self) -> bool {
        self.resources.is_some()
    }

    /// Whether there is an export for this work; the error names what is missing.
    pub(super) fn serve(&self, work: &Work) -> Result<(), String> {
        let (interface, is_there) = match work {
            Work::Tool { .. } => ("tools", self.tools.is_some()),
            Work::Prompt { .. } => ("prompts", self.prompts.is_some()),
            Work::Resource { .. } | Work::Subscribe { .. } | Work::Unsubscribe { .. } => {
                ("resources", self.resources.is_some())
            }
            Work::Completion { .. } => ("completions", self.completions.is_some()),
        };
        if is_there {
            return Ok(());
        }
        Err(format!("the plugin exports no {interface}"))
    }
}

fn find<T>(
    pre: &InstancePre<Guest>,
    interface: &str,
    indices: fn(&InstancePre<Guest>) -> wasmtime::Result<T>,
) -> Result<Option<T>, PluginError> {
    let name = format!("{PACKAGE}/{interface}@{CONTRACT_VERSION}");
    if pre.component().get_export_index(None, &name).is_none() {
        return Ok(None);
    }
    let wrong = |error: wasmtime::Error| PluginError::NotAPlugin(format!("{error:#}"));
    indices(pre).map(Some).map_err(wrong)
}

fn offered<T>(export: Option<&T>) -> wasmtime::Result<&T> {
    export.ok_or_else(|| wasmtime::Error::msg("the plugin does not export what is called"))
}

/// Serve one call. `None`: the answer was to be given by `complete`.
pub(super) async fn call(
    store: &mut Store<Guest>,
    plugin: &Plugin,
    work: &Work,
) -> wasmtime::Result<Result<Option<Answer>, RpcError>> {
    let instance = plugin.pre.instantiate_async(&mut *store).await?;
    let exports = &plugin.exports;
    match work {
        Work::Tool { name, arguments } => {
            let tools = offered(exports.tools.as_ref())?.load(&mut *store, &instance)?;
            let returned = tools.call_call(&mut *store, name, arguments).await?;
            Ok(returned.map(|()| None))
        }
        Work::Prompt { name, arguments } => {
            let prompts = offered(exports.prompts.as_ref())?.load(&mut *store, &instance)?;
            let returned = prompts.call_get(&mut *store, name, arguments).await?;
            Ok(returned.map(|filled| Some(Answer::Prompt(filled))))
        }
        Work::Completion {
            target,
            argument,
            value,
            known,
        } => {
            let completions =
                offered(exports.completions.as_ref())?.load(&mut *store, &instance)?;
            let returned = completions
                .call_complete(&mut *store, target, argument, value, known)
                .await?;
            Ok(returned.map(|found| Some(Answer::Completion(found))))
        }
        Work::Resource { .. } | Work::Subscribe { .. } | Work::Unsubscribe { .. } => {
            call_resources(store, &instance, exports, work).await
        }
    }
}

async fn call_resources(
    store: &mut Store<Guest>,
    instance: &Instance,
    exports: &Exports,
    work: &Work,
) -> wasmtime::Result<Result<Option<Answer>, RpcError>> {
    let resources = offered(exports.resources.as_ref())?.load(&mut *store, instance)?;
    let done = |returned: Result<(), RpcError>| returned.map(|()| Some(Answer::Done));
    match work {
        Work::Subscribe { uri } => resources.call_subscribe(store, uri).await.map(done),
        Work::Unsubscribe { uri } => resources.call_unsubscribe(store, uri).await.map(done),
        Work::Resource { uri } => {
            let returned = resources.call_read(store, uri).await?;
            Ok(returned.map(|outcome| Some(Answer::Resource(outcome))))
        }
        Work::Tool { .. } | Work::Prompt { .. } | Work::Completion { .. } => {
            Err(wasmtime::Error::msg("this is no work for resources"))
        }
    }
}

/// What a plugin says it has.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<ResourceEntry>,
    pub(crate) templates: Vec<ResourceTemplate>,
}

/// Ask a plugin for all that it has, in one instance.
pub(crate) async fn list(
    host: &Host,
    pre: &InstancePre<Guest>,
    exports: &Exports,
    seat: Seat,
) -> Result<Listing, PluginError> {
    let (mut store, instance) = instance_for_list(host, pre, seat).await?;
    let store = &mut store;
    let mut listing = Listing::default();
    if let Some(export) = &exports.tools {
        let tools = export.load(&mut *store, &instance).map_err(wrong_type)?;
        let listed = Box::pin(tools.call_list(&mut *store)).await;
        listing.tools = listed.map_err(|error| list_error(&error, store))?;
    }
    if let Some(export) = &exports.prompts {
        let prompts = export.load(&mut *store, &instance).map_err(wrong_type)?;
        let listed = Box::pin(prompts.call_list(&mut *store)).await;
        listing.prompts = listed.map_err(|error| list_error(&error, store))?;
    }
    if let Some(export) = &exports.resources {
        let resources = export.load(&mut *store, &instance).map_err(wrong_type)?;
        let listed = Box::pin(resources.call_list(&mut *store)).await;
        listing.resources = listed.map_err(|error| list_error(&error, store))?;
        let listed = Box::pin(resources.call_templates(&mut *store)).await;
        listing.templates = listed.map_err(|error| list_error(&error, store))?;
    }
    if let Some(export) = &exports.completions {
        // Nothing to list; but its types must be right before it is offered.
        export.load(&mut *store, &instance).map_err(wrong_type)?;
    }
    Ok(listing)
}

/// Ask a plugin for its resources alone.
pub(crate) async fn list_resources(
    host: &Host,
    plugin: &Plugin,
    seat: Seat,
) -> Result<Vec<ResourceEntry>, PluginError> {
    let Some(export) = &plugin.exports.resources else {
        return Ok(Vec::new());
    };
    let (mut store, instance) = instance_for_list(host, &plugin.pre, seat).await?;
    let resources = export.load(&mut store, &instance).map_err(wrong_type)?;
    let listed = Box::pin(resources.call_list(&mut store)).await;
    listed.map_err(|error| list_error(&error, &store))
}

async fn instance_for_list(
    host: &Host,
    pre: &InstancePre<Guest>,
    seat: Seat,
) -> Result<(Store<Guest>, Instance), PluginError> {
    let broken = |error: wasmtime::Error| PluginError::List(format!("{error:#}"));
    let mut store = new_store(host, seat).map_err(broken)?;
    let instance = Box::pin(pre.instantiate_async(&mut store)).await;
    let instance = instance.map_err(|error| list_error(&error, &store))?;
    Ok((store, instance))
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn wrong_type(error: wasmtime::Error) -> PluginError {
    PluginError::NotAPlugin(format!("{error:#}"))
}
