//! A plugin: one version of a component, compiled, checked and ready to run.
//!
//! It must not know how it came to be loaded, nor of any call.

use crate::contract::{Prompt, ResourceEntry, ResourceTemplate, Tool};
use crate::engine::Host;
use crate::grants::{Grants, GrantsPrint};
use crate::guest::Guest;
use crate::limits::Limits;
use crate::run::Exports;
use crate::wants::Wants;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use wasmtime::component::InstancePre;

/// The version of a plugin: SHA-256 of its bytes, in lower-case hexadecimal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(String);

impl Version {
    /// The version of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }

    /// A version by its text; `None` if that is not 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({})", &self.0[..12])
    }
}

/// One version of a plugin, ready to run.
#[derive(Clone)]
pub struct Plugin {
    /// Its name: the file's name without `.wasm`.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Its tools, as `list` gave them.
    pub tools: Vec<Tool>,
    /// Its prompts, as `list` gave them.
    pub prompts: Vec<Prompt>,
    /// Its resources, as `list` gave them last.
    pub resources: Vec<ResourceEntry>,
    /// Its families of resources, as `templates` gave them.
    pub templates: Vec<ResourceTemplate>,
    /// Whether it suggests values for arguments.
    pub completes: bool,
    /// The limits of its runs.
    pub limits: Limits,
    /// What of that which can be granted it could use.
    pub wants: Wants,
    /// What it may reach.
    pub grants: Arc<Grants>,
    pub(crate) grants_print: GrantsPrint,
    pub(crate) host: Arc<Host>,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) exports: Exports,
}

impl Plugin {
    /// What a call of it begins with.
    pub fn terms(&self) -> (Limits, GrantsPrint) {
        (self.limits.clone(), self.grants_print)
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// What a component says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// Its version.
    pub version: Version,
    /// Its size.
    pub component_bytes: u64,
    /// The interfaces it imports.
    pub imports: Vec<String>,
    /// The interfaces it exports.
    pub exports: Vec<String>,
    /// What of that which can be granted it could use.
    pub wants: Wants,
}

/// Why a file is no plugin that can be served.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PluginError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(String),
    /// It is a link to a file that is not there.
    #[error("it is a link to {0}, which is not there")]
    Dangling(String),
    /// It is larger than is allowed.
    #[error("it has {bytes} bytes; at most {bytes_max} are allowed (limits.component_bytes)")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// It is no WebAssembly at all.
    #[error("it is no WebAssembly file")]
    NotWasm,
    /// It is a core module.
    #[error(
        "it is a core module; a component is needed: build for the target wasm32-wasip2, or make one with `wasm-tools component new`"
    )]
    CoreModule,
    /// It does not compile, or the compiler met a limit.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// It exports no interface of plugins, or another version of one.
    #[error(
        "it does not export tools, prompts, resources or completions of longshore:plugin@0.1: {0}"
    )]
    NotAPlugin(String),
    /// It imports what is not offered.
    #[error("it imports what this host does not offer: {0}")]
    Import(String),
    /// It failed when it was asked for its tools, prompts or resources.
    #[error("it failed when asked for what it has: {0}")]
    List(String),
    /// The host could not keep it.
    #[error("it cannot be kept: {0}")]
    Storage(String),
}
