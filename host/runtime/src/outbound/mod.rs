//! HTTP requests of guests: where they may go, and how they go there.
//!
//! A request goes to exactly one granted scheme, host and port. The name is looked up once, each address is checked, and the
//! connection is made to an address that was checked, so a second look-up cannot lead elsewhere. Redirects are not followed:
//! the guest sees them, and its next request is checked like any other.
//!
//! It must not know of records; that a request is an effect is the guest's business.

mod address;
mod exchange;

pub use exchange::read_authorities;
pub(crate) use exchange::{Caps, Met, exchange};

use crate::grants::{Grants, HostGrant};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// Where a request wants to go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    tls: bool,
    /// Lower case; an address of IPv6 in brackets.
    host: String,
    port: u16,
}

impl Target {
    /// Read an authority. `None`: it is none, or says more than host and port.
    pub(crate) fn read(tls: bool, authority: &str) -> Option<Self> {
        let authority: http::uri::Authority = authority.parse().ok()?;
        // A name before an @ is there to be mistaken for the host.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            // As in "host:" or "host:99999".
            None if authority.as_str().len() > authority.host().len() => return None,
            None if tls => 443,
            None => 80,
        };
        Some(Self {
            tls,
            host: authority.host().to_ascii_lowercase(),
            port,
        })
    }

    /// The least grant that would allow it, as far as its name tells: an address that is not public must be named too.
    pub(crate) fn wanted(&self) -> HostGrant {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<IpAddr>().ok();
        let hidden = address.filter(|address| !address::is_allowed(*address, &[]));
        HostGrant {
            tls: self.tls,
            host: self.host.clone(),
            port: self.port,
            addresses: hidden.map(IpNet::from).into_iter().collect(),
            authorities: Vec::new(),
            ca_file: None,
        }
    }

    /// The grant that allows it.
    pub(crate) fn grant<'a>(&self, grants: &'a Grants) -> Option<&'a HostGrant> {
        grants.hosts.iter().find(|grant| {
            (grant.tls, grant.host.as_str(), grant.port)
                == (self.tls, self.host.as_str(), self.port)
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wanted().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants() -> Grants {
        let host = |tls, host: &str, port| HostGrant {
            tls,
            host: host.to_owned(),
            port,
            addresses: Vec::new(),
            authorities: Vec::new(),
            ca_file: None,
        };
        Grants {
            hosts: vec![host(true, "api.test", 443), host(false, "[::1]", 8080)],
            ..Grants::default()
        }
    }

    #[test]
    fn only_the_very_host_is_granted() {
        let grants = grants();
        let allowed = |tls, authority| {
            Target::read(tls, authority).is_some_and(|target| target.grant(&grants).is_some())
        };
        for authority in ["api.test", "API.test", "api.test:443"] {
            assert!(allowed(true, authority), "{authority}");
        }
        assert!(allowed(false, "[::1]:8080"));
        for authority in [
            "",
            "api.test.evil.test",
            "evil.test",
            "xapi.test",
            "api.test.",
            "api.test@evil.test",
            "evil.test@api.test",
            "api.test:444",
            "api.test:",
            "api.test:99999",
            "127.0.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "2130706433",
            "0x7f.1",
            "*.test",
            "api.test/",
            "api.test?x",
            "api.test#x",
            "api%2etest",
            "api.test evil.test",
        ] {
            assert!(!allowed(true, authority), "{authority}");
        }
        // Another scheme is another place.
        assert!(!allowed(false, "api.test") && !allowed(false, "api.test:443"));
    }
}
