//! Forwards requests between proxy-servers, so that any proxy-server can serve a cluster whose agent is connected to
//! another one.
//!
//! Each proxy-server dials the others, as an agent does (the crate [`dial`]), and offers them the clusters of its own agents. So the
//! tunnel of a peer is one more tunnel to these clusters. The registry uses it only while no agent of the cluster is connected here.
//!
//! ```text
//! client -> proxy-server A -> (a tunnel that B has dialled) -> proxy-server B -> (a tunnel that the agent has dialled) -> agent
//! ```
//!
//! B does not authenticate or count the client again: A has done so, and B trusts A because of its certificate. B passes on only
//! streams of clusters whose agents are connected to B itself. So a stream passes through at most two proxy-servers.

mod account;
mod addresses;
mod forward;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ::tunnel::{Budget, Inbound};
use bytes::Bytes;
use dial::offers::Current;
use dial::routes::Verdicts;
use dial::{offers, streams};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::Request;
use ops::drain::Tasks;
use protocol::registration::Offer;
use protocol::stream::StreamKind;
use protocol::{AgentId, Registration};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, debug_span};

use crate::registry::Registry;
use account::Accounts;
pub use addresses::{PeerAddress, PeerAddresses};
use forward::forward;

/// The delay before new clusters are offered. It combines the changes when thousands of agents connect at the same
/// time.
const OFFER_DELAY: Duration = Duration::from_millis(100);

/// Serves the streams that another proxy-server opens on the tunnels that this process has dialled.
#[derive(Clone, Debug)]
pub struct Peer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    registry: Arc<Registry>,
    /// The common name of all proxy-servers.
    id: AgentId,
    /// The ID of this process.
    server_id: Arc<str>,
    /// The clusters of the agents that are connected to this process.
    offers: Current,
    /// Limits the unread request bytes of all streams.
    unread: Arc<Budget>,
    accounts: Accounts,
    tasks: Tasks,
}

// === impl Peer ===

impl Peer {
    /// `offers` is what [`publish`] fills.
    pub fn new(registry: Arc<Registry>, id: AgentId, server_id: Arc<str>, offers: Current, tasks: Tasks) -> Self {
        Self(Arc::new(Shared {
            registry,
            id,
            server_id,
            offers,
            unread: Budget::new(protocol::settings::BUFFER_BUDGET),
            accounts: Accounts::default(),
            tasks,
        }))
    }

    /// Resets streams while they leave too many bytes unread.
    pub async fn limit_unread(self) {
        self.0.unread.keep(|sweep| debug!(reset = sweep.reset, "streams with unread request data were reset")).await;
    }
}

impl dial::Service for Peer {
    fn registration(&self) -> Registration {
        // No clusters: a registration is limited to 64 KiB. They follow on the stream of offers.
        dial::registration(&self.0.id, &self.0.server_id, Vec::new())
    }

    fn serve<S>(
        self,
        io: S,
        stop: &dial::Stop,
        verdicts: Verdicts,
    ) -> impl Future<Output = Result<String, h2::Error>> + Send
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let shared = self.0;
        async move {
            let (tasks, draining) = (shared.tasks.clone(), CancellationToken::new());
            let serve = |request: Request<RecvStream>, respond: SendResponse<Bytes>| {
                let span = debug_span!("forwarded", id = respond.stream_id().as_u32());
                let stream = Arc::clone(&shared).stream(request, respond, verdicts.clone(), draining.clone());
                tasks.spawn("forwarded", stream.instrument(span));
            };
            let stopping = async {
                tokio::select! {
                    () = tasks.cancelled() => {}
                    () = stop.requested() => {}
                }
            };
            streams::accept(io, stopping, || draining.cancel(), |_| {}, serve).await
        }
    }
}

// === impl Shared ===

impl Shared {
    async fn stream(
        self: Arc<Self>,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        verdicts: Verdicts,
        draining: CancellationToken,
    ) {
        let extended = request.extensions().get::<h2::ext::Protocol>().is_some();
        let kind = StreamKind::of(request.method(), extended, request.headers());
        let request = request.map(|body| Inbound::new(body, &self.unread));
        let result = match kind {
            Ok(StreamKind::Offers) => {
                offers::tell(self.offers.clone(), request.into_body(), respond, &verdicts, draining).await
            }
            Ok(StreamKind::Api(cluster) | StreamKind::Upgrade(cluster) | StreamKind::Physical(cluster)) => {
                let is_known = self.registry.clusters().get(cluster.as_str()).is_some();
                let account = self.accounts.of(&cluster, is_known);
                Box::pin(forward(&self.registry, &cluster, request, respond, account)).await
            }
            Ok(StreamKind::Destination(cluster, address)) => {
                let clusters = self.registry.clusters();
                let known = clusters.get(cluster.as_str());
                // Each proxy-server trusts only its own configuration.
                let is_allowed = known.is_some_and(|known| known.allows(&address));
                if is_allowed {
                    let account = self.accounts.of(&cluster, true);
                    Box::pin(forward(&self.registry, &cluster, request, respond, account)).await
                } else {
                    respond.send_reset(Reason::REFUSED_STREAM);
                    Ok(())
                }
            }
            Err(_) => {
                respond.send_reset(Reason::REFUSED_STREAM);
                Ok(())
            }
        };
        if let Err(error) = result {
            debug!(error = &error as &dyn std::error::Error, "a stream of a peer ended early");
        }
    }
}

/// Keeps the offers of this process up to date, for ever.
pub async fn publish(registry: Arc<Registry>, offers: watch::Sender<Arc<[Offer]>>) {
    let mut changes = registry.changes();
    loop {
        changes.mark_unchanged();
        let current = registry.own_offers();
        offers.send_if_modified(|offers| {
            let is_new = **offers != *current;
            *offers = current.into();
            is_new
        });
        // The registry has a sender, so this cannot fail.
        let _ = changes.changed().await;
        sleep(OFFER_DELAY).await;
    }
}
