//! The bytes of a client after CONNECT.

use std::io;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ops::tls::ReadAhead;
use tokio::net::TcpStream;

/// A connection behind the response to CONNECT.
pub(super) enum Upgraded {
    /// The socket itself, which the runtime of the caller waits for from now on. The client may have sent the first bytes
    /// with its request.
    Socket(ReadAhead<TcpStream>),
    /// TLS to the proxy, which stays where it began.
    Other(TokioIo<hyper::upgrade::Upgraded>),
}

/// The connection broke before.
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
