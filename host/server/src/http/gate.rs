//! Who may speak to us at all: `Host` and `Origin`, against pages that a browser loaded elsewhere (DNS rebinding).
//!
//! It must not know what is said.

use crate::config::Http;
use http::header::{HOST, ORIGIN};
use http::request::Parts;
use std::net::{Ipv6Addr, SocketAddr};

/// The hosts and origins that are taken.
#[derive(Debug)]
pub(crate) struct Gate {
    hosts: Vec<Host>,
    origins: Vec<String>,
}

/// A host as it stands in a URL, in lower case. Without a port it means any port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    name: String,
    port: Option<u16>,
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':')?),
                };
                (format!("[{address}]"), port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name.to_ascii_lowercase(), Some(port)),
                None => (text.to_ascii_lowercase(), None),
            },
        };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
        if name.is_empty() || !name.bytes().all(allowed) {
            return None;
        }
        let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            Some(port) if digits(port) => Some(port.parse().ok()?),
            Some(_) => return None,
            None => None,
        };
        Some(Self { name, port })
    }

    fn of_address(address: SocketAddr) -> Self {
        let name = match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        };
        Self {
            name,
            port: Some(address.port()),
        }
    }

    /// Whether this entry admits `stated`, which without a port means the `usual` one.
    fn admits(&self, stated: &Self, usual_port: u16) -> bool {
        self.name == stated.name
            && self
                .port
                .is_none_or(|port| port == stated.port.unwrap_or(usual_port))
    }
}

/// A scheme with its usual port, and the rest.
fn split_origin(text: &str) -> Option<(u16, &str)> {
    let (scheme, host) = text.split_once("://")?;
    match scheme {
        "http" => Some((80, host)),
        "https" => Some((443, host)),
        _ => None,
    }
}

/// Whether a text can stand in `allowed_hosts`.
pub(crate) fn is_host(text: &str) -> bool {
    Host::parse(text).is_some()
}

/// Whether a text can stand in `allowed_origins`.
pub(crate) fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, host)| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        !scheme.is_empty() && scheme.bytes().all(allowed) && Host::parse(host).is_some()
    })
}

impl Gate {
    /// The gate of a server that listens at `address`.
    pub(crate) fn new(address: SocketAddr, config: &Http) -> Self {
        let loopback = |name: &str| Host {
            name: name.to_owned(),
            port: Some(address.port()),
        };
        let mut hosts = vec![
            loopback("localhost"),
            loopback("127.0.0.1"),
            loopback("[::1]"),
        ];
        // Nobody speaks to 0.0.0.0; there the operator has to name the hosts.
        if !address.ip().is_unspecified() {
            hosts.push(Host::of_address(address));
        }
        hosts.extend(
            config
                .allowed_hosts
                .iter()
                .filter_map(|host| Host::parse(host)),
        );
        let origins = config
            .allowed_origins
            .iter()
            .map(|origin| origin.to_ascii_lowercase());
        Self {
            hosts,
            origins: origins.collect(),
        }
    }

