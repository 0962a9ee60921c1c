//! What all phases of a request share: the parts of the process, and the facts about the connection.

use std::sync::Arc;

use ops::drain::Tasks;
use protocol::ClusterName;
use request_metrics::RequestMetrics;

use super::idle::Requests;
use super::peer::Peer;
use crate::client_cas::ClientCas;
use crate::limits::{Limits, Place};
use crate::registry::Registry;

/// The parts of the process that requests use.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) registry: Arc<Registry>,
    pub(super) client_cas: Arc<ClientCas>,
    pub(super) limits: Arc<Limits>,
    pub(super) metrics: Arc<RequestMetrics>,
    /// The domain in `<cluster>.<domain>`.
    pub(super) domain: Arc<str>,
    pub(super) tasks: Tasks,
}

/// The known facts about a connection before its first request.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) services: Arc<Services>,
    /// The cluster that CONNECT or SNI named. Requests must not name another one.
    pub(super) bound: Option<ClusterName>,
    pub(super) peer: Peer,
    pub(super) place: Place,
    pub(super) requests: Requests,
}
