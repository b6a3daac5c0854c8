//! What stands in the file. Keys carry their unit; defaults are here and in the sample, and a test holds them together.

use super::callers::{SessionSettings, WrittenAuth};
use super::grants::WrittenGrants;
use super::{Config, ConfigError, Flags, PluginConfig};
use longshore_runtime::{Limits, contract};
use longshore_store::StoreEngine;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Written {
    #[serde(deserialize_with = "address")]
    listen: SocketAddr,
    plugins_dir: PathBuf,
    data_dir: PathBuf,
    state_key_files: Vec<PathBuf>,
    compile_cache_dir: Option<PathBuf>,
    compile_cache_bytes_max: u64,
    pin_definitions: bool,
    history_versions: u32,
    usage_in_results: bool,
    log: Log,
    http: Http,
    auth: WrittenAuth,
    sessions: SessionSettings,
    routing: Routing,
    lists: Lists,
    resources: Resources,
    subscriptions: Listening,
    tasks: Tasks,
    store: Store,
    limits: toml::Table,
    plugins: BTreeMap<String, WrittenPlugin>,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7777)),
            plugins_dir: "plugins".into(),
            data_dir: "data".into(),
            state_key_files: Vec::new(),
            compile_cache_dir: None,
            // A compiled component takes 0.3 MB, or 45 MB if it brings its language's runtime.
            compile_cache_bytes_max: 1 << 30,
            pin_definitions: false,
            // A day of work on a plugin; each is a file of some hundred kilobytes, or of ten megabytes.
            history_versions: 10,
            usage_in_results: false,
            log: Log::default(),
            http: Http::default(),
            auth: WrittenAuth::default(),
            sessions: SessionSettings::default(),
            routing: Routing::default(),
            lists: Lists::default(),
            resources: Resources::default(),
            subscriptions: Listening::default(),
            tasks: Tasks::default(),
            store: Store::default(),
            limits: toml::Table::new(),
            plugins: BTreeMap::new(),
        }
    }
}

/// An address to listen at. The error says what one looks like.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let help = "it must be an IP address and a port, as 127.0.0.1:7777 or [::1]:7777; port 0 is any free one";
    text.parse().map_err(|_| help.to_owned())
}

fn address<'de, D: Deserializer<'de>>(value: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(value)?;
    let named = |help| D::Error::custom(format!("listen is {text:?}; {help}"));
    parse_address(&text).map_err(named)
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// How it is written.
    pub(crate) format: LogFormat,
    /// What is written: a level, or directives as `info,longshore_runtime=debug`.
    pub(crate) level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            level: "info".to_owned(),
        }
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The transport.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Http {
    /// Size of a request's body, in bytes.
    pub(crate) body_bytes_max: u64,
    /// Time for a body to arrive, in milliseconds.
    pub(crate) body_timeout_ms: u64,
    /// Size of a request's headers together, in bytes.
    pub(crate) header_bytes_max: u32,
    /// Headers of a request.
    pub(crate) headers_max: u32,
    /// Time for a request's headers to arrive, and for a connection to stay idle, in milliseconds.
    pub(crate) header_timeout_ms: u64,
    /// Time for a client to take anything of what is to be written, in milliseconds.
    pub(crate) write_timeout_ms: u64,
    /// Connections at once; more wait to be accepted.
    pub(crate) connections_max: u32,
    /// Requests at once on one HTTP/2 connection.
    pub(crate) streams_max: u32,
    /// Time for calls to end when the server shuts down, in milliseconds.
    pub(crate) drain_ms: u64,
    /// Values of `Host` that are taken beside loopback names and the listening address.
    pub(crate) allowed_hosts: Vec<String>,
    /// Values of `Origin` that are taken beside those of the hosts above.
    pub(crate) allowed_origins: Vec<String>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            // A screenful of text is 4 KiB; the largest common arguments are files in base64.
            body_bytes_max: 4 << 20,
            body_timeout_ms: 10_000,
            // What common proxies pass on.
            header_bytes_max: 32 << 10,
            headers_max: 100,
            header_timeout_ms: 30_000,
            // A lost packet is sent again for the fifth time after some ten seconds; a client that is busy for longer is rare.
            write_timeout_ms: 30_000,
            // A process has 1,024 file descriptors where nobody raised the limit; the rest is for plugins and the store.
            connections_max: 768,
            streams_max: 100,
            drain_ms: 5_000,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

/// What gateways route by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Routing {
    /// Whether `tasks/*` must carry `Mcp-Name`.
    pub(crate) require_task_name: bool,
}

/// Lists, and what the server says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Lists {
    /// Entries of a page.
    pub(crate) page_size: usize,
    /// How long a client may use a list without asking again, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// Who may share it.
    pub(crate) cache_scope: CacheScope,
}

impl Default for Lists {
    fn default() -> Self {
        // Without notifications a client learns of new tools only by asking again.
        Self {
            page_size: 200,
            ttl_ms: 0,
            cache_scope: CacheScope::Private,
        }
    }
}

