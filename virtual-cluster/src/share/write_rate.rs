//! A rate limit for bodies that cost the host much more than their length suggests.
//!
//! The *weight* of a body is the estimated memory of its parsed form (`rewrite::json::weight`).
//!
//! An API server decodes a body more than once, and allocates a value for each element. A body of 400,000 elements
//! occupies both CPUs of a small host for hundreds of milliseconds. If many elements are invalid, the host needs much
//! longer: for each error, it copies the text of all errors so far (`aggregate.Error` in apimachinery's
//! `pkg/util/errors`). So the time grows with the square of the number of errors, and the host does not stop when the
//! client disconnects. During this time, requests of all virtual clusters are slow. Few clients send such bodies, so
//! each virtual cluster may send only a few of them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::share::large_objects::MEDIUM_WEIGHT;

/// Bodies up to this weight, in bytes, cost nothing. A CustomResourceDefinition with 5,000 fields weighs as much.
const LIGHT: usize = 4 << 20;

/// The weight that a virtual cluster may send per second, in bytes, on average.
const PER_SECOND: usize = 1 << 20;

/// The maximum weight of an object without its text, in bytes.
pub const MAX: usize = 24 << 20;

/// The weight that a virtual cluster may send at once, in bytes.
pub const BURST: usize = 64 << 20;

/// The same for CustomResourceDefinitions. After each write of one, the host rebuilds its OpenAPI documents.
pub const BURST_OF_DEFINITIONS: usize = MAX;

/// The number of reads of an object that cost as much as one write.
const READS_OF_A_WRITE: usize = 4;

/// Refusals up to this length, in bytes, are free. A refusal with about 400 errors is as long.
const SHORT: usize = 64 * 1024;

/// The cost of a refusal of the length [`SHORT`]. One of twice the length costs four times as much. The host needs
/// about a tenth of this time to make it. So refusals take at most a tenth of one CPU on average.
const SHORT_COST: Duration = Duration::from_millis(100);

/// A body is admitted if the refusals that are not paid for yet cost at most this.
const REFUSED_BURST: Duration = Duration::from_secs(5);

/// No cluster waits longer than this after refusals.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// How long a cluster waits when the host has not answered in time.
const TIMED_OUT: Duration = Duration::from_secs(60);

/// The rate limit of one virtual cluster, by weight (the generic cell rate algorithm of ITU-T I.371).
#[derive(Debug)]
pub struct WriteRateLimit {
    paid: Mutex<Paid>,
}

#[derive(Debug)]
struct Paid {
    /// When everything that was sent is paid for.
    sent: Instant,
    /// When all refusals are paid for.
    refused: Instant,
}

// === impl WriteRateLimit ===

impl Default for WriteRateLimit {
    fn default() -> Self {
        let now = Instant::now();
        Self { paid: Mutex::new(Paid { sent: now, refused: now }) }
    }
}

impl WriteRateLimit {
    /// Charges a body of this weight before it goes to the host. If more than `burst` would then be unpaid, nothing is
    /// charged, and the error is the time until the client may try again.
    pub fn admit(&self, weight: usize, burst: usize) -> Result<(), Duration> {
        if weight <= MEDIUM_WEIGHT {
            return Ok(());
        }
        // A body of the maximum weight is admitted whenever all earlier ones are paid for.
        let burst = time(burst);
        let cost = if weight <= LIGHT { Duration::ZERO } else { time(weight).min(burst) };
        let now = Instant::now();
        let mut paid = self.lock();
        let then = paid.sent.max(now) + cost;
        match then.duration_since(now).saturating_sub(burst).max(paid.wait_after_refusals(now)) {
            Duration::ZERO => {
                paid.sent = then;
                Ok(())
            }
            wait => Err(wait),
        }
    }

