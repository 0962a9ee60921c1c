//! Connects to a target: TCP or a Unix socket, CONNECT, TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConnection, HandshakeKind};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::{HostPort, Proxy};
use super::route::{Route, Version};

/// A byte stream for HTTP.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A dynamic call for each read costs little compared with TLS.
pub(crate) type BoxIo = Box<dyn Io>;

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("{0} is not on this machine; set --allow-remote to connect to it")]
    Remote(String),
    #[error("cannot connect to {0}")]
    Connect(String, #[source] io::Error),
    #[error("the proxy did not respond to CONNECT")]
    Connecting(#[source] io::Error),
    #[error("the proxy responded to CONNECT with {0:?}")]
    Refused(String),
    #[error("the TLS handshake failed")]
    Tls(#[source] io::Error),
    #[error("the server does not support this version of HTTP over TLS")]
    Alpn,
    #[error("the HTTP handshake failed")]
    Http(#[source] hyper::Error),
    #[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
    Slow,
}

/// The time limit up to the first byte of HTTP.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum size of the head of a response to CONNECT, in bytes.
const MAX_HEAD: usize = 8 << 10;

pub(super) async fn dial(route: &Route, version: Version) -> Result<BoxIo, DialError> {
    timeout(CONNECT_TIMEOUT, dial_unbounded(route, version)).await.map_err(|_| DialError::Slow)?
}

async fn dial_unbounded(route: &Route, version: Version) -> Result<BoxIo, DialError> {
    let mut io: BoxIo = match &route.proxy {
        Some(Proxy::Tcp(proxy)) => Box::new(tcp(proxy, route.allow_remote).await?),
        Some(Proxy::Unix(path)) => {
            let failed = |error| DialError::Connect(path.display().to_string(), error);
            Box::new(UnixStream::connect(path).await.map_err(failed)?)
        }
        None => Box::new(tcp(&route.server, route.allow_remote).await?),
    };
    if route.proxy.is_some() {
        // The proxy resolves names, so only addresses can be checked here.
        if let Ok(ip) = route.server.host.parse() {
            local(ip, route.allow_remote)?;
        }
        connect(&mut io, &route.server).await?;
    }
    let Some(tls) = &route.tls else { return Ok(io) };
    let connecting = TlsConnector::from(Arc::clone(&tls.config)).connect(tls.name.clone(), io);
    let stream = connecting.await.map_err(DialError::Tls)?;
    // RFC 9113 section 3.2: over TLS, HTTP/2 requires ALPN.
    let session = stream.get_ref().1;
    if version == Version::Http2 && session.alpn_protocol() != Some(ops::tls::ALPN_H2) {
        return Err(DialError::Alpn);
    }
    tls.agreed.get_or_init(|| agreed(session));
    Ok(Box::new(stream))
}

/// Describes the handshake. A second `ClientHello` costs one more round trip (RFC 8446 section 4.1.4).
fn agreed(session: &ClientConnection) -> String {
    let version = session.protocol_version().and_then(|version| version.as_str());
    let suite = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
    let exchange = session.negotiated_key_exchange_group().and_then(|group| group.name().as_str());
    let mut parts: Vec<&str> = [version, suite, exchange].into_iter().flatten().collect();
    if session.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest) {
        parts.push("with HelloRetryRequest");
    }
    parts.join(" ")
}

async fn tcp(to: &HostPort, allow_remote: bool) -> Result<TcpStream, DialError> {
    let failed = |error| DialError::Connect(to.to_string(), error);
    let found: Vec<SocketAddr> = tokio::net::lookup_host((to.host.as_str(), to.port)).await.map_err(failed)?.collect();
    for address in &found {
        local(address.ip(), allow_remote)?;
    }
    let stream = TcpStream::connect(found.as_slice()).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

fn local(ip: IpAddr, allow_remote: bool) -> Result<(), DialError> {
    if ip.is_loopback() || allow_remote { Ok(()) } else { Err(DialError::Remote(ip.to_string())) }
}

async fn connect(io: &mut BoxIo, to: &HostPort) -> Result<(), DialError> {
    let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
    io.write_all(request.as_bytes()).await.map_err(DialError::Connecting)?;
    let mut head = Vec::with_capacity(256);
    // No bytes follow the head, because clients send the first bytes of TLS and HTTP.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > MAX_HEAD {
            return Err(DialError::Refused("a head that is too long".to_owned()));
        }
        let read = io.read_buf(&mut head).await.map_err(DialError::Connecting)?;
        let first_line = || String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
        let refused = head.len() > 12 && !head.starts_with(b"HTTP/1.1 200") && !head.starts_with(b"HTTP/1.0 200");
        if refused {
            return Err(DialError::Refused(first_line()));
        }
        if read == 0 {
            return Err(DialError::Connecting(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn connect_with(response: &[u8]) -> Result<(), DialError> {
        let (ours, mut theirs) = tokio::io::duplex(16 << 10);
        theirs.write_all(response).await.unwrap();
        theirs.shutdown().await.unwrap();
        let mut io: BoxIo = Box::new(ours);
        let result = connect(&mut io, &HostPort::new("ke-beijing.atoll.internal", 443)).await;
        drop(io);
        let mut request = String::new();
        theirs.read_to_string(&mut request).await.unwrap();
        let host = "ke-beijing.atoll.internal:443";
        assert_eq!(request, format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        result
    }

    #[tokio::test]
    async fn a_proxy_must_respond_with_200() {
        assert!(connect_with(b"HTTP/1.1 200 Connection Established\r\nx: y\r\n\r\n").await.is_ok());
        let refused = connect_with(b"HTTP/1.1 404 no cluster\r\n\r\n").await.unwrap_err();
        assert_eq!(refused.to_string(), r#"the proxy responded to CONNECT with "HTTP/1.1 404 no cluster""#);
        assert!(matches!(connect_with(b"HTTP/1.1 200 OK\r\n").await, Err(DialError::Connecting(_))));
        let endless = [b"HTTP/1.1 200 OK\r\n".as_slice(), &[b'x'; 9_000]].concat();
        assert!(matches!(connect_with(&endless).await, Err(DialError::Refused(_))));
    }

    #[test]
    fn other_machines_require_a_flag() {
        for ip in ["127.0.0.1", "127.9.9.9", "::1"] {
            assert!(local(ip.parse().unwrap(), false).is_ok(), "{ip}");
        }
        for ip in ["10.0.0.1", "192.0.2.1", "0.0.0.0", "2001:db8::1"] {
            assert!(local(ip.parse().unwrap(), false).is_err(), "{ip}");
            assert!(local(ip.parse().unwrap(), true).is_ok(), "{ip}");
        }
    }
}
