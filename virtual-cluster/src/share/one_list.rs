//! Limits the lists of a virtual cluster: one at a time, and for a part of the time.
//!
//! While the host works on a list, it delays the requests of all other clusters. So the agent lets the host work on the lists of a
//! cluster for 0.3 s without a pause (`kubectl get all` takes less), and then for about a sixth of the time. Of the first
//! 0.1 s before the host responds, at most 10 ms count: the host is perhaps just waiting for its watch cache
//! (KEP-2340). The time in which the client does not read counts only for as long as the host may have needed to encode
//! what the client has read.
//!
//! The list at the head of the queue waits for at most a second for the list before it, whose client may be slow, and then for at
//! most a second of pause. So lists that take more than a fifth of a second can get more than a sixth of the time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as QueueLock, Notify};
use tokio::time::{Instant, sleep, timeout_at};

/// After this time, the next list begins in any case. Most lists take tens of milliseconds.
const LONGEST: Duration = Duration::from_secs(1);

/// The longest time that the host normally waits for its watch cache (`progressRequestPeriod` in apiserver's
/// `pkg/storage/cacher/progress`).
pub(super) const CACHE_WAIT: Duration = Duration::from_millis(100);

/// At most this much of [`CACHE_WAIT`] counts. If the host need not wait for its watch cache, most lists take less
/// time.
const COUNTED_OF_WAIT: Duration = Duration::from_millis(10);

/// The number of bytes of a list that the host encodes in a millisecond, at least. A client that reads more slowly hides the time
/// that the host needs, so its lists count by their size.
const ENCODED_PER_MILLISECOND: u64 = 100_000;

/// In the long run, the lists of a cluster take one of this many parts of the time.
const PARTS: u32 = 6;

/// The time for which lists need no pauses if there were no lists for a while.
const BURST: Duration = Duration::from_millis(300);

/// A cluster may be ahead of its part by the pauses that a burst requires.
const AHEAD: Duration = BURST.saturating_mul(PARTS - 1);

/// The lists of a virtual cluster.
#[derive(Debug, Default)]
pub(super) struct OneList {
    /// The lists that wait, in the order of their arrival.
    queue: QueueLock<()>,
    current: Mutex<Current>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Current {
    /// The number of lists that have begun.
    begun: u64,
    /// The last of these, until it ends.
    running: Option<Running>,
    /// The time at which the lists so far have taken exactly their part of the time: the theoretical arrival time of the generic
    /// cell rate algorithm (ITU-T I.371).
    arrival: Option<Instant>,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    /// The time for which the host may wait for its watch cache.
    cache_wait: Duration,
    responded: Option<Instant>,
    /// The time at which the host sent the bytes that the client is reading.
    reading_since: Option<Instant>,
    /// How long the client has read without waiting for the host.
    read: Duration,
    /// The number of bytes that the host has sent.
    bytes: u64,
}

/// A list that has begun. Dropping this lets the next one begin.
#[derive(Debug)]
pub(super) struct Begun {
    list: Arc<OneList>,
    number: u64,
}

// === impl OneList ===

impl OneList {
    /// Waits until this list may begin. The host may wait for its watch cache for up to `cache_wait` before it responds.
    pub(super) async fn begin(self: &Arc<Self>, cache_wait: Duration) -> Begun {
        let _first = self.queue.lock().await;
        loop {
            let ended = self.ended.notified();
            let Some(since) = self.lock().running.as_ref().map(|running| running.since) else { break };
            if timeout_at(since + LONGEST, ended).await.is_err() {
                break;
            }
        }
        let pause = {
            let mut current = self.lock();
            // The last list may not have ended, but it does not hold up this one any more.
            current.end(Instant::now());
            current.pause(Instant::now())
        };
        sleep(pause).await;
        let mut current = self.lock();
        current.begun += 1;
        current.running = Some(Running::at(Instant::now(), cache_wait));
        Begun { list: Arc::clone(self), number: current.begun }
    }

