//! Opens byte streams to addresses.
//!
//! [`Dial`] is a trait, so that everything above it can be tested without sockets and clocks. [`TlsDial`] is the real
//! implementation.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use ops::tls::{ALPN_H2, ALPN_HTTP1, ReadAhead, TlsVersions, client_config};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::error::{ConnectReason, Stage};
use super::limits::{CONNECT_TIMEOUT, HANDSHAKE_TIMEOUT, TCP_IDLE, TCP_INTERVAL};
use kubeconfig::Address;
use kubeconfig::Credentials;

/// The byte stream of an HTTP connection.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A boxed stream costs one dynamic call per read of up to 64 KiB, which is cheaper than a pool for each kind of
/// stream.
pub(super) type BoxIo = Box<dyn Io>;

/// A pending connection.
pub(super) type Dialling<'a> = Pin<Box<dyn Future<Output = Result<BoxIo, ConnectReason>> + Send + 'a>>;

/// The HTTP version, which is negotiated with ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// Opens connections, within a time limit.
pub(super) trait Dial: Send + Sync + 'static {
    fn dial<'a>(&'a self, address: &'a Address, version: Version) -> Dialling<'a>;
}

/// Opens TLS connections over TCP.
pub(super) struct TlsDial {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

// === impl TlsDial ===

impl TlsDial {
    /// Each handshake uses the current credentials. Certificates of the server must be for `server_name` if it is
    /// given, and otherwise for the host of the address.
    pub(super) fn new(credentials: &Credentials, server_name: Option<ServerName<'static>>) -> Self {
        let config = |alpn: &[u8]| {
            Arc::new(client_config(
                credentials.authorities.clone(),
                credentials.identity.clone(),
                &[alpn],
                TlsVersions::Tls12And13,
            ))
        };
        Self { http1: config(ALPN_HTTP1), http2: config(ALPN_H2), server_name }
    }

    async fn establish(&self, address: &Address, version: Version) -> Result<BoxIo, ConnectReason> {
        let socket = connect(address).await?;
        let config = match version {
            Version::Http1 => &self.http1,
            Version::Http2 => &self.http2,
        };
        let name = self.server_name.as_ref().unwrap_or(address.server_name());
        let connecting = TlsConnector::from(Arc::clone(config)).connect(name.clone(), ReadAhead::new(socket));
        let stream = timeout(HANDSHAKE_TIMEOUT, connecting)
            .await
            .map_err(|_| ConnectReason::Silent(Stage::Tls))?
            .map_err(|error| ConnectReason::Tls(Arc::new(error)))?;
        // Over TLS, HTTP/2 must be negotiated with ALPN (RFC 9113 section 3.2).
        if version == Version::Http2 && stream.get_ref().1.alpn_protocol() != Some(ALPN_H2) {
            return Err(ConnectReason::NotHttp2);
        }
        Ok(Box::new(stream))
    }
}

impl Dial for TlsDial {
    fn dial<'a>(&'a self, address: &'a Address, version: Version) -> Dialling<'a> {
        Box::pin(self.establish(address, version))
    }
}

/// Tries every IP address of a name within [`CONNECT_TIMEOUT`]. Each gets an equal share of the remaining time, so that an
/// address that drops packets does not use up all of it.
async fn connect(address: &Address) -> Result<TcpStream, ConnectReason> {
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    let silent = ConnectReason::Silent(Stage::Connecting);
    let found = tokio::net::lookup_host((address.host(), address.port()));
    let found = timeout_at(deadline, found)
        .await
        .map_err(|_| silent.clone())?
        .map_err(|error| ConnectReason::Resolve(Arc::new(error)))?;
    let found: Vec<_> = found.collect();
    let no_address = || Arc::new(io::Error::new(io::ErrorKind::NotFound, "no addresses"));
    let mut last = Err(ConnectReason::Resolve(no_address()));
    for (index, target) in found.iter().enumerate() {
        let left = u32::try_from(found.len() - index).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        last = match timeout(share, TcpStream::connect(target)).await {
            Err(_) => Err(silent.clone()),
            Ok(Err(error)) => Err(ConnectReason::Tcp(Arc::new(error))),
            Ok(Ok(socket)) => return prepare(socket).map_err(|error| ConnectReason::Tcp(Arc::new(error))),
        };
    }
    last
}

fn prepare(socket: TcpStream) -> io::Result<TcpStream> {
    // Requests are small, and must not wait for the acknowledgement of the previous one.
    socket.set_nodelay(true)?;
    // An exec session has no pings.
    let keepalive = TcpKeepalive::new().with_time(TCP_IDLE).with_interval(TCP_INTERVAL);
    SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
