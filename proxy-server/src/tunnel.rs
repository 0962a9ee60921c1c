//! The connection of one agent, on which requests open streams.
//!
//! Requests do not wait here: if the tunnel has no room for a request, the request is refused at once.

mod capacity;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ::tunnel::{Budget, Inbound};
use bytes::Bytes;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use http::{Request, Response, StatusCode};
use protocol::blocks::Histories;
use protocol::{AgentId, ProtocolVersion, field_table};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::links::Link;
use crate::workers::{self, WorkerId};
pub use capacity::Demand;
pub(crate) use capacity::{CLIENT_WINDOW, unread_body};
use capacity::{Capacity, StreamResources};

/// The time limit for the connection to accept one more stream. It normally does so at once, except while many streams
/// end.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// How a proxy-server resets a stream of another one for which its agent has no room.
pub(crate) const NO_ROOM: h2::Reason = h2::Reason::ENHANCE_YOUR_CALM;

/// A live tunnel.
#[derive(Debug)]
pub struct Tunnel {
    /// The identity in the agent's certificate.
    pub agent: AgentId,
    /// The process of that agent.
    pub instance: String,
    /// The agent's software version.
    pub version: String,
    /// The protocol version of the agent.
    pub protocol: ProtocolVersion,
    /// When it was registered.
    pub since: SystemTime,
    /// When the certificate of its agent expires. `None` in tests.
    pub certificate_until: Option<SystemTime>,
    /// Ends the tunnel.
    pub end: CancellationToken,
    /// Cancelled when another proxy-server that has dialled it begins to stop. Watches through it must then end.
    pub leaving: CancellationToken,
    /// Whether another proxy-server has dialled it.
    pub is_peer: bool,
    /// What it can do.
    pub abilities: Abilities,
    /// The network between this proxy-server and the agent.
    pub link: Arc<Link>,
    /// The worker whose thread drives it.
    pub worker: Option<WorkerId>,
    /// Limits the bytes that its readers leave unread.
    pub budget: Arc<Budget>,
    /// If the agent may compress bodies, their histories.
    histories: Option<Histories>,
    /// The header fields that the other end has stored.
    fields: Mutex<field_table::Encoder>,
    /// Whether the agent has compressed a body. It does so only on a slow network, or if its configuration says so. Never reset.
    has_compressed: AtomicBool,
    requests: SendRequest<Bytes>,
    capacity: Capacity,
    streams: AtomicUsize,
    /// Whether no more streams must be opened.
    is_closing: AtomicBool,
    /// The last measured round trip, in microseconds.
    round_trip: AtomicU64,
}

/// What an agent or a peer can do, by the capabilities that it has announced.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Whether it reads [`protocol::stream::AUTHORIZATION`].
    pub indexes_authorization: bool,
    /// Whether it has a table of header fields ([`protocol::field_table`]).
    pub has_field_table: bool,
    /// Whether it reads [`protocol::stream::DESTINATION`].
    pub connects_destinations: bool,
}

/// Who has dialled a tunnel.
#[derive(Debug)]
pub struct Origin {
    /// The identity in the certificate.
    pub agent: AgentId,
    /// The process.
    pub instance: String,
    /// Its software version.
    pub version: String,
    /// Its protocol version.
    pub protocol: ProtocolVersion,
    /// If it may compress bodies, their histories.
    pub histories: Option<Histories>,
    /// Whether it is another proxy-server.
    pub is_peer: bool,
    /// What it can do.
    pub abilities: Abilities,
    /// The network between.
    pub link: Arc<Link>,
    /// The limit for unread data.
    pub budget: Arc<Budget>,
    /// When the certificate expires. `None` in tests.
    pub certificate_until: Option<SystemTime>,
}

/// A stream that can be opened on a tunnel.
#[derive(Debug)]
pub struct StreamReservation {
    requests: SendRequest<Bytes>,
    lease: Lease,
    /// Whether the other end may store fields of the request. Fields of unproven clients are not stored, because they could fill
    /// the table. On a fast network, none are stored, because that would only cost time.
    stores_fields: bool,
}

/// A stream whose response has not arrived.
#[derive(Debug)]
pub struct OpenStream {
    /// Sends the request's body.
    pub body: SendStream<Bytes>,
    response: PendingResponse,
}

/// A response that has not arrived.
#[derive(Debug)]
pub struct PendingResponse {
    response: ResponseFuture,
    /// What the other end has stored once it responds.
    definition: field_table::Definition,
    lease: Lease,
}

/// Counts a stream of a tunnel until it is dropped. Keep it with the response's body.
#[derive(Debug)]
pub struct Lease {
    tunnel: Arc<Tunnel>,
    /// Its part of what clients share; `None` for a stream of the proxy-server itself.
    resources: Option<StreamResources>,
}

