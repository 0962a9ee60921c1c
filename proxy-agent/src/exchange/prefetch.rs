//! Decides which documents the proxy-server may send to the client of a health check without another request
//! ([`protocol::prefetch`]).
//!
//! Each document passes through the whole stack, as a request of this client does. So the client gets nothing that it could not
//! request, and the limits and metrics of the virtual cluster count the request. Atoll's own audit log does not record it, so the
//! proxy-server does not prefetch if it keeps such a log.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Response, StatusCode, Uri, header, request};
use protocol::ClusterName;
use protocol::audit_id::AUDIT_ID;
use protocol::digest::MAX_HELD;
use protocol::prefetch::{self, Prefetch};
use request_metrics::{RequestMetrics, VerbClass};
use tokio::time::{Instant, timeout};
use tunnel::Inbound;
use virtual_cluster::clusters::VirtualCluster;

use super::commitment::Commitment;
use super::incoming::Incoming;
use super::peeked::Peeked;
use super::record::Record;
use super::services::Services;
use super::stack::{self, ExchangeResponse};

/// The maximum time by which the comparison of documents may delay the response to a health check.
const TIMEOUT: Duration = Duration::from_millis(200);

/// A health check with which the proxy-server names documents.
pub(super) struct Prefetching {
    documents: Vec<Prefetch>,
    /// The headers of the health check, from which the requests for the documents are made.
    headers: HeaderMap,
}

// === impl Prefetching ===

impl Prefetching {
    /// The documents that the proxy-server names. Removes them from the head.
    pub(super) fn take(head: &mut request::Parts) -> Option<Self> {
        let documents = prefetch::take(&mut head.headers);
        let is_wanted = !documents.is_empty() && prefetch::is_health_check(&head.method, head.uri.path());
        is_wanted.then(|| Self { documents, headers: head.headers.clone() })
    }

    /// Returns `None` if the health check has failed. Otherwise sets its audit ID for the requests.
    pub(super) fn checked<B>(mut self, response: &Response<B>) -> Option<Self> {
        if response.status() != StatusCode::OK {
            return None;
        }
        // The client gets the audit ID of the health check with each document. The host logs the requests for them under the same
        // ID.
        if let Some(id) = response.headers().get(&AUDIT_ID) {
            self.headers.insert(AUDIT_ID, id.clone());
        }
        Some(self)
    }

    /// The positions of the documents that are unchanged.
    pub(super) async fn unchanged(
        self,
        services: &Services,
        requests: &RequestMetrics,
        (name, cluster): (&ClusterName, &Arc<VirtualCluster>),
    ) -> Vec<usize> {
        let mut positions = Vec::new();
        let compare = async {
            for (position, document) in self.documents.iter().enumerate() {
                let measured = requests.measure(name, VerbClass::Other, Instant::now());
                let record = Record::new(measured, &self.headers);
                if is_unchanged(services, cluster, document, &self.headers, record).await {
                    positions.push(position);
                }
            }
        };
        // On a timeout, use the documents that were compared in time.
        let _in_time = timeout(TIMEOUT, compare).await;
        positions
    }
}

/// Makes the response for this client, and compares it with the one that the proxy-server has.
async fn is_unchanged(
    services: &Services,
    cluster: &Arc<VirtualCluster>,
    document: &Prefetch,
    headers: &HeaderMap,
    mut record: Record,
) -> bool {
    let uri = Uri::from(document.target.clone());
    let headers = document.request(headers);
    let commitment = Commitment::default();
    let incoming = Incoming {
        services,
        cluster,
        method: &Method::GET,
        uri: &uri,
        headers,
        body: Inbound::empty(),
        is_upgrade: false,
        commitment: &commitment,
        record: &mut record,
    };
    let ExchangeResponse { response, is_compressible, counted: _counted, .. } = match stack::serve(incoming).await {
        Ok(exchanged) => exchanged,
        Err(refusal) => {
            let code = StatusCode::from_u16(refusal.into_status().code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            record.write(code, &mut HeaderMap::new());
            return false;
        }
    };
    let (mut parts, body) = response.into_parts();
    record.write(parts.status, &mut parts.headers);
    if !is_compressible || parts.status != StatusCode::OK || parts.headers.contains_key(header::CONTENT_ENCODING) {
        return false;
    }
    let body = Peeked::new(body).digest(MAX_HELD, cluster.lasting.memory.bodies.nothing()).await;
    body.is_some_and(|body| prefetch::digest(&parts.headers, &body) == document.digest)
}
