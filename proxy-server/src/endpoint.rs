//! The endpoint of a virtual cluster: TLS as with a real API server, then every request into the tunnel.
//!
//! ```text
//! CONNECT ke-beijing.atoll.internal:443 --\
//! SNI     ke-beijing.atoll.internal -------+--> TLS -> HTTP -> stack (a phase after the other) -> tunnel
//! path    /clusters/ke-beijing/... -------/
//! ```
//!
//! `stack` is the path of a request. This module has what is below it: connections, TLS and HTTP.
//!
//! Nothing here parses a Kubernetes body.

mod access_log;
mod admit;
mod authenticate;
mod bearer;
mod body;
mod caller;
mod connection;
mod deadline;
mod documents;
#[cfg(test)]
mod fixture;
mod handshakes;
mod head;
mod hello;
mod idle;
mod issuer_token;
mod logged;
mod map_result_with;
mod peer;
mod prefetch;
mod received;
mod record;
mod refusal;
mod route;
mod send;
mod stack;
mod trace;
mod transform;
mod try_map_request;
mod until_removed;
mod upgrade;
mod upload;
mod verify;
mod watch_end;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ops::listen::Slot;
use ops::tls::{EndpointTls, ReadAhead};
use protocol::ClusterName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, info, warn};
use tunnel::{Batched, Turns};

use crate::config::Cluster;
use crate::limits::ConnectionPermit;
use crate::tunnel::CLIENT_WINDOW;
use crate::workers::{WorkerId, Workers};
use connection::Connection;
pub(crate) use connection::Services;
use handshakes::Handshakes;
pub(crate) use idle::HEADER_TIMEOUT;
use idle::{Idle, Requests, Verdict};
use issuer_token::LastToken;
use logged::Logged;
use peer::Peer;
use prefetch::LastCheck;

/// The time limit for a TLS handshake.
pub(crate) const TLS_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves the connections of all virtual clusters. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tls: EndpointTls,
    workers: Workers,
    handshakes: Handshakes,
    services: Arc<Services>,
}

/// An HTTP/1.1 or HTTP/2 connection.
trait HttpConnection: Future<Output = hyper::Result<()>> {
    /// Accepts no more requests. The running ones continue.
    fn close(self: Pin<&mut Self>);
}

// === impl Endpoint ===

impl Endpoint {
    /// An endpoint whose connections run on `workers`.
    pub(crate) fn new(services: Services, tls: EndpointTls, workers: Workers) -> Self {
        Self { shared: Arc::new(Shared { tls, workers, handshakes: Handshakes::new(), services: Arc::new(services) }) }
    }

