//! One list of a virtual cluster at a time.
//!
//! A list that takes long does not hold up the next one for more than a second: its client may be slow, or it may wait in a queue
//! of the host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as QueueLock, Notify};
use tokio::time::{Instant, timeout_at};

/// After this time, the next list begins in any case. Most lists take tens of milliseconds.
const LONGEST: Duration = Duration::from_secs(1);

/// The list of a virtual cluster that the host makes.
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
    /// The time at which the last of these began, until it ends.
    since: Option<Instant>,
}

/// A list that has begun. Dropping this lets the next one begin.
#[derive(Debug)]
pub(super) struct Begun {
    list: Arc<OneList>,
    number: u64,
}

// === impl OneList ===

impl OneList {
    /// Waits until this list may begin.
    pub(super) async fn begin(self: &Arc<Self>) -> Begun {
        let _first = self.queue.lock().await;
        loop {
            let ended = self.ended.notified();
            let Some(since) = self.lock().since else { break };
            if timeout_at(since + LONGEST, ended).await.is_err() {
                break;
            }
        }
        let mut current = self.lock();
        current.begun += 1;
        current.since = Some(Instant::now());
        Begun { list: Arc::clone(self), number: current.begun }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Begun ===

impl Drop for Begun {
    fn drop(&mut self) {
        let mut current = self.list.lock();
        // Unless the next one has begun already.
        if current.begun == self.number {
            current.since = None;
            self.list.ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lists_begin_one_after_the_other() {
        let list = Arc::new(OneList::default());
        let first = list.begin().await;
        let (mut second, mut third) = (pin!(list.begin()), pin!(list.begin()));
        assert!(timeout(LONGEST / 2, &mut second).await.is_err());
        assert!(timeout(Duration::ZERO, &mut third).await.is_err());
        drop(first);
        let second = timeout(Duration::ZERO, second).await.unwrap();
        assert!(timeout(Duration::ZERO, &mut third).await.is_err());
        drop(second);
        timeout(Duration::ZERO, third).await.unwrap();
        timeout(Duration::ZERO, list.begin()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_list_holds_up_the_next_one_for_a_second() {
        let list = Arc::new(OneList::default());
        let begun = Instant::now();
        let first = list.begin().await;
        let second = list.begin().await;
        assert_eq!(begun.elapsed(), LONGEST);
        drop(first);
        let mut third = pin!(list.begin());
        assert!(timeout(LONGEST / 2, &mut third).await.is_err(), "the second one has not ended");
        drop(second);
        timeout(Duration::ZERO, third).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_waits_can_be_dropped() {
        let list = Arc::new(OneList::default());
        let first = list.begin().await;
        assert!(timeout(LONGEST / 2, list.begin()).await.is_err());
        drop(first);
        timeout(Duration::ZERO, list.begin()).await.unwrap();
    }
}
