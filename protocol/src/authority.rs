//! `host:port` of CONNECT requests (RFC 9110, section 9.3.6) and of configured API servers, in a normal form.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A host and a port. Hosts are case-insensitive. IPv6 addresses have no brackets and are in their short form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    host: String,
    port: u16,
}

/// The text is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not host:port, for example 10.2.0.1:6443 or [::1]:443")]
pub struct InvalidAuthority;

// === impl Authority ===

impl Authority {
    /// Lower-case, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Always present: CONNECT has no default port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The first label of the host, if the rest is `domain`.
    pub fn label_in(&self, domain: &str) -> Option<&str> {
        let (label, rest) = self.host.split_once('.')?;
        (rest == domain && !label.is_empty()).then_some(label)
    }
}

impl FromStr for Authority {
    type Err = InvalidAuthority;

    fn from_str(text: &str) -> Result<Self, InvalidAuthority> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidAuthority)?;
        // Rust parses "+1" and "007" as numbers, but they are not valid ports.
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidAuthority);
        }
        let port: u16 = port.parse().map_err(|_| InvalidAuthority)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match bracketed.unwrap_or(host).parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) if bracketed.is_none() => return Err(InvalidAuthority),
            Ok(address) => address.to_string(),
            Err(_) if bracketed.is_some() => return Err(InvalidAuthority),
            Err(_) => host_name(host)?,
        };
        if port == 0 {
            return Err(InvalidAuthority);
        }
        Ok(Self { host, port })
    }
}

fn host_name(host: &str) -> Result<String, InvalidAuthority> {
    // A trailing dot (the root label) names the same host.
    let host = host.strip_suffix('.').unwrap_or(host);
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if host.is_empty() || host.len() > 253 || !host.split('.').all(label) {
        return Err(InvalidAuthority);
    }
    Ok(host.to_ascii_lowercase())
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Serialize for Authority {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Authority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<String> {
        text.parse::<Authority>().ok().map(|authority| authority.to_string())
    }

    #[test]
    fn one_normal_form() {
        assert_eq!(parse("KE-Beijing.Atoll.Internal:443").as_deref(), Some("ke-beijing.atoll.internal:443"));
        assert_eq!(parse("ke.atoll.internal.:443").as_deref(), Some("ke.atoll.internal:443"));
        assert_eq!(parse("[0:0::1]:6443").as_deref(), Some("[::1]:6443"));
        assert_eq!(parse("10.2.0.1:6443").as_deref(), Some("10.2.0.1:6443"));
    }

    #[test]
    fn other_text_is_refused() {
        for bad in [
            "", ":", "a", "a:", ":1", "a:0", "a:70000", "a:+1", "::1:443", "[a]:1", "a b:1", "a..b:1", "u@h:1", "a/b:1",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_cluster_is_one_label_below_the_domain() {
        let label = |text: &str| {
            let authority: Authority = text.parse().unwrap();
            authority.label_in("atoll.internal").map(ToOwned::to_owned)
        };
        assert_eq!(label("ke-beijing.atoll.internal:443").as_deref(), Some("ke-beijing"));
        assert_eq!(label("a.b.atoll.internal:443"), None);
        assert_eq!(label("atoll.internal:443"), None);
        assert_eq!(label("xatoll.internal:443"), None);
    }
}
