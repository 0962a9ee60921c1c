//! Connections to proxy-servers through the HTTP proxy of the site (`HTTPS_PROXY` and `NO_PROXY`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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
    exempt: Vec<String>,
}

#[derive(Clone, Debug)]
struct Proxy {
    address: Authority,
    credentials: Option<ops::secret::Secret>,
}

/// `HTTPS_PROXY` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTPS_PROXY must be http://[user:password@]host:port")]
pub struct InvalidProxy;

// === impl Egress ===

impl Egress {
    /// Parses the values of the two variables as curl does.
    pub fn new(https_proxy: Option<&str>, no_proxy: Option<&str>) -> Result<Self, InvalidProxy> {
        let proxy = https_proxy.map(str::trim).filter(|text| !text.is_empty()).map(Proxy::parse).transpose()?;
        let exempt = no_proxy.unwrap_or_default().split(',').map(|host| host.trim().to_ascii_lowercase());
        Ok(Self { proxy, exempt: exempt.filter(|host| !host.is_empty()).collect() })
    }

    /// The proxy for a host; `None` if it is reached directly.
    pub(super) fn for_host(&self, host: &str) -> Option<&Authority> {
        let exempt = self.exempt.iter().any(|entry| {
            let suffix = entry.trim_start_matches('.');
            entry == "*" || host == suffix || host.ends_with(&format!(".{suffix}"))
        });
        self.proxy.as_ref().filter(|_| !exempt).map(|proxy| &proxy.address)
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
    fn parse(text: &str) -> Result<Self, InvalidProxy> {
        let rest = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials.to_owned().into()), host),
            None => (None, rest),
        };
        let address = host.parse().map_err(|_| InvalidProxy)?;
        Ok(Self { address, credentials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exemptions_are_hosts_and_their_subdomains() {
        let egress = Egress::new(Some("http://u:p@proxy.corp:3128/"), Some("localhost, .site,10.0.0.1")).unwrap();
        let through = |host: &str| egress.for_host(host).map(ToString::to_string);
        assert_eq!(through("proxy.example.com").as_deref(), Some("proxy.corp:3128"));
        assert_eq!(through("localhost"), None);
        assert_eq!(through("a.site"), None);
        assert_eq!(through("10.0.0.1"), None);
        assert_eq!(through("notsite").as_deref(), Some("proxy.corp:3128"));
    }

    #[test]
    fn an_invalid_proxy_url_is_reported() {
        assert!(Egress::new(Some("https//proxy"), None).is_err());
        assert!(Egress::new(Some(""), None).unwrap().for_host("x").is_none());
        assert!(!format!("{:?}", Egress::new(Some("http://u:hunter2@p:1"), None)).contains("hunter2"));
    }
}
