//! Accepting one connection, and what to do when that fails.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// A source of connections. Tests use a socket that fails.
pub trait Accept: Send + Sync {
    /// What is accepted.
    type Stream: Send;

    /// Waits for a connection. Cancel-safe: dropping the future loses no connection.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;
}

/// How long to wait after a failure.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(1);

// === impl Accept ===

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, client) = Self::accept(self).await?;
        // Requests and frames are written whole, so waiting for more data (RFC 896) only adds latency. This fails if
        // the socket is already dead; whoever reads from it gets the error.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %client, "cannot set TCP_NODELAY");
        }
        Ok((stream, client))
    }
}

// === impl Backoff ===

impl Backoff {
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Waits before the next attempt. Without the wait, a process out of file descriptors would spin: the connection
    /// stays in the backlog and `accept` fails at once.
    pub(super) async fn after(&mut self, error: &io::Error, listener: SocketAddr) {
        if of_one_connection(error) {
            tracing::debug!(%error, %listener, "a connection ended before it was accepted");
            // Other tasks on this thread get a turn: a client that resets in a loop must not block it.
            tokio::task::yield_now().await;
            return;
        }
        let pause = SHORTEST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        if self.failures == 0 {
            tracing::warn!(%error, %listener, "cannot accept connections; trying again");
        } else {
            tracing::debug!(%error, %listener, ?pause, "cannot accept connections");
        }
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pause).await;
    }
}

/// Whether an error is that of the next connection, which Linux passes to `accept` (accept(2), "Error handling"). The
/// connection after it may work. All other errors concern this process or machine.
fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkDown,
        NetworkUnreachable,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
    )
}
