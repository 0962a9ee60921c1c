//! The span of a request, and of its phases.

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};
use kube_wire::RequestInfo;
use opentelemetry::trace::{Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, Key, KeyValue, Value};
use opentelemetry_sdk::trace::SdkTracer;
use protocol::ClusterName;

use crate::route::{name, resource, route, short};
use crate::traceparent;

/// A part of a request, in either half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The proxy-server waits for the agent.
    Tunnel,
    /// The agent learns who the caller is.
    Authenticate,
    /// The agent learns whether the caller may send the request.
    Authorise,
    /// The agent waits for the host.
    Host,
}

/// A span that is recorded. It ends when it is dropped.
pub struct Span {
    span: opentelemetry_sdk::trace::Span,
    tracer: Arc<SdkTracer>,
}

/// A span as the parent of others. It may have ended.
#[derive(Clone)]
pub struct Parent {
    context: SpanContext,
    tracer: Arc<SdkTracer>,
}

// The names of attributes are those of OpenTelemetry's semantic conventions, as far as these define them.
const METHOD: Key = Key::from_static_str("http.request.method");
const ROUTE: Key = Key::from_static_str("http.route");
const STATUS: Key = Key::from_static_str("http.response.status_code");
const ERROR: Key = Key::from_static_str("error.type");
const NAMESPACE: Key = Key::from_static_str("k8s.namespace.name");
const CLUSTER: Key = Key::from_static_str("atoll.cluster");
const VERB: Key = Key::from_static_str("atoll.verb");
const RESOURCE: Key = Key::from_static_str("atoll.resource");

// === impl Phase ===

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Tunnel => "tunnel",
            Self::Authenticate => "authenticate",
            Self::Authorise => "authorise",
            Self::Host => "host",
        }
    }

    fn kind(self) -> SpanKind {
        match self {
            Self::Tunnel | Self::Host => SpanKind::Client,
            Self::Authenticate | Self::Authorise => SpanKind::Internal,
        }
    }
}

// === impl Span ===

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Span").field(self.span.span_context()).finish()
    }
}

impl Span {
    /// Begins a span. `None` if it is not sampled.
    pub(crate) fn begin(tracer: &Arc<SdkTracer>, builder: SpanBuilder, parent: Option<SpanContext>) -> Option<Self> {
        let context = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent));
        let span = tracer.build_with_context(builder, &context);
        span.is_recording().then(|| Self { span, tracer: Arc::clone(tracer) })
    }

    /// Adds the cluster.
    pub fn routed(&mut self, cluster: &ClusterName) {
        self.set(CLUSTER, cluster.to_string());
    }

    /// Adds what the request does. `None` if it cannot be parsed, or not yet.
    pub fn classified(&mut self, method: &Method, info: Option<&RequestInfo<'_>>) {
        self.set(METHOD, short(method.as_str()));
        let route = info.and_then(route);
        self.span.update_name(name(method, route.as_deref()));
        if let Some(route) = route {
            self.set(ROUTE, route);
        }
        let Some(info) = info else { return };
        self.set(VERB, info.verb());
        if let Some(request) = info.resource() {
            self.set(RESOURCE, resource(request));
            if let Some(namespace) = request.namespace() {
                self.set(NAMESPACE, short(namespace));
            }
        }
    }

    /// Adds the status of the response. Only a failure of the server is an error of its span, as OpenTelemetry's semantic
    /// conventions for HTTP define.
    pub fn answered(&mut self, status: StatusCode) {
        self.set(STATUS, i64::from(status.as_u16()));
        if status.is_server_error() {
            self.failed(status.as_str());
        }
    }

    /// Adds why there is no response. `error` has few values.
    pub fn failed(&mut self, error: &str) {
        self.set(ERROR, error.to_owned());
        self.span.set_status(Status::error(""));
    }

    /// Adds the status of a response, or that there is none.
    pub fn ended(&mut self, response: Option<StatusCode>, error: &str) {
        if let Some(status) = response { self.answered(status) } else { self.failed(error) }
    }

    /// Begins the span of a phase, below this one.
    pub fn phase(&self, phase: Phase) -> Option<Box<Self>> {
        self.as_parent().phase(phase)
    }

    /// This span, as the parent of others.
    pub fn as_parent(&self) -> Parent {
        Parent { context: self.span.span_context().clone(), tracer: Arc::clone(&self.tracer) }
    }

    /// Makes this span the parent of what the receiver of a request records.
    pub fn write(&self, headers: &mut HeaderMap) {
        traceparent::write(self.span.span_context(), headers);
    }

    fn set(&mut self, key: Key, value: impl Into<Value>) {
        self.span.set_attribute(KeyValue::new(key, value));
    }
}

// === impl Parent ===

impl std::fmt::Debug for Parent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Parent").field(&self.context).finish()
    }
}

impl Parent {
    /// Begins the span of a phase, below this one.
    pub fn phase(&self, phase: Phase) -> Option<Box<Span>> {
        let builder = SpanBuilder::from_name(phase.name()).with_kind(phase.kind());
        Span::begin(&self.tracer, builder, Some(self.context.clone())).map(Box::new)
    }
}
