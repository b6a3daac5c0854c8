//! From bytes to a [`Plugin`]: look, compile, link, and ask for what it has, under the limits of a call.

use crate::call::{Call, Context, Work};
use crate::compile::CompileCache;
use crate::contract::{ClientFeatures, ResourceEntry};
use crate::engine::Host;
use crate::limits::Limits;
use crate::plugin::{Inspection, Plugin, PluginError, Version};
use crate::run::{self, Exports, Listing, Seat};
use std::sync::Arc;
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
    pub(crate) cache: CompileCache,
    /// Listings at once: they run guests, and have few slots of their own.
    pub(crate) listings: Semaphore,
}

impl Loader {
    /// Load one component.
    pub(crate) async fn load(
        &self,
        name: &str,
        bytes: &[u8],
        limits: Limits,
    ) -> Result<Plugin, PluginError> {
        let version = Version::of(bytes);
        let component = self.compiled(&version, bytes).await?;
        let pre = self
            .host
            .linker
            .instantiate_pre(&component)
            .map_err(|error| PluginError::Import(format!("{error:#}")))?;
        let exports = Exports::find(&pre)?
            .ok_or_else(|| PluginError::NotAPlugin(missing_export(&component)))?;
        let seat = listing_seat(name, &limits)?;
        let (host, asked, asked_exports) = (self.host.clone(), pre.clone(), exports.clone());
        let listing = self
            .ask(async move { run::list(&host, &asked, &asked_exports, seat).await })
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
            pre,
            exports,
        })
    }

    /// Ask a plugin for its resources again.
    pub(crate) async fn relist(
        &self,
        plugin: &Arc<Plugin>,
    ) -> Result<Vec<ResourceEntry>, PluginError> {
        let seat = listing_seat(&plugin.name, &plugin.limits)?;
        let (host, plugin) = (self.host.clone(), plugin.clone());
        let resources = self
            .ask(async move { run::list_resources(&host, &plugin, seat).await })
            .await?;
        check_count("resources", resources.len())?;
        Ok(resources)
    }

    /// What a component says of itself, without running it.
    pub(crate) async fn inspect(&self, bytes: &[u8]) -> Result<Inspection, PluginError> {
        let version = Version::of(bytes);
        let component = self.compiled(&version, bytes).await?;
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
        })
    }

    async fn compiled(&self, version: &Version, bytes: &[u8]) -> Result<Component, PluginError> {
        if !bytes.starts_with(MAGIC) || bytes.len() < 8 {
            return Err(PluginError::NotWasm);
        }
        if &bytes[6..8] != COMPONENT_LAYER {
            return Err(PluginError::CoreModule);
        }
        self.cache.load(&self.host.engine, version, bytes).await
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
fn listing_seat(name: &str, limits: &Limits) -> Result<Seat, PluginError> {
    let nobody = Context {
        features: ClientFeatures::empty(),
        log_level: None,
        trace: Vec::new(),
    };
    let nothing = Work::Tool {
        name: String::new(),
        arguments: String::new(),
    };
    let call = Call::begin(nothing, nobody, limits.clone())
        .map_err(|error| PluginError::List(error.to_string()))?;
    Ok(Seat::for_listing(name, call))
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
