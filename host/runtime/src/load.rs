//! From bytes to a [`Plugin`]: look, compile, link, and ask for the tools, under the limits of a call.

use crate::call::{Call, Context};
use crate::compile::CompileCache;
use crate::contract::generated::exports::longshore::plugin::tools::GuestIndices;
use crate::contract::{ClientFeatures, Tool};
use crate::engine::Host;
use crate::guest::Guest;
use crate::limits::Limits;
use crate::plugin::{Inspection, Plugin, PluginError, Version};
use crate::run::{self, Seat};
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{Component, InstancePre, types::ComponentItem};

/// Time for a plugin to list its tools.
const LIST_TIME: Duration = Duration::from_secs(5);

/// Tools of one plugin; a list that no client would want to read is refused.
const TOOLS_MAX: usize = 1_000;

/// First bytes of every WebAssembly file.
const MAGIC: &[u8] = b"\0asm";
/// Version and layer of a component; a core module has `01 00 00 00`.
const COMPONENT_LAYER: &[u8] = &[0x01, 0x00];

pub(crate) struct Loader {
    pub(crate) host: Arc<Host>,
    pub(crate) cache: CompileCache,
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
        let tools_export = GuestIndices::new(&pre)
            .map_err(|_| PluginError::NotAPlugin(missing_export(&component)))?;
        let tools = self.list(name, &pre, &tools_export, &limits).await?;
        Ok(Plugin {
            name: name.to_owned(),
            version,
            tools,
            limits,
            pre,
            tools_export,
        })
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

    async fn list(
        &self,
        name: &str,
        pre: &InstancePre<Guest>,
        export: &GuestIndices,
        limits: &Limits,
    ) -> Result<Vec<Tool>, PluginError> {
        let nobody = Context {
            features: ClientFeatures::empty(),
            log_level: None,
            trace: Vec::new(),
        };
        let call = Call::begin(String::new(), String::new(), nobody, limits.clone())
            .map_err(|error| PluginError::List(error.to_string()))?;
        let seat = Seat::for_listing(name, call);
        let (pre, export) = (pre.clone(), export.clone());
        let host = self.host.clone();
        // On the guests' threads: a list that computes must not hold up the protocol.
        let mut listing = AbortOnDrop(
            self.host
                .threads()
                .spawn(async move { run::list_tools(&host, &pre, &export, seat).await }),
        );
        let tools = tokio::time::timeout(LIST_TIME, &mut listing.0)
            .await
            .map_err(|_| PluginError::List(format!("no answer within {LIST_TIME:?}")))?
            .map_err(|error| PluginError::List(error.to_string()))??;
        if tools.len() > TOOLS_MAX {
            return Err(PluginError::List(format!(
                "{} tools; at most {TOOLS_MAX} are allowed",
                tools.len()
            )));
        }
        Ok(tools)
    }
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
