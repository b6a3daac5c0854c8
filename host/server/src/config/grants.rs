//! `[plugins.NAME.grants]`: what a plugin may reach.
//!
//! First it is read as it is written and checked for sense; then, at the start, what it names is looked up: folders must be
//! there, secrets and certificates are read. Values of secrets stand in no message.

use super::{Config, ConfigError};
use crate::http::gate;
use ipnet::IpNet;
use longshore_runtime::{Ask, DirectoryGrant, Grants, HostGrant, Variable};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Size of a file with a secret or certificates, in bytes: more is another file.
const NAMED_BYTES_MAX: u64 = 64 << 10;

/// As it stands in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenGrants {
    directories: Vec<WrittenDirectory>,
    environment: Vec<String>,
    settings: BTreeMap<String, toml::Value>,
    /// Not typed yet: an error of the parser would show a secret that stands here by mistake.
    secrets: BTreeMap<String, toml::Value>,
    hosts: Vec<WrittenHost>,
    ask: Option<Vec<Kind>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDirectory {
    host: PathBuf,
    guest: String,
    #[serde(default)]
    write: bool,
}

/// `"https://api.example.com"`, or a table where more is to be said.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a host must be as \"https://api.example.com\", or { url = \"...\", addresses = [...], ca_file = \"...\" }"
)]
enum WrittenHost {
    Url(String),
    Table(HostTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostTable {
    url: String,
    #[serde(default)]
    addresses: Vec<String>,
    ca_file: Option<PathBuf>,
}

/// Where a secret is read from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SecretSource {
    /// A variable of this process.
    Env(String),
    /// A file; one newline at its end does not count.
    File(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Elicitation,
    Sampling,
    Roots,
}

/// What is read at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    /// Variables of this process that the guest may see under the same name; those that are not set are not seen.
    environment: Vec<String>,
    /// By the name of the guest's variable.
    secrets: BTreeMap<String, SecretSource>,
}

impl WrittenGrants {
    /// The grants, but for what is read at the start. `table` is their place, for messages.
    pub(super) fn resolve(self, table: &str) -> Result<(Grants, Sources), ConfigError> {
        let settings = self.settings.iter().map(|(name, value)| {
            let value = plain(value).ok_or_else(|| {
                let problem = "must be a text, a number, true or false".to_owned();
                wrong(table, &format!("settings.{name}"), problem)
            })?;
            Ok(Variable {
                name: name.clone(),
                value,
                is_secret: false,
            })
        });
        let hosts = self.hosts.into_iter().map(|host| host.resolve(table));
        let grants = Grants {
            environment: settings.collect::<Result<_, ConfigError>>()?,
            directories: directories(self.directories, table)?,
            hosts: hosts.collect::<Result<_, _>>()?,
            ask: ask(self.ask),
        };
        let secrets = self.secrets.into_iter().map(|(name, source)| {
            let source = source.try_into().map_err(|_| {
                let problem = "must be { env = \"NAME\" } or { file = \"/path\" }".to_owned();
                wrong(table, &format!("secrets.{name}"), problem)
            })?;
            Ok((name, source))
        });
        let sources = Sources {
            environment: self.environment,
            secrets: secrets.collect::<Result<_, ConfigError>>()?,
        };
        check_names(&grants, &sources, table)?;
        Ok((grants, sources))
    }
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => {
            Some(value.to_string())
        }
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

fn ask(kinds: Option<Vec<Kind>>) -> Ask {
    let Some(kinds) = kinds else {
        return Ask::default();
    };
    Ask {
        elicitation: kinds.contains(&Kind::Elicitation),
        sampling: kinds.contains(&Kind::Sampling),
        roots: kinds.contains(&Kind::Roots),
    }
}

fn directories(
    written: Vec<WrittenDirectory>,
    table: &str,
) -> Result<Vec<DirectoryGrant>, ConfigError> {
    let mut seen = BTreeSet::new();
    let resolve = |directory: WrittenDirectory| {
        let guest = directory.guest.as_str();
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        let rest = guest.strip_prefix('/');
        if !rest.is_some_and(|rest| rest.split('/').all(is_plain)) {
            let problem = format!("guest is {guest:?}; it must be an absolute path, as \"/notes\"");
            return Err(wrong(table, "directories", problem));
        }
        if !seen.insert(directory.guest.clone()) {
            let problem = format!("{guest} is granted twice");
            return Err(wrong(table, "directories", problem));
        }
        Ok(DirectoryGrant {
            host: directory.host,
            guest: directory.guest,
            write: directory.write,
        })
    };
    written.into_iter().map(resolve).collect()
}

impl WrittenHost {
    /// The grant; the authorities that it trusts are not read yet.
    fn resolve(self, table: &str) -> Result<HostGrant, ConfigError> {
        let HostTable {
            url,
            addresses,
            ca_file,
        } = match self {
            Self::Url(url) => HostTable {
                url,
                addresses: Vec::new(),
                ca_file: None,
            },
            Self::Table(written) => written,
        };
        let problem = || {
            format!(
                "{url:?} must be http:// or https://, a host, and a port if it is not the usual one; no path and no *"
            )
        };
        let (scheme, authority) = url
            .split_once("://")
            .filter(|(scheme, authority)| {
                ["http", "https"].contains(scheme) && gate::is_host(authority)
            })
            .ok_or_else(|| wrong(table, "hosts", problem()))?;
        let authority: http::uri::Authority = authority
            .parse()
            .map_err(|_| wrong(table, "hosts", problem()))?;
        if authority.as_str().contains(['@', '*']) {
            return Err(wrong(table, "hosts", problem()));
        }
        let tls = scheme == "https";
        if ca_file.is_some() && !tls {
            let problem = format!("{url:?} has a ca_file, and only https:// has certificates");
            return Err(wrong(table, "hosts", problem));
        }
        let usual = if tls { 443 } else { 80 };
        let network = |text: &String| {
            let single = text.parse::<IpAddr>().map(IpNet::from).ok();
            single.or_else(|| text.parse().ok()).ok_or_else(|| {
                let problem =
                    format!("{text:?} must be an address or a network, as \"10.0.0.0/8\"");
                wrong(table, "hosts", problem)
            })
        };
        Ok(HostGrant {
            tls,
            host: authority.host().to_ascii_lowercase(),
            port: authority.port_u16().unwrap_or(usual),
            addresses: addresses.iter().map(network).collect::<Result<_, _>>()?,
            authorities: Vec::new(),
            ca_file,
        })
    }
}

/// Names of variables: exact ones, and each once.
fn check_names(grants: &Grants, sources: &Sources, table: &str) -> Result<(), ConfigError> {
    let settings = grants.environment.iter().map(|setting| &setting.name);
    let named = settings.map(|name| ("settings", name));
    let named = named.chain(sources.environment.iter().map(|name| ("environment", name)));
    let named = named.chain(sources.secrets.keys().map(|name| ("secrets", name)));
    let mut seen = BTreeSet::new();
    for (key, name) in named {
        if name.is_empty() || name.contains(['*', '=', '\0']) {
            let problem =
                format!("{name:?} is no name of a variable; each one is granted by its exact name");
            return Err(wrong(table, key, problem));
        }
        if !seen.insert(name) {
            return Err(wrong(table, key, format!("{name} is there twice")));
        }
    }
    Ok(())
}

fn wrong(table: &str, key: &str, problem: String) -> ConfigError {
    ConfigError::Grant {
        key: format!("{table}.{key}"),
        problem,
    }
}

/// Look up what the grants name. `path` is the configuration's own file.
///
/// # Errors
/// If a folder or a secret is not there, or a folder must not be granted.
pub(super) fn read(mut config: Config, path: Option<&Path>) -> Result<Config, ConfigError> {
    let ours = Ours::of(&config, path);
    for (name, plugin) in &mut config.plugins {
        let table = format!("plugins.{name}.grants");
        for directory in &plugin.grants.directories {
            ours.check(directory)
                .map_err(|problem| wrong(&table, "directories", problem))?;
        }
        let sources = std::mem::take(&mut plugin.sources);
        for name in sources.environment {
            // What is not set, the guest does not see either.
            if let Some(value) = variable(&name) {
                plugin.grants.environment.push(Variable {
                    name,
                    value,
                    is_secret: false,
                });
            }
        }
        for host in &mut plugin.grants.hosts {
            let Some(file) = &host.ca_file else {
                continue;
            };
            let problem = |error: String| format!("the ca_file {}: {error}", file.display());
            let read = read_whole(file).map_err(|error| error.to_string());
            let read = read.and_then(|pem| longshore_runtime::read_authorities(&pem));
            host.authorities = read.map_err(|error| wrong(&table, "hosts", problem(error)))?;
        }
        for (name, source) in sources.secrets {
            let value = source
                .read()
                .map_err(|problem| wrong(&table, &format!("secrets.{name}"), problem))?;
            plugin.grants.environment.push(Variable {
                name,
                value,
                is_secret: true,
            });
        }
    }
    Ok(config)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the home of configuration, and the operator named the variable"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl SecretSource {
    fn read(&self) -> Result<String, String> {
        let value = match self {
            Self::Env(name) => {
                variable(name).ok_or_else(|| format!("the variable {name} is not set"))?
            }
            Self::File(path) => read_secret(path)
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))?,
        };
        if value.is_empty() || value.contains('\0') {
            return Err("it is empty, or has a byte that no variable may have".to_owned());
        }
        Ok(value)
    }
}

