//! Which requests are traced.

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;
use opentelemetry::KeyValue;
use opentelemetry::trace::{Link, SpanBuilder, SpanContext, SpanKind, TracerProvider as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use ops::files::Reloader;
use ops::metrics::Registry;
use protocol::sampled::Sampled;
use tokio::time::Instant;

use crate::collector::{Collector, OpenError};
use crate::config::Tracing;
use crate::exporter::Exporter;
use crate::queue::{Queue, counts};
use crate::span::Span;
use crate::traceparent;

/// Begins the spans of requests. Clones are the same. Without `tracing` in the configuration, it does nothing.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<Arc<Active>>);

#[derive(Debug)]
struct Active {
    tracer: Arc<SdkTracer>,
    /// Whether requests begin traces that no trusted caller has asked for.
    begins_traces: bool,
}

/// The process that records spans.
#[derive(Clone, Copy, Debug)]
pub struct Service<'s> {
    /// The binary.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Distinguishes this process from its replicas.
    pub instance: &'s str,
}

/// Whether the sender of a request decides if it is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its `traceparent` is the parent, and decides.
    Parent,
    /// The rate of the configuration decides, and a link leads to its `traceparent`.
    Link,
}

const MILLION: f64 = 1_000_000.0;

// === impl Traces ===

impl Traces {
    /// The traces of a process, and what exports them. `None`: the configuration has no `tracing`.
    pub fn open(
        config: Option<&Tracing>,
        service: Service<'_>,
        metrics: &Registry,
        reloader: &Reloader,
    ) -> Result<(Self, Option<Exporter>), OpenError> {
        let counts = counts(metrics, config.is_some());
        let (Some(config), Some(counts)) = (config, counts) else { return Ok((Self::default(), None)) };
        let collector = Collector::open(config, reloader)?;
        let (queue, spans) = Queue::new(counts.dropped.clone());
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.namespace", "atoll"),
                KeyValue::new("service.name", service.name),
                KeyValue::new("service.version", service.version),
                KeyValue::new("service.instance.id", service.instance.to_owned()),
            ])
            .build();
        let exporter = Exporter::new(spans, collector, &resource, counts);
        Ok((Self::recording(queue, resource, *config.sampling_rate_per_million), Some(exporter)))
    }

    fn recording(queue: Queue, resource: Resource, rate: u32) -> Self {
        let sampler = Sampler::TraceIdRatioBased(f64::from(rate) / MILLION);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(sampler)))
            .with_span_processor(queue)
            .with_resource(resource)
            .build();
        Self(Some(Arc::new(Active { tracer: Arc::new(provider.tracer("atoll")), begins_traces: rate > 0 })))
    }

    /// Begins the span of a request that a client has sent.
    pub fn of_client(&self, headers: &HeaderMap, trust: Trust, began: Instant) -> Option<Box<Span>> {
        self.0.as_ref()?.server_span(headers, trust, began)
    }

    /// Begins the span of a request that came through a tunnel. Removes what the proxy-server says about it. If the
    /// proxy-server records traces, it has decided whether this request is traced.
    pub fn of_tunnel(&self, headers: &mut HeaderMap) -> Option<Box<Span>> {
        let sampled = Sampled::take(headers);
        let active = self.0.as_ref()?;
        let began = Instant::now();
        let span = match sampled {
            Some(Sampled::Yes) => active.server_span(headers, Trust::Parent, began),
            Some(Sampled::No) => None,
            None => active.server_span(headers, Trust::Link, began),
        };
        match &span {
            Some(span) => span.write(headers),
            None => traceparent::write_unsampled(headers),
        }
        span
    }

    /// Tells an agent whether a request is traced, and below which span.
    pub fn write_for_agent(&self, span: Option<&Span>, headers: &mut HeaderMap) {
        if self.0.is_none() {
            return;
        }
        if let Some(span) = span {
            Sampled::Yes.write(headers);
            span.write(headers);
        } else {
            Sampled::No.write(headers);
            traceparent::write_unsampled(headers);
        }
    }
}

// === impl Active ===

impl Active {
    fn server_span(&self, headers: &HeaderMap, trust: Trust, began: Instant) -> Option<Box<Span>> {
        let (parent, link) = match (traceparent::read(headers), trust) {
            (parent, Trust::Parent) => (parent, None),
            (link, Trust::Link) => (None, link),
        };
        let is_possible = parent.as_ref().map_or(self.begins_traces, SpanContext::is_sampled);
        if !is_possible {
            return None;
        }
        let now = SystemTime::now();
        let mut builder = SpanBuilder::from_name("HTTP").with_kind(SpanKind::Server);
        builder.start_time = Some(now.checked_sub(began.elapsed()).unwrap_or(now));
        builder.links = link.map(|link| vec![Link::with_context(traceparent::without_state(&link))]);
        Span::begin(&self.tracer, builder, parent).map(Box::new)
    }
}

#[cfg(test)]
mod tests;
