//! From bytes to a [`Plugin`]: look, compile, link, and ask for what it has, under the limits of a call.

use crate::cache::CompileCache;
use crate::call::{Call, Context, Work};
use crate::contract::{ClientFeatures, ResourceEntry};
use crate::engine::Host;
use crate::grants::Grants;
use crate::limits::Limits;
use crate::plugin::{Inspection, Plugin, PluginError, Version};
use crate::registry::PluginSettings;
use crate::run::{self, Exports, Listing, Seat};
use crate::wants::Wants;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use wasmtime::component::{Component, types::ComponentItem};

/// Time for a plugin to list what it has.
const LIST_TIME: Duration = Duration::from_secs(5);

/// Entries of one list of a plugin; a list that no client would want to read is refused.
const ENTRIES_MAX: usize = 1_000;

/// First bytes of every WebAssembly file.
const MAGIC: &[u8] = b"\0asm";
/// Version and layer of a component; a core module has `01 00 00 00`.
const COMPONENT_LAYER: &[u8] = &[0x01, 0x00];

pub(crate) struct Loader {
    pub(crate) host: Arc<Host>,
    /// Made when the first plugin needs it.
    pub(crate) unmetered: OnceLock<Arc<Host>>,
    pub(crate) cache: CompileCache,
    /// Listings at once: they run guests, and have few slots of their own.
    pub(crate) listings: Semaphore,
}

impl Loader {
    /// Load one component, whose version these bytes have.
    pub(crate) async fn load(
        &self,
        name: &str,
        version: Version,
        bytes: &[u8],
        settings: PluginSettings,
    ) -> Result<Plugin, PluginError> {
        let PluginSettings {
            limits,
            grants,
            unmetered,
        } = settings;
        let host = self.host_for(unmetered)?;
        let component = self.compiled(&host, &version, bytes).await?;
        let pre = host
            .linker
            .instantiate_pre(&component)
            .map_err(|error| PluginError::Import(missing_import(&component, &error)))?;
        let exports = Exports::find(&pre)?
            .ok_or_else(|| PluginError::NotAPlugin(missing_export(&component)))?;
        let seat = listing_seat(name, &limits, &grants)?;
        let (asked, asked_exports) = (pre.clone(), exports.clone());
        let asked_host = host.clone();
        let listing = self
            .ask(async move { run::list(&asked_host, &asked, &asked_exports, seat).await })
            .await?;
        check_counts(&listing)?;
        Ok(Plugin {
            name: name.to_owned(),
            version,
            tools: listing.tools,
            prompts: listing.prompts,
            resources: listing.resources,
            templates: listing.templates,
            completes: exports.completes(),
            limits,
            wants: Wants::of(&component),
            grants_print: grants.print(),
            grants,
            host,
            pre,
            exports,
        })
    }

    /// Ask a plugin for its resources again.
    pub(crate) async fn relist(
        &self,
        plugin: &Arc<Plugin>,
    ) -> Result<Vec<ResourceEntry>, PluginError> {
        let seat = listing_seat(&plugin.name, &plugin.limits, &plugin.grants)?;
        let plugin = plugin.clone();
        let resources = self
            .ask(async move { run::list_resources(&plugin.host, &plugin, seat).await })
            .await?;
        check_count("resources", resources.len())?;
        Ok(resources)
    }

    /// What a component says of itself, without running it.
    pub(crate) async fn inspect(
        &self,
        version: Version,
        bytes: &[u8],
    ) -> Result<Inspection, PluginError> {
        let component = self.compiled(&self.host, &version, bytes).await?;
        let engine = &self.host.engine;
        let ty = component.component_type();
        Ok(Inspection {
            version,
            component_bytes: bytes.len() as u64,
            imports: ty
                .imports(engine)
                .map(|(name, _)| name.to_owned())
                .collect(),
            exports: ty
                .exports(engine)
                .map(|(name, _)| name.to_owned())
                .collect(),
            wants: Wants::of(&component),
        })
    }

    /// Keep the compile cache within its bound, with all that these versions need.
    pub(crate) fn sweep_cache(&self, needed: &HashSet<Version>) -> std::io::Result<()> {
        let unmetered = self.unmetered.get().map(|host| &host.engine);
        let engines: Vec<_> = [&self.host.engine].into_iter().chain(unmetered).collect();
        self.cache.sweep(&engines, needed)
    }