    /// Whether a request may pass.
    ///
    /// # Errors
    /// What is wrong with it, and the setting that would let it pass.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), String> {
        self.check_host(request)?;
        self.check_origin(request)
    }

    fn check_host(&self, request: &Parts) -> Result<(), String> {
        // On HTTP/2 the host is in the request line; where it is in both places, both count.
        let authority = request.uri.authority().map(http::uri::Authority::as_str);
        let mut headers = request.headers.get_all(HOST).iter();
        let header = headers
            .next()
            .map(|value| value.to_str().unwrap_or_default());
        if headers.next().is_some() {
            return Err("the header Host is there twice".to_owned());
        }
        if authority.is_none() && header.is_none() {
            return Err("the header Host is missing".to_owned());
        }
        authority.into_iter().chain(header).try_for_each(|stated| {
            if self.is_allowed(stated, 80) {
                return Ok(());
            }
            let stated = crate::wire::error::shortened(stated);
            Err(format!("the host {stated} is not served here; the operator can allow it: http.allowed_hosts"))
        })
    }

    fn check_origin(&self, request: &Parts) -> Result<(), String> {
        let mut headers = request.headers.get_all(ORIGIN).iter();
        let Some(origin) = headers.next() else {
            return Ok(());
        };
        if headers.next().is_some() {
            return Err("the header Origin is there twice".to_owned());
        }
        let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        let is_ours =
            || split_origin(&origin).is_some_and(|(port, host)| self.is_allowed(host, port));
        if self.origins.contains(&origin) || is_ours() {
            return Ok(());
        }
        let origin = crate::wire::error::shortened(&origin);
        Err(format!(
            "pages of the origin {origin} may not call; the operator can allow it: http.allowed_origins"
        ))
    }

    fn is_allowed(&self, stated: &str, usual_port: u16) -> bool {
        let Some(stated) = Host::parse(stated) else {
            return false;
        };
        self.hosts
            .iter()
            .any(|host| host.admits(&stated, usual_port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn gate(listen: &str, hosts: &[&str], origins: &[&str]) -> Gate {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        let config = Http {
            allowed_hosts: owned(hosts),
            allowed_origins: owned(origins),
            ..Http::default()
        };
        Gate::new(listen.parse().unwrap(), &config)
    }

    fn passes(gate: &Gate, uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        gate.check(&request.body(()).unwrap().into_parts().0)
            .is_ok()
    }

    #[test]
    fn loopback_names_and_the_listening_address_are_hosts() {
        let gate = gate("192.0.2.1:7777", &[], &[]);
        for host in [
            "localhost:7777",
            "LOCALHOST:7777",
            "127.0.0.1:7777",
            "[::1]:7777",
            "192.0.2.1:7777",
        ] {
            assert!(passes(&gate, "/mcp", &[("host", host)]), "{host}");
        }
        for host in [
            "localhost",
            "localhost:7778",
            "evil.example.com:7777",
            "localhost.evil.example:7777",
            "127.0.0.1.evil.example:7777",
            "user@localhost:7777",
            "localhost:7777/",
            "localhost:+7777",
            "[::1:7777",
            "0.0.0.0:7777",
            "",
        ] {
            assert!(!passes(&gate, "/mcp", &[("host", host)]), "{host}");
        }
        assert!(!passes(&gate, "/mcp", &[]));
        let twice = [("host", "localhost:7777"), ("host", "localhost:7777")];
        assert!(!passes(&gate, "/mcp", &twice));
    }

    #[test]
    fn the_request_line_counts_too() {
        let gate = gate("127.0.0.1:7777", &[], &[]);
        assert!(passes(&gate, "http://127.0.0.1:7777/mcp", &[]));
        assert!(!passes(&gate, "http://evil.example.com/mcp", &[]));
        assert!(!passes(
            &gate,
            "http://evil.example.com/mcp",
            &[("host", "localhost:7777")]
        ));
        assert!(!passes(
            &gate,
            "http://localhost:7777/mcp",
            &[("host", "evil.example.com")]
        ));
    }

    #[test]
    fn on_port_80_a_host_needs_no_port() {
        assert!(passes(
            &gate("127.0.0.1:80", &[], &[]),
            "/mcp",
            &[("host", "localhost")]
        ));
    }

    #[test]
    fn origins_are_absent_ours_or_allowed() {
        let gate = gate(
            "127.0.0.1:7777",
            &["mcp.example.com"],
            &["https://app.example.com"],
        );
        let with = |origins: &[&str]| {
            let mut headers = vec![("host", "localhost:7777")];
            headers.extend(origins.iter().map(|origin| ("origin", *origin)));
            passes(&gate, "/mcp", &headers)
        };
        assert!(with(&[]));
        for origin in [
            "http://localhost:7777",
            "http://[::1]:7777",
            "https://app.example.com",
            "https://mcp.example.com",
        ] {
            assert!(with(&[origin]), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost",
            "http://localhost:1",
            "http://127.0.0.1.evil.example:7777",
            "https://app.example.com:8443",
            "http://app.example.com",
            "file://localhost:7777",
        ] {
            assert!(!with(&[origin]), "{origin}");
        }
        assert!(!with(&["http://localhost:7777", "http://localhost:7777"]));
    }

    #[test]
    fn a_configured_host_without_a_port_means_any() {
        let gate = gate("0.0.0.0:7777", &["a.example", "b.example:1"], &[]);
        for (host, allowed) in [
            ("a.example", true),
            ("a.example:9", true),
            ("b.example:1", true),
            ("b.example:2", false),
            ("0.0.0.0:7777", false),
        ] {
            assert_eq!(passes(&gate, "/mcp", &[("host", host)]), allowed, "{host}");
        }
    }
}
