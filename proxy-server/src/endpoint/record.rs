//! What stays of a request when it has ended: its line in the access log, and its metrics.

use http::{HeaderMap, Method, Request, StatusCode, Uri};
use kube_wire::RequestInfo;
use protocol::ClusterName;
use request_metrics::{Measured, RequestMetrics, VerbClass};
use tokio::time::Instant;

use super::access_log::Entry;
use super::refusal::Refusal;

/// The record of one request. Both parts are written when they are dropped.
#[derive(Debug)]
pub(super) struct Record {
    /// `None` if the log level excludes the line.
    pub(super) entry: Option<Box<Entry>>,
    /// `None` until the cluster is known.
    measured: Option<Measured>,
    began: Instant,
}

// === impl Record ===

impl Record {
    /// Begins with the head of the request.
    pub(super) fn begin<B>(request: &Request<B>) -> Self {
        let began = Instant::now();
        Self { entry: Entry::begin(request, began), measured: None, began }
    }

    /// Adds the cluster and what the request is for.
    pub(super) fn routed(&mut self, metrics: &RequestMetrics, cluster: &ClusterName, method: &Method, uri: &Uri) {
        let info = RequestInfo::parse(method, uri.path(), uri.query()).ok();
        self.measured = metrics.measure(cluster, VerbClass::of(info.as_ref()), self.began);
        if let Some(entry) = &mut self.entry {
            entry.routed(cluster, info.as_ref());
        }
    }

    /// Adds the user of a certificate.
    pub(super) fn identified(&mut self, user: &str) {
        if let Some(entry) = &mut self.entry {
            entry.identified(user);
        }
    }

    /// Adds what the agent's response says.
    pub(super) fn heard(&mut self, headers: &HeaderMap) {
        if let Some(entry) = &mut self.entry {
            entry.heard(headers);
        }
    }

    /// The request was not forwarded, or there was no response.
    pub(super) fn refused(&mut self, refusal: &Refusal) {
        if let Some(entry) = &mut self.entry {
            entry.refused(refusal);
        }
    }

    /// Adds the status of the response.
    pub(super) fn answered(&mut self, status: StatusCode) {
        if let Some(entry) = &mut self.entry {
            entry.answered(status);
        }
        if let Some(measured) = &mut self.measured {
            measured.answered(status);
        }
    }
}