    /// The list with this number has ended, unless the next one has begun already.
    fn end(&self, number: u64) {
        let mut current = self.lock();
        if current.begun == number {
            current.end(Instant::now());
            self.ended.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Current ===

impl Current {
    /// The time until the next list may begin.
    fn pause(&self, now: Instant) -> Duration {
        let arrival = self.arrival.unwrap_or(now);
        arrival.saturating_duration_since(now).saturating_sub(AHEAD).min(LONGEST)
    }

    /// The last list has ended, or does not hold up the next one any more.
    fn end(&mut self, now: Instant) {
        let Some(running) = self.running.take() else { return };
        self.charge(running.taken(now).min(LONGEST), now);
    }

    /// Charges work of the host that has just ended.
    fn charge(&mut self, taken: Duration, now: Instant) {
        let begun = now.checked_sub(taken).unwrap_or(now);
        let arrival = self.arrival.map_or(begun, |arrival| arrival.max(begun)) + PARTS * taken;
        self.arrival = Some(arrival.min(now + AHEAD + LONGEST));
    }
}

// === impl Running ===

impl Running {
    fn at(since: Instant, cache_wait: Duration) -> Self {
        Self { since, cache_wait, responded: None, reading_since: None, read: Duration::ZERO, bytes: 0 }
    }

    /// The client has read everything that the host has sent.
    fn waits_for_host(&mut self, now: Instant) {
        if let Some(since) = self.reading_since.take() {
            self.read += now.saturating_duration_since(since);
        }
    }

    /// The time that the host may have worked on this list.
    fn taken(mut self, now: Instant) -> Duration {
        self.waits_for_host(now);
        let responded = self.responded.unwrap_or(now);
        let before = responded.saturating_duration_since(self.since);
        let counted = COUNTED_OF_WAIT.min(self.cache_wait);
        let before = before.min(counted) + before.saturating_sub(self.cache_wait);
        let sending = now.saturating_duration_since(responded).saturating_sub(self.read);
        before + sending.max(Duration::from_millis(self.bytes / ENCODED_PER_MILLISECOND))
    }
}

// === impl Begun ===

impl Begun {
    /// The host has responded.
    pub(super) fn responded(&self) {
        let _ = self.update(|running, now| {
            running.responded.get_or_insert(now);
        });
    }

    /// The client asks for more than the host has sent so far.
    pub(super) fn polled(&self) {
        let _ = self.update(Running::waits_for_host);
    }

    /// The host has sent this many bytes, which the client reads until it asks for more. They also count when the list no longer
    /// holds up the next one.
    pub(super) fn sent(&self, bytes: usize) {
        let is_held = self.update(|running, now| {
            running.bytes = running.bytes.saturating_add(bytes as u64);
            running.reading_since = Some(now);
        });
        if !is_held {
            self.list
                .lock()
                .charge(Duration::from_micros(bytes as u64 * 1000 / ENCODED_PER_MILLISECOND), Instant::now());
        }
    }

    /// Lets the next list begin, because the client of this one has paused.
    pub(super) fn release(&self) {
        self.list.end(self.number);
    }

    /// Updates the list, unless the next one may have begun. Whether it did.
    fn update(&self, update: impl FnOnce(&mut Running, Instant)) -> bool {
        let mut current = self.list.lock();
        let running = if current.begun == self.number { current.running.as_mut() } else { None };
        running.map(|running| update(running, Instant::now())).is_some()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.list.end(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::time::{advance, timeout};

    use super::*;

    /// The time that this many lists take, each of which takes this time.
    async fn lists(list: &Arc<OneList>, number: u32, time: Duration) -> Duration {
        let begun = Instant::now();
        for _ in 0..number {
            let begun = list.begin(CACHE_WAIT).await;
            begun.responded();
            advance(time).await;
            drop(begun);
        }
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_needs_no_pause_and_more_lists_do() {
        let (list, time) = (Arc::new(OneList::default()), Duration::from_millis(50));
        assert_eq!(lists(&list, 6, time).await, 6 * time);
        let (expected, measured) = (100 * PARTS * time, lists(&list, 100, time).await);
        assert!(measured.abs_diff(expected) < PARTS * time, "{measured:?} instead of {expected:?}");
        // The next burst is possible after a while.
        advance(AHEAD).await;
        assert_eq!(lists(&list, 6, time).await, 6 * time);
        assert!(lists(&list, 1, time).await > time);
    }

    #[tokio::test(start_paused = true)]
    async fn of_the_wait_for_the_watch_cache_a_tenth_counts() {
        for (wait, expected) in [(CACHE_WAIT, 1000 * CACHE_WAIT), (COUNTED_OF_WAIT, 1000 * PARTS * COUNTED_OF_WAIT)] {
            let (list, started) = (Arc::new(OneList::default()), Instant::now());
            for _ in 0..1000 {
                let begun = list.begin(CACHE_WAIT).await;
                advance(wait).await;
                begun.responded();
            }
            let measured = started.elapsed();
            assert!(measured.abs_diff(expected) <= AHEAD + LONGEST, "{measured:?} instead of {expected:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_does_not_wait_for_the_watch_cache_counts_at_once() {
        let (list, started, time) = (Arc::new(OneList::default()), Instant::now(), CACHE_WAIT / 2);
        for _ in 0..100 {
            let begun = list.begin(Duration::ZERO).await;
            advance(time).await;
            begun.responded();
        }
        let (measured, expected) = (started.elapsed(), 100 * PARTS * time);
        assert!(measured.abs_diff(expected) <= AHEAD + LONGEST, "{measured:?} instead of {expected:?}");
    }

    /// A selector that matches nothing, and a list that holds up the next one for as long as it can.
    #[tokio::test(start_paused = true)]
    async fn other_work_before_the_response_counts() {
        for time in [CACHE_WAIT + Duration::from_millis(50), 2 * LONGEST] {
            let (list, begun) = (Arc::new(OneList::default()), Instant::now());
            let mut running = Vec::new();
            for _ in 0..100 {
                running.push(list.begin(CACHE_WAIT).await);
                if time < LONGEST {
                    advance(time).await;
                    running.pop();
                }
            }
            assert!(begun.elapsed() > 100 * time.min(LONGEST), "{:?}", begun.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_slow_client_counts_by_the_size_of_the_list() {
        let (time, megabyte) = (Duration::from_millis(90), 1_000_000);
        for (bytes, expected) in [(1, 100 * time), (5 * megabyte, 100 * PARTS * Duration::from_millis(50))] {
            let (list, started) = (Arc::new(OneList::default()), Instant::now());
            for _ in 0..100 {
                let begun = list.begin(CACHE_WAIT).await;
                begun.responded();
                begun.polled();
                begun.sent(bytes);
                advance(time).await;
                begun.polled();
            }
            let measured = started.elapsed();
            assert!(measured.abs_diff(expected) <= AHEAD + LONGEST, "{measured:?} instead of {expected:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_follows_after_a_pause_of_the_client_counts() {
        let list = Arc::new(OneList::default());
        for _ in 0..3 {
            let begun = list.begin(CACHE_WAIT).await;
            begun.responded();
            begun.sent(1_000_000);
            begun.release();
            // More than a second of the host's time.
            begun.sent(200_000_000);
        }
        let begun = Instant::now();
        drop(list.begin(CACHE_WAIT).await);
        assert_eq!(begun.elapsed(), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_takes_at_most_a_second() {
        let list = Arc::new(OneList::default());
        lists(&list, 3, LONGEST).await;
        let begun = Instant::now();
        drop(list.begin(CACHE_WAIT).await);
        assert_eq!(begun.elapsed(), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn lists_begin_one_after_the_other() {
        let list = Arc::new(OneList::default());
        let first = list.begin(CACHE_WAIT).await;
        let (mut second, mut third) = (pin!(list.begin(CACHE_WAIT)), pin!(list.begin(CACHE_WAIT)));
        assert!(timeout(BURST / 2, &mut second).await.is_err());
        assert!(timeout(Duration::ZERO, &mut third).await.is_err());
        drop(first);
        let second = timeout(Duration::ZERO, second).await.unwrap();
        assert!(timeout(Duration::ZERO, &mut third).await.is_err());
        drop(second);
        timeout(Duration::ZERO, third).await.unwrap();
        timeout(Duration::ZERO, list.begin(CACHE_WAIT)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_list_holds_up_the_next_one_for_a_second_before_the_pause() {
        let list = Arc::new(OneList::default());
        let begun = Instant::now();
        let first = list.begin(CACHE_WAIT).await;
        let second = list.begin(CACHE_WAIT).await;
        assert_eq!(begun.elapsed(), 2 * LONGEST);
        drop(first);
        advance(AHEAD).await;
        let mut third = pin!(list.begin(CACHE_WAIT));
        assert!(timeout(CACHE_WAIT, &mut third).await.is_err(), "the second one has not ended");
        drop(second);
        timeout(LONGEST, third).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_waits_can_be_dropped() {
        let list = Arc::new(OneList::default());
        let first = list.begin(CACHE_WAIT).await;
        assert!(timeout(BURST / 2, list.begin(CACHE_WAIT)).await.is_err());
        drop(first);
        timeout(Duration::ZERO, list.begin(CACHE_WAIT)).await.unwrap();
    }
}
