//! The agents' listener: TLS 1.3 with a client certificate, one registration, then the proxy-server becomes the HTTP/2
//! client.
//!
//! ```text
//! accept -> TLS (the identity) -> POST /atoll/tunnel (the offers) -> 101 -> HTTP/2 with the proxy-server as the client
//!                              -> POST /atoll/renew (or, without an identity, /atoll/enrol) -> a certificate
//!                              -> POST /atoll/user -> the certificate of a user of one of its clusters
//! ```
//! An agent may change its offers later: see `offers`.

mod enrol;
mod handshakes;
mod offers;
mod refused;
mod register;
mod validity;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use ::tunnel::keepalive::{Intervals, keepalive};
use ::tunnel::metered::Meter;
use ::tunnel::{Batched, Budget, Metered};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ops::drain::Tasks;
use ops::files::Watched;
use ops::listen::Slot;
use ops::tls::{ClientCa, ReadAhead};
use protocol::AgentId;
use protocol::blocks::Histories;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, info_span, warn};

pub use handshakes::HandshakeRate;
pub use validity::Validity;

use crate::enrolment::Enrolment;
use crate::grants::Grants;
use crate::limits::{ConnectionPermit, Network};
use crate::links::{Link, Links};
use crate::peers::PeerAddresses;
use crate::registry::Registry;
use crate::revocations::{CertificateId, Revocations};
use crate::tunnel::{Abilities, Origin, Tunnel};
use crate::user_certificates::UserCertificates;
use crate::workers::Workers;

/// The time limit for the TLS handshake, and again for the registration. Both need a few round trips. A silent peer must
/// not hold a socket for long.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// The interval at which a tunnel is checked for streams when the process stops.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// Serves the connections of agents.
#[derive(Clone, Debug)]
pub struct Agents {
    /// The registry of tunnels.
    pub registry: Arc<Registry>,
    /// The clusters that agents may add.
    pub grants: Option<Arc<Grants>>,
    /// The ID of this process. Agents that dial several addresses recognise the process by it.
    pub server_id: Arc<str>,
    /// The domain of the endpoints of clusters, for the status of VirtualClusters.
    pub domain: Arc<str>,
    /// The common name of the certificates of other proxy-servers, and their addresses.
    pub peers: Option<(AgentId, Arc<PeerAddresses>)>,
    /// The networks between this process and its agents.
    pub links: Arc<Links>,
    /// The CA of the agents' certificates.
    pub agent_ca: Watched<ClientCa>,
    /// What is refused although the CA has signed it.
    pub revocations: Revocations,
    /// Issues certificates, if configured.
    pub enrolment: Option<Arc<Enrolment>>,
    /// Issues certificates for users, if the configuration has grants.
    pub user_certificates: Option<UserCertificates>,
    /// How long tunnels may last.
    pub validity: Arc<Validity>,
    /// Limits the rate of TLS handshakes.
    pub handshakes: Arc<HandshakeRate>,
    /// The threads of tunnels.
    pub workers: Workers,
    /// Cancelled when the process begins to stop.
    pub stopping: CancellationToken,
    /// The tasks of tunnels.
    pub tasks: Tasks,
}

/// The certificate of an agent whose tunnel is up.
#[derive(Debug)]
struct Certificate {
    id: CertificateId,
    valid_until: SystemTime,
}

/// Who has completed a TLS handshake.
#[derive(Debug)]
enum Peer<'a> {
    /// An agent, or another proxy-server.
    Agent(AgentId, Certificate),
    /// It has no certificate yet.
    Stranger(&'a Arc<Enrolment>),
}

