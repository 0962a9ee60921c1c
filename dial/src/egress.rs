//! Connections to proxy-servers through the HTTP proxy of the site (`HTTPS_PROXY` and `NO_PROXY`).

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::proxy::matcher::Matcher;
use protocol::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::DialError;

/// The maximum length of the response to CONNECT, in bytes.
const MAX_RESPONSE: usize = 8 * 1024;

/// The HTTP proxy of the site, if there is one, and the hosts that are reached without it.
#[derive(Clone, Debug, Default)]
pub struct Egress {
    proxy: Option<Proxy>,
}

#[derive(Clone)]
struct Proxy {
    address: Authority,
    credentials: Option<ops::secret::Secret>,
    /// Intercepts the hosts that are not exempt.
    rules: Arc<Matcher>,
}

/// `HTTPS_PROXY` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTPS_PROXY must be http://[user:password@]host:port")]
pub struct InvalidProxy;

// === impl Egress ===

impl Egress {
    /// Parses the values of the two variables as curl does. `no_proxy` has names of hosts and domains, IP addresses, and CIDR blocks.
    pub fn new(https_proxy: Option<&str>, no_proxy: Option<&str>) -> Result<Self, InvalidProxy> {
        let proxy = https_proxy.map(str::trim).filter(|text| !text.is_empty());
        let proxy = proxy.map(|text| Proxy::parse(text, no_proxy.unwrap_or_default())).transpose()?;
        Ok(Self { proxy })
    }

    /// The proxy for a server; `None` if it is reached directly.
    pub(super) fn for_server(&self, server: &Authority) -> Option<&Authority> {
        let proxy = self.proxy.as_ref()?;
        let uri = Uri::builder().scheme(Scheme::HTTPS).authority(server.to_string()).path_and_query("/").build();
        uri.is_ok_and(|uri| proxy.rules.intercept(&uri).is_some()).then_some(&proxy.address)
    }

    /// A connection to the server through the proxy.
    pub(super) async fn connect(&self, server: &Authority) -> Result<TcpStream, DialError> {
        let proxy = self.proxy.as_ref().expect("only a proxy resolves names");
        let broke = |err| DialError::Connect(format!("{server} through the proxy {}", proxy.address), err);
        let mut socket = TcpStream::connect((proxy.address.host(), proxy.address.port())).await.map_err(broke)?;
        let mut head = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n");
        if let Some(credentials) = &proxy.credentials {
            let encoded = STANDARD.encode(credentials.expose());
            head.push_str("Proxy-Authorization: Basic ");
            head.push_str(&encoded);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await.map_err(broke)?;
        // Byte by byte, because the bytes after the head belong to TLS.
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\n") {
            if response.len() == MAX_RESPONSE {
                return Err(DialError::Egress("an endless head".into()));
            }
            response.push(socket.read_u8().await.map_err(broke)?);
        }
        let line = String::from_utf8_lossy(&response);
        let line = line.lines().next().unwrap_or_default();
        match line.split(' ').nth(1) {
            Some(status) if status.starts_with('2') && status.len() == 3 => Ok(socket),
            _ => Err(DialError::Egress(line.chars().take(120).collect())),
        }
    }
}

// === impl Proxy ===

impl Proxy {
    fn parse(text: &str, exempt: &str) -> Result<Self, InvalidProxy> {
        let rest = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials.to_owned().into()), host),
            None => (None, rest),
        };
        let address: Authority = host.parse().map_err(|_| InvalidProxy)?;
        let rules = Matcher::builder().https(format!("http://{address}")).no(exempt.to_ascii_lowercase()).build();
        Ok(Self { address, credentials, rules: Arc::new(rules) })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exemptions_are_hosts_and_their_subdomains_and_networks() {
        let exempt = "localhost, .Site,10.0.0.1,192.168.0.0/16, fd00::/8";
        let egress = Egress::new(Some("http://u:p@proxy.corp:3128/"), Some(exempt)).unwrap();
        let through = |host: &str| {
            let server: Authority = format!("{host}:8091").parse().unwrap();
            egress.for_server(&server).map(ToString::to_string)
        };
        for exempt in ["localhost", "a.site", "10.0.0.1", "192.168.7.7", "[fd00::1]"] {
            assert_eq!(through(exempt), None, "{exempt}");
        }
        for other in ["proxy.example.com", "notsite", "10.0.0.2", "192.169.0.1", "[fe00::1]"] {
            assert_eq!(through(other).as_deref(), Some("proxy.corp:3128"), "{other}");
        }
        assert!(Egress::new(Some("proxy.corp:3128"), Some("*")).unwrap().for_server(&"a:1".parse().unwrap()).is_none());
    }

    #[test]
    fn an_invalid_proxy_url_is_reported() {
        assert!(Egress::new(Some("https//proxy"), None).is_err());
        assert!(Egress::new(Some(""), None).unwrap().for_server(&"x:1".parse().unwrap()).is_none());
        assert!(!format!("{:?}", Egress::new(Some("http://u:hunter2@p:1"), None)).contains("hunter2"));
    }
}
