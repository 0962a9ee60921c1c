//! Sends a request through a tunnel, and waits for the head of the response.
//!
//! This is the innermost service. `tower::load_shed` and `tower::limit` do not fit around it: a tunnel has no readiness
//! of its own, because the request decides which tunnel it takes and whose share it uses. If the share is used up, the
//! request is refused and never queued.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use h2::SendStream;
use http::{Request, Response};
use protocol::stream::{index_authorization, mark_unproven};
use tokio_util::sync::DropGuard;
use tower::{Service, service_fn};
use tunnel::Inbound;

use super::connection::Services;
use super::refusal::Refusal;
use super::upload::Upload;
use crate::attempts::{self, Attempts};
use crate::config::Cluster;
use crate::limits::Limit;
use crate::registry::OpenError;
use crate::tunnel::{Demand, Lease, TunnelError, unread_body};

/// Heads up to this size, in bytes, are not charged.
const SMALL_HEAD: usize = 4096;

/// A request as the agent gets it.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) head: Request<()>,
    pub(super) content: Content,
    pub(super) cluster: Arc<Cluster>,
    /// Whether the client is proven.
    pub(super) is_proven: bool,
}

/// What follows the head on the stream.
#[derive(Debug)]
pub(super) enum Content {
    Nothing,
    /// A body, and its length if that is known.
    Body(Upload, Option<u64>),
    /// After the response, the bytes of another protocol.
    Upgrade,
}

/// The head of the agent's response.
#[derive(Debug)]
pub(super) struct AgentResponse {
    pub(super) response: Response<Inbound>,
    /// Counts the stream on the tunnel.
    pub(super) lease: Lease,
    pub(super) sending: Sending,
}

/// The state of the sending half of the stream.
#[derive(Debug)]
pub(super) enum Sending {
    /// It has ended with the head.
    Ended,
    /// A task sends the body until this is dropped.
    Body(DropGuard),
    /// Nothing was sent yet.
    Upgrade(SendStream<Bytes>),
}

/// An attempt that failed.
struct Failed {
    refusal: Refusal,
    /// The request, if it can be sent again because nobody has processed it.
    unsent: Option<Box<Outgoing>>,
}

/// A service that sends requests through the tunnels.
pub(super) fn send(
    services: Arc<Services>,
) -> impl Service<Outgoing, Response = AgentResponse, Error = Refusal, Future: Future + Send + 'static>
+ Clone
+ Send
+ 'static {
    service_fn(move |outgoing| exchange(Arc::clone(&services), outgoing))
}

async fn exchange(services: Arc<Services>, mut outgoing: Outgoing) -> Result<AgentResponse, Refusal> {
    let mut attempts = Attempts::default();
    loop {
        let attempt = attempt(&services, outgoing).await;
        let Err(Failed { refusal, unsent: Some(again) }) = attempt else {
            return attempt.map_err(|failed| failed.refusal);
        };
        if !attempts.pause().await {
            return Err(refusal);
        }
        outgoing = *again;
    }
}

/// Sends a request once.
async fn attempt(services: &Services, outgoing: Outgoing) -> Result<AgentResponse, Failed> {
    let Outgoing { head, content, cluster, is_proven } = outgoing;
    let unread = charged_head(&head) + content.unread();
    let demand = Demand { cluster: &cluster.name, is_proven, unread };
    let is_bodiless = matches!(content, Content::Nothing);
    let reservation = match services.registry.reserve(&cluster.name, Some(demand)).await {
        Ok(reservation) => reservation,
        Err(OpenError::NoAgent(absent)) => {
            let may_be_elsewhere = attempts::may_be_elsewhere(&services.registry, &absent);
            let refusal = Refusal::no_agent(absent, head.uri().path());
            let unsent = may_be_elsewhere.then(|| Box::new(Outgoing { head, content, cluster, is_proven }));
            return Err(Failed { refusal, unsent });
        }
        Err(OpenError::Full(_)) => {
            services.limits.count_refused(&cluster.name, Limit::Tunnel);
            return Err(Refusal::TooMany(Limit::Tunnel).into());
        }
    };
    // The agent may just have left the other proxy-server.
    let spare = (is_bodiless && reservation.tunnel().is_peer).then(|| {
        let (head, content, cluster) = (head.clone(), Content::Nothing, Arc::clone(&cluster));
        Box::new(Outgoing { head, content, cluster, is_proven })
    });
    let mut head = head;
    if reservation.tunnel().abilities.indexes_authorization {
        index_authorization(head.headers_mut());
    }
    if reservation.tunnel().is_peer && !is_proven {
        mark_unproven(head.headers_mut());
    }
    let (sender, pending) = match reservation.open(head, is_bodiless) {
        Ok(stream) => stream.split(),
        Err(error) => return Err(Failed { refusal: error.into(), unsent: spare }),
    };
    let sending = match content {
        Content::Nothing => {
            drop(sender);
            Sending::Ended
        }
        Content::Body(upload, _) => Sending::Body(upload.send(sender, &services.tasks)),
        Content::Upgrade => Sending::Upgrade(sender),
    };
    match pending.wait().await {
        Ok((response, lease)) => Ok(AgentResponse { response, lease, sending }),
        Err(TunnelError::Full(_)) => {
            services.limits.count_refused(&cluster.name, Limit::Tunnel);
            Err(Refusal::TooMany(Limit::Tunnel).into())
        }
        Err(error) => {
            let unsent = spare.filter(|_| matches!(error, TunnelError::Unsent { .. }));
            Err(Failed { refusal: error.into(), unsent })
        }
    }
}

/// The bytes of a head that are charged.
pub(super) fn charged_head<B>(head: &Request<B>) -> usize {
    let fields = head.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let target = head.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let bytes = fields.sum::<usize>() + target;
    if bytes > SMALL_HEAD { bytes } else { 0 }
}

// === impl Failed ===

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, unsent: None }
    }
}

// === impl Content ===

impl Content {
    /// The bytes that may be unread at a time.
    fn unread(&self) -> usize {
        match self {
            // A pipe holds only what it has just read.
            Self::Nothing | Self::Upgrade => 0,
            Self::Body(_, length) => unread_body(*length),
        }
    }
}

// === impl Sending ===

impl Sending {
    /// The guard of the task that sends the body.
    pub(super) fn guard(self) -> Option<DropGuard> {
        match self {
            Self::Body(guard) => Some(guard),
            Self::Ended | Self::Upgrade(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;

    #[test]
    fn the_charge_depends_on_the_head() {
        let mut head = Request::new(());
        head.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        assert_eq!(charged_head(&head), 0);
        *head.uri_mut() = format!("/api?labelSelector={}", "a".repeat(SMALL_HEAD)).parse().unwrap();
        let with_uri = charged_head(&head);
        assert!(with_uri > SMALL_HEAD);
        head.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_str(&"a".repeat(SMALL_HEAD)).unwrap());
        assert!(charged_head(&head) > with_uri + SMALL_HEAD);
    }
}
