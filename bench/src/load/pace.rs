//! The loops, for any repeatable operation.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

pub(crate) use super::schedule::Rate;
use super::schedule::Schedule;
use crate::latencies::Latencies;

/// A repeatable operation. One worker performs it sequentially.
pub(crate) trait Exchange: Send + 'static {
    /// Performs it once. Returns the number of received bytes.
    fn exchange(&mut self) -> impl Future<Output = Result<u64, Failure>> + Send;
}

/// A failed operation. The report shows the example of the first failure of each kind.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) example: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureKind {
    Connect,
    Status(u16),
    Broken,
    Timeout,
}

/// When the next operation begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// When the previous one has ended.
    Closed,
    /// At this rate.
    Open(Rate),
}

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) duration: Duration,
    pub(crate) requests: u64,
    /// For one operation.
    pub(crate) timeout: Duration,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// From the scheduled time to the end, for successful operations.
    pub(crate) latency: Latencies,
    /// From the actual start to the end, for successful operations.
    pub(crate) service: Latencies,
    pub(crate) bytes: u64,
    pub(crate) failures: BTreeMap<FailureKind, (u64, String)>,
    /// The number of scheduled operations that did not begin.
    pub(crate) missed: u64,
    /// Until the last operation ended.
    pub(crate) elapsed: Duration,
}

/// Runs all exchanges concurrently until a limit is reached. Returns the result and the exchanges.
pub(crate) async fn run<E: Exchange>(exchanges: Vec<E>, pace: Pace, limits: Limits) -> (Outcome, Vec<E>) {
    let start = Instant::now();
    let rate = match pace {
        Pace::Closed => None,
        Pace::Open(rate) => Some(rate),
    };
    let schedule = Arc::new(Schedule::new(start, limits.duration, limits.requests, rate));
    // All workers share one lock. They hold it for less than a microsecond, and a histogram for each worker would need
    // megabytes.
    let outcome = Arc::new(Mutex::new(Outcome::new()));
    let mut workers = JoinSet::new();
    for exchange in exchanges {
        workers.spawn(work(exchange, Arc::clone(&schedule), limits.timeout, Arc::clone(&outcome)));
    }
    let mut exchanges = Vec::with_capacity(workers.len());
    while let Some(joined) = workers.join_next().await {
        exchanges.extend(joined);
    }
    let mut outcome = std::mem::replace(&mut *lock(&outcome), Outcome::new());
    outcome.missed = schedule.missed();
    outcome.elapsed = start.elapsed();
    (outcome, exchanges)
}

async fn work<E: Exchange>(
    mut exchange: E,
    schedule: Arc<Schedule>,
    limit: Duration,
    outcome: Arc<Mutex<Outcome>>,
) -> E {
    while let Some(intended) = schedule.take(Instant::now()) {
        // The timer has a resolution of a millisecond, and waits for the next tick even if the time has passed.
        if intended > Instant::now() {
            sleep_until(intended).await;
        }
        let sent = Instant::now();
        let result = timeout(limit, exchange.exchange()).await.unwrap_or_else(|_| Err(Failure::timeout(limit)));
        let done = Instant::now();
        lock(&outcome).record(result, done - intended, done - sent);
    }
    exchange
}

fn lock(outcome: &Mutex<Outcome>) -> std::sync::MutexGuard<'_, Outcome> {
    outcome.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Failure ===

impl Failure {
    fn timeout(limit: Duration) -> Self {
        Self { kind: FailureKind::Timeout, example: format!("no response within {limit:?}") }
    }
}

// === impl Outcome ===

impl Outcome {
    fn new() -> Self {
        Self {
            latency: Latencies::new(),
            service: Latencies::new(),
            bytes: 0,
            failures: BTreeMap::new(),
            missed: 0,
            elapsed: Duration::ZERO,
        }
    }

    fn record(&mut self, result: Result<u64, Failure>, latency: Duration, service: Duration) {
        match result {
            Ok(bytes) => {
                self.bytes += bytes;
                self.latency.record(latency);
                self.service.record(service);
            }
            Err(Failure { kind, example }) => self.failures.entry(kind).or_insert((0, example)).0 += 1,
        }
    }

    pub(crate) fn succeeded(&self) -> u64 {
        self.latency.count()
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failures.values().map(|(count, _)| count).sum()
    }

    pub(crate) fn describe_failures(&self) -> String {
        let failures = self.failures.iter().map(|(kind, (count, example))| format!("{count} x {kind:?}: {example}"));
        failures.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests;
