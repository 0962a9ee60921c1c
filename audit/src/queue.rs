//! The events that wait for a backend. The number of events and their bytes have a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::lost::Lost;

/// The maximum number of bytes that wait. A URL can have a quarter of a megabyte, so the number of events is not enough.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The end to which events are added. Clones are the same queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    events: mpsc::Sender<Bytes>,
    bytes: Arc<AtomicUsize>,
    lost: Arc<Lost>,
}

/// The end from which events are taken.
#[derive(Debug)]
pub(crate) struct Queued {
    events: mpsc::Receiver<Bytes>,
    bytes: Arc<AtomicUsize>,
}

/// A queue for this number of events.
pub(crate) fn queue(length: usize, lost: Arc<Lost>) -> (Queue, Queued) {
    let (sender, receiver) = mpsc::channel(length);
    let bytes = Arc::new(AtomicUsize::new(0));
    (Queue { events: sender, bytes: Arc::clone(&bytes), lost }, Queued { events: receiver, bytes })
}

// === impl Queue ===

impl Queue {
    /// Adds an event, or counts it as lost. Never waits.
    pub(crate) fn push(&self, event: Bytes) {
        let length = event.len();
        let before = self.bytes.fetch_add(length, Ordering::Relaxed);
        if before + length > MAX_BYTES || self.events.try_send(event).is_err() {
            self.bytes.fetch_sub(length, Ordering::Relaxed);
            self.lost.full();
        }
    }
}

// === impl Queued ===

impl Queued {
    /// Waits for events, and takes at most `limit`. Returns the number of events: 0 if no more will come.
    pub(crate) async fn take(&mut self, into: &mut Vec<Bytes>, limit: usize) -> usize {
        let from = into.len();
        let taken = self.events.recv_many(into, limit).await;
        self.release(&into[from..]);
        taken
    }

    /// Takes what is there.
    pub(crate) fn take_now(&mut self, into: &mut Vec<Bytes>, limit: usize) {
        let from = into.len();
        while into.len() - from < limit
            && let Ok(event) = self.events.try_recv()
        {
            into.push(event);
        }
        self.release(&into[from..]);
    }

    fn release(&self, events: &[Bytes]) {
        self.bytes.fetch_sub(events.iter().map(Bytes::len).sum(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{LOG, Metrics};

    #[tokio::test]
    async fn what_does_not_fit_is_counted() {
        let registry = ops::metrics::Registry::new(ops::metrics::Build { component: "test", version: "0" });
        let (metrics, cluster) = (Metrics::new(&registry), Arc::from("ke-beijing"));
        let (queue, mut queued) = queue(3, Arc::new(Lost::new(&metrics, &cluster, LOG)));
        queue.push(Bytes::from(vec![0; MAX_BYTES]));
        queue.push(Bytes::from_static(b"too many bytes"));
        let mut events = Vec::new();
        assert_eq!(queued.take(&mut events, 9).await, 1);
        for event in ["a", "b", "c", "too many events"] {
            queue.push(event.into());
        }
        queued.take_now(&mut events, 2);
        assert_eq!(queued.take(&mut events, 9).await, 1);
        assert_eq!(events[1..], ["a", "b", "c"].map(Bytes::from));
        let text = registry.encode();
        let lost = r#"atoll_audit_lost_events_total{backend="log",cluster="ke-beijing",reason="full"} 2"#;
        assert!(text.contains(lost), "{text}");
        drop(queue);
        assert_eq!(queued.take(&mut events, 9).await, 0);
    }
}