/// No stream can be opened on a tunnel.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// The cluster's share of the tunnel, or the tunnel, is used up.
    #[error("the tunnel of {0} has no room for another stream")]
    Full(RemoteEnd),
    /// The other end has sent GOAWAY (RFC 9113 section 6.8), or the connection broke. No more streams can be opened. Open ones
    /// may continue.
    #[error("the tunnel of {0} accepts no more streams")]
    Closing(RemoteEnd, #[source] h2::Error),
}

/// There was no response.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// Another proxy-server has no room for the stream.
    #[error("{0} has no room for another stream")]
    Full(RemoteEnd),
    /// Nobody has processed the request, so it may be sent through another tunnel.
    #[error("{remote} did not process the request")]
    Unsent {
        /// The other end.
        remote: RemoteEnd,
        /// Why.
        source: h2::Error,
    },
    /// The tunnel broke. The request may have been executed.
    #[error("the tunnel of {remote} broke")]
    Broken {
        /// The other end.
        remote: RemoteEnd,
        /// Why.
        source: h2::Error,
    },
}

/// The other end of a tunnel, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteEnd {
    /// An agent.
    Agent(AgentId),
    /// Another proxy-server.
    Peer,
}

// === impl RemoteEnd ===

impl fmt::Display for RemoteEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "agent {agent}"),
            Self::Peer => f.write_str("another proxy-server"),
        }
    }
}

// === impl Origin ===

#[cfg(test)]
impl Origin {
    /// An agent of the current version.
    pub fn agent(name: &str) -> Self {
        use crate::links::Links;
        use ops::metrics::{Build, Registry as Metrics};

        let links = Links::new(&Metrics::new(Build { component: "test", version: "0" }));
        Self {
            agent: name.parse().unwrap(),
            instance: "1".into(),
            version: "0".into(),
            protocol: ProtocolVersion::CURRENT,
            histories: Some(Histories::receiver()),
            is_peer: false,
            abilities: Abilities { indexes_authorization: true, has_field_table: false, connects_destinations: true },
            link: links.of(&name.parse().unwrap()),
            budget: Budget::new(protocol::settings::BUFFER_BUDGET),
            certificate_until: None,
        }
    }
}

// === impl Abilities ===

impl Abilities {
    /// Those of a party that has announced these capabilities.
    pub fn of(capabilities: &[String]) -> Self {
        let announces = |capability| capabilities.iter().any(|one| one == capability);
        Self {
            indexes_authorization: announces(protocol::stream::AUTHORIZATION_CAPABILITY),
            has_field_table: announces(field_table::CAPABILITY),
            connects_destinations: announces(protocol::stream::DESTINATION_CAPABILITY),
        }
    }
}

// === impl Tunnel ===

impl Tunnel {
    /// A tunnel over an HTTP/2 connection, which another task of this worker drives.
    pub fn new(origin: Origin, requests: SendRequest<Bytes>) -> Arc<Self> {
        let Origin { agent, instance, version, protocol, histories, .. } = origin;
        let Origin { is_peer, abilities, link, budget, certificate_until, .. } = origin;
        link.connected();
        Arc::new(Self {
            agent,
            instance,
            version,
            protocol,
            since: SystemTime::now(),
            certificate_until,
            end: CancellationToken::new(),
            leaving: CancellationToken::new(),
            is_peer,
            abilities,
            link,
            worker: workers::here(),
            budget,
            histories,
            fields: Mutex::default(),
            has_compressed: AtomicBool::new(false),
            requests,
            capacity: Capacity::new(),
            streams: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            round_trip: AtomicU64::new(0),
        })
    }

    fn remote_end(&self) -> RemoteEnd {
        if self.is_peer { RemoteEnd::Peer } else { RemoteEnd::Agent(self.agent.clone()) }
    }

    /// The number of open streams.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// The last measured round trip.
    pub fn round_trip(&self) -> Duration {
        Duration::from_micros(self.round_trip.load(Ordering::Relaxed))
    }

    /// Records a measured round trip.
    pub fn set_round_trip(&self, round_trip: Duration) {
        self.link.measured(round_trip);
        let micros = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
        self.round_trip.store(micros, Ordering::Relaxed);
    }

