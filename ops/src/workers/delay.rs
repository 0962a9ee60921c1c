//! How late a worker is.
//!
//! Tasks report how long they have waited for their worker ([`QueuedAt`]). Other modules choose another worker if tasks
//! wait for long ([`is_late`], [`Workers::elsewhere`](super::Workers::elsewhere),
//! [`Workers::least`](super::Workers::least)).

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The maximum that one period of the heartbeat may add to the silence of a worker.
const LONGEST: Duration = Duration::from_secs(2);

/// A worker is late if its tasks wait for longer than this on average. A worker that is only busy, with a hundred
/// requests at a time, lets them wait for a few milliseconds.
const OVERLOADED: Duration = Duration::from_millis(10);

/// The weight of each new delay in the average.
const WEIGHT: u64 = 4;

/// How late one worker is.
#[derive(Debug, Default)]
pub(crate) struct Delay {
    /// The worker has not run the task of the heartbeat yet.
    is_waiting: AtomicBool,
    /// How long the worker has not run it, in milliseconds.
    silence: AtomicU64,
    /// The average time that tasks wait, in microseconds. Only the worker's own thread changes it.
    average: AtomicU64,
}

/// The time at which a worker was given a task.
#[derive(Clone, Copy, Debug)]
pub struct QueuedAt(Instant);

thread_local! {
    static HERE: OnceCell<Arc<Delay>> = const { OnceCell::new() };
}

/// Whether this thread is a worker whose tasks wait for long.
pub fn is_late() -> bool {
    HERE.with(|delay| delay.get().is_some_and(|delay| delay.is_late()))
}

// === impl QueuedAt ===

impl QueuedAt {
    /// A task that is given to a worker now.
    pub fn now() -> Self {
        Self(Instant::now())
    }

    /// The time that the task has waited so far.
    pub fn waited(self) -> Duration {
        self.0.elapsed()
    }

    /// The task has begun on this thread. Does nothing if this thread is not a worker.
    pub fn begun(self) {
        HERE.with(|delay| {
            if let Some(delay) = delay.get() {
                delay.note(self.waited());
            }
        });
    }
}

// === impl Delay ===

impl Delay {
    /// This thread is the worker.
    pub(super) fn enter(self: Arc<Self>) {
        HERE.with(|delay| drop(delay.set(self)));
    }

    pub(super) fn is_late(&self) -> bool {
        u128::from(self.average()) > OVERLOADED.as_micros()
    }

    /// The average time that tasks wait, in microseconds.
    pub(super) fn average(&self) -> u64 {
        self.average.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, delay: Duration) {
        let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX) / WEIGHT;
        let before = self.average.load(Ordering::Relaxed);
        self.average.store((before - before / WEIGHT).saturating_add(delay), Ordering::Relaxed);
    }

    /// On a busy machine, the tasks of a test wait for long.
    #[cfg(test)]
    pub(super) fn forget(&self) {
        self.average.store(0, Ordering::Relaxed);
    }

    /// Whether the worker may be given the next task of the heartbeat. Otherwise, it has not run the last one, and has been silent
    /// for another period.
    pub(crate) fn expect(&self, period: Duration) -> bool {
        let is_waiting = self.is_waiting.swap(true, Ordering::AcqRel);
        if is_waiting {
            let millis = u64::try_from(period.min(LONGEST).as_millis()).unwrap_or(u64::MAX);
            self.silence.fetch_add(millis, Ordering::Relaxed);
        }
        !is_waiting
    }

    /// The worker runs the task of the heartbeat.
    pub(crate) fn answer(&self) {
        self.silence.store(0, Ordering::Relaxed);
        self.is_waiting.store(false, Ordering::Release);
    }

    /// For how long the worker has not run the task of the heartbeat, in seconds.
    pub(crate) fn silence(&self) -> u64 {
        self.silence.load(Ordering::Relaxed) / 1000
    }
}

#[cfg(test)]
mod tests;
