//! The HTTP proxy that `proxy-url` names: CONNECT (RFC 9110 section 9.3.6), only to clusters.
//!
//! The CONNECT for a virtual cluster is answered at once, because TLS ends here. The CONNECT for a physical cluster is
//! answered when the agent has reached the API server, so that the status line reports a failure: kubectl shows nothing
//! else.

mod refusal;
mod route;
mod upgraded;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use ops::drain::Tasks;
use ops::tls::ReadAhead;
use protocol::NotConnected;
use protocol::stream::CLUSTER;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, info_span};

use crate::config::Cluster;
use crate::endpoint::Endpoint;
use crate::limits::{Client, Limit, Limits, Place, StreamPlace};
use crate::registry::{OpenError, Registry};
use crate::tunnel::{Demand, Lease, TunnelError};
use crate::workers::{WorkerId, Workers};
use refusal::ConnectRefusal;
use route::Route;
use upgraded::Upgraded;

/// The parts that the proxy listener uses.
#[derive(Clone, Debug)]
pub struct Connect {
    /// The clusters and their tunnels.
    pub registry: Arc<Registry>,
    /// The endpoint of virtual clusters.
    pub endpoint: Endpoint,
    /// Limits of clients.
    pub limits: Arc<Limits>,
    /// The domain in `<cluster>.<domain>`.
    pub domain: Arc<str>,
    /// The threads of connections after the response to CONNECT.
    pub workers: Workers,
    /// The tasks of these connections.
    pub tasks: Tasks,
}

/// A connection to the API server of a physical cluster.
struct Passage {
    inbound: tunnel::Inbound,
    outbound: h2::SendStream<Bytes>,
    /// Cancelled when the cluster is removed.
    end: CancellationToken,
    _lease: Lease,
    _stream: StreamPlace,
}

/// The time for the agent of a physical cluster to dial the API server. It is longer than the agent's own timeout
/// (`layer4` of `proxy-agent`).
const DIALLING: Duration = Duration::from_secs(30);

// === impl Connect ===

