//! Which changes were written, and which of them came to a watcher.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::latencies::Latencies;

/// The changes that the API server has confirmed. One that failed may have been made all the same: it is not expected
/// of anybody, and welcome if it comes.
#[derive(Debug)]
pub(super) struct Written {
    confirmed: Mutex<BTreeSet<u32>>,
    closed: watch::Sender<bool>,
}

/// What one watcher got.
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

    /// Nothing more will be written.
    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Waits for [`Written::close`].
    pub(super) async fn closed(&self) {
        // The sender is in `self`, so it is there as long as anybody waits.
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

    pub(super) fn note(&mut self, number: u32, latency: std::time::Duration) {
        if self.numbers.insert(number) {
            self.latencies.record(latency);
        } else {
            self.twice += 1;
        }
    }

    /// How many of what was written have not come.
    pub(super) fn lost(&self, written: &Written) -> usize {
        written.lock().difference(&self.numbers).count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_confirmed_and_did_not_come_is_lost() {
        let written = Written::new();
        let mut deliveries = Deliveries::new();
        for number in [1, 2, 3] {
            written.confirm(number);
        }
        for number in [1, 1, 3, 9] {
            deliveries.note(number, Duration::from_millis(1));
        }
        assert_eq!((deliveries.lost(&written), deliveries.twice, deliveries.latencies.count()), (1, 1, 3));
    }

    #[tokio::test]
    async fn whoever_waits_for_the_end_is_told_even_afterwards() {
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
