//! From an address to an accepted registration.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use ops::tls::ReadAhead;
use protocol::{Acceptance, Authority, Registration};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::egress::Egress;
use super::error::DialError;
use super::register;

/// One place to dial: a socket address, or a name that the corporate proxy resolves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Address(SocketAddr),
    Named,
}

/// Connects, and registers.
pub(super) async fn establish(
    tls: &Arc<ClientConfig>,
    egress: &Egress,
    (server, target): (&Authority, &Target),
    registration: &Registration,
) -> Result<(TokioIo<Upgraded>, Acceptance), DialError> {
    let socket = match target {
        Target::Address(address) => {
            let connected = TcpStream::connect(address).await;
            connected.map_err(|err| DialError::Connect(address.to_string(), err))?
        }
        Target::Named => egress.connect(server).await?,
    };
    // Requests are small and answered one by one.
    socket.set_nodelay(true).map_err(|err| DialError::Connect(server.to_string(), err))?;
    let name = ServerName::try_from(server.host().to_owned())
        .map_err(|err| DialError::Connect(server.to_string(), std::io::Error::other(err)))?;
    let connector = TlsConnector::from(Arc::clone(tls));
    let stream = connector.connect(name, ReadAhead::new(socket)).await.map_err(DialError::Tls)?;
    register::register(stream, server, registration).await
}

// === impl Target ===

impl Target {
    /// The address, if we resolved it.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Named => None,
        }
    }
}
