//! Whether the workers run what they are given, and how late.
//!
//! A worker that hangs takes every connection on it along, while the main runtime still answers probes. So a [`Heartbeat`]
//! gives each worker an empty task every second, and [`Workers::check`] fails if one of them has not run its task for
//! [`SILENT`]. Other parts also report how long their tasks have waited for a worker ([`Given`]), and choose another place if
//! tasks wait for long ([`is_late`], [`Workers::elsewhere`], [`Workers::least`]).
//!
//! A debugger, a `SIGSTOP`, or the suspension of a virtual machine pauses the whole process. Clocks may go on meanwhile. So
//! the silence of a worker is the number of seconds in which *the heartbeat itself* ran, and not the difference of two
//! times: after a pause of any length, it has grown by two seconds at most, and the next task that the worker runs ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{PULSE, Worker, WorkerId, Workers};
use crate::drain::Tasks;
use crate::metrics::{Histogram, Registry, SECONDS};

/// The time between two tasks of the heartbeat.
const PERIOD: Duration = Duration::from_secs(1);

/// The most that one period may add to the silence of a worker.
const LONGEST: Duration = Duration::from_secs(2);

/// A worker that runs no task for this long hangs. The longest work of a worker takes milliseconds.
const SILENT: Duration = Duration::from_secs(30);

/// A worker is late if its tasks wait for longer than this on average. A worker that is merely busy, with a hundred requests
/// at a time, lets them wait for a few milliseconds.
const LATE: Duration = Duration::from_millis(10);

/// The part of the average that each new delay has.
const WEIGHT: u64 = 4;

/// What is known about the punctuality of one worker.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// The worker has not run the task of the heartbeat yet.
    is_waiting: AtomicBool,
    /// For how long it has not, in milliseconds.
    silence: AtomicU64,
    /// The average time that tasks wait, in microseconds. Only the worker's own thread changes it.
    delay: AtomicU64,
}

/// Gives all workers empty tasks.
#[derive(Debug)]
pub struct Heartbeat {
    workers: Workers,
    delays: Histogram,
}

/// The time at which a worker was given a task.
#[derive(Clone, Copy, Debug)]
pub struct Given(Instant);

/// A worker hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("worker {} has run nothing for {seconds} s", worker.0)]
pub struct Hangs {
    worker: WorkerId,
    seconds: u64,
}

/// Whether this thread is a worker whose tasks wait for long.
pub fn is_late() -> bool {
    PULSE.with(|pulse| pulse.get().is_some_and(|pulse| pulse.is_late()))
}

// === impl Workers ===

impl Workers {
    /// Registers the metrics of these workers. [`Heartbeat::run`] gives them their values.
    pub fn heartbeat(&self, metrics: &Registry) -> Heartbeat {
        let delays = metrics.histogram(
            "atoll_worker_delay_seconds",
            "Time until a worker ran an empty task. Each worker gets one per second.",
            SECONDS,
        );
        let workers = self.clone();
        metrics.observe(
            "atoll_worker_silence_seconds",
            "The longest time for which a worker has not run its empty task.",
            move || i64::try_from(workers.silence().seconds).unwrap_or(i64::MAX),
        );
        Heartbeat { workers: self.clone(), delays }
    }

    /// Fails if a worker hangs.
    pub fn check(&self) -> Result<(), Hangs> {
        let longest = self.silence();
        if longest.seconds < SILENT.as_secs() { Ok(()) } else { Err(longest) }
    }

    fn silence(&self) -> Hangs {
        let silent =
            |worker: &Worker| Hangs { worker: worker.id, seconds: worker.pulse.silence.load(Ordering::Relaxed) / 1000 };
        self.all.iter().map(silent).max_by_key(|hangs| hangs.seconds).expect("there is at least one worker")
    }
}

// === impl Heartbeat ===

impl Heartbeat {
    /// Gives each worker a task per period, until `tasks` are cancelled. Belongs on another runtime.
    pub async fn run(self, tasks: Tasks) {
        let mut ticks = interval(PERIOD);
        // Ticks that were missed in a pause are not made up for.
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
    pub(super) fn beat(&self, period: Duration, tasks: &Tasks) {
        for worker in self.workers.all.iter() {
            if worker.pulse.is_waiting.swap(true, Ordering::AcqRel) {
                worker.pulse.stay_silent(period);
                continue;
            }
            let (pulse, delays, given) = (Arc::clone(&worker.pulse), self.delays.clone(), Given::now());
            let task = async move {
                delays.observe_duration(given.begun());
                pulse.answer();
            };
            tasks.spawn_on(&worker.handle, "heartbeat", task);
        }
    }
}

// === impl Given ===

impl Given {
    /// A task that is given to a worker now.
    pub fn now() -> Self {
        Self(Instant::now())
    }

    /// The task has begun, on this thread. Returns the time that it has waited. If the thread is no worker, it does no more.
    pub fn begun(self) -> Duration {
        let delay = self.0.elapsed();
        PULSE.with(|pulse| {
            if let Some(pulse) = pulse.get() {
                pulse.note(delay);
            }
        });
        delay
    }
}

// === impl Pulse ===

impl Pulse {
    pub(super) fn is_late(&self) -> bool {
        u128::from(self.delay()) > LATE.as_micros()
    }

    /// The average time that tasks wait, in microseconds.
    pub(super) fn delay(&self) -> u64 {
        self.delay.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, delay: Duration) {
        let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX) / WEIGHT;
        let before = self.delay.load(Ordering::Relaxed);
        self.delay.store((before - before / WEIGHT).saturating_add(delay), Ordering::Relaxed);
    }

    /// On a busy machine, the tasks of a test wait for long.
    #[cfg(test)]
    pub(super) fn forget(&self) {
        self.delay.store(0, Ordering::Relaxed);
    }

    fn stay_silent(&self, period: Duration) {
        let millis = u64::try_from(period.min(LONGEST).as_millis()).unwrap_or(u64::MAX);
        self.silence.fetch_add(millis, Ordering::Relaxed);
    }

    fn answer(&self) {
        self.silence.store(0, Ordering::Relaxed);
        self.is_waiting.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
