//! Checks that the [workers](crate::workers) still run their tasks.
//!
//! If a worker hangs, so do all connections on it, while the main runtime still answers probes. So a [`Heartbeat`]
//! gives each worker an empty task every second, and [`Heartbeat::check`] fails if one of them has not run its task for
//! 30 s.
//!
//! A debugger, a `SIGSTOP`, or the suspension of a virtual machine pauses the whole process. Clocks may continue
//! meanwhile. So the silence of a worker is the number of seconds in which *the heartbeat itself* ran, and not the
//! difference of two times. After a pause of any length, the silence has grown by two seconds at most, and the next
//! task that the worker runs ends it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::drain::Tasks;
use crate::metrics::{Histogram, Registry, SECONDS};
use crate::workers::{QueuedAt, Worker, WorkerId, Workers};

/// The time between two tasks.
const PERIOD: Duration = Duration::from_secs(1);

/// A worker that runs no task for this long hangs. The longest work of a worker takes milliseconds.
const HANG_TIMEOUT: Duration = Duration::from_secs(30);

/// Gives all workers empty tasks. Clones are the same.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    workers: Workers,
    delays: Histogram,
}

/// A worker hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{worker} has not run a task for {seconds} s")]
pub struct WorkerHangs {
    worker: WorkerId,
    seconds: u64,
}

// === impl Heartbeat ===

impl Heartbeat {
    /// Registers the metrics of these workers. [`run`](Self::run) gives them their values.
    pub fn new(workers: &Workers, metrics: &Registry) -> Self {
        let delays = metrics.histogram(
            "atoll_worker_delay_seconds",
            "Time until a worker ran an empty task. Each worker gets one per second.",
            SECONDS,
        );
        let heartbeat = Self { workers: workers.clone(), delays };
        let observed = heartbeat.clone();
        metrics.observe(
            "atoll_worker_silence_seconds",
            "The longest time for which a worker has not run its empty task.",
            move || observed.longest().map_or(0, |hangs| i64::try_from(hangs.seconds).unwrap_or(i64::MAX)),
        );
        heartbeat
    }

    /// Fails if a worker hangs.
    pub fn check(&self) -> Result<(), WorkerHangs> {
        self.longest().filter(|longest| longest.seconds >= HANG_TIMEOUT.as_secs()).map_or(Ok(()), Err)
    }

    /// Gives each worker a task per period, until `tasks` are cancelled. Run it on another runtime.
    pub async fn run(self, tasks: Tasks) {
        let mut ticks = interval(PERIOD);
        // Ticks that were missed in a pause are skipped.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        let cancelled = tasks.cancelled();
        tokio::pin!(cancelled);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = &mut cancelled => return,
            }
            self.beat(last.elapsed(), &tasks);
            last = Instant::now();
        }
    }

    /// Gives a task to each worker that has run the last one. The others have been silent for another period.
    fn beat(&self, period: Duration, tasks: &Tasks) {
        for worker in self.workers.iter().filter(|worker| worker.delay().expect(period)) {
            let (delay, delays, given) = (Arc::clone(worker.delay()), self.delays.clone(), QueuedAt::now());
            worker.spawn(tasks, "heartbeat", async move {
                delays.observe_duration(given.waited());
                delay.answer();
            });
        }
    }

    fn longest(&self) -> Option<WorkerHangs> {
        let silent = |worker: &Worker| WorkerHangs { worker: worker.id(), seconds: worker.delay().silence() };
        self.workers.iter().map(silent).max_by_key(|hangs| hangs.seconds)
    }
}

#[cfg(test)]
mod tests;
