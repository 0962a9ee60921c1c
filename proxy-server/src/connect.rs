//! The HTTP proxy that `proxy-url` names: CONNECT (RFC 9110 section 9.3.6), only to clusters, and to destinations at their sites.
//!
//! The CONNECT for a virtual cluster is answered at once, because TLS ends here. The CONNECT for a physical cluster is
//! answered when the agent has reached the API server, so that the status line reports a failure: kubectl shows nothing
//! else.

mod destination;
mod refusal;
mod route;
mod upgraded;

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use ops::drain::Tasks;
use ops::tls::ReadAhead;
use protocol::NotConnected;
use protocol::stream::{write_cluster, write_destination};
use request_metrics::{Failure, RequestMetrics};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, debug, info, info_span};

use crate::attempts::{Attempts, may_be_elsewhere};
use crate::client_cas::ClientCas;
use crate::config::Cluster;
use crate::endpoint::Endpoint;
use crate::limits::{Client, ConnectionPermit, Limit, Limits, StreamPermit, User};
use crate::registry::{OpenError, Registry};
use crate::tunnel::{Demand, Lease, TunnelError};
use crate::workers::{WorkerId, Workers};
use refusal::{ConnectRefusal, Target};
use route::Route;
use upgraded::Upgraded;

/// Serves the connections of the proxy listener. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Connect {
    /// The clusters and their tunnels.
    pub registry: Arc<Registry>,
    /// The endpoint of virtual clusters.
    pub endpoint: Endpoint,
    /// The CAs of clients who reach destinations.
    pub client_cas: Arc<ClientCas>,
    /// Limits of clients.
    pub limits: Arc<Limits>,
    /// Records the last errors of clusters.
    pub requests: Arc<RequestMetrics>,
    /// The domain in `<cluster>.<domain>`.
    pub domain: Arc<str>,
    /// The threads of connections after the response to CONNECT.
    pub workers: Workers,
    /// The tasks of these connections.
    pub tasks: Tasks,
}

/// An open stream to the API server of a physical cluster, or to a destination.
struct Passthrough {
    inbound: tunnel::Inbound,
    outbound: h2::SendStream<Bytes>,
    /// Cancelled when the cluster is removed.
    end: CancellationToken,
    _lease: Lease,
    _permit: StreamPermit,
}

/// The time limit for an agent to dial an API server or a destination. It is longer than the agent's own timeout
/// (`layer4` of `proxy-agent`).
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

// === impl Connect ===

impl Connect {
    /// Serves one connection, with or without TLS. HTTP/1.1 only: Go's clients do not support HTTP/2 to a proxy. After
    /// CONNECT, the connection still counts. `chain`: the certificates of the client, unverified.
    pub async fn serve<S>(self, io: S, chain: Arc<[CertificateDer<'static>]>, permit: ConnectionPermit)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request| {
            let (this, chain, permit) = (self.clone(), Arc::clone(&chain), permit.clone());
            async move { Ok::<_, std::convert::Infallible>(this.answer(request, &chain, permit).await) }
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
            () = permit.evicted() => debug!("closed in favour of a newer connection"),
        }
    }