/// What is read of resources.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Resources {
    /// How long a client may use what it has read without reading again, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// Who may share it.
    pub(crate) cache_scope: CacheScope,
}

impl Default for Resources {
    fn default() -> Self {
        // Only a plugin knows how long its resources stay what they are, and for whom.
        Self {
            ttl_ms: 0,
            cache_scope: CacheScope::Private,
        }
    }
}

/// Streams of notifications.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Listening {
    /// Streams at once.
    pub(crate) streams_max: u32,
    /// Streams at once of one client, known by its principal, else by its address.
    pub(crate) streams_per_client_max: u32,
    /// How long a stream of events may be silent, in milliseconds; then a comment is sent.
    pub(crate) keep_alive_ms: u64,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            // Each holds a connection on HTTP/1; the rest of http.connections_max is for calls.
            streams_max: 512,
            // Many clients may come through one proxy.
            streams_per_client_max: 128,
            // Common proxies cut what is silent for 30 or 60 seconds.
            keep_alive_ms: 15_000,
        }
    }
}

/// Who may share an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CacheScope {
    /// Anyone.
    Public,
    /// The caller alone.
    Private,
}

/// Tasks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tasks {
    /// Life of a task from its creation, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// How long an ended task is kept at least, in milliseconds.
    pub(crate) keep_ms: u64,
    /// How often a client should ask, in milliseconds.
    pub(crate) poll_interval_ms: u64,
    /// How often in the first two seconds of a task, when it is most likely to end, in milliseconds.
    pub(crate) first_poll_interval_ms: u64,
    /// How long a call may run before it becomes a task, in milliseconds.
    pub(crate) inline_window_ms: u64,
    /// How long a guest that asked stays in memory, in milliseconds; 0: not at all.
    pub(crate) linger_ms: u64,
    /// How many guests may stay so at once; never more than a quarter of `limits.concurrent_runs`.
    pub(crate) lingering_max: u32,
    /// What guests that wait for answers may hold in memory together, in bytes; those of plain calls have as much again.
    pub(crate) waiting_bytes_max: u64,
    /// What the calls of running tasks may take in memory together, in bytes.
    pub(crate) running_bytes_max: u64,
    /// How long a cancelled guest may go on, in milliseconds.
    pub(crate) grace_ms: u64,
    /// After so many crashes of the server under its runs a task is given up.
    pub(crate) crashes_max: u32,
    /// How many unfinished tasks one caller may have.
    pub(crate) open_per_principal_max: u32,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            ttl_ms: 3_600_000,
            keep_ms: 600_000,
            poll_interval_ms: 500,
            first_poll_interval_ms: 100,
            inline_window_ms: 100,
            linger_ms: 30_000,
            // They hold slots that calls may be waiting for.
            lingering_max: 128,
            // A guest in Rust counts 1.3 MiB, one in Python some 30.
            waiting_bytes_max: 512 << 20,
            // Some ten thousand tasks of usual size.
            running_bytes_max: 256 << 20,
            grace_ms: 1_000,
            crashes_max: 5,
            // They take disk; memory only while they run.
            open_per_principal_max: 131_072,
        }
    }
}

/// Where tasks are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Store {
    /// The database.
    pub(crate) engine: StoreEngine,
}

/// Limits of the host, the same for all plugins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostLimits {
    /// How long a plain call's question can be answered, in milliseconds.
    pub(crate) input_time_ms: u64,
    /// Guests alive at once.
    pub(crate) concurrent_runs: u32,
    /// Calls of tools by one principal, or from one address where there are no tokens, in a minute; 0: no limit.
    pub(crate) calls_per_minute: u32,
    /// Calls that wait for a guest to end.
    pub(crate) queued_calls: u32,
    /// Size of a component file, in bytes.
    pub(crate) component_bytes: u64,
    /// Memory of the compiler, in bytes.
    pub(crate) compile_memory_bytes: u64,
    /// Time of the compiler, in seconds of one core.
    pub(crate) compile_cpu_s: u64,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            // A person answers within minutes, or not at all.
            input_time_ms: 600_000,
            concurrent_runs: 256,
            calls_per_minute: 0,
            queued_calls: 1_024,
            component_bytes: 64 << 20,
            // A JavaScript or Python component takes 600 MB and 15 s of one core.
            compile_memory_bytes: 2 << 30,
            compile_cpu_s: 120,
        }
    }
}