impl Connect {
    /// Serves one connection, which may be TLS already. HTTP/1.1 only: Go's clients do not support HTTP/2 to a proxy. A
    /// connection keeps its place after CONNECT.
    pub async fn serve<S>(self, io: S, place: Place)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request| {
            let (this, place) = (self.clone(), place.clone());
            async move { Ok::<_, std::convert::Infallible>(this.answer(request, place).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(crate::endpoint::HEADER_TIMEOUT)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(io), service)
            .with_upgrades();
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                debug!(%error, "proxy connection ended");
            },
            () = place.evicted() => debug!("closed in favour of a newer connection"),
        }
    }

    async fn answer(&self, mut request: Request<Incoming>, place: Place) -> Response<Full<Bytes>> {
        if request.method() != Method::CONNECT {
            return ConnectRefusal::NotConnect.into_response();
        }
        let target = request.uri().to_string();
        match self.connect(&mut request, place).await {
            Ok(()) => Response::new(Full::default()),
            Err(refusal) => {
                info!(target, status = refusal.status().as_u16(), %refusal, "CONNECT refused");
                refusal.into_response()
            }
        }
    }

    async fn connect(&self, request: &mut Request<Incoming>, place: Place) -> Result<(), ConnectRefusal> {
        match route::route(request, &self.registry.clusters(), &self.domain)? {
            Route::Virtual(cluster) => {
                let upgrade = hyper::upgrade::on(request);
                let endpoint = self.endpoint.clone();
                let span = info_span!("endpoint", cluster = %cluster.name);
                let worker = self.registry.worker_of(&cluster.name);
                let serve = async move {
                    match Upgraded::after(upgrade).await {
                        Ok(Upgraded::Socket(io)) => endpoint.serve_tunnelled(io, place, &cluster).await,
                        Ok(Upgraded::Other(io)) => endpoint.serve_tunnelled(ReadAhead::new(io), place, &cluster).await,
                        Err(error) => debug!(%error, "the client disconnected after CONNECT"),
                    }
                };
                self.spawn_at(worker, "endpoint", serve.instrument(span));
            }
            Route::Physical(cluster) => {
                let (passage, worker) = self.dial(&cluster).await?;
                place.pass().map_err(|limit| self.exceeded(&cluster, limit))?;
                let upgrade = hyper::upgrade::on(request);
                let span = info_span!("passage", cluster = %cluster.name);
                let passed = async move {
                    passage.run(upgrade).await;
                    drop(place);
                };
                self.spawn_at(worker, "passage", passed.instrument(span));
            }
        }
        Ok(())
    }

    /// Continues with a connection on this worker. On another one than this, the task takes the socket over.
    fn spawn_at(&self, worker: Option<WorkerId>, name: &'static str, serve: impl Future<Output = ()> + Send + 'static) {
        match self.workers.elsewhere(worker) {
            Some(worker) => worker.spawn(&self.tasks, name, serve),
            None => drop(self.tasks.spawn(name, serve)),
        }
    }

    /// A stream to the API server, and the worker of its tunnel.
    async fn dial(&self, cluster: &Cluster) -> Result<(Passage, Option<WorkerId>), ConnectRefusal> {
        let stream = self.limits.streams.enter(&cluster.name, Client::Passage);
        let stream = stream.map_err(|limit| self.exceeded(cluster, limit))?;
        // First: if the cluster is removed after this, it has no tunnel either.
        let end = self.registry.end_of(&cluster.name).unwrap_or_default();
        let address =
            cluster.api_server.as_ref().expect("a physical cluster has an address: its configuration says so");
        let mut head = Request::new(());
        *head.method_mut() = Method::CONNECT;
        *head.uri_mut() = address.to_string().parse().expect("host:port is an authority");
        let name = HeaderValue::from_str(cluster.name.as_str()).expect("a DNS label is a header value");
        head.headers_mut().insert(CLUSTER, name);
        let demand = Demand { cluster: &cluster.name, is_proven: true, unread: 0 };
        let vacancy = match self.registry.vacancy(&cluster.name, Some(demand)).await {
            Ok(vacancy) => vacancy,
            Err(OpenError::NoAgent(absent)) => return Err(absent.into()),
            Err(OpenError::Full(_)) => return Err(self.exceeded(cluster, Limit::Tunnel)),
        };
        let worker = vacancy.tunnel().worker;
        let (outbound, answer) = vacancy.open(head, false)?.split();
        let (response, lease) =
            timeout(DIALLING, answer.wait()).await.map_err(|_| ConnectRefusal::silent(cluster))??;
        if response.status() != StatusCode::OK {
            let reason = NotConnected::read(response.headers());
            return Err(ConnectRefusal::Dial { cluster: cluster.name.clone(), reason });
        }
        let passage = Passage { inbound: response.into_body(), outbound, end, _lease: lease, _stream: stream };
        Ok((passage, worker))
    }

    fn exceeded(&self, cluster: &Cluster, limit: Limit) -> ConnectRefusal {
        self.limits.note(&cluster.name, limit);
        ConnectRefusal::TooMany(cluster.name.clone())
    }
}

// === impl Passage ===

impl Passage {
    async fn run(self, upgrade: OnUpgrade) {
        match Upgraded::after(upgrade).await {
            Ok(Upgraded::Socket(io)) => self.pipe(io).await,
            Ok(Upgraded::Other(io)) => self.pipe(io).await,
            Err(error) => debug!(%error, "the client disconnected after CONNECT"),
        }
    }

    async fn pipe(self, io: impl AsyncRead + AsyncWrite + Unpin) {
        let mut traffic = tunnel::pipe::Traffic::default();
        let result = tokio::select! {
            result = tunnel::pipe::pipe(io, self.inbound, self.outbound, &mut traffic) => result,
            () = self.end.cancelled() => Ok(()),
        };
        let tunnel::pipe::Traffic { into_tunnel, from_tunnel } = traffic;
        match result {
            Ok(()) => info!(into_tunnel, from_tunnel, "connection ended"),
            Err(err) => info!(into_tunnel, from_tunnel, error = &err as &dyn std::error::Error, "connection broke"),
        }
    }
}

impl From<TunnelError> for ConnectRefusal {
    fn from(source: TunnelError) -> Self {
        Self::Tunnel(source)
    }
}

impl From<crate::registry::NoAgent> for ConnectRefusal {
    fn from(absent: crate::registry::NoAgent) -> Self {
        Self::NoAgent(absent)
    }
}
