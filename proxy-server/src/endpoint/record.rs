//! The first phase: begins the record of a request, which exists until the response has ended.
//!
//! The record is the line in the access log, the metrics, and the count of running requests for the idle timer. It passes
//! through the phases with the request, and each phase adds what it knows. [`logged`](super::logged) attaches it to the
//! response. When it is dropped, for example because the client resets the request, the line is written.

use std::sync::Arc;

use audit::Audited;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use kube_wire::{RequestInfo, Status};
use protocol::{ClusterName, Fault, identity};
use request_metrics::{Failure, Measured, RequestMetrics, VerbClass};
use request_traces::{Span, Traces, Trust};
use tokio::time::Instant;

use super::access_log::Entry;
use super::body::ResponseBody;
use super::connection::Connection;
use super::idle::Running;
use super::peer::ClientIdentity;
use super::refusal::Refusal;
use super::upload::Upload;
use super::watch_end::WatchEnd;

/// The message of an error that the agent made.
const BY_AGENT: &str = "refused by the agent; the status of the agent has the reason";

/// The record of one request. The log line and the metrics are written when it is dropped.
pub(super) struct Record {
    /// `None` if the log level excludes the line.
    pub(super) entry: Option<Box<Entry>>,
    /// `None` unless the cluster has an audit log.
    pub(super) audited: Option<Box<Audited>>,
    /// `None` until the cluster is known.
    measured: Option<Measured>,
    began: Instant,
    /// `None` if the request is not traced.
    pub(super) span: Option<Box<Span>>,
    /// Whether the request is for a watch.
    pub(super) is_watch: bool,
    /// When the watch must end.
    pub(super) watch_end: Option<WatchEnd>,
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

/// The response of an agent, with the record of its request.
#[derive(Debug)]
pub(super) struct Responded {
    pub(super) response: Response<ResponseBody>,
    pub(super) record: Record,
}

/// The refusal of a phase, with the record of the request.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) record: Record,
}

/// The `Accept` header of a request.
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

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("entry", &self.entry).field("is_watch", &self.is_watch).finish_non_exhaustive()
    }
}

impl Record {
    /// Begins with the head of the request.
    pub(super) fn begin<B>(request: &Request<B>, running: Running) -> Self {
        let began = Instant::now();
        Self {
            entry: Entry::begin(request, began),
            audited: None,
            measured: None,
            began,
            span: None,
            is_watch: false,
            watch_end: None,
            _running: running,
        }
    }

    /// Adds the cluster and the resource.
    pub(super) fn routed(&mut self, metrics: &RequestMetrics, cluster: &ClusterName, info: Option<&RequestInfo<'_>>) {
        self.is_watch = info.is_some_and(|info| info.verb() == "watch");
        self.measured = metrics.measure(cluster, VerbClass::of(info), self.began);
        if let Some(entry) = &mut self.entry {
            entry.routed(cluster, info);
        }
    }

    /// Begins the span of the request, once it is known whether its caller decides about that.
    pub(super) fn traced(&mut self, traces: &Traces, cluster: &ClusterName, head: &Request<()>, trust: Trust) {
        self.span = traces.of_client(head.headers(), trust, self.began);
        if let Some(span) = &mut self.span {
            let info = RequestInfo::parse(head.method(), head.uri().path(), head.uri().query()).ok();
            span.routed(cluster);
            span.classified(head.method(), info.as_ref());
        }
    }

    /// Adds the user of a certificate or of a token.
    pub(super) fn identified(&mut self, identity: &ClientIdentity) {
        if let Some(entry) = &mut self.entry {
            entry.identified(&identity.user);
        }
        if let Some(audited) = &mut self.audited {
            audited.identified(identity.info.clone());
        }
    }

    /// Adds the user and the fault that the agent's response names.
    pub(super) fn responded(&mut self, status: StatusCode, headers: &HeaderMap) {
        if let Some(entry) = &mut self.entry {
            entry.responded(headers);
        }
        if let Some(audited) = &mut self.audited {
            audited.responded(headers, identity::caller(headers));
        }
        // Only the agent names a fault. The reason is in the body, which is not parsed here.
        if let Some(measured) = &self.measured
            && (status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS)
            && let Some(fault) = Fault::read(headers)
        {
            measured.failed(&Failure { code: status.as_u16(), fault, reason: "", message: BY_AGENT });
        }
    }

    /// The request was not forwarded, or there was no response. `status` is what the client gets.
    pub(super) fn refused(&mut self, refusal: &Refusal, status: &Status) {
        if let Some(entry) = &mut self.entry {
            entry.refused(refusal);
        }
        if let Some(audited) = &mut self.audited {
            audited.refused(status);
        }
        if let Some(measured) = &self.measured {
            let message = refusal.operator_message();
            let message = message.as_deref().unwrap_or(&status.message);
            let (code, fault, reason) = (status.code, refusal.fault(), status.reason.as_str());
            measured.failed(&Failure { code, fault, reason, message });
        }
    }

    /// Adds the status of the response, and the ID of the request to the headers.
    pub(super) fn answered(&mut self, status: StatusCode, headers: &mut HeaderMap) {
        if let Some(span) = &mut self.span {
            span.answered(status);
        }
        if let Some(audited) = &mut self.audited {
            audited.identify(headers);
            audited.answered(status);
        }
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
    /// Refuses the request. Its body is discarded.
    pub(super) fn refuse(self, refusal: Refusal) -> Box<Refused> {
        let Self { head: _, upload, record, connection } = self;
        upload.discard(&connection.services.tasks);
        Box::new(Refused { refusal, record })
    }
}