    /// Checks a body again that was admitted and has then waited for its turn: the host may have refused others in the
    /// meantime.
    pub fn admit_again(&self) -> Result<(), Duration> {
        match self.lock().wait_after_refusals(Instant::now()) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    /// Charges an object of this weight that the agent has read for a write that it then refuses. The host needs less
    /// time for a read than for a write.
    pub fn read(&self, weight: usize) {
        if weight > LIGHT {
            let now = Instant::now();
            let mut paid = self.lock();
            paid.sent = (paid.sent.max(now) + time(weight / READS_OF_A_WRITE)).min(now + MAX_WAIT);
        }
    }

    /// Charges a refusal by the host, by its length, because its text contains all errors.
    pub fn refused(&self, length: usize) {
        if length <= SHORT {
            return;
        }
        let square = u32::try_from((length / SHORT).saturating_pow(2)).unwrap_or(u32::MAX);
        let now = Instant::now();
        let mut paid = self.lock();
        paid.refused = (paid.refused.max(now) + SHORT_COST.saturating_mul(square).min(MAX_WAIT)).min(now + MAX_WAIT);
    }

    /// Charges a request that the host has not answered in time, because it may have very many errors. Such requests at
    /// the same time count as one, because on a slow host, many requests time out.
    pub fn timed_out(&self) {
        let mut paid = self.lock();
        paid.refused = paid.refused.max(Instant::now() + TIMED_OUT);
    }

    fn lock(&self) -> MutexGuard<'_, Paid> {
        self.paid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Paid ===

impl Paid {
    /// The time until a body is admitted after the refusals so far.
    fn wait_after_refusals(&self, now: Instant) -> Duration {
        self.refused.duration_since(now).saturating_sub(REFUSED_BURST)
    }
}

/// The time in which this weight is paid for.
fn time(weight: usize) -> Duration {
    Duration::from_millis(u64::try_from(weight / (PER_SECOND / 1000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_heavy_bodies_are_admitted() {
        let (rate, body) = (WriteRateLimit::default(), BURST - 1);
        assert_eq!(rate.admit(body, BURST), Ok(()));
        let wait = rate.admit(body, BURST).unwrap_err();
        advance(wait / 2).await;
        assert!(rate.admit(body, BURST).is_err());
        advance(wait / 2).await;
        assert_eq!(rate.admit(body, BURST), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn light_bodies_cost_nothing() {
        let rate = WriteRateLimit::default();
        for _ in 0..100 {
            assert_eq!(rate.admit(LIGHT, BURST), Ok(()));
        }
        assert_eq!(rate.admit(BURST, BURST), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn reads_for_writes_are_counted() {
        let rate = WriteRateLimit::default();
        for _ in 0..100 {
            rate.read(LIGHT);
        }
        for _ in 0..=READS_OF_A_WRITE {
            assert_eq!(rate.admit(LIGHT, BURST), Ok(()));
            rate.read(BURST);
        }
        assert!(rate.admit(LIGHT, BURST).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn long_refusals_delay_larger_bodies() {
        let rate = WriteRateLimit::default();
        for _ in 0..10_000 {
            rate.refused(SHORT);
        }
        assert_eq!(rate.admit(BURST, BURST), Ok(()));
        // A megabyte of errors costs 25.6 seconds.
        rate.refused(16 * SHORT);
        let wait = rate.admit(MEDIUM_WEIGHT + 1, BURST).unwrap_err();
        assert_eq!(wait, Duration::from_millis(20_600));
        assert_eq!(rate.admit_again(), Err(wait));
        assert_eq!(rate.admit(MEDIUM_WEIGHT, BURST), Ok(()));
        rate.timed_out();
        rate.timed_out();
        assert_eq!(rate.admit(LIGHT, BURST), Err(TIMED_OUT.saturating_sub(REFUSED_BURST)));
        rate.refused(usize::MAX >> 8);
        assert!(rate.admit(LIGHT, BURST).unwrap_err() <= MAX_WAIT);
        advance(MAX_WAIT).await;
        assert_eq!(rate.admit_again(), Ok(()));
        assert_eq!(rate.admit(LIGHT, BURST), Ok(()));
    }
}
