//! The configuration: what an operator may choose, checked completely before a port is opened.
//!
//! It has two forms. `written` is what stands in the file: every key optional, unknown ones refused. [`Config`] is what the
//! program runs by: every value present and sensible. Flags win over the file. This is its only home: nothing else reads files
//! or the environment for settings.

mod callers;
mod check;
mod grants;
mod written;

use crate::auth::Tokens;
use grants::Sources;
use longshore_runtime::contract::TaskSupport;
use longshore_runtime::{Grants, Limits, Pins, PluginSettings};
use longshore_tasks::OnCrash;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use callers::SessionSettings;
pub(crate) use written::{CacheScope, Http, LogFormat, parse_address};

/// What the program runs by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Where to listen; port 0 is any free one.
    pub(crate) listen: SocketAddr,
    /// The folder whose `.wasm` files are served.
    pub(crate) plugins_dir: PathBuf,
    /// Tasks, keys, components.
    pub(crate) data_dir: PathBuf,
    /// Files with the key that seals `requestState`, and the one before it; none: the key lies in the data folder.
    pub(crate) state_key_files: Vec<PathBuf>,
    /// Compiled components.
    pub(crate) compile_cache_dir: PathBuf,
    /// Size of that folder, in bytes.
    pub(crate) compile_cache_bytes_max: u64,
    /// The log.
    pub(crate) log: written::Log,
    /// The transport.
    pub(crate) http: Http,
    /// Who may call.
    pub(crate) auth: Tokens,
    /// Sessions of older clients.
    pub(crate) sessions: SessionSettings,
    /// What gateways route by.
    pub(crate) routing: written::Routing,
    /// Lists.
    pub(crate) lists: written::Lists,
    /// What is read of resources.
    pub(crate) resources: written::Resources,
    /// Streams of notifications.
    pub(crate) listening: written::Listening,
    /// Tasks.
    pub(crate) tasks: written::Tasks,
    /// Where they are kept.
    pub(crate) store: written::Store,
    /// Limits of a run.
    pub(crate) limits: Limits,
    /// Limits of the host.
    pub(crate) host: written::HostLimits,
    /// Whether definitions change only by the operator's word.
    pub(crate) pin_definitions: bool,
    /// Versions of each plugin to which an operator may go back.
    pub(crate) history_versions: u32,
    /// Whether a result tells what its run used.
    pub(crate) usage_in_results: bool,
    /// Whether it serves the author of a plugin.
    pub(crate) dev: bool,
    /// What differs for one plugin, by its name.
    pub(crate) plugins: BTreeMap<String, PluginConfig>,
}

/// What differs for one plugin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PluginConfig {
    /// The limits of its runs.
    pub(crate) limits: Limits,
    /// Its work is not counted.
    pub(crate) unmetered: bool,
    /// What it may reach.
    pub(crate) grants: Grants,
    /// Variables of this process and secrets that its grants are to get, once they are read.
    pub(crate) sources: Sources,
    /// Task support of its tools where the operator's word counts, by tool.
    pub(crate) task_support: BTreeMap<String, TaskSupport>,
    /// What stands before the names of its tools and prompts.
    pub(crate) prefix: String,
    /// Whether its definitions change only by the operator's word, if that differs.
    pub(crate) pin_definitions: Option<bool>,
    /// What becomes of its calls when the server ends under them, where the operator's word counts, by tool.
    pub(crate) on_crash: BTreeMap<String, OnCrash>,
}

/// What the command line says; it wins over the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    /// `--listen`
    pub(crate) listen: Option<SocketAddr>,
    /// `--plugins`
    pub(crate) plugins_dir: Option<PathBuf>,
    /// `--data`
    pub(crate) data_dir: Option<PathBuf>,
    /// `--dev`
    pub(crate) dev: bool,
}

/// Why there is no configuration. The text names the file or the key, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {path} cannot be read: {error}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// What it says is not right.
    #[error("the configuration{}: {error}", in_file(.path.as_deref()))]
    In {
        /// Which file; none: the defaults and the flags.
        path: Option<PathBuf>,
        /// What is wrong.
        error: Box<ConfigError>,
    },
    /// It is no TOML, has an unknown key, or a value of the wrong type.
    #[error("{}", worded(.0))]
    Syntax(Box<toml::de::Error>),
    /// A key that is none.
    #[error("there is no key {key}; the sample file names all of them")]
    Unknown {
        /// The key, with its tables.
        key: String,
    },
    /// A grant of what is not there, or must not be granted.
    #[error("{key}: {problem}")]
    Grant {
        /// The key, with its tables.
        key: String,
        /// What is wrong, and what to do. Never a secret.
        problem: String,
    },
    /// A value that makes no sense.
    #[error("{key} is {value}; it must be {expected}")]
    Value {
        /// The key, with its tables.
        key: String,
        /// What was written.
        value: String,
        /// What can be.
        expected: String,
    },
}

fn in_file(path: Option<&Path>) -> String {
    path.map(|path| format!(" {}", path.display()))
        .unwrap_or_default()
}

