//! Establishes a tunnel: connects to an address, and registers.

use std::net::SocketAddr;
use std::sync::Arc;

use ops::tls::ReadAhead;
use protocol::{Authority, Registration};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::egress::Egress;
use crate::error::DialError;
use crate::register::{Established, register};

/// The address of a proxy-server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// It was resolved here.
    Address(SocketAddr),
    /// The HTTP proxy of the site resolves the name, or the system, if there is no proxy.
    Named,
}

/// Connects, and registers.
pub(super) async fn establish(
    tls: &Arc<ClientConfig>,
    egress: &Egress,
    server: &Authority,
    target: &Target,
    registration: &Registration,
) -> Result<Established, DialError> {
    register(stream(tls, egress, server, target).await?, server, registration).await
}

/// A TLS connection to a server.
pub(super) async fn stream(
    tls: &Arc<ClientConfig>,
    egress: &Egress,
    server: &Authority,
    target: &Target,
) -> Result<TlsStream<ReadAhead<TcpStream>>, DialError> {
    let socket = match target {
        Target::Address(address) => {
            let connected = TcpStream::connect(address).await;
            connected.map_err(|err| DialError::Connect(address.to_string(), err))?
        }
        Target::Named if egress.for_server(server).is_some() => egress.connect(server).await?,
        Target::Named => {
            let connected = TcpStream::connect((server.host(), server.port())).await;
            connected.map_err(|err| DialError::Connect(server.to_string(), err))?
        }
    };
    // Frames are small, and their peer waits for them.
    socket.set_nodelay(true).map_err(|err| DialError::Connect(server.to_string(), err))?;
    let name = ServerName::try_from(server.host().to_owned())
        .map_err(|err| DialError::Connect(server.to_string(), std::io::Error::other(err)))?;
    let connector = TlsConnector::from(Arc::clone(tls));
    connector.connect(name, ReadAhead::new(socket)).await.map_err(DialError::Tls)
}

// === impl Target ===

impl Target {
    /// The address, if it was resolved here.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Named => None,
        }
    }
}
