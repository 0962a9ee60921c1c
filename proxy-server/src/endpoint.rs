//! The endpoint of a virtual cluster: TLS as a real API server would offer it, then every request into the tunnel.
//!
//! ```text
//! CONNECT ke-beijing.atoll.internal:443 --\
//! SNI     ke-beijing.atoll.internal -------+--> TLS -> route -> who -> forward -> tunnel
//! path    /clusters/ke-beijing/... -------/
//! ```
//!
//! Nothing here looks into a Kubernetes body.

mod access_log;
mod body;
mod forward;
mod head;
mod refusal;
mod route;
mod upgrade;
mod who;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use ops::drain::Tasks;
use ops::tls::{EndpointTls, ReadAhead};
use protocol::ClusterName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;
use tracing::{Instrument, debug};
use tunnel::{Batched, Turns};

use crate::client_cas::ClientCas;
use crate::config::Cluster;
use crate::registry::Registry;
use access_log::Logged;
use who::Peer;

/// For a TLS handshake.
const TLS_PATIENCE: Duration = Duration::from_secs(10);

/// From an accepted connection, or the last answer, to the next request's head. kube-apiserver waits as long
/// (`ReadHeaderTimeout` in `k8s.io/apiserver/pkg/server/secure_serving.go`).
pub(crate) const HEADER_PATIENCE: Duration = Duration::from_secs(32);

/// What endpoints need; cheap to clone.
#[derive(Clone, Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    registry: Arc<Registry>,
    tls: EndpointTls,
    client_cas: Arc<ClientCas>,
    domain: Arc<str>,
    tasks: Tasks,
}

/// What is known of a connection before its first request.
#[derive(Debug)]
struct Connection {
    /// The cluster that CONNECT or SNI named; requests cannot be for another.
    bound: Option<ClusterName>,
    peer: Peer,
}

// === impl Endpoint ===

impl Endpoint {
    /// Puts the parts together.
    pub fn new(
        registry: Arc<Registry>,
        tls: EndpointTls,
        client_cas: Arc<ClientCas>,
        domain: Arc<str>,
        tasks: Tasks,
    ) -> Self {
        Self { shared: Arc::new(Shared { registry, tls, client_cas, domain, tasks }) }
    }

    /// Serves a connection that CONNECT bound to a cluster.
    pub async fn serve_tunnelled<S>(&self, io: S, cluster: &Cluster)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.serve(io, Some(cluster)).await;
    }

    /// Serves a connection to the listener itself.
    pub async fn serve_direct<S>(&self, io: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.serve(io, None).await;
    }

    async fn serve<S>(&self, io: S, connected: Option<&Cluster>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Ok(handshake) = timeout(TLS_PATIENCE, self.handshake(io, connected)).await else {
            return debug!("no TLS handshake in time");
        };
        match handshake {
            Ok((stream, connection)) => self.serve_http(stream, Arc::new(connection)).await,
            Err(error) => debug!(%error, "TLS handshake failed"),
        }
    }

    async fn handshake<S>(
        &self,
        io: S,
        connected: Option<&Cluster>,
    ) -> std::io::Result<(TlsStream<ReadAhead<S>>, Connection)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), ReadAhead::new(io)).await?;
        let tls = &self.shared.tls;
        let (bound, config) = {
            let message = hello.client_hello();
            let (named, config) = tls.direct(message.server_name()).map_err(std::io::Error::other)?;
            match connected {
                None => (named, config),
                // Two names for one connection: one of them is meant to deceive.
                Some(cluster) if named.as_ref().is_some_and(|named| named != cluster.name.as_str()) => {
                    return Err(std::io::Error::other("SNI and CONNECT name different clusters"));
                }
                Some(cluster) => {
                    let config = tls.cluster(cluster.name.as_str()).map_err(std::io::Error::other)?;
                    let config = config.ok_or_else(|| std::io::Error::other("the cluster is gone"))?;
                    (Some(cluster.name.to_string()), config)
                }
            }
        };
        let stream = hello.into_stream(config).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let bound = bound.and_then(|name| name.parse().ok());
        Ok((stream, Connection { bound, peer: Peer::new(chain) }))
    }

    /// What ALPN agreed on is what is spoken; a client that offered nothing speaks HTTP/1.1.
    async fn serve_http<S>(&self, stream: TlsStream<ReadAhead<S>>, connection: Arc<Connection>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match stream.get_ref().1.alpn_protocol() {
            Some(protocol) if protocol == ops::tls::ALPN_H2 => {
                let (stream, turns) = Batched::new(stream);
                self.serve_requests(http().http2_only(), stream, Some(turns), connection).await;
            }
            _ => self.serve_requests(http().http1_only(), stream, None::<Turns<S>>, connection).await,
        }
    }

    async fn serve_requests<I, S>(
        &self,
        http: auto::Builder<TokioExecutor>,
        io: I,
        turns: Option<Turns<S>>,
        connection: Arc<Connection>,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: AsyncWrite + Unpin,
    {
        let service = service_fn(|request| {
            let this = self.clone();
            let connection = Arc::clone(&connection);
            async move { Ok::<_, Infallible>(this.answer(request, &connection).await) }
        });
        let served = http.serve_connection_with_upgrades(TokioIo::new(io), service);
        let mut served = std::pin::pin!(served);
        let mut stopping = std::pin::pin!(self.shared.tasks.cancelled());
        let mut is_stopping = false;
        let ended = poll_fn(|cx| {
            if !is_stopping && stopping.as_mut().poll(cx).is_ready() {
                is_stopping = true;
                served.as_mut().graceful_shutdown();
            }
            match &turns {
                Some(turns) => turns.poll(cx, |cx| served.as_mut().poll(cx)),
                None => served.as_mut().poll(cx),
            }
        })
        .await;
        if let Err(error) = ended {
            debug!(error, "connection ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Response<Logged> {
        let span = tracing::debug_span!("request", method = %request.method(), path = request.uri().path());
        forward::forward(&self.shared, request, connection).instrument(span).await
    }
}

/// Both versions of HTTP as clients meet them.
fn http() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .max_buf_size(256 * 1024)
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(256 * 1024)
        // As large as HTTP/2 allows: one request body that the tunnel does not take yet must not stop the others.
        .initial_connection_window_size((1 << 31) - 1)
        .max_concurrent_streams(250)
        .max_header_list_size(protocol::settings::MAX_HEADER_LIST)
        .max_frame_size(64 * 1024)
        .max_send_buf_size(512 * 1024)
        .keep_alive_interval(Duration::from_secs(30));
    builder
}
