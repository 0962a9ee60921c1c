//! The spans that wait for the [`Exporter`](crate::Exporter).
//!
//! `BatchSpanProcessor` of the SDK does the same on a thread of its own, but does not tell how many spans it drops.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use ops::metrics::{Counter, LabelValue, Registry};
use tokio::sync::mpsc;

/// The number of spans that may wait, as in the SDK (`OTEL_BSP_MAX_QUEUE_SIZE`). At about 1 KB each,
/// that is 2 MB: texts of clients in a span are cut, and a longer `tracestate` is ignored.
const CAPACITY: usize = 2048;

/// Passes spans that have ended to the exporter.
#[derive(Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<SpanData>,
    dropped: Counter,
}

/// The counts of spans.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) exported: Counter,
    /// The queue was full.
    pub(crate) dropped: Counter,
    /// The collector has not accepted them.
    pub(crate) failed: Counter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Exported,
    Dropped,
    Failed,
}

ops::label_set! {
    /// Spans that have ended.
    struct Ended {
        outcome: Outcome,
    }
}

/// Registers the metric, and returns its handles if traces are configured. Otherwise it has no series.
pub(crate) fn counts(metrics: &Registry, is_configured: bool) -> Option<Counts> {
    let family = metrics.counters("atoll_spans_total", "Spans of traced requests, by what became of them.");
    let of = |outcome| family.with(&Ended { outcome });
    is_configured.then(|| Counts {
        exported: of(Outcome::Exported),
        dropped: of(Outcome::Dropped),
        failed: of(Outcome::Failed),
    })
}

// === impl Queue ===

impl Queue {
    /// An empty queue, and its other end.
    pub(crate) fn new(dropped: Counter) -> (Self, mpsc::Receiver<SpanData>) {
        let (sender, spans) = mpsc::channel(CAPACITY);
        (Self { sender, dropped }, spans)
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.sender.try_send(span).is_err() {
            self.dropped.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

// === impl Outcome ===

impl LabelValue for Outcome {
    fn label(&self) -> &str {
        match self {
            Self::Exported => "exported",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        }
    }
}
