//! The first phase: what stays of a request until its response has ended.
//!
//! That is its line in the access log, its metrics, and its part of the idle timer. The record travels with the request
//! from phase to phase, and each phase adds what it has learned. [`logged`](super::logged) attaches it to the response.
//! Wherever it is dropped, as when the client cancels the request, the line is written.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use kube_wire::RequestInfo;
use protocol::ClusterName;
use request_metrics::{Measured, RequestMetrics, VerbClass};
use tokio::time::Instant;

use super::access_log::Entry;
use super::body::ResponseBody;
use super::connection::Connection;
use super::idle::Running;
use super::refusal::Refusal;
use super::upload::Upload;

/// The record of one request. Both parts are written when they are dropped.
#[derive(Debug)]
pub(super) struct Record {
    /// `None` if the log level excludes the line.
    pub(super) entry: Option<Box<Entry>>,
    /// `None` until the cluster is known.
    measured: Option<Measured>,
    began: Instant,
    _running: Running,
}

/// A request that has a record.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) head: Request<()>,
    pub(super) upload: Upload,
    pub(super) record: Record,
    pub(super) connection: Arc<Connection>,
}

/// The response to a request, from an agent.
#[derive(Debug)]
pub(super) struct Responded {
    pub(super) response: Response<ResponseBody>,
    pub(super) record: Record,
}

/// A request that a phase has refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) record: Record,
}

/// The media types that the client accepts, if it says so.
pub(super) type Accepted = Option<HeaderValue>;

/// Begins the record of a request.
pub(super) fn begin(request: Request<Incoming>, connection: Arc<Connection>) -> (Recorded, Accepted) {
    let accepted = request.headers().get(header::ACCEPT).cloned();
    let record = Record::begin(&request, connection.requests.begin());
    let (head, body) = request.into_parts();
    let upload = Upload::new(&head, body);
    (Recorded { head: Request::from_parts(head, ()), upload, record, connection }, accepted)
}

// === impl Record ===

impl Record {
    /// Begins with the head of the request.
    pub(super) fn begin<B>(request: &Request<B>, running: Running) -> Self {
        let began = Instant::now();
        Self { entry: Entry::begin(request, began), measured: None, began, _running: running }
    }

    /// Adds the cluster and what the request is for.
    pub(super) fn routed(&mut self, metrics: &RequestMetrics, cluster: &ClusterName, info: Option<&RequestInfo<'_>>) {
        self.measured = metrics.measure(cluster, VerbClass::of(info), self.began);
        if let Some(entry) = &mut self.entry {
            entry.routed(cluster, info);
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

// === impl Recorded ===

impl Recorded {
    /// The request will not be sent.
    pub(super) fn refuse(self, refusal: Refusal) -> Box<Refused> {
        let Self { head: _, upload, record, connection } = self;
        upload.forget(&connection.services.tasks);
        Box::new(Refused { refusal, record })
    }
}