fn read_secret(path: &Path) -> std::io::Result<String> {
    let text = String::from_utf8(read_whole(path)?).map_err(std::io::Error::other)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// A small file that a grant names.
fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = longshore_runtime::open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(NAMED_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > NAMED_BYTES_MAX {
        return Err(std::io::Error::other("it is larger than 64 KiB"));
    }
    Ok(bytes)
}

/// Folders of the server itself. What a plugin could reach of them it could grant itself.
struct Ours {
    /// Not even to be read: keys, other plugins' calls, compiled code.
    private: Vec<PathBuf>,
    /// Not to be written: plugins, and the configuration.
    unchanged: Vec<PathBuf>,
}

impl Ours {
    fn of(config: &Config, path: Option<&Path>) -> Self {
        Self {
            private: [&config.data_dir, &config.compile_cache_dir]
                .into_iter()
                .chain(&config.state_key_files)
                .flat_map(|own| places(own))
                .collect(),
            unchanged: path
                .into_iter()
                .chain([config.plugins_dir.as_path()])
                .flat_map(places)
                .collect(),
        }
    }

    fn check(&self, directory: &DirectoryGrant) -> Result<(), String> {
        let shown = directory.host.display();
        if !directory.host.is_dir() {
            return Err(format!(
                "there is no folder {shown}; make it, or name another one"
            ));
        }
        let folder = real(&directory.host);
        let overlaps = |own: &&PathBuf| own.starts_with(&folder) || folder.starts_with(own);
        let mut forbidden = self.private.iter().find(overlaps);
        if directory.write {
            forbidden = forbidden.or(self.unchanged.iter().find(overlaps));
        }
        match forbidden {
            Some(own) => Err(format!(
                "{shown} must not be granted: with {} in it, a plugin could give itself what it likes",
                own.display()
            )),
            None => Ok(()),
        }
    }
}

/// Where a path leads, and where its last part stands, which may be a link: who can put another in its place says where it leads.
fn places(path: &Path) -> Vec<PathBuf> {
    let mut places = vec![real(path)];
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) {
        places.push(real(folder).join(name));
    }
    places
}

/// A path without links and dots, also if its last parts are not there yet.
fn real(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole
        .ancestors()
        .find_map(|there| {
            let rest = whole.strip_prefix(there).ok()?;
            let there = there.canonicalize().ok()?;
            // To join nothing would put a slash behind a file.
            Some(if rest.as_os_str().is_empty() {
                there
            } else {
                there.join(rest)
            })
        })
        .unwrap_or(whole.clone())
}