/// The parser's words, without the names of our types.
fn worded(error: &toml::de::Error) -> String {
    let (whole, message) = (error.to_string(), error.message());
    let Some((what, expected)) = message.rsplit_once(", expected ") else {
        return whole;
    };
    let expected = match expected {
        "a sequence" => "a list",
        "a map" => "a table",
        "path string" => "a path",
        "u16" | "u32" | "u64" | "usize" => "a whole number, not below 0 and not too large",
        of_ours if of_ours.starts_with("struct ") => "a table",
        other => other,
    };
    // Behind the lines of the file, which may say the same.
    let at = whole.rfind(message).unwrap_or(whole.len());
    format!("{}{what}, expected {expected}\n", &whole[..at])
}

impl Config {
    /// Read the file, if there is one, and apply the flags.
    ///
    /// # Errors
    /// If the file cannot be read, or what it says is not right.
    pub(crate) fn load(path: Option<&Path>, flags: Flags) -> Result<Self, ConfigError> {
        let text = match path {
            Some(path) => std::fs::read_to_string(path).map_err(|error| ConfigError::Read {
                path: path.to_owned(),
                error,
            })?,
            None => String::new(),
        };
        let config = Self::parse(&text, flags).and_then(|config| grants::read(config, path));
        config.map_err(|error| ConfigError::In {
            path: path.map(Path::to_owned),
            error: Box::new(error),
        })
    }

    fn parse(text: &str, flags: Flags) -> Result<Self, ConfigError> {
        let written: written::Written =
            toml::from_str(text).map_err(|error| ConfigError::Syntax(Box::new(error)))?;
        let config = written.resolve(flags)?;
        check::check(&config)?;
        Ok(config)
    }

    /// What holds for a plugin of which the operator says nothing else.
    pub(crate) fn common_settings(&self) -> PluginSettings {
        PluginSettings {
            limits: self.limits.clone(),
            ..PluginSettings::default()
        }
    }

    /// What holds for the others, by name.
    pub(crate) fn own_settings(&self) -> HashMap<String, PluginSettings> {
        let own = |(name, plugin): (&String, &PluginConfig)| {
            let settings = PluginSettings {
                limits: plugin.limits.clone(),
                grants: Arc::new(plugin.grants.clone()),
                unmetered: plugin.unmetered,
            };
            (name.clone(), settings)
        };
        self.plugins.iter().map(own).collect()
    }

    /// Whose definitions change only by the operator's word.
    pub(crate) fn pins(&self) -> Pins {
        let pin = |(name, plugin): (&String, &PluginConfig)| {
            Some((name.clone(), plugin.pin_definitions?))
        };
        Pins {
            all: self.pin_definitions,
            plugins: self.plugins.iter().filter_map(pin).collect(),
        }
    }

    /// What stands before the names of a plugin's tools and prompts.
    pub(crate) fn prefix(&self, plugin: &str) -> &str {
        let plugin = self.plugins.get(plugin);
        plugin.map_or("", |plugin| &plugin.prefix)
    }

    /// The operator's word on the task support of a tool.
    pub(crate) fn task_support(&self, plugin: &str, tool: &str) -> Option<TaskSupport> {
        self.plugins.get(plugin)?.task_support.get(tool).copied()
    }

    /// The operator's word on what becomes of a tool's call when the server ends under it.
    pub(crate) fn on_crash(&self, plugin: &str, tool: &str) -> Option<OnCrash> {
        self.plugins.get(plugin)?.on_crash.get(tool).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../../../longshore.toml");

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Flags::default())
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    /// In the sample `#key` is a setting with its default, `# Text` is prose.
    fn uncommented(sample: &str) -> String {
        let setting = |line: &str| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest.to_owned(),
            _ => line.to_owned(),
        };
        sample.lines().map(setting).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_sample_changes_nothing_and_its_commented_values_are_the_defaults() {
        let defaults = parse("").unwrap();
        assert_eq!(parse(SAMPLE).unwrap(), defaults);
        let mut stated = parse(&uncommented(SAMPLE)).unwrap();
        assert!(stated.plugins.remove("example").is_some());
        assert_ne!(std::mem::take(&mut stated.auth), defaults.auth);
        assert_eq!(stated, defaults);
    }

    #[test]
    fn the_sample_names_every_key() {
        let uncommented = uncommented(SAMPLE);
        let limits = toml::Value::try_from(Limits::default()).unwrap();
        for key in limits.as_table().unwrap().keys() {
            assert!(
                uncommented
                    .lines()
                    .any(|line| line.starts_with(&format!("{key} = "))),
                "{key}"
            );
        }
    }

