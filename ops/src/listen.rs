//! Listens for TCP connections, and survives a flood of them or a lack of file descriptors.
//!
//! [`Listener::bind`] takes a [`ListenAddr`] of a configuration. [`Listener::run`] spawns a task per connection until
//! its scope is cancelled. What is *not* here: TLS and HTTP, which begin at the [`Connection`].
//!
//! Reading order: `addr`, `accept` (one connection), then `run` here (all of them).

mod accept;
mod addr;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use crate::drain::Tasks;
pub use accept::Accept;
use accept::Failures;
pub use addr::{InvalidListenAddr, ListenAddr};

/// How many connections the kernel completes before we accept them. It limits this to `net.core.somaxconn`.
const BACKLOG: u32 = 1024;

/// TCP keep-alive: the idle time before the first probe, and the time between probes. If a client has vanished, for
/// example because a NAT dropped its state, its connection must end at some time. kube-apiserver probes every three
/// minutes (`defaultKeepAlivePeriod` in apiserver's `server/secure_serving.go`).
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));

/// A bound TCP socket and the number of connections it may have.
#[derive(Debug)]
pub struct Listener<L = TcpListener> {
    socket: L,
    local: SocketAddr,
    slots: Arc<Semaphore>,
}

/// An accepted connection. It occupies one of the listener's slots until its last part is dropped.
#[derive(Debug)]
pub struct Connection<S = TcpStream> {
    /// The stream.
    pub stream: S,
    /// The other end.
    pub client: ClientAddr,
    /// The slot. Keep it as long as the connection lives, even if the stream moves elsewhere.
    pub slot: Slot,
}

/// The address that a client connected from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddr(pub SocketAddr);

/// One of the connections that a listener may have. Dropping it makes room for another.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
}

/// A port could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}")]
pub struct BindError {
    addr: ListenAddr,
    source: io::Error,
}

// === impl Listener ===

impl Listener {
    /// Binds the first address that `addr` stands for and that can be bound. Clients can connect from then on, and
    /// wait until [`run`](Self::run). Port 0 takes a free port: see [`bound`](Self::bound).
    ///
    /// Above `limit` open connections, further ones wait in the kernel's backlog.
    ///
    /// # Errors
    /// The name cannot be resolved, or no address can be bound.
    pub async fn bind(addr: &ListenAddr, limit: NonZeroUsize) -> Result<Self, BindError> {
        let failed = |source| BindError { addr: addr.clone(), source };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for candidate in tokio::net::lookup_host(addr.to_string()).await.map_err(failed)? {
            match open(candidate) {
                Ok(socket) => {
                    let local = socket.local_addr().map_err(failed)?;
                    return Ok(Self::new(socket, local, limit));
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    /// Registers the socket with the caller's runtime, which must then run it.
    ///
    /// # Errors
    /// The runtime has no more room for sockets.
    pub fn adopt(self) -> io::Result<Self> {
        let Self { socket, local, slots } = self;
        Ok(Self { socket: TcpListener::from_std(socket.into_std()?)?, local, slots })
    }
}

/// Registers a connection with the caller's runtime. A socket wakes the thread of the runtime with which it is
/// registered, so a task of another runtime would wait for two threads.
///
/// # Errors
/// The runtime has no more room for sockets.
pub fn adopt(stream: TcpStream) -> io::Result<TcpStream> {
    TcpStream::from_std(stream.into_std()?)
}

impl<L: Accept> Listener<L> {
    /// A listener over something else that accepts, such as in-memory streams. `local` is the address that it reports.
    pub fn new(socket: L, local: SocketAddr, limit: NonZeroUsize) -> Self {
        Self { socket, local, slots: Arc::new(Semaphore::new(limit.get().min(Semaphore::MAX_PERMITS))) }
    }

    /// The address that was bound, with its real port.
    pub fn bound(&self) -> SocketAddr {
        self.local
    }

    /// Accepts until `tasks` are cancelled, and runs `serve` for each connection as a task of `tasks` named `name`,
    /// in a span with the client's address. Then the socket is closed. Open connections continue.
    ///
    /// Never fails. It skips a connection that died in the backlog. If the process or the machine has no more file
    /// descriptors or memory, it pauses (5 ms, doubling to 1 s) and tries again.
    pub async fn run<F>(self, tasks: Tasks, name: &'static str, serve: impl Fn(Connection<L::Stream>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut failures = Failures::default();
        let accepting = async {
            loop {
                let connection = self.accept(&mut failures).await;
                let span = tracing::debug_span!("connection", listener = name, client = %connection.client);
                let serving = span.in_scope(|| serve(connection)).instrument(span);
                tasks.spawn(name, serving);
            }
        };
        tokio::select! {
            biased;
            () = tasks.cancelled() => {}
            () = accepting => {}
        }
    }

    /// The next connection. The slot is taken first, so that a connection that we cannot serve yet stays in the
    /// backlog. Its client sees a slow server instead of a broken one.
    async fn accept(&self, failures: &mut Failures) -> Connection<L::Stream> {
        let permit = self.slots.clone().acquire_owned().await.expect("nothing closes this semaphore");
        let (stream, client) = loop {
            match self.socket.accept().await {
                Ok(accepted) => break accepted,
                Err(error) => failures.after(&error, self.local).await,
            }
        };
        failures.reset();
        Connection { stream, client: ClientAddr(client), slot: Slot { _permit: permit } }
    }
}

fn open(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = match addr {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restarted proxy must get its port back while connections of its predecessor are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    let (time, interval) = KEEPALIVE;
    SockRef::from(&socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(time).with_interval(interval))?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

// === impl ClientAddr ===

impl std::fmt::Display for ClientAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
