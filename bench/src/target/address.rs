//! Hosts with ports, and proxies, in the notation of flags and kubeconfigs.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;

/// The address of a TCP server. An IPv6 address has no brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A proxy for CONNECT (RFC 9110 section 9.3.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    Tcp(HostPort),
    Unix(PathBuf),
}

/// The text is not a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be http://HOST:PORT or unix:PATH")]
pub(crate) struct InvalidProxy;

// === impl HostPort ===

impl HostPort {
    /// `host` can have the brackets of a URL.
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self { host: host.trim_matches(['[', ']']).to_owned(), port }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

// === impl Proxy ===

impl FromStr for Proxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let uri: Uri = text.parse().map_err(|_| InvalidProxy)?;
        if uri.scheme_str() != Some("http") {
            return Err(InvalidProxy);
        }
        let host = uri.host().ok_or(InvalidProxy)?;
        Ok(Self::Tcp(HostPort::new(host, uri.port_u16().unwrap_or(80))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_parsed() {
        let tcp = |host, port| Ok(Proxy::Tcp(HostPort::new(host, port)));
        assert_eq!("http://127.0.0.1:8090".parse(), tcp("127.0.0.1", 8090));
        assert_eq!("http://[::1]:8090/".parse(), tcp("::1", 8090));
        assert_eq!("unix:/tmp/k.sock".parse(), Ok(Proxy::Unix("/tmp/k.sock".into())));
        for wrong in ["", "unix:", "https://127.0.0.1:1", "127.0.0.1:8090", "socks5://a"] {
            assert_eq!(wrong.parse::<Proxy>(), Err(InvalidProxy), "{wrong}");
        }
    }

    #[test]
    fn an_ipv6_address_is_shown_in_brackets() {
        assert_eq!(HostPort::new("[::1]", 443).to_string(), "[::1]:443");
        assert_eq!(HostPort::new("a.example.com", 443).to_string(), "a.example.com:443");
    }
}
