//! An entry of a list of `destinations`: `10.2.0.0/16:10250`, `[fd00::]/8:22`, `registry.site:5000`.
//!
//! Both halves have such a list, and each checks its own.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderName;
use serde::{Deserialize, Deserializer};

use crate::Authority;

/// The header of a CONNECT by which a client names the cluster to whose site the bytes go. Sites often have the same private addresses.
pub const CLUSTER: HeaderName = HeaderName::from_static("atoll-cluster");

/// The group whose members may reach the destinations of a cluster, and that has no rights in it.
pub const GROUP: &str = "atoll:destinations";

/// A set of addresses with one port, or one host with one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// All addresses with the same leading bits.
    Network {
        /// An address of the network.
        address: IpAddr,
        /// The length of the prefix, in bits.
        prefix: u8,
        /// The port.
        port: u16,
    },
    /// Exactly this host and port.
    Host(Authority),
}

/// The text is not a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a destination: write NETWORK/PREFIX:PORT or HOST:PORT, for example 10.2.0.0/16:10250")]
pub struct InvalidDestination;

// === impl Destination ===

impl Destination {
    /// Whether an authority may be dialled. A network contains addresses of the machine itself and of its link, such as that of a
    /// cloud's metadata service, only if it is a part of their range: `0.0.0.0/0` contains none of them. A name matches only a name: nobody resolves it before this check, so
    /// a network never allows a name.
    pub fn covers(&self, authority: &Authority) -> bool {
        match self {
            Self::Host(host) => host == authority,
            Self::Network { address, prefix, port } => {
                let Ok(candidate) = authority.host().parse::<IpAddr>() else { return false };
                // The kernel connects to an IPv4 address if it is written as an IPv6 one.
                let candidate = candidate.to_canonical();
                *port == authority.port()
                    && same_network(*address, candidate, *prefix)
                    && special_range(candidate).is_none_or(|range| *prefix >= range)
            }
        }
    }
}

impl FromStr for Destination {
    type Err = InvalidDestination;

    fn from_str(text: &str) -> Result<Self, InvalidDestination> {
        let Some((address, rest)) = text.split_once('/') else {
            return text.parse().map(Self::Host).map_err(|_| InvalidDestination);
        };
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let address: IpAddr = address.parse().map_err(|_| InvalidDestination)?;
        let (prefix, port) = rest.split_once(':').ok_or(InvalidDestination)?;
        let prefix: u8 = prefix.parse().map_err(|_| InvalidDestination)?;
        let port: u16 = port.parse().map_err(|_| InvalidDestination)?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        if prefix > widest || port == 0 {
            return Err(InvalidDestination);
        }
        Ok(Self::Network { address, prefix, port })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Network { address: IpAddr::V4(address), prefix, port } => write!(f, "{address}/{prefix}:{port}"),
            Self::Network { address: IpAddr::V6(address), prefix, port } => write!(f, "[{address}]/{prefix}:{port}"),
        }
    }
}

impl<'de> Deserialize<'de> for Destination {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The prefix of the range of an address that is not one of the site: unspecified, loopback, link-local, multicast.
fn special_range(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(address) if address.is_unspecified() || address.is_broadcast() => Some(32),
        IpAddr::V4(address) if address.is_loopback() => Some(8),
        IpAddr::V4(address) if address.is_link_local() => Some(16),
        IpAddr::V4(address) if address.is_multicast() => Some(4),
        IpAddr::V6(address) if address.is_unspecified() || address.is_loopback() => Some(128),
        IpAddr::V6(address) if address.is_unicast_link_local() => Some(10),
        IpAddr::V6(address) if address.is_multicast() => Some(8),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

fn same_network(one: IpAddr, other: IpAddr, prefix: u8) -> bool {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            (one.to_bits() ^ other.to_bits()) & mask == 0
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            (one.to_bits() ^ other.to_bits()) & mask == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(destination: &str, authority: &str) -> bool {
        destination.parse::<Destination>().unwrap().covers(&authority.parse().unwrap())
    }

    #[test]
    fn networks_and_hosts() {
        assert!(covers("10.2.0.0/16:10250", "10.2.255.1:10250"));
        assert!(!covers("10.2.0.0/16:10250", "10.3.0.1:10250"));
        assert!(!covers("10.2.0.0/16:10250", "10.2.0.1:22"));
        assert!(!covers("10.2.0.0/16:10250", "node.site:10250"));
        assert!(covers("[fd00::]/8:22", "[fd12::1]:22"));
        assert!(covers("0.0.0.0/0:80", "1.2.3.4:80"));
        assert!(!covers("0.0.0.0/0:80", "[::1]:80"));
        assert!(covers("registry.site:5000", "Registry.site:5000"));
    }

    #[test]
    fn a_network_does_not_contain_the_machine_itself() {
        for special in
            ["127.0.0.1:22", "0.0.0.0:22", "169.254.169.254:22", "224.0.0.1:22", "255.255.255.255:22", "[::1]:22"]
        {
            assert!(!covers("0.0.0.0/0:22", special) && !covers("[::]/0:22", special), "{special}");
        }
        assert!(covers("127.0.0.0/8:22", "127.0.0.1:22") && covers("169.254.0.0/16:22", "169.254.169.254:22"));
        // An IPv4 address, however it is written.
        assert!(covers("10.2.0.0/16:22", "[::ffff:10.2.0.1]:22") && !covers("[::]/1:22", "[::ffff:10.2.0.1]:22"));
        assert!(!covers("[::]/1:22", "[::ffff:127.0.0.1]:22"));
    }

    #[test]
    fn invalid_destinations_are_refused() {
        for bad in ["", "10.2.0.0/16", "10.2.0.0/33:1", "10.2.0.0/16:0", "10.2.0.0", "*:22", "/8:22"] {
            assert_eq!(bad.parse::<Destination>(), Err(InvalidDestination), "{bad}");
        }
    }
}
