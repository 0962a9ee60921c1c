//! The phase `record`: the metrics and the span of a request, and response headers for the proxy-server's access log: the name of the
//! caller, and whose fault a refusal is. If the proxy-server keeps an audit log, also the facts for it.
//!
//! The proxy-server removes these headers before it sends the response to the client. This module also adds the warnings
//! about the request to a refusal of the agent.

use http::{HeaderMap, HeaderValue, StatusCode, header, request};
use kube_wire::{RequestInfo, Status};
use protocol::identity::name_caller;
use protocol::stream::PREFIX;
use protocol::{ClusterName, Fault};
use request_metrics::{Failure, Measured, VerbClass};
use request_traces::{Parent, Phase, Span, Traces};

use super::audit::AuditFacts;
use caller::Caller;

/// What is known about one request so far.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Counts the request when this is dropped. `None` if its cluster is not in the configuration.
    measured: Option<Measured>,
    /// `None` if the request is not traced.
    span: Option<Box<Span>>,
    caller: Option<String>,
    /// `None` unless the proxy-server keeps an audit log.
    pub(crate) audit: Option<Box<AuditFacts>>,
    /// Warnings for the client, in virtual names.
    warnings: Vec<HeaderValue>,
}

// === impl Record ===

impl Record {
    /// The record of a request that has just arrived.
    pub(crate) fn new(measured: Option<Measured>, headers: &HeaderMap) -> Self {
        Self { measured, audit: AuditFacts::requested(headers), ..Self::default() }
    }

    /// Begins the span of the request, if it is traced. Its context replaces that of the request, so that the host's spans
    /// are below this one even if no phase has a span of its own.
    pub(super) fn traced(&mut self, traces: &Traces, cluster: &ClusterName, head: &mut request::Parts) {
        self.span = traces.of_tunnel(&mut head.headers);
        if let Some(span) = &mut self.span {
            span.routed(cluster);
            span.classified(&head.method, None);
        }
    }

    /// Begins the span of a phase.
    pub(super) fn phase(&self, phase: Phase) -> Option<Box<Span>> {
        self.span.as_ref()?.phase(phase)
    }

    /// The span of the request, as the parent of others.
    pub(super) fn parent(&self) -> Option<Parent> {
        self.span.as_deref().map(Span::as_parent)
    }

    /// Records what the request does.
    pub(crate) fn parsed(&mut self, info: &RequestInfo<'_>) {
        if let Some(span) = &mut self.span {
            span.classified(info.method(), Some(info));
        }
        if let Some(measured) = &mut self.measured {
            measured.classified(VerbClass::of(Some(info)));
        }
    }

    /// Records the authenticated caller.
    pub(crate) fn identified(&mut self, caller: &Caller) {
        self.caller = Some(caller.virtual_name().to_owned());
    }

    /// Records the warnings for a request that the agent refuses.
    pub(crate) fn warned(&mut self, warnings: Vec<HeaderValue>) {
        self.warnings = warnings;
    }

    /// Records the Status of a refusal of the agent.
    pub(crate) fn refused(&mut self, status: &Status) {
        if let Some(audit) = &mut self.audit {
            audit.refused(status);
        }
    }

    /// Records a refusal of the agent, for its operator.
    pub(crate) fn failed(&self, failure: &Failure<'_>) {
        if let Some(measured) = &self.measured {
            measured.failed(failure);
        }
    }

    /// Records the status of a response, and adds the headers.
    pub(crate) fn write(&mut self, status: StatusCode, headers: &mut HeaderMap) {
        if let Some(span) = &mut self.span {
            span.answered(status);
        }
        if let Some(measured) = &mut self.measured {
            measured.answered(status);
        }
        // Only the agent may set these headers, so those of the host are removed.
        let of_host: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(PREFIX)).cloned().collect();
        for name in of_host {
            headers.remove(name);
        }
        if let Some(caller) = &self.caller {
            name_caller(headers, caller);
        }
        if let Some(audit) = &self.audit {
            audit.write(headers);
        }
    }

    /// The same for a refusal of the agent. Like an API server, it also adds the warnings
    /// (apiserver's `pkg/endpoints/filters/warning.go`).
    pub(crate) fn write_refusal(&mut self, status: StatusCode, headers: &mut HeaderMap, fault: Fault) {
        self.write(status, headers);
        fault.write(headers);
        for warning in &self.warnings {
            headers.append(header::WARNING, warning.clone());
        }
    }
}
