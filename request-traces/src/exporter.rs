//! Exports spans to the collector, in batches.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use ops::backoff::Backoff;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::collector::Collector;
use crate::queue::Counts;

/// The maximum number of spans in a batch, and the time after which a smaller one is sent, as in the SDK (`OTEL_BSP_*`).
const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(5);

/// How often a batch is sent. Meanwhile, the queue fills, and then spans are dropped.
const ATTEMPTS: u32 = 4;
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));

/// Exports the spans of a process.
pub struct Exporter {
    spans: mpsc::Receiver<SpanData>,
    collector: Collector,
    resource: ResourceAttributesWithSchema,
    counts: Counts,
    /// Whether the collector has not accepted the last batch. Only changes are logged.
    is_failing: bool,
}

// === impl Exporter ===

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").field("is_failing", &self.is_failing).finish_non_exhaustive()
    }
}

impl Exporter {
    pub(crate) fn new(
        spans: mpsc::Receiver<SpanData>,
        collector: Collector,
        resource: &Resource,
        counts: Counts,
    ) -> Self {
        Self { spans, collector, resource: resource.into(), counts, is_failing: false }
    }

    /// Exports until `stopping` completes, and then the spans that wait.
    pub async fn run(mut self, stopping: impl Future) {
        let mut stopping = pin!(stopping);
        loop {
            let mut batch = Vec::new();
            let is_stopping = tokio::select! {
                () = gather(&mut self.spans, &mut batch) => false,
                _ = &mut stopping => true,
            };
            if is_stopping {
                while let Ok(span) = self.spans.try_recv() {
                    batch.push(span);
                }
                if !batch.is_empty() {
                    self.export(batch, 1).await;
                }
                return;
            }
            tokio::select! {
                () = self.export(batch, ATTEMPTS) => {}
                // The collector is away, so the rest would not be accepted either.
                _ = &mut stopping => return,
            }
        }
    }

    async fn export(&mut self, spans: Vec<SpanData>, attempts: u32) {
        let count = spans.len() as u64;
        let request =
            ExportTraceServiceRequest { resource_spans: group_spans_by_resource_and_scope(spans, &self.resource) };
        let batch = Bytes::from(request.encode_to_vec());
        let mut backoff = BACKOFF;
        loop {
            let error = match self.collector.send(batch.clone()).await {
                Ok(refused) => return self.accepted(count, refused),
                Err(error) => error,
            };
            if !std::mem::replace(&mut self.is_failing, true) {
                warn!(error = &error as &dyn std::error::Error, "traces are not exported");
            }
            let pause = backoff.fail_with_half_jitter();
            if !error.is_temporary() || backoff.failures() >= attempts {
                return self.counts.failed.add(count);
            }
            sleep(pause).await;
        }
    }

    fn accepted(&mut self, count: u64, refused: u64) {
        self.counts.exported.add(count.saturating_sub(refused));
        self.counts.failed.add(refused.min(count));
        if std::mem::replace(&mut self.is_failing, false) {
            info!("traces are exported again");
        }
    }
}

/// Gathers spans until the batch is full, or until the first one has waited for [`DELAY`].
async fn gather(spans: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    // The sender lives as long as the process, so there is always a next one.
    let Some(first) = spans.recv().await else { return std::future::pending().await };
    batch.push(first);
    let mut overdue = pin!(sleep(DELAY));
    while batch.len() < BATCH {
        tokio::select! {
            biased;
            () = &mut overdue => return,
            more = spans.recv() => match more {
                Some(span) => batch.push(span),
                None => return,
            },
        }
    }
}

#[cfg(test)]
mod tests;
