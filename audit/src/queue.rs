//! The events that wait for a backend. The number of events and their bytes have a limit.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::budget::{Account, Charge};
use crate::lost::Lost;

/// The end to which events are added. Clones are the same queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    events: mpsc::Sender<Waiting>,
    account: Arc<Account>,
    lost: Arc<Lost>,
}

/// The end from which events are taken.
#[derive(Debug)]
pub(crate) struct Queued {
    events: mpsc::Receiver<Waiting>,
}

/// An event. A URL can have a quarter of a megabyte, so a number of events is no limit. Its bytes count until it is dropped, so
/// also while it is being sent.
#[derive(Debug)]
pub(crate) struct Waiting {
    event: Bytes,
    charge: Charge,
}

/// A queue for this number of events.
pub(crate) fn queue(length: usize, account: Arc<Account>, lost: Arc<Lost>) -> (Queue, Queued) {
    let (sender, receiver) = mpsc::channel(length);
    (Queue { events: sender, account, lost }, Queued { events: receiver })
}

// === impl Queue ===

impl Queue {
    /// Adds an event, or counts it as lost. Never waits.
    pub(crate) fn push(&self, event: Bytes) {
        let charge = self.account.charge(event.len());
        if charge.is_none_or(|charge| self.events.try_send(Waiting { event, charge }).is_err()) {
            self.lost.full();
        }
    }
}

// === impl Queued ===

impl Queued {
    /// Waits for events, and takes at most `limit`. Returns the number of events: 0 if no more will come.
    pub(crate) async fn take(&mut self, into: &mut Vec<Waiting>, limit: usize) -> usize {
        self.events.recv_many(into, limit).await
    }

    /// Waits for one event. `None` if no more will come.
    pub(crate) async fn next(&mut self) -> Option<Waiting> {
        self.events.recv().await
    }

    /// Takes one that is there.
    pub(crate) fn next_now(&mut self) -> Option<Waiting> {
        self.events.try_recv().ok()
    }

    /// Takes what is there.
    pub(crate) fn take_now(&mut self, into: &mut Vec<Waiting>, limit: usize) {
        into.extend((0..limit).map_while(|_| self.next_now()));
    }
}

// === impl Waiting ===

impl Waiting {
    /// Drops the event, and keeps its bytes reserved for a copy of it.
    pub(crate) fn into_charge(self) -> Charge {
        self.charge
    }
}

impl Deref for Waiting {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.event
    }
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, MAX_OF_QUEUE};
    use crate::metrics::{LOG, Metrics};

    #[tokio::test]
    async fn what_does_not_fit_is_counted() {
        let registry = ops::metrics::Registry::new(ops::metrics::Build { component: "test", version: "0" });
        let (metrics, cluster) = (Metrics::new(&registry), Arc::from("ke-beijing"));
        let account = Budget::of_memory(None).account();
        let (queue, mut queued) = queue(3, account, Arc::new(Lost::new(&metrics, &cluster, LOG)));
        queue.push(Bytes::from(vec![0; MAX_OF_QUEUE]));
        queue.push(Bytes::from_static(b"too many bytes"));
        let mut events = Vec::new();
        assert_eq!(queued.take(&mut events, 9).await, 1);
        queue.push(Bytes::from_static(b"still too many: the other one is not written yet"));
        events.clear();
        for event in ["a", "b", "c", "too many events"] {
            queue.push(event.into());
        }
        queued.take_now(&mut events, 2);
        assert_eq!(queued.take(&mut events, 9).await, 1);
        assert_eq!(
            events.iter().map(|event| Bytes::clone(event)).collect::<Vec<_>>(),
            ["a", "b", "c"].map(Bytes::from)
        );
        let text = registry.encode();
        let lost = r#"atoll_audit_lost_events_total{backend="log",cluster="ke-beijing",reason="full"} 3"#;
        assert!(text.contains(lost), "{text}");
        drop(queue);
        assert_eq!(queued.take(&mut events, 9).await, 0);
    }
}
