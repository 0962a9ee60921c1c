//! The times at which requests are sent. The caller passes the current time.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The schedule of one run, shared by its workers.
#[derive(Debug)]
pub(crate) struct Schedule {
    start: Instant,
    end: Instant,
    /// The maximum number of requests.
    max_requests: u64,
    /// Without a rate, a request is due when a worker asks for it.
    rate: Option<Rate>,
    next: AtomicU64,
}

/// The rate at which requests are due, in bursts at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The average number of requests per second.
    pub(crate) per_second: NonZeroU32,
    /// The number of requests that are due at the same time.
    pub(crate) burst: NonZeroU32,
}

// === impl Rate ===

impl From<NonZeroU32> for Rate {
    /// One request at a time.
    fn from(per_second: NonZeroU32) -> Self {
        Self { per_second, burst: NonZeroU32::MIN }
    }
}

// === impl Schedule ===

impl Schedule {
    pub(crate) fn new(start: Instant, duration: Duration, max_requests: u64, rate: Option<Rate>) -> Self {
        Self { start, end: start + duration, max_requests, rate, next: AtomicU64::new(0) }
    }

    /// The time of the next request, which may have passed. `None` after the end of the run.
    pub(crate) fn take(&self, now: Instant) -> Option<Instant> {
        if now >= self.end {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let intended = self.rate.map_or(now, |rate| self.start + offset(number, rate));
        (number < self.max_requests && intended < self.end).then_some(intended)
    }

    /// The number of due requests that no worker took, because the server or this machine was too slow.
    pub(crate) fn missed(&self) -> u64 {
        let Some(rate) = self.rate else { return 0 };
        let duration = self.end - self.start;
        let due = (duration.as_nanos() * u128::from(rate.per_second.get())).div_ceil(1_000_000_000);
        // A burst is due as a whole, even if it begins shortly before the end.
        let burst = u128::from(rate.burst.get());
        let due = due.div_ceil(burst) * burst;
        let due = u64::try_from(due).unwrap_or(u64::MAX).min(self.max_requests);
        due.saturating_sub(self.next.load(Ordering::Relaxed))
    }
}

/// The time of request `number`. It is not a sum of intervals, so rounding errors do not accumulate.
fn offset(number: u64, rate: Rate) -> Duration {
    let first_of_burst = number - number % u64::from(rate.burst.get());
    let nanos = u128::from(first_of_burst) * 1_000_000_000 / u128::from(rate.per_second.get());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(rate: u32) -> Option<Rate> {
        NonZeroU32::new(rate).map(Rate::from)
    }

    #[tokio::test(start_paused = true)]
    async fn late_requests_keep_their_scheduled_times() {
        let start = Instant::now();
        let schedule = Schedule::new(start, SECOND, u64::MAX, rate(3));
        let now = start + SECOND * 9 / 10;
        let taken: Vec<_> = std::iter::from_fn(|| schedule.take(now)).map(|at| (at - start).as_nanos()).collect();
        assert_eq!(taken, [0, 333_333_333, 666_666_666]);
        assert_eq!(schedule.missed(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn due_requests_that_nobody_took_are_missed() {
        let start = Instant::now();
        let schedule = Schedule::new(start, 2 * SECOND, u64::MAX, rate(100));
        for _ in 0..50 {
            schedule.take(start).unwrap();
        }
        assert_eq!(schedule.take(start + 2 * SECOND), None);
        assert_eq!(schedule.missed(), 150);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_requests_are_due_now() {
        let start = Instant::now();
        let schedule = Schedule::new(start, SECOND, 2, None);
        assert_eq!(schedule.take(start), Some(start));
        assert_eq!(schedule.take(start + SECOND / 2), Some(start + SECOND / 2));
        assert_eq!(schedule.take(start), None);
        assert_eq!(schedule.missed(), 0);
    }

    #[test]
    fn rounding_errors_do_not_accumulate() {
        assert_eq!(offset(7 * 3_600, rate(7).unwrap()), 3_600 * SECOND);
        assert_eq!(offset(u64::MAX, rate(1).unwrap()), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn the_requests_of_a_burst_are_due_at_the_same_time() {
        let rate = Rate { burst: NonZeroU32::new(3).unwrap(), ..rate(6).unwrap() };
        let offsets = [0, 1, 2, 3, 5, 6, 600].map(|number| offset(number, rate));
        assert_eq!(offsets, [0, 0, 0, 1, 1, 2, 200].map(|halves| halves * SECOND / 2));
    }
}