    /// Whether no more streams must be opened.
    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Records that no more streams must be opened. Open ones continue.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    fn fields(&self) -> MutexGuard<'_, field_table::Encoder> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a stream. `demand` is that of a client; `None` for a stream of the proxy-server itself.
    pub async fn reserve(self: &Arc<Self>, demand: Option<Demand<'_>>) -> Result<StreamReservation, ReserveError> {
        let full = || ReserveError::Full(self.remote_end());
        let is_proven = demand.as_ref().is_none_or(|demand| demand.is_proven);
        let stores_fields = is_proven && self.abilities.has_field_table && self.has_compressed.load(Ordering::Relaxed);
        let resources = demand.map(|demand| self.capacity.reserve(demand).ok_or_else(full)).transpose()?;
        self.streams.fetch_add(1, Ordering::Relaxed);
        let lease = Lease { tunnel: Arc::clone(self), resources };
        let ready = timeout(READY_TIMEOUT, self.requests.clone().ready()).await.map_err(|_| full())?;
        let requests = ready.map_err(|source| ReserveError::Closing(self.remote_end(), source))?;
        Ok(StreamReservation { requests, lease, stores_fields })
    }
}

// === impl StreamReservation ===

impl StreamReservation {
    /// Opens the stream.
    pub fn open(mut self, mut head: Request<()>, end_of_stream: bool) -> Result<OpenStream, TunnelError> {
        let mut definition = field_table::Definition::default();
        let opened = if self.stores_fields {
            // Hold the lock until the request is sent: requests must be sent in the order in which they are encoded.
            let mut fields = self.lease.tunnel.fields();
            definition = fields.encode(&mut head);
            self.requests.send_request(head, end_of_stream)
        } else {
            self.requests.send_request(head, end_of_stream)
        };
        let remote = || self.lease.tunnel.remote_end();
        let (response, body) = opened.map_err(|source| TunnelError::Unsent { remote: remote(), source })?;
        Ok(OpenStream { body, response: PendingResponse { response, definition, lease: self.lease } })
    }

    /// The tunnel.
    pub fn tunnel(&self) -> &Arc<Tunnel> {
        &self.lease.tunnel
    }
}

// === impl OpenStream ===

impl OpenStream {
    /// Splits the stream into the sender of the request's body and the response.
    pub fn split(self) -> (SendStream<Bytes>, PendingResponse) {
        (self.body, self.response)
    }
}

// === impl PendingResponse ===

impl PendingResponse {
    /// Waits for the response. The budget of the tunnel limits its body.
    pub async fn wait(self) -> Result<(Response<Inbound>, Lease), TunnelError> {
        let Self { response, definition, lease } = self;
        // The reason that the other end gave for this stream alone. If this end has closed the connection, `h2` gives streams the
        // reason for that, and then the request may have been executed.
        let reason = |error: &h2::Error| error.reason().filter(|_| error.is_reset() && error.is_remote());
        let response = response.await.map_err(|source| match reason(&source) {
            // RFC 9113 section 8.7: REFUSED_STREAM means that nothing was done.
            Some(h2::Reason::REFUSED_STREAM) => TunnelError::Unsent { remote: lease.tunnel.remote_end(), source },
            // `h2` returns a remote GOAWAY only for streams above its last stream ID (RFC 9113 section 6.8). For other streams, the end
            // of the connection is an I/O error.
            _ if source.is_go_away() && source.is_remote() => {
                TunnelError::Unsent { remote: lease.tunnel.remote_end(), source }
            }
            Some(NO_ROOM) if lease.tunnel.is_peer => TunnelError::Full(lease.tunnel.remote_end()),
            _ => TunnelError::Broken { remote: lease.tunnel.remote_end(), source },
        })?;
        // If a head is too large, `h2` responds with 431 itself, before the decoder sees the request. So the other end has stored
        // nothing.
        let is_seen = response.status() != StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        if is_seen && !definition.is_empty() {
            lease.tunnel.fields().stored(definition);
        }
        let response = response.map(|body| Inbound::new(body, &lease.tunnel.budget));
        if let Some(resources) = &lease.resources {
            response.body().set_owner(resources.owner());
        }
        Ok((response, lease))
    }
}

// === impl Lease ===

impl Lease {
    /// Those of the tunnel, if the agent may compress bodies.
    pub fn histories(&self) -> Option<&Histories> {
        self.tunnel.histories.as_ref()
    }

    /// The network between this proxy-server and the agent.
    pub fn link(&self) -> &Arc<Link> {
        &self.tunnel.link
    }

    /// Cancelled when another proxy-server on the way begins to stop.
    pub fn leaving(&self) -> &CancellationToken {
        &self.tunnel.leaving
    }

    /// Records that the agent has compressed a body.
    pub fn mark_compressed(&self) {
        self.tunnel.has_compressed.store(true, Ordering::Relaxed);
    }

    /// Marks the client as proven.
    pub fn prove(&mut self) {
        if let Some(resources) = &mut self.resources {
            resources.prove();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.tunnel.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