    async fn answer(
        &self,
        mut request: Request<Incoming>,
        chain: &Arc<[CertificateDer<'static>]>,
        permit: ConnectionPermit,
    ) -> Response<Full<Bytes>> {
        if request.method() != Method::CONNECT {
            return ConnectRefusal::NotConnect.into_response();
        }
        let target = request.uri().to_string();
        match self.connect(&mut request, chain, permit).await {
            Ok(()) => Response::new(Full::default()),
            Err(refusal) => {
                info!(target, status = refusal.status().as_u16(), %refusal, "CONNECT refused");
                refusal.into_response()
            }
        }
    }

    /// Prepares the connection that follows the response. A task waits until the response is sent, and then serves it.
    async fn connect(
        &self,
        request: &mut Request<Incoming>,
        chain: &Arc<[CertificateDer<'static>]>,
        permit: ConnectionPermit,
    ) -> Result<(), ConnectRefusal> {
        let clusters = self.registry.clusters();
        match route::route(request, &clusters, &self.domain)? {
            Route::Virtual(cluster) => {
                let upgrade = hyper::upgrade::on(request);
                let endpoint = self.endpoint.clone();
                let span = info_span!("endpoint", cluster = %cluster.name);
                let worker = self.registry.worker_of(&cluster.name);
                let serve = async move {
                    match Upgraded::after(upgrade).await {
                        Ok(Upgraded::Socket(io)) => endpoint.serve_tunnelled(io, permit, &cluster).await,
                        Ok(Upgraded::Other(io)) => endpoint.serve_tunnelled(ReadAhead::new(io), permit, &cluster).await,
                        Err(error) => debug!(%error, "the client disconnected after CONNECT"),
                    }
                };
                self.spawn_at(worker, "endpoint", serve.instrument(span));
            }
            Route::Physical(cluster) => {
                let span = info_span!("passthrough", cluster = %cluster.name);
                let (passthrough, worker) = self.pass_through(&cluster, &Target::ApiServer, None, &permit).await?;
                self.forward(request, (passthrough, worker), pending(), permit, span);
            }
            Route::Destination(address) => {
                let name =
                    destination::cluster_of(request).ok_or_else(|| ConnectRefusal::Forbidden(address.clone()))?;
                let allowed = destination::authorize(name, &address, &clusters, &self.client_cas, chain)?;
                let span = info_span!("destination", cluster = %allowed.cluster.name, %address, user = allowed.user);
                let (target, user) = (Target::Destination(address), User::from(allowed.user.as_str()));
                let dialled = self.pass_through(&allowed.cluster, &target, Some(&user), &permit).await?;
                span.in_scope(|| info!("connected"));
                let (registry, client_cas) = (Arc::clone(&self.registry), Arc::clone(&self.client_cas));
                let revoked = destination::revoked(allowed, registry, client_cas, Arc::clone(chain));
                self.forward(request, dialled, revoked, permit, span);
            }
        }
        Ok(())
    }

    /// Opens a stream. A connection to a destination counts for its user.
    async fn pass_through(
        &self,
        cluster: &Cluster,
        target: &Target,
        user: Option<&User>,
        permit: &ConnectionPermit,
    ) -> Result<(Passthrough, Option<WorkerId>), ConnectRefusal> {
        let dialled = self.dial(cluster, target, user).await.and_then(|dialled| {
            let counted =
                user.map_or_else(|| permit.mark_passthrough(), |user| permit.prove(Some(&cluster.name), user));
            counted.map_err(|limit| self.too_many(cluster, limit))?;
            Ok(dialled)
        });
        dialled.inspect_err(|refusal| self.failed(cluster, refusal))
    }

    /// A task waits until the response is sent, and then copies bytes until the end or until `revoked`.
    fn forward(
        &self,
        request: &mut Request<Incoming>,
        (passthrough, worker): (Passthrough, Option<WorkerId>),
        revoked: impl Future<Output = ()> + Send + 'static,
        permit: ConnectionPermit,
        span: Span,
    ) {
        let upgrade = hyper::upgrade::on(request);
        let forward = async move {
            tokio::select! {
                () = passthrough.run(upgrade) => {}
                () = revoked => info!("ended, because the client may no longer reach the destination"),
            }
            drop(permit);
        };
        self.spawn_at(worker, "passthrough", forward.instrument(span));
    }

    /// Spawns the task of a connection on this worker, or here if it is `None`. A task on another worker takes the socket
    /// over.
    fn spawn_at(&self, worker: Option<WorkerId>, name: &'static str, serve: impl Future<Output = ()> + Send + 'static) {
        match self.workers.elsewhere(worker) {
            Some(worker) => worker.spawn(&self.tasks, name, serve),
            None => drop(self.tasks.spawn(name, serve)),
        }
    }

    /// A stream to the target, and the worker of its tunnel.
    async fn dial(
        &self,
        cluster: &Cluster,
        target: &Target,
        user: Option<&User>,
    ) -> Result<(Passthrough, Option<WorkerId>), ConnectRefusal> {
        let mut attempts = Attempts::default();
        loop {
            let dialled = self.dial_once(cluster, target, user).await;
            let is_unsent = match &dialled {
                Err(ConnectRefusal::NoAgent(absent)) => may_be_elsewhere(&self.registry, absent),
                Err(ConnectRefusal::Tunnel(TunnelError::Unsent { .. })) => true,
                _ => false,
            };
            if !is_unsent || !attempts.pause().await {
                return dialled;
            }
        }
    }

    async fn dial_once(
        &self,
        cluster: &Cluster,
        target: &Target,
        user: Option<&User>,
    ) -> Result<(Passthrough, Option<WorkerId>), ConnectRefusal> {
        let client = user.cloned().map_or(Client::Passthrough, Client::User);
        let permit = self.limits.streams.enter(&cluster.name, client);
        let permit = permit.map_err(|limit| self.too_many(cluster, limit))?;
        // Before the reservation. A removed cluster has no token, but it has no tunnel either.
        let end = self.registry.end_of(&cluster.name).unwrap_or_default();
        let head = connect_head(cluster, target);
        let demand = Demand { cluster: &cluster.name, is_proven: true, unread: 0 };
        let reservation = match self.registry.reserve(&cluster.name, Some(demand)).await {
            Ok(reservation) => reservation,
            Err(OpenError::NoAgent(absent)) => return Err(absent.into()),
            Err(OpenError::Full(_)) => return Err(self.too_many(cluster, Limit::Tunnel)),
        };
        let tunnel = reservation.tunnel();
        if matches!(target, Target::Destination(_)) && !tunnel.abilities.connects_destinations {
            return Err(ConnectRefusal::Old(cluster.name.clone()));
        }
        let worker = tunnel.worker;
        let (outbound, pending) = reservation.open(head, false)?.split();
        let response = timeout(DIAL_TIMEOUT, pending.wait()).await;
        let (response, lease) =
            match response.map_err(|_| ConnectRefusal::Silent(cluster.name.clone(), target.clone()))? {
                Err(TunnelError::Full(_)) => return Err(self.too_many(cluster, Limit::Tunnel)),
                answered => answered?,
            };
        if response.status() != StatusCode::OK {
            let reason = NotConnected::read(response.headers());
            return Err(ConnectRefusal::Dial { cluster: cluster.name.clone(), target: target.clone(), reason });
        }
        let passthrough = Passthrough { inbound: response.into_body(), outbound, end, _lease: lease, _permit: permit };
        Ok((passthrough, worker))
    }

    /// Records a refusal, for the operator.
    fn failed(&self, cluster: &Cluster, refusal: &ConnectRefusal) {
        let (code, fault, message) = (refusal.status().as_u16(), refusal.fault(), refusal.to_string());
        self.requests.failed(&cluster.name, &Failure { code, fault, reason: "", message: &message });
    }

    fn too_many(&self, cluster: &Cluster, limit: Limit) -> ConnectRefusal {
        self.limits.count_refused(&cluster.name, limit);
        ConnectRefusal::TooMany(cluster.name.clone())
    }
}

/// The head of the request for the agent. The agent takes the address of an API server from its own configuration.
fn connect_head(cluster: &Cluster, target: &Target) -> Request<()> {
    let mut head = Request::new(());
    let address = match target {
        Target::ApiServer => {
            cluster.api_server.as_ref().expect("the configuration of a physical cluster has an address")
        }
        Target::Destination(address) => {
            write_destination(address, head.headers_mut());
            address
        }
    };
    *head.method_mut() = Method::CONNECT;
    *head.uri_mut() = address.to_string().parse().expect("host:port is an authority");
    write_cluster(&cluster.name, head.headers_mut());
    head
}

// === impl Passthrough ===

impl Passthrough {
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