/// Put what was written over the limits that hold otherwise. Keys that are not of this kind are left in `written`.
fn overlaid<L>(base: &L, written: &mut toml::Table, table: &str) -> Result<L, ConfigError>
where
    L: Serialize + DeserializeOwned,
{
    let wrong = |key: &str, value: &toml::Value, expected: &str| ConfigError::Value {
        key: format!("{table}.{key}"),
        value: value.to_string(),
        expected: expected.to_owned(),
    };
    // Both directions are total: the fields of `L` are whole numbers.
    let mut limits = toml::Table::try_from(base)
        .map_err(|error| ConfigError::Syntax(Box::new(serde::de::Error::custom(error))))?;
    for key in limits.keys().cloned().collect::<Vec<_>>() {
        let Some(stated) = written.remove(&key) else {
            continue;
        };
        if stated.as_integer().is_none_or(|number| number < 0) {
            return Err(wrong(&key, &stated, "a whole number, not below 0"));
        }
        limits.insert(key.clone(), stated.clone());
        // Which fields are too narrow for it, only their type knows.
        if L::deserialize(limits.clone()).is_err() {
            return Err(wrong(&key, &stated, "a whole number, at most 4294967295"));
        }
    }
    limits
        .try_into()
        .map_err(|error| ConfigError::Syntax(Box::new(error)))
}

/// Refuse what is left of a table.
fn nothing_left(written: &toml::Table, table: &str) -> Result<(), ConfigError> {
    match written.keys().next() {
        Some(key) => Err(ConfigError::Unknown {
            key: format!("{table}.{key}"),
        }),
        None => Ok(()),
    }
}

/// `[plugins.NAME]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenPlugin {
    /// Those of a run only.
    limits: toml::Table,
    unmetered: bool,
    grants: WrittenGrants,
    tools: BTreeMap<String, WrittenTool>,
    prefix: String,
    pin_definitions: Option<bool>,
}

/// `[plugins.NAME.tools.TOOL]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenTool {
    task_support: Option<TaskSupport>,
    on_crash: Option<OnCrash>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnCrash {
    Resume,
    Rerun,
    Fail,
}

impl From<OnCrash> for longshore_tasks::OnCrash {
    fn from(written: OnCrash) -> Self {
        match written {
            OnCrash::Resume => Self::Resume,
            OnCrash::Rerun => Self::Rerun,
            OnCrash::Fail => Self::Fail,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TaskSupport {
    Forbidden,
    Optional,
    Required,
}

impl From<TaskSupport> for contract::TaskSupport {
    fn from(written: TaskSupport) -> Self {
        match written {
            TaskSupport::Forbidden => Self::Forbidden,
            TaskSupport::Optional => Self::Optional,
            TaskSupport::Required => Self::Required,
        }
    }
}

impl Written {
    /// The values to run by, not yet checked for sense.
    pub(super) fn resolve(mut self, flags: Flags) -> Result<Config, ConfigError> {
        let limits = overlaid(&Limits::default(), &mut self.limits, "limits")?;
        let host = overlaid(&HostLimits::default(), &mut self.limits, "limits")?;
        nothing_left(&self.limits, "limits")?;
        let data_dir = flags.data_dir.unwrap_or(self.data_dir);
        let plugins = self.plugins.into_iter().map(|(name, plugin)| {
            let plugin = plugin.resolve(&name, &limits)?;
            Ok((name, plugin))
        });
        Ok(Config {
            listen: flags.listen.unwrap_or(self.listen),
            plugins_dir: flags.plugins_dir.unwrap_or(self.plugins_dir),
            compile_cache_dir: self
                .compile_cache_dir
                .unwrap_or_else(|| data_dir.join("cache")),
            compile_cache_bytes_max: self.compile_cache_bytes_max,
            data_dir,
            state_key_files: self.state_key_files,
            pin_definitions: self.pin_definitions,
            history_versions: self.history_versions,
            usage_in_results: self.usage_in_results,
            dev: flags.dev,
            log: self.log,
            http: self.http,
            auth: self.auth.resolve()?,
            sessions: self.sessions,
            routing: self.routing,
            lists: self.lists,
            resources: self.resources,
            listening: self.subscriptions,
            tasks: self.tasks,
            store: self.store,
            plugins: plugins.collect::<Result<_, ConfigError>>()?,
            limits,
            host,
        })
    }
}

impl WrittenPlugin {
    fn resolve(mut self, name: &str, base: &Limits) -> Result<PluginConfig, ConfigError> {
        let table = format!("plugins.{name}.limits");
        let limits = overlaid(base, &mut self.limits, &table)?;
        nothing_left(&self.limits, &table)?;
        let tools = || self.tools.iter();
        let support = |(tool, written): (&String, &WrittenTool)| {
            Some((tool.clone(), written.task_support?.into()))
        };
        let on_crash = |(tool, written): (&String, &WrittenTool)| {
            Some((tool.clone(), written.on_crash?.into()))
        };
        let (grants, sources) = self.grants.resolve(&format!("plugins.{name}.grants"))?;
        Ok(PluginConfig {
            limits,
            unmetered: self.unmetered,
            grants,
            sources,
            task_support: tools().filter_map(support).collect(),
            on_crash: tools().filter_map(on_crash).collect(),
            prefix: self.prefix,
            pin_definitions: self.pin_definitions,
        })
    }
}