    #[test]
    fn the_page_of_limits_has_every_limit_and_its_default() {
        const PAGE: &str = include_str!("../../../docs/limits.md");
        let sample: toml::Table = uncommented(SAMPLE).parse().unwrap();
        let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
        let mut told = std::collections::BTreeSet::new();
        for row in rows {
            let cells: Vec<&str> = row.split(" | ").collect();
            let key = cells[0].trim_end_matches('`');
            let (table, name) = key.split_once('.').unwrap();
            let default = &sample[table][name];
            assert_eq!(cells[2], default.to_string(), "{key}");
            assert!(told.insert(key), "{key} is there twice");
        }
        for name in sample["limits"].as_table().unwrap().keys() {
            assert!(told.contains(format!("limits.{name}").as_str()), "{name}");
        }
        assert!(PAGE.contains("524288 bytes; ends"));
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        for (text, key) in [
            ("listne = \"127.0.0.1:1\"", "listne"),
            ("[http]\nbody_max = 1", "body_max"),
            ("[limits]\nfule = 1", "fule"),
            ("[plugins.a.limits]\nconcurrent_runs = 1", "concurrent_runs"),
            ("[plugins.a.tools.t]\nsupport = \"optional\"", "support"),
            ("[new]", "new"),
            ("[store]\nengin = \"redb\"", "engin"),
        ] {
            assert!(error(text).contains(key), "{}", error(text));
        }
    }

    #[test]
    fn a_value_of_another_type_is_told_in_words() {
        for (text, words) in [
            ("http = 3", "integer `3`, expected a table"),
            ("[plugins]\na = 1", "integer `1`, expected a table"),
            ("[plugins.a]\ngrants = 3", "integer `3`, expected a table"),
            ("[auth]\ntokens = 3", "integer `3`, expected a list"),
            ("data_dir = 3", "integer `3`, expected a path"),
            (
                "[tasks]\nttl_ms = -1 # expected u64",
                "expected a whole number, not below 0",
            ),
            (
                "[plugins.a.grants]\nhosts = [3]",
                "\"https://api.example.com\"",
            ),
            (
                "[plugins.a.grants]\nhosts = [{ ur = \"x\" }]",
                "\"https://api.example.com\"",
            ),
            (
                "[limits]\nqueued_calls = 99999999999",
                "limits.queued_calls is 99999999999; it must be a whole number, at most 4294967295",
            ),
        ] {
            let said = error(text);
            assert!(said.contains(words), "{text}: {said}");
            for ours in ["struct ", "Written", "enum ", "expected u64\n"] {
                assert!(!said.replace("# expected u64", "").contains(ours), "{said}");
            }
        }
    }

    #[test]
    fn senseless_values_are_refused_by_key() {
        for (text, key) in [
            ("listen = \"nowhere\"", "listen"),
            ("[lists]\npage_size = 0", "lists.page_size"),
            ("[tasks]\npoll_interval_ms = 0", "tasks.poll_interval_ms"),
            ("[limits]\nmemory_bytes = 0", "limits.memory_bytes"),
            (
                "[limits]\nmemory_bytes = 99999999999",
                "limits.memory_bytes",
            ),
            ("[limits]\nfuel = -1", "fuel"),
            (
                "[plugins.a.limits]\nwall_time_ms = 0",
                "plugins.a.limits.wall_time_ms",
            ),
            (
                "[http]\nallowed_origins = [\"example.com\"]",
                "http.allowed_origins",
            ),
            ("[http]\nallowed_hosts = [\"a/b\"]", "http.allowed_hosts"),
            ("[log]\nlevel = \"loud\"", "log.level"),
            ("[store]\nengine = \"postgres\"", "engine"),
            ("history_versions = 0", "history_versions"),
            ("state_key_files = [\"a\", \"b\", \"c\"]", "state_key_files"),
            ("state_key_files = [\"a\", \"a\"]", "state_key_files"),
            ("compile_cache_bytes_max = 0", "compile_cache_bytes_max"),
            ("[plugins.a]\nprefix = \"a/\"", "plugins.a.prefix"),
            ("[sessions]\nsessions_max = 0", "sessions.sessions_max"),
            (
                "[[auth.tokens]]\nprincipal = \"a\"\nsha256 = \"ab\"",
                "auth.tokens.sha256",
            ),
            (
                "[[auth.tokens]]\nprincipal = \"anonymous\"\nsha256 = \"\"",
                "auth.tokens.principal",
            ),
            (
                "[plugins.a.tools.t]\ntask_support = \"always\"",
                "task_support",
            ),
        ] {
            assert!(error(text).contains(key), "{text}: {}", error(text));
        }
    }

    #[test]
    fn flags_win_and_the_cache_follows_the_data() {
        let flags = Flags {
            data_dir: Some("/d".into()),
            ..Flags::default()
        };
        let config = Config::parse("data_dir = \"e\"\nplugins_dir = \"p\"", flags.clone()).unwrap();
        assert_eq!(config.data_dir, Path::new("/d"));
        assert_eq!(config.compile_cache_dir, Path::new("/d/cache"));
        assert_eq!(config.plugins_dir, Path::new("p"));
        let config = Config::parse("compile_cache_dir = \"c\"", flags).unwrap();
        assert_eq!(config.compile_cache_dir, Path::new("c"));
    }

    #[test]
    fn a_plugin_keeps_the_common_limits_but_for_its_own() {
        let config = parse("[limits]\nfuel = 5\n[plugins.a.limits]\nquestions = 1").unwrap();
        let limits = &config.plugins["a"].limits;
        assert_eq!((limits.fuel, limits.questions), (5, 1));
        assert_eq!(config.limits.questions, Limits::default().questions);
    }
}
