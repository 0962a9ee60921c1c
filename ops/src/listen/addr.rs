//! An address to listen on, in the form of a configuration.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `host:port`: `127.0.0.1:8090`, `[::1]:8090`, `0.0.0.0:8443`, `localhost:0`.
///
/// The host is required. In other programs, an empty host means "all interfaces", which should be explicit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListenAddr {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Host {
    Ip(IpAddr),
    Name(Box<str>),
}

/// The text is not a [`ListenAddr`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address to listen on, such as 127.0.0.1:8090 or [::1]:8090: {reason}")]
pub struct InvalidListenAddr {
    text: String,
    reason: &'static str,
}

// === impl ListenAddr ===

impl ListenAddr {
    /// Whether only this machine can connect. The only name for which this is known is `localhost` (RFC 6761 section
    /// 6.3).
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => ip.to_canonical().is_loopback(),
            Host::Name(name) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    /// The port; 0 requests a free one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same host with another port.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        Self { host: self.host.clone(), port }
    }
}

impl From<std::net::SocketAddr> for ListenAddr {
    fn from(addr: std::net::SocketAddr) -> Self {
        Self { host: Host::Ip(addr.ip()), port: addr.port() }
    }
}

impl FromStr for ListenAddr {
    type Err = InvalidListenAddr;

    fn from_str(text: &str) -> Result<Self, InvalidListenAddr> {
        parse(text).map_err(|reason| InvalidListenAddr { text: text.chars().take(80).collect(), reason })
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.host {
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}:{port}"),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{port}"),
            Host::Name(name) => write!(f, "{name}:{port}"),
        }
    }
}

impl Serialize for ListenAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ListenAddr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

fn parse(text: &str) -> Result<ListenAddr, &'static str> {
    let (host, port) = text.rsplit_once(':').ok_or("the port is missing")?;
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the port is not a number");
    }
    let port = port.parse().map_err(|_| "the port is not 0 to 65535")?;
    let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        Some(Some(ip)) => Host::Ip(IpAddr::V6(ip.parse().map_err(|_| "the text in brackets is not an IPv6 address")?)),
        Some(None) => return Err("the bracket is not closed"),
        None if host.is_empty() => {
            return Err("the host is missing; write 0.0.0.0 or [::] for all");
        }
        None if host.contains(':') => return Err("an IPv6 address needs brackets"),
        None => match host.parse() {
            Ok(ip) => Host::Ip(ip),
            Err(_) if is_name(host) => Host::Name(host.into()),
            Err(_) => return Err("the host is neither an IP address nor a name"),
        },
    };
    Ok(ListenAddr { host, port })
}

/// A host name (RFC 1123 section 2.1). One that ends in a number would be a mistyped IPv4 address.
fn is_name(host: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253
        && host.split('.').all(label)
        && !host.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_and_names_are_read() {
        for (text, loopback) in [
            ("127.0.0.1:8090", true),
            ("127.9.9.9:0", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("localhost:80", true),
            ("0.0.0.0:8443", false),
            ("[::]:8443", false),
            ("10.1.2.3:65535", false),
            ("proxy-1.example.com:8091", false),
        ] {
            let addr: ListenAddr = text.parse().unwrap();
            assert_eq!(addr.is_loopback(), loopback, "{text}");
            assert_eq!(addr.to_string(), text);
        }
    }

    #[test]
    fn ambiguous_addresses_are_refused() {
        for text in [
            "",
            ":",
            "8090",
            ":8090",
            "localhost",
            "localhost:",
            "localhost:x",
            "localhost:65536",
            "localhost:+1",
            "::1:80",
            "[::1]",
            "[::1:80",
            "[127.0.0.1]:80",
            "[]:80",
            "1.2.3:80",
            "256.1.1.1:80",
            "a b:80",
            "-a:80",
            "a..b:80",
            "ü:80",
            "http://x:80",
        ] {
            assert!(text.parse::<ListenAddr>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(addr in any::<SocketAddr>()) {
            // A scope id names an interface of this machine. We do not parse it.
            let addr = ListenAddr::from(addr);
            prop_assert_eq!(addr.to_string().parse::<ListenAddr>(), Ok(addr));
        }

        #[test]
        fn no_text_panics(text in "[\\[\\]:.0-9a-zé-]{0,20}") {
            if let Ok(addr) = text.parse::<ListenAddr>() {
                prop_assert_eq!(addr.to_string().parse::<ListenAddr>(), Ok(addr));
            }
        }
    }
}
