//! Accepting one connection, and what to do when that fails.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::backoff::Backoff;

/// A source of connections. Tests use a socket that fails.
pub trait Accept: Send + Sync {
    /// What is accepted.
    type Stream: Send;

    /// Waits for a connection. Cancel-safe: dropping the future loses no connection.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;
}

/// The pauses after failures.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(1));

/// The failures since the last connection.
#[derive(Debug)]
pub(super) struct Failures(Backoff);

// === impl Accept ===

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, client) = Self::accept(self).await?;
        // Requests and frames are written whole, so waiting for more data (RFC 896) only adds latency. This fails if
        // the socket is already dead, and the next read returns the error.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %client, "cannot set TCP_NODELAY");
        }
        Ok((stream, client))
    }
}

// === impl Failures ===

impl Failures {
    pub(super) fn reset(&mut self) {
        self.0.reset();
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
        let is_first = self.0.failures() == 0;
        let pause = self.0.fail();
        if is_first {
            tracing::warn!(%error, %listener, "cannot accept connections; trying again");
        } else {
            tracing::debug!(%error, %listener, ?pause, "cannot accept connections");
        }
        tokio::time::sleep(pause).await;
    }
}

impl Default for Failures {
    fn default() -> Self {
        Self(RETRY_BACKOFF)
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
