//! How much of the time workers work.

use std::time::Duration;

use tokio::time::Instant;

use super::{Worker, WorkerId, Workers};

/// How much of the time each worker has worked, between the last two observations.
#[derive(Debug)]
pub struct BusyTime {
    workers: Workers,
    at: Instant,
    /// The time for which each worker had worked then.
    totals: Vec<Duration>,
    parts: Vec<f64>,
}

// === impl BusyTime ===

impl BusyTime {
    /// Begins an observation.
    pub fn new(workers: &Workers) -> Self {
        let totals: Vec<_> = workers.iter().map(total).collect();
        Self { workers: workers.clone(), at: Instant::now(), parts: vec![0.0; totals.len()], totals }
    }

    /// Ends the observation, and begins the next one.
    pub fn observe(&mut self) {
        let now = Instant::now();
        let elapsed = now.duration_since(self.at).as_secs_f64();
        self.at = now;
        for (worker, (before, part)) in self.workers.iter().zip(self.totals.iter_mut().zip(&mut self.parts)) {
            let total = total(worker);
            let worked = total.saturating_sub(std::mem::replace(before, total));
            *part = if elapsed > 0.0 { worked.as_secs_f64() / elapsed } else { 0.0 };
        }
    }

    /// The part of the time for which a worker worked: 0 if it only waited, and about 1 if it never did.
    pub fn part(&self, worker: WorkerId) -> f64 {
        self.parts.get(worker.0).copied().unwrap_or_default()
    }
}

/// The time since its start for which a worker has worked. tokio adds to it when the worker looks for events of sockets and
/// timers, which it also does between its tasks. So work may count in the observation after the one in which it was done.
fn total(worker: &Worker) -> Duration {
    worker.handle.metrics().worker_total_busy_duration(0)
}
