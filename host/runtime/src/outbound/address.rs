//! Which addresses belong to the public internet.
//!
//! Everything else (this machine, its networks, the metadata services of clouds) is reached only by a grant that names it.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not public, beside those that the standard library knows. From the special-purpose registry of
/// IANA; the last is the metadata service of a cloud, at an address that looks public.
const SPECIAL_V4: [([u8; 4], u8); 8] = [
    ([0, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([192, 0, 0, 0], 24),
    ([192, 88, 99, 0], 24),
    ([198, 18, 0, 0], 15),
    ([240, 0, 0, 0], 4),
    ([224, 0, 0, 0], 4),
    ([168, 63, 129, 16], 32),
];

/// Global unicast of IPv6; what lies outside is local, multicast or reserved.
const GLOBAL_V6: (u16, u16) = (0x2000, 0x3fff);

/// Whether a connection to this address may be made: it is public, or in one of `granted`.
pub(super) fn is_allowed(address: IpAddr, granted: &[IpNet]) -> bool {
    let address = address.to_canonical();
    is_public(address) || granted.iter().any(|network| network.contains(&address))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = u32::from(address);
    let special = SPECIAL_V4.iter().any(|(network, prefix)| {
        let mask = u32::MAX << (32 - u32::from(*prefix));
        bits & mask == u32::from(Ipv4Addr::from(*network))
    });
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4_at = |place: usize| {
        let [high, low] = [parts[place], parts[place + 1]].map(u32::from);
        Ipv4Addr::from((high << 16) | low)
    };
    match parts {
        // Translation to IPv4 (NAT64, 6to4): what counts is where it leads.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => is_public_v4(v4_at(6)),
        [0x2002, ..] => is_public_v4(v4_at(1)),
        // Protocol assignments with Teredo and ORCHID, and documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => (GLOBAL_V6.0..=GLOBAL_V6.1).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.9.9.9",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_allowed(address.parse().unwrap(), &[]), "{address}");
        }
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "100.128.0.1",
            "172.32.0.1",
            "192.1.0.1",
            "198.20.0.1",
            "::ffff:1.1.1.1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "2002:101:101::",
        ] {
            assert!(is_allowed(address.parse().unwrap(), &[]), "{address}");
        }
    }

    #[test]
    fn a_granted_network_is_allowed_and_no_other() {
        let granted: Vec<IpNet> = vec!["10.1.0.0/16".parse().unwrap(), "::1/128".parse().unwrap()];
        for (address, allowed) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("10.2.0.1", false),
            ("::1", true),
            ("127.0.0.1", false),
        ] {
            assert_eq!(
                is_allowed(address.parse().unwrap(), &granted),
                allowed,
                "{address}"
            );
        }
    }
}
