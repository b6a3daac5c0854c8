//! What a plugin may reach beside its imports: nothing, unless the operator says so.
//!
//! Grants are values. They are made from the configuration at the start and never change: nothing that a client or a guest can
//! call leads here.
//!
//! This module must not know how a grant is enforced.

use crate::unseen::is_unseen;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A plugin's name as a key of the configuration.
pub fn key_of(plugin: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !plugin.is_empty() && plugin.bytes().all(bare) {
        return plugin.to_owned();
    }
    quoted(plugin)
}

/// A text as a value of the configuration.
fn quoted(text: &str) -> String {
    // A string of JSON is a basic string of TOML, but for a control character that JSON does not escape. That goes with all
    // that is not seen: an operator must see what the line grants.
    let quoted = serde_json::Value::from(text).to_string();
    let shown = |character: char| match u32::from(character) {
        code @ 0x1_0000.. if is_unseen(character) => format!("\\U{code:08x}"),
        code if is_unseen(character) => format!("\\u{code:04x}"),
        _ => character.to_string(),
    };
    quoted.chars().map(shown).collect()
}

/// `key = [entry, entry]`.
fn line(key: &str, entries: impl Iterator<Item = String>) -> String {
    let entries: Vec<_> = entries.collect();
    format!("{key} = [{}]", entries.join(", "))
}

/// What one plugin may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Folders.
    pub directories: Vec<DirectoryGrant>,
    /// Environment variables of the guest: granted ones of the server, settings, and secrets.
    pub environment: Vec<Variable>,
    /// Where it may send HTTP requests.
    pub hosts: Vec<HostGrant>,
    /// What it may ask the client.
    pub ask: Ask,
}

/// A folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirectoryGrant {
    /// Where it is.
    pub host: PathBuf,
    /// Under which absolute path the guest sees it.
    pub guest: String,
    /// Whether the guest may change what is in it.
    pub write: bool,
}

/// An environment variable of a guest. Its value is never shown.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether the value must not be seen in a log, also if the guest prints it.
    pub is_secret: bool,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A place for HTTP requests: exactly this scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostGrant {
    /// Whether it is `https`.
    pub tls: bool,
    /// A name in lower case, or an address; one of IPv6 in brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Addresses of private networks, or of this machine, that the host may have. Public ones are always right.
    pub addresses: Vec<IpNet>,
    /// Certificates (DER) of the authorities that the host's own must come from. Empty: the public ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorities: Vec<Vec<u8>>,
    /// The file that these were read from: only its name in the configuration, and no part of the print.
    #[serde(skip)]
    pub ca_file: Option<PathBuf>,
}

impl DirectoryGrant {
    /// As an entry of the configuration.
    fn entry(&self) -> String {
        let (host, guest) = (quoted(&self.host.to_string_lossy()), quoted(&self.guest));
        let write = if self.write { ", write = true" } else { "" };
        format!("{{ host = {host}, guest = {guest}{write} }}")
    }
}

impl HostGrant {
    /// As an entry of the configuration.
    fn entry(&self) -> String {
        let url = quoted(&self.to_string());
        if self.addresses.is_empty() && self.ca_file.is_none() {
            return url;
        }
        let mut entry = format!("{{ url = {url}");
        if !self.addresses.is_empty() {
            let address = |net: &IpNet| match net.prefix_len() == net.max_prefix_len() {
                true => quoted(&net.addr().to_string()),
                false => quoted(&net.to_string()),
            };
            let addresses: Vec<_> = self.addresses.iter().map(address).collect();
            entry.push_str(&format!(", addresses = [{}]", addresses.join(", ")));
        }
        if let Some(file) = &self.ca_file {
            let file = quoted(&file.to_string_lossy());
            entry.push_str(&format!(", ca_file = {file}"));
        }
        entry + " }"
    }

    fn is_of(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }
}

impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, usual) = if self.tls {
            ("https", 443)
        } else {
            ("http", 80)
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != usual {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

/// What a plugin may ask the client, if the client can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// Forms and pages for a person.
    pub elicitation: bool,
    /// Texts of a model.
    pub sampling: bool,
    /// The folders a client works in.
    pub roots: bool,
}

impl Default for Ask {
    fn default() -> Self {
        // The client decides again, and a person is asked: what to withhold is the operator's choice.
        Self {
            elicitation: true,
            sampling: true,
            roots: true,
        }
    }
}

/// Names the grants that a record was made under, in its call. Two that are the same have the same print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantsPrint([u8; 16]);

impl Grants {
    /// The line of the configuration that grants these folders, and one more, or more of one of them.
    pub(crate) fn line_with_folder(&self, more: &DirectoryGrant) -> String {
        let mut folders = self.directories.clone();
        match folders.iter_mut().find(|known| known.guest == more.guest) {
            Some(known) => known.write |= more.write,
            None => folders.push(more.clone()),
        }
        line("directories", folders.iter().map(DirectoryGrant::entry))
    }

    /// The line that grants these hosts, and one more, or more addresses of one of them.
    pub(crate) fn line_with_host(&self, more: &HostGrant) -> String {
        let mut hosts = self.hosts.clone();
        match hosts.iter_mut().find(|known| known.is_of(more)) {
            Some(known) => known.addresses.extend(&more.addresses),
            None => hosts.push(more.clone()),
        }
        line("hosts", hosts.iter().map(HostGrant::entry))
    }

    /// The print of these grants, values of variables included.
    pub fn print(&self) -> GrantsPrint {
        let Self {
            directories,
            environment,
            hosts,
            ask,
        } = self;
        // A tuple of plain values in one fixed layout; writing it to memory cannot fail.
        let bytes = rmp_serde::to_vec(&(directories, environment, hosts, ask)).unwrap_or_default();
        let mut print = [0; 16];
        print.copy_from_slice(&blake3::derive_key("longshore grants 1", &bytes)[..16]);
        GrantsPrint(print)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_secret(value: &str) -> Grants {
        Grants {
            environment: vec![Variable {
                name: "KEY".to_owned(),
                value: value.to_owned(),
                is_secret: true,
            }],
            ..Grants::default()
        }
    }

    #[test]
    fn each_grant_is_in_the_print() {
        let nothing = Grants::default();
        assert_eq!(nothing.print(), Grants::default().print());
        let silent = Grants {
            ask: Ask {
                roots: false,
                ..Ask::default()
            },
            ..Grants::default()
        };
        let folder = Grants {
            directories: vec![DirectoryGrant {
                host: "/h".into(),
                guest: "/g".to_owned(),
                write: false,
            }],
            ..Grants::default()
        };
        let prints = [
            nothing.print(),
            silent.print(),
            folder.print(),
            with_secret("a").print(),
            with_secret("b").print(),
        ];
        for (place, print) in prints.iter().enumerate() {
            assert!(!prints[..place].contains(print), "{place}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let shown = format!("{:?}", with_secret("s3cr3t"));
        assert!(
            shown.contains("KEY") && !shown.contains("s3cr3t"),
            "{shown}"
        );
    }

    #[test]
    fn a_host_is_written_as_in_the_configuration() {
        let host = |tls, host: &str, port| HostGrant {
            tls,
            host: host.to_owned(),
            port,
            addresses: Vec::new(),
            authorities: Vec::new(),
            ca_file: None,
        };
        for (grant, text) in [
            (host(true, "a.test", 443), "https://a.test"),
            (host(true, "a.test", 80), "https://a.test:80"),
            (host(false, "[::1]", 8080), "http://[::1]:8080"),
        ] {
            assert_eq!(grant.to_string(), text);
        }
    }
}