/// Why a connection of an agent failed.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("too many agents connect at the same time")]
    Busy,
    #[error("the TLS handshake failed")]
    Tls(#[source] std::io::Error),
    #[error("the agent's certificate is not accepted")]
    Certificate(#[source] ops::tls::ClientCertificateError),
    #[error("the certificate's common name is not an agent's identity")]
    Identity(#[source] protocol::name::InvalidName),
    #[error("the agent sent nothing for {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Silent,
    #[error("the connection broke before a registration")]
    Http(#[source] hyper::Error),
    #[error("the connection broke at the upgrade")]
    Tunnel(#[source] h2::Error),
    #[error("agent {0}, or all agents together, have too many tunnels")]
    TooMany(AgentId),
}

/// Counts the bytes of one tunnel, also for its link and its budget.
#[derive(Debug)]
struct TunnelMeter {
    link: Arc<Link>,
    budget: Arc<Budget>,
    received: AtomicU64,
}

// === impl TunnelMeter ===

impl Meter for TunnelMeter {
    fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
        self.link.received(bytes);
        self.budget.received(bytes);
    }

    fn sent(&self, bytes: u64) {
        self.link.sent(bytes);
    }
}

// === impl Agents ===

impl Agents {
    /// Moves an accepted connection to the worker with the fewest agents, which serves it to its end. It counts as an agent
    /// when it is registered.
    pub fn assign(&self, socket: TcpStream, permit: ConnectionPermit, slot: Slot, acceptor: TlsAcceptor) {
        let this = self.clone();
        let worker = self.workers.likely();
        match worker.adopt(|| ops::listen::adopt(socket)) {
            Ok(socket) => worker.spawn(&self.tasks, "agent", async move {
                this.serve(socket, permit, acceptor).await;
                drop(slot);
            }),
            Err(error) => warn!(%error, "an agent's connection cannot move to its worker"),
        }
    }

    async fn serve(self, socket: TcpStream, permit: ConnectionPermit, acceptor: TlsAcceptor) {
        let peer = socket.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
        let span = info_span!("agent", %peer);
        async {
            let accepted = tokio::select! {
                accepted = self.accept(socket, &permit, acceptor) => accepted,
                () = permit.evicted() => return debug!("closed in favour of a newer connection"),
            };
            if let Err(AgentError::Busy) = accepted {
                // Thousands of lines would say the same.
                debug!("too many agents connect at the same time");
            } else if let Err(error) = accepted {
                warn!(error = &error as &dyn std::error::Error, "agent not accepted");
            }
        }
        .instrument(span)
        .await;
    }

    async fn accept(
        self,
        socket: TcpStream,
        permit: &ConnectionPermit,
        acceptor: TlsAcceptor,
    ) -> Result<(), AgentError> {
        let address = socket.peer_addr().ok().map(|address| address.ip());
        let network = address.map(Network::from).unwrap_or_default();
        let handshake = self.handshake(socket, network, &acceptor).await;
        self.handshakes.count(match &handshake {
            Ok((_, Peer::Agent(..))) => "accepted",
            Ok((_, Peer::Stranger(_))) => "enrolling",
            Err(AgentError::Busy) => "busy",
            Err(_) => "failed",
        });
        let (stream, agent, certificate) = match handshake? {
            (stream, Peer::Agent(agent, certificate)) => (stream, agent, certificate),
            (stream, Peer::Stranger(enrolment)) => return enrol(stream, enrolment).await,
        };
        // A stolen certificate gets a refusal, but it takes no connection and no turn of the agent.
        if !self.revocations.revokes_agent(&agent, &certificate.id) {
            self.handshakes.authenticated(network);
            permit.prove(None, &agent.as_str().into()).map_err(|_| AgentError::TooMany(agent.clone()))?;
        }
        debug!(%agent, "TLS established");
        let is_peer = self.is_peer(&agent);
        let shared = register::Shared {
            registry: Arc::clone(&self.registry),
            grants: self.grants.clone(),
            server_id: Arc::clone(&self.server_id),
            domain: Arc::clone(&self.domain),
            enrolment: self.enrolment.clone(),
            user_certificates: self.user_certificates.clone(),
            revocations: self.revocations.clone(),
        };
        let known = (certificate.id.clone(), certificate.valid_until);
        let registration = register::Registration::new(shared, agent, is_peer, known);
        let connection = http().serve_connection(TokioIo::new(stream), registration.service()).with_upgrades();
        timeout(HANDSHAKE_TIMEOUT, connection).await.map_err(|_| AgentError::Silent)?.map_err(AgentError::Http)?;
        let Some((upgrade, accepted)) = registration.outcome() else { return Ok(()) };
        let io = upgrade.await.map_err(AgentError::Http)?;
        let addresses = self.peers.as_ref().filter(|_| is_peer).map(|(_, addresses)| addresses);
        let _address = addresses.zip(address).map(|(addresses, address)| addresses.enter(address));
        self.run(TokioIo::new(io), accepted, &certificate).await
    }

    /// The TLS handshake, when it is its turn.
    async fn handshake(
        &self,
        socket: TcpStream,
        network: Network,
        acceptor: &TlsAcceptor,
    ) -> Result<(TlsStream<ReadAhead<TcpStream>>, Peer<'_>), AgentError> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), ReadAhead::new(socket));
        let hello = timeout(HANDSHAKE_TIMEOUT, hello).await.map_err(|_| AgentError::Silent)?;
        let hello = hello.map_err(AgentError::Tls)?;
        if !self.handshakes.wait(network).await {
            return Err(AgentError::Busy);
        }
        let handshake = hello.into_stream(Arc::clone(acceptor.config()));
        let stream = timeout(HANDSHAKE_TIMEOUT, handshake).await.map_err(|_| AgentError::Silent)?;
        let stream = stream.map_err(AgentError::Tls)?;
        if let Some(enrolment) = &self.enrolment
            && stream.get_ref().1.peer_certificates().is_none()
        {
            return Ok((stream, Peer::Stranger(enrolment)));
        }
        let (agent, certificate) = self.identity(&stream)?;
        Ok((stream, Peer::Agent(agent, certificate)))
    }

    /// Drives the tunnel until either side ends it.
    async fn run<S>(self, io: S, accepted: register::Accepted, certificate: &Certificate) -> Result<(), AgentError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let register::Accepted { agent, registration } = accepted;
        let link = self.links.of(&agent);
        let budget = Budget::metered(protocol::settings::BUFFER_BUDGET);
        let received = AtomicU64::new(0);
        let meter = Arc::new(TunnelMeter { link: Arc::clone(&link), budget: Arc::clone(&budget), received });
        let (io, turns) = Batched::delaying_cancellations(Metered::new(io, Arc::clone(&meter)));
        let (requests, mut connection) = tunnel::settings::client().handshake(io).await.map_err(AgentError::Tunnel)?;
        let pings = connection.ping_pong().expect("it is taken once");
        let protocol::Registration { protocol, instance, version, clusters, capabilities, .. } = registration;
        let is_peer = self.is_peer(&agent);
        let announces = |capability| capabilities.iter().any(|one| one == capability);
        // The agents behind another proxy-server have their own limits.
        let histories = if is_peer { Histories::unlimited() } else { Histories::receiver() };
        let histories = announces(protocol::encoding::CAPABILITY).then_some(histories);
        let origin = Origin {
            agent,
            instance,
            version,
            protocol,
            histories,
            is_peer,
            abilities: Abilities::of(&capabilities),
            link,
            budget,
            certificate_until: Some(certificate.valid_until),
        };
        let tunnel = Tunnel::new(origin, requests);
        self.validity.registered(&tunnel.agent, certificate.valid_until);
        let offered = offers::Offered::register((&self.registry, self.grants.as_ref()), &tunnel, &clusters);
        let _assignment = self.workers.assign();
        let clusters: Vec<_> = offered.in_force().into_iter().map(protocol::ClusterName::as_str).collect();
        info!(agent = %tunnel.agent, instance = tunnel.instance, version = tunnel.version, ?clusters, "agent connected");
        let reason = tokio::select! {
            ended = poll_fn(|cx| turns.poll(cx, |cx| Pin::new(&mut connection).poll(cx))) => match ended {
                Ok(()) => "the agent closed it".to_owned(),
                Err(err) => err.to_string(),
            },
            lost = keepalive(pings, Intervals::ACCEPTED, |rtt| tunnel.set_round_trip(rtt), || meter.received.load(Ordering::Relaxed)) =>
                lost.to_string(),
            () = tunnel.budget.keep(|sweep| warn!(reset = sweep.reset, held = sweep.held, "streams with unread response data were reset")) =>
                unreachable!("a budget is kept for ever"),
            () = offered.follow(announces(protocol::offers::CAPABILITY), self.stopping.cancelled()) =>
                unreachable!("offers are followed for ever"),
            () = tunnel.end.cancelled() => "ended by this proxy-server".to_owned(),
            () = self.revocations.until(|list| list.revokes_agent(&tunnel.agent, &certificate.id)) =>
                "the certificate of the agent was revoked".to_owned(),
            () = self.expired(&tunnel, certificate) => "the certificate of the agent has expired".to_owned(),
            () = self.drained(&tunnel) => "this proxy-server is stopping".to_owned(),
        };
        self.registry.remove(&tunnel);
        info!(agent = %tunnel.agent, why = reason, "agent disconnected");
        Ok(())
    }

    /// Completes when the process drains its connections, and the tunnel has no streams.
    async fn drained(&self, tunnel: &Tunnel) {
        self.tasks.cancelled().await;
        while tunnel.streams() > 0 {
            sleep(DRAIN_INTERVAL).await;
        }
    }

    /// Completes when a tunnel must end because of the time. It gets no new streams when its own certificate has expired.
    async fn expired(&self, tunnel: &Arc<Tunnel>, certificate: &Certificate) {
        validity::reached(certificate.valid_until).await;
        self.registry.remove(tunnel);
        let _ = timeout(validity::GRACE_PERIOD, self.validity.ended(&tunnel.agent)).await;
    }

    fn is_peer(&self, agent: &AgentId) -> bool {
        self.peers.as_ref().is_some_and(|(id, _)| id == agent)
    }

    /// The identity in the client certificate, which the handshake has verified.
    fn identity<S>(&self, stream: &TlsStream<S>) -> Result<(AgentId, Certificate), AgentError> {
        let (_, session) = stream.get_ref();
        let chain = session.peer_certificates().unwrap_or_default();
        let peer = self.agent_ca.borrow().verify(chain, SystemTime::now()).map_err(AgentError::Certificate)?;
        let agent = peer.common_name.parse().map_err(AgentError::Identity)?;
        Ok((agent, Certificate { id: CertificateId::from(&peer), valid_until: peer.valid_until }))
    }
}

/// Serves a client without a certificate: it may get one.
async fn enrol<S>(stream: S, enrolment: &Arc<Enrolment>) -> Result<(), AgentError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let enrolment = Arc::clone(enrolment);
        async move { Ok::<_, std::convert::Infallible>(enrol::answer_stranger(request, &enrolment).await) }
    });
    let connection = http().serve_connection(TokioIo::new(stream), service);
    timeout(HANDSHAKE_TIMEOUT, connection).await.map_err(|_| AgentError::Silent)?.map_err(AgentError::Http)
}

/// A connection has one request.
fn http() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(16 * 1024);
    builder
}
