//! Spaces out requests, so that they do not occupy the host.
//!
//! Some requests cost a host milliseconds of CPU time, and limits for concurrent requests do not limit CPU time. So after a
//! request, the next one waits for twice as long as the host has worked on it. The requests of one queue therefore take at
//! most a third of the time. But 20 ms after a request has begun, the next one may begin, even if the first one has no
//! response: the host may be waiting for its disk or for a webhook. So at least 50 requests per second can begin, and more if
//! the host is fast.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as QueueLock, Notify};
use tokio::time::{Instant, timeout_at};

/// The longest time from the start of a request until the next one may start.
pub const MAX_SPACING: Duration = Duration::from_millis(20);

/// The requests get `1 / PARTS` of the time, unless [`MAX_SPACING`] lets the next one begin earlier.
const PARTS: u32 = 3;

/// A queue of requests that are spaced out. They begin in the order of their arrival.
#[derive(Debug, Default)]
pub struct Spacing {
    queue: QueueLock<()>,
    latest: Mutex<Latest>,
    ended: Notify,
}

/// The request that has begun last. It may have ended.
#[derive(Debug, Default)]
struct Latest {
    /// The number of requests that have begun.
    begun: u64,
    /// When it began.
    since: Option<Instant>,
    /// The time at which the next one may begin.
    next: Option<Instant>,
}

/// A request that has begun. If it is dropped without [`Turn::end`], the host may still be working on it, so the next one waits for
/// [`MAX_SPACING`].
#[derive(Debug)]
#[must_use = "call `end` when the host has done the work"]
pub struct Turn {
    spacing: Arc<Spacing>,
    number: u64,
}

// === impl Spacing ===

impl Spacing {
    /// Waits until a request may begin.
    pub async fn begin(self: &Arc<Self>) -> Turn {
        let _first = self.queue.lock().await;
        loop {
            let ended = self.ended.notified();
            let Some(next) = self.lock().next.filter(|next| *next > Instant::now()) else { break };
            // When the last request has ended, the next one may begin earlier.
            let _ = timeout_at(next, ended).await;
        }
        let now = Instant::now();
        let mut latest = self.lock();
        latest.begun += 1;
        (latest.since, latest.next) = (Some(now), Some(now + MAX_SPACING));
        Turn { spacing: Arc::clone(self), number: latest.begun }
    }

    /// The request with this number has ended. If the next one has begun already, it no longer matters.
    fn end(&self, number: u64) {
        let mut latest = self.lock();
        if latest.begun != number {
            return;
        }
        if let Some(since) = latest.since {
            latest.next = Some(since + (PARTS * since.elapsed()).min(MAX_SPACING));
        }
        self.ended.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Turn ===

impl Turn {
    /// The host has done the work.
    pub fn end(self) {
        self.spacing.end(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::task::JoinSet;
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_take_a_third_of_the_time() {
        for (milliseconds, expected) in [(1, 300), (5, 1500), (7, 2000), (15, 2000), (400, 2000)] {
            let (time, expected) = (Duration::from_millis(milliseconds), Duration::from_millis(expected));
            let (spacing, begun) = (Arc::new(Spacing::default()), Instant::now());
            let mut requests = JoinSet::new();
            for _ in 0..100 {
                let spacing = Arc::clone(&spacing);
                requests.spawn(async move {
                    let turn = spacing.begin().await;
                    sleep(time).await;
                    turn.end();
                });
            }
            requests.join_all().await;
            let measured = begun.elapsed();
            assert!(measured <= expected + time, "{milliseconds} ms: {measured:?}");
            assert!(measured + MAX_SPACING >= expected, "{milliseconds} ms: {measured:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_a_request_begins_at_once() {
        let spacing = Arc::new(Spacing::default());
        for _ in 0..3 {
            let begun = Instant::now();
            spacing.begin().await.end();
            assert_eq!(begun.elapsed(), Duration::ZERO);
            sleep(MAX_SPACING).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_can_be_dropped() {
        let spacing = Arc::new(Spacing::default());
        let first = spacing.begin().await;
        {
            let mut second = pin!(spacing.begin());
            assert!(timeout(MAX_SPACING / 2, &mut second).await.is_err());
        }
        first.end();
        let begun = Instant::now();
        spacing.begin().await.end();
        assert!(begun.elapsed() < MAX_SPACING);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_cancelled_request_the_next_one_waits() {
        let spacing = Arc::new(Spacing::default());
        drop(spacing.begin().await);
        let begun = Instant::now();
        spacing.begin().await.end();
        assert_eq!(begun.elapsed(), MAX_SPACING);
    }
}
