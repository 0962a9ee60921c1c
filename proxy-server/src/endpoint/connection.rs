//! What all phases of a request use: the services of the process, and the facts about the connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use audit::Auditors;
use ops::drain::Tasks;
use protocol::ClusterName;
use request_metrics::RequestMetrics;
use request_traces::Traces;

use super::documents::Documents;
use super::idle::Requests;
use super::issuer_token::LastToken;
use super::peer::Peer;
use super::prefetch::{Expectations, LastCheck};
use crate::client_cas::ClientCas;
use crate::issuers::Issuers;
use crate::limits::{ConnectionPermit, Limits};
use crate::registry::Registry;

/// The services of the process that requests use.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) registry: Arc<Registry>,
    pub(crate) client_cas: Arc<ClientCas>,
    pub(crate) issuers: Arc<Issuers>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) metrics: Arc<RequestMetrics>,
    pub(crate) traces: Traces,
    /// The domain in `<cluster>.<domain>`.
    pub(crate) domain: Arc<str>,
    pub(crate) tasks: Tasks,
    /// The documents that this process stores.
    pub(crate) documents: Arc<Documents>,
    /// Which documents clients request after a health check.
    pub(crate) expectations: Arc<Expectations>,
    pub(crate) auditors: Arc<Auditors>,
    /// The time that streams have to end when the process stops.
    pub(crate) drain: Duration,
}

/// The facts about a connection that are known before its first request.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) services: Arc<Services>,
    /// The cluster that CONNECT or SNI named. Requests must not name another one.
    pub(super) bound: Option<ClusterName>,
    pub(super) peer: Peer,
    pub(super) last_token: LastToken,
    pub(super) last_check: LastCheck,
    pub(super) permit: ConnectionPermit,
    pub(super) requests: Requests,
}

// === impl Connection ===

impl Connection {
    /// The address of the client.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.permit.address()
    }

    /// Completes when the operator revokes the client certificate, or a token that was accepted.
    pub(super) async fn revoked(&self) {
        self.peer.revoked(self.services.client_cas.revocations()).await;
    }
}
