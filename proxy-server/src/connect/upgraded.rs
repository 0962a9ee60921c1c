//! The connection of a client after the response to CONNECT.

use std::io;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ops::tls::ReadAhead;
use tokio::net::TcpStream;

/// The connection of a client after the response to CONNECT.
pub(super) enum Upgraded {
    /// The socket, registered with the runtime of this task. The client may have sent its first bytes together with the
    /// request.
    Socket(ReadAhead<TcpStream>),
    /// TLS to the proxy. It stays on the runtime that accepted it.
    Other(TokioIo<hyper::upgrade::Upgraded>),
}

/// The connection cannot be used after the response.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpgradeError {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("the socket cannot move to another worker")]
    Move(#[source] io::Error),
}

// === impl Upgraded ===

impl Upgraded {
    /// Waits until hyper has sent the response.
    pub(super) async fn after(upgrade: OnUpgrade) -> Result<Self, UpgradeError> {
        match upgrade.await?.downcast::<TokioIo<TcpStream>>() {
            Ok(parts) => {
                let socket = ops::listen::adopt(parts.io.into_inner()).map_err(UpgradeError::Move)?;
                Ok(Self::Socket(ReadAhead::after(&parts.read_buf, socket)))
            }
            Err(other) => Ok(Self::Other(TokioIo::new(other))),
        }
    }
}