    fn host_for(&self, unmetered: bool) -> Result<Arc<Host>, PluginError> {
        if !unmetered {
            return Ok(self.host.clone());
        }
        if let Some(host) = self.unmetered.get() {
            return Ok(host.clone());
        }
        let host = self.host.unmetered();
        let host = host.map_err(|error| PluginError::Storage(format!("the engine: {error:#}")))?;
        // Two that come at once make two, and one is kept.
        Ok(self.unmetered.get_or_init(|| Arc::new(host)).clone())
    }

    async fn compiled(
        &self,
        host: &Host,
        version: &Version,
        bytes: &[u8],
    ) -> Result<Component, PluginError> {
        if !bytes.starts_with(MAGIC) || bytes.len() < 8 {
            return Err(PluginError::NotWasm);
        }
        if &bytes[6..8] != COMPONENT_LAYER {
            return Err(PluginError::CoreModule);
        }
        let engine = (&host.engine, host.metering);
        self.cache.load(engine, version, bytes).await
    }

    /// On the guests' threads, for a list that computes must not hold up the protocol.
    async fn ask<T: Send + 'static>(
        &self,
        listing: impl Future<Output = Result<T, PluginError>> + Send + 'static,
    ) -> Result<T, PluginError> {
        // The semaphore is never closed.
        let _seat = self.listings.acquire().await;
        let mut listing = AbortOnDrop(self.host.threads().spawn(listing));
        tokio::time::timeout(LIST_TIME, &mut listing.0)
            .await
            .map_err(|_| PluginError::List(format!("no answer within {LIST_TIME:?}")))?
            .map_err(|error| PluginError::List(error.to_string()))?
    }
}

/// A place for a listing: a call of nobody's, for nothing.
fn listing_seat(name: &str, limits: &Limits, grants: &Arc<Grants>) -> Result<Seat, PluginError> {
    let nobody = Context {
        features: ClientFeatures::empty(),
        log_level: None,
        trace: Vec::new(),
    };
    let nothing = Work::Tool {
        name: String::new(),
        arguments: String::new(),
    };
    let call = Call::begin(nothing, nobody, (limits.clone(), grants.print()))
        .map_err(|error| PluginError::List(error.to_string()))?;
    Ok(Seat::for_listing(name, call, grants.clone()))
}

fn check_counts(listing: &Listing) -> Result<(), PluginError> {
    check_count("tools", listing.tools.len())?;
    check_count("prompts", listing.prompts.len())?;
    check_count("resources", listing.resources.len())?;
    check_count("templates", listing.templates.len())
}

fn check_count(what: &str, count: usize) -> Result<(), PluginError> {
    if count <= ENTRIES_MAX {
        return Ok(());
    }
    Err(PluginError::List(format!(
        "{count} {what}; at most {ENTRIES_MAX} are allowed"
    )))
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// A task that does not outlive who waits for it.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The packages that a plugin can import, with the versions that are served: others with the same first two numbers do too.
const OFFERED: [(&str, &str); 2] = [("longshore:plugin/", "0.1"), ("wasi:", "0.2")];

/// Say which import is of another version than is offered, if one is; else what the linker says.
fn missing_import(component: &Component, error: &wasmtime::Error) -> String {
    let engine = component.engine();
    let ty = component.component_type();
    let other = ty.imports(engine).find_map(|(name, _)| {
        let (interface, version) = name.split_once('@')?;
        let (_, offered) = OFFERED
            .iter()
            .find(|(package, _)| interface.starts_with(package))?;
        let is_served = version.starts_with(&format!("{offered}.")) && !version.contains('-');
        (!is_served).then(|| {
            format!(
                "{interface} in version {version}; {offered} is offered, so build it against that"
            )
        })
    });
    other.unwrap_or_else(|| format!("{error:#}"))
}

/// Say what is exported instead of the interface of plugins.
fn missing_export(component: &Component) -> String {
    let engine = component.engine();
    let ty = component.component_type();
    let interfaces: Vec<String> = ty
        .exports(engine)
        .filter(|(_, export)| matches!(export.ty, ComponentItem::ComponentInstance(_)))
        .map(|(name, _)| name.to_owned())
        .collect();
    if interfaces.is_empty() {
        return "it exports no interface at all".to_owned();
    }
    format!("it exports {}", interfaces.join(", "))
}
