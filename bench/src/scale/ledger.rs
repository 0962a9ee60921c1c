//! The events that were written, and those that each informer received.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::latencies::{Latencies, Summary};

/// The events of all clusters. Writers and informers share it.
#[derive(Debug)]
pub(super) struct Ledger {
    clusters: Vec<Mutex<Events>>,
    delivery: Mutex<Latencies>,
    direct: Mutex<Latencies>,
}

/// The events of one cluster, by number.
#[derive(Debug)]
struct Events {
    /// Includes those without a response. Such a write may have succeeded.
    sent: BTreeSet<u32>,
    confirmed: BTreeSet<u32>,
    /// For each informer that receives events.
    received: Vec<BTreeSet<u32>>,
    twice: u64,
}

/// The sums over all informers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) confirmed: u64,
    pub(super) delivered: u64,
    /// Confirmed events that an informer did not receive.
    pub(super) lost: u64,
    pub(super) twice: u64,
    /// Events of other clusters.
    pub(super) foreign: u64,
}

// === impl Ledger ===

impl Ledger {
    /// For this number of clusters, each with this number of informers that receive events.
    pub(super) fn new(clusters: usize, informers: usize) -> Self {
        let events = |_| {
            let received = vec![BTreeSet::new(); informers];
            Mutex::new(Events { sent: BTreeSet::new(), confirmed: BTreeSet::new(), received, twice: 0 })
        };
        Self {
            clusters: (0..clusters).map(events).collect(),
            delivery: Mutex::new(Latencies::new()),
            direct: Mutex::new(Latencies::new()),
        }
    }

    /// Call it before the write.
    pub(super) fn send(&self, cluster: usize, number: u32) {
        lock(&self.clusters[cluster]).sent.insert(number);
    }

    pub(super) fn confirm(&self, cluster: usize, number: u32) {
        lock(&self.clusters[cluster]).confirmed.insert(number);
    }

    /// Records an event. `repeated` is whether the informer lists all objects again, so that it may receive an event a
    /// second time.
    pub(super) fn receive(&self, cluster: usize, informer: usize, number: u32, latency: Duration, repeated: bool) {
        let mut events = lock(&self.clusters[cluster]);
        if events.received[informer].insert(number) {
            drop(events);
            lock(&self.delivery).record(latency);
        } else if !repeated {
            events.twice += 1;
        }
    }

    /// Records an event at a watch of the host itself.
    pub(super) fn receive_directly(&self, latency: Duration) {
        lock(&self.direct).record(latency);
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { confirmed: 0, delivered: 0, lost: 0, twice: 0, foreign: 0 };
        for events in &self.clusters {
            let events = lock(events);
            totals.confirmed += events.confirmed.len() as u64;
            totals.twice += events.twice;
            for received in &events.received {
                totals.delivered += received.len() as u64;
                totals.lost += events.confirmed.difference(received).count() as u64;
                totals.foreign += received.difference(&events.sent).count() as u64;
            }
        }
        totals
    }

    /// From sending the write to the arrival at an informer.
    pub(super) fn delivery(&self) -> Summary {
        lock(&self.delivery).summary()
    }

    /// From sending the write to the arrival at the watch of the host itself.
    pub(super) fn direct(&self) -> Summary {
        lock(&self.direct).summary()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn losses_duplicates_and_foreign_events_are_counted() {
        let ledger = Ledger::new(2, 2);
        for (cluster, number) in [(0, 1), (0, 2), (1, 3)] {
            ledger.send(cluster, number);
            ledger.confirm(cluster, number);
        }
        for (cluster, informer, number) in [(0, 0, 1), (0, 0, 2), (0, 1, 2), (0, 1, 2), (1, 0, 3), (1, 1, 3), (1, 1, 1)]
        {
            ledger.receive(cluster, informer, number, MILLISECOND, false);
        }
        let expected = Totals { confirmed: 3, delivered: 6, lost: 1, twice: 1, foreign: 1 };
        assert_eq!(ledger.totals(), expected);
    }

    #[test]
    fn a_write_without_a_response_is_neither_lost_nor_foreign() {
        let ledger = Ledger::new(1, 1);
        ledger.send(0, 1);
        assert_eq!(ledger.totals().lost, 0);
        ledger.receive(0, 0, 1, MILLISECOND, false);
        assert_eq!((ledger.totals().foreign, ledger.totals().delivered), (0, 1));
    }

    #[test]
    fn an_object_in_a_second_list_is_not_a_duplicate() {
        let ledger = Ledger::new(1, 1);
        ledger.send(0, 1);
        ledger.receive(0, 0, 1, MILLISECOND, false);
        ledger.receive(0, 0, 1, MILLISECOND, true);
        assert_eq!(ledger.totals().twice, 0);
        assert!(ledger.delivery().max < 1.1);
    }
}