    /// Serves a connection that CONNECT bound to a cluster.
    pub async fn serve_tunnelled<S>(&self, io: ReadAhead<S>, permit: ConnectionPermit, cluster: &Cluster)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.serve(io, permit, Some(cluster)).await;
    }

    /// Serves a direct connection to the listener. If SNI names a cluster, the connection moves to the worker of one of its
    /// tunnels, unless the tasks of that worker wait for too long.
    pub async fn serve_direct(self, socket: TcpStream, permit: ConnectionPermit, slot: Slot) {
        let shared = &self.shared;
        let mut io = ReadAhead::new(socket);
        let mut worker = None;
        if shared.workers.are_several() {
            let named = tokio::select! {
                named = timeout(TLS_TIMEOUT, hello::server_name(&mut io)) => named,
                () = permit.evicted() => return debug!("closed in favour of a newer connection"),
            };
            worker = match named {
                Ok(Ok(name)) => name.and_then(|name| self.worker_of(&name)),
                Ok(Err(error)) => return debug!(%error, "the client disconnected before TLS"),
                Err(_) => return debug!("no TLS within {} s", TLS_TIMEOUT.as_secs()),
            };
        }
        let Some(worker) = shared.workers.elsewhere(worker) else {
            self.serve(io, permit, None).await;
            return drop(slot);
        };
        match worker.adopt(|| io.try_map(ops::listen::adopt)) {
            Ok(io) => worker.spawn(&shared.services.tasks, "endpoint", {
                let this = self.clone();
                async move {
                    this.serve(io, permit, None).await;
                    drop(slot);
                }
            }),
            Err(error) => warn!(%error, "a connection cannot move to another worker"),
        }
    }

    /// The worker of the cluster whose endpoint has this host name.
    fn worker_of(&self, host: &str) -> Option<WorkerId> {
        let cluster = self.shared.tls.certificates().cluster_of(host)?.parse().ok()?;
        self.shared.services.registry.worker_of(&cluster)
    }

    async fn serve<S>(&self, io: ReadAhead<S>, permit: ConnectionPermit, connected: Option<&Cluster>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let served = async {
            let Ok(handshake) = timeout(TLS_TIMEOUT, self.handshake(io, connected)).await else {
                return debug!("TLS handshake timed out");
            };
            match handshake {
                Ok((stream, bound, peer)) => {
                    let (services, requests) = (Arc::clone(&self.shared.services), Requests::new());
                    let last_token = LastToken::default();
                    let (last_check, permit) = (LastCheck::default(), permit.clone());
                    let connection = Connection { services, bound, peer, last_token, last_check, permit, requests };
                    let connection = Arc::new(connection);
                    tokio::select! {
                        () = self.serve_http(stream, Arc::clone(&connection)) => {}
                        () = connection.revoked() => info!("a credential of the client was revoked: closing the connection"),
                    }
                }
                Err(error) => debug!(%error, "TLS handshake failed"),
            }
        };
        tokio::select! {
            () = served => {}
            () = permit.evicted() => debug!("closed in favour of a newer connection, or because the client does not read"),
        }
    }

    async fn handshake<S>(
        &self,
        io: ReadAhead<S>,
        connected: Option<&Cluster>,
    ) -> std::io::Result<(TlsStream<ReadAhead<S>>, Option<ClusterName>, Peer)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), io).await?;
        let tls = &self.shared.tls;
        let (bound, config) = {
            let message = hello.client_hello();
            let (named, config) = tls.direct(message.server_name()).map_err(std::io::Error::other)?;
            match connected {
                None => (named, config),
                // The connection has two names, so one of them is wrong.
                Some(cluster) if named.as_ref().is_some_and(|named| named != cluster.name.as_str()) => {
                    return Err(std::io::Error::other("SNI and CONNECT name different clusters"));
                }
                Some(cluster) => {
                    let config = tls.cluster(cluster.name.as_str()).map_err(std::io::Error::other)?;
                    let config = config.ok_or_else(|| std::io::Error::other("the cluster was removed"))?;
                    (Some(cluster.name.to_string()), config)
                }
            }
        };
        let handshake = hello.into_stream(config);
        let stream = self.shared.handshakes.in_turn(bound.as_deref(), handshake, &self.shared.services.tasks).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let bound = bound.and_then(|name| name.parse().ok());
        Ok((stream, bound, Peer::new(chain)))
    }

    /// Serves the protocol that ALPN has negotiated; HTTP/1.1 for a client without ALPN.
    async fn serve_http<S>(&self, stream: TlsStream<ReadAhead<S>>, connection: Arc<Connection>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let requests = connection.requests.clone();
        let send = send::send(Arc::clone(&connection.services));
        let service = TowerToHyperService::new(stack::stack(connection, send));
        match stream.get_ref().1.alpn_protocol() {
            Some(protocol) if protocol == ops::tls::ALPN_H2 => {
                let (stream, turns) = Batched::new(stream);
                let http = http2(self.shared.services.limits.streams_per_connection);
                self.drive(http.serve_connection(TokioIo::new(stream), service), Some(turns), requests).await;
            }
            _ => {
                let connection = http1().serve_connection(TokioIo::new(stream), service).with_upgrades();
                self.drive(connection, None::<Turns<S>>, requests).await;
            }
        }
    }

    /// Drives a connection until either side ends it, or it is idle for too long.
    async fn drive<S>(&self, connection: impl HttpConnection, turns: Option<Turns<S>>, requests: Requests)
    where
        S: AsyncWrite + Unpin,
    {
        let mut connection = pin!(connection);
        let mut stopping = pin!(self.shared.services.tasks.cancelled());
        let mut is_stopping = false;
        let mut idle = Idle::new(requests);
        let ended = poll_fn(|cx: &mut Context<'_>| {
            if !is_stopping && stopping.as_mut().poll(cx).is_ready() {
                is_stopping = true;
                connection.as_mut().close();
            }
            loop {
                let polled = match &turns {
                    Some(turns) => turns.poll(cx, |cx| connection.as_mut().poll(cx)),
                    None => connection.as_mut().poll(cx),
                };
                if polled.is_ready() {
                    return polled;
                }
                match idle.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Verdict::Close) => connection.as_mut().close(),
                    Poll::Ready(Verdict::Drop) => return Poll::Ready(Ok(())),
                }
            }
        })
        .await;
        if let Err(error) = ended {
            debug!(%error, "connection ended");
        }
    }
}

/// It accepts 100 headers, and answers 431 to more. With another limit, hyper would allocate two arrays of that many elements for
/// each request, instead of using its stack.
fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(256 * 1024);
    builder
}

fn http2(streams: u32) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(CLIENT_WINDOW)
        // The maximum of HTTP/2: one request body that the tunnel does not accept yet must not block the others.
        .initial_connection_window_size((1 << 31) - 1)
        .max_concurrent_streams(streams)
        .max_header_list_size(protocol::settings::MAX_HEADER_LIST)
        .max_frame_size(64 * 1024)
        // More unread bytes stay in the tunnel, where the budget counts them.
        .max_send_buf_size(128 * 1024)
        .keep_alive_interval(Duration::from_secs(30));
    builder
}

// === impl HttpConnection ===

impl<I, S> HttpConnection for http1::UpgradeableConnection<I, S>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    S: hyper::service::HttpService<Incoming, ResBody = Logged>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S> HttpConnection for http2::Connection<I, S, TokioExecutor>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: hyper::service::HttpService<Incoming, ResBody = Logged>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

#[cfg(test)]
mod tests;
