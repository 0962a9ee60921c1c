//! The changes that were written, and those that a watcher received.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::latencies::Latencies;

/// The changes that the API server has confirmed. A watcher may receive other changes too, because a write can succeed
/// without a response.
#[derive(Debug)]
pub(super) struct Written {
    confirmed: Mutex<BTreeSet<u32>>,
    closed: watch::Sender<bool>,
}

/// The changes that one watcher received.
#[derive(Debug)]
pub(super) struct Deliveries {
    numbers: BTreeSet<u32>,
    pub(super) latencies: Latencies,
    pub(super) twice: u64,
}

// === impl Written ===

impl Written {
    pub(super) fn new() -> Self {
        Self { confirmed: Mutex::default(), closed: watch::Sender::new(false) }
    }

    pub(super) fn confirm(&self, number: u32) {
        self.lock().insert(number);
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Ends the writes.
    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Waits for [`Written::close`].
    pub(super) async fn closed(&self) {
        // There is no error, because `self` owns the sender.
        drop(self.closed.subscribe().wait_for(|closed| *closed).await);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Deliveries ===

impl Deliveries {
    pub(super) fn new() -> Self {
        Self { numbers: BTreeSet::new(), latencies: Latencies::new(), twice: 0 }
    }

    pub(super) fn record(&mut self, number: u32, latency: std::time::Duration) {
        if self.numbers.insert(number) {
            self.latencies.record(latency);
        } else {
            self.twice += 1;
        }
    }

    /// The number of confirmed changes that the watcher has not received.
    pub(super) fn lost(&self, written: &Written) -> usize {
        written.lock().difference(&self.numbers).count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn confirmed_changes_that_do_not_arrive_are_lost() {
        let written = Written::new();
        let mut deliveries = Deliveries::new();
        for number in [1, 2, 3] {
            written.confirm(number);
        }
        for number in [1, 1, 3, 9] {
            deliveries.record(number, Duration::from_millis(1));
        }
        assert_eq!((deliveries.lost(&written), deliveries.twice, deliveries.latencies.count()), (1, 1, 3));
    }

    #[tokio::test]
    async fn waiting_for_the_end_works_before_and_after_it() {
        let written = Written::new();
        let (waited, ()) = tokio::join!(
            async {
                written.closed().await;
                true
            },
            async { written.close() }
        );
        written.closed().await;
        assert!(waited);
    }
}
