//! Limits the writes of a virtual cluster while other clusters are active: one at a time, and for a third of the time.
//!
//! For each write, a host needs milliseconds of CPU time: kube-apiserver decodes, admits, validates and encodes the object,
//! etcd stores it, and all watches see it. A few hundred writes per second occupy a small host, and then they delay the
//! requests of all other clusters. Seats do not prevent this, because they do not limit CPU time.
//!
//! So after a write of a cluster, the next one waits for twice as long as the host has worked on it, but no write delays the
//! next one for more than 20 ms: the host may be waiting for its disk or for a webhook. A cluster can therefore always send 50
//! writes per second, and more to a fast host. kubectl sends at most that many, and most controllers fewer.
//!
//! The users of a cluster take turns. So a user who sends many writes does not hold up the leases of another user's controllers.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as QueueLock, Notify};
use tokio::time::{Instant, timeout, timeout_at};

use super::activity::Others;
use host_client::QUEUE_WAIT;

/// After this time, the next write begins in any case.
const LONGEST: Duration = Duration::from_millis(20);

/// The writes of a cluster take one of this many parts of the time, unless this takes longer than [`LONGEST`].
const PARTS: u32 = 3;

/// The number of queues for users. Users with the same queue do not take turns.
const QUEUES: usize = 64;

/// The turns of one virtual cluster.
#[derive(Debug, Default)]
pub struct WriteTurns {
    /// The other writes of the users whose first write waits in `first`. A cluster that has never waited has none.
    users: OnceLock<Box<[QueueLock<()>]>>,
    /// Random, so that nobody can find two users with the same queue.
    digests: RandomState,
    /// One write of each queue, in the order of their arrival.
    first: QueueLock<()>,
    current: Mutex<Current>,
    ended: Notify,
}

/// The last write that has begun.
#[derive(Debug, Default)]
struct Current {
    /// The number of writes that have begun.
    begun: u64,
    since: Option<Instant>,
    /// The time at which the next one may begin.
    next: Option<Instant>,
}

/// A write that has begun. Drop this when the host has responded.
#[derive(Debug)]
pub struct WriteTurn {
    turns: Arc<WriteTurns>,
    number: u64,
}

/// A write has waited for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyWrites;

// === impl WriteTurns ===

impl WriteTurns {
    /// Waits until a write of this user may begin. If other clusters are idle, it begins at once, and needs no turn.
    ///
    /// # Errors
    ///
    /// The write has waited for as long as in the host's own queues ([`QUEUE_WAIT`]).
    pub async fn take(self: &Arc<Self>, user: &str, others: Others) -> Result<Option<WriteTurn>, TooManyWrites> {
        if others == Others::Idle {
            return Ok(None);
        }
        timeout(QUEUE_WAIT, self.begin(user)).await.map(Some).map_err(|_| TooManyWrites)
    }

    async fn begin(self: &Arc<Self>, user: &str) -> WriteTurn {
        // Both queues are fair. At most one write of each user is in the second one, so the users take turns there.
        let _of_user = self.queue_of(user).lock().await;
        let _first = self.first.lock().await;
        loop {
            let ended = self.ended.notified();
            let Some(next) = self.lock().next.filter(|next| *next > Instant::now()) else { break };
            // When the last write has ended, the next one may begin earlier.
            let _ = timeout_at(next, ended).await;
        }
        let now = Instant::now();
        let mut current = self.lock();
        current.begun += 1;
        (current.since, current.next) = (Some(now), Some(now + LONGEST));
        WriteTurn { turns: Arc::clone(self), number: current.begun }
    }

    fn queue_of(&self, user: &str) -> &QueueLock<()> {
        let queues = self.users.get_or_init(|| (0..QUEUES).map(|_| QueueLock::default()).collect());
        let digest = self.digests.hash_one(user) % QUEUES as u64;
        &queues[usize::try_from(digest).unwrap_or_default()]
    }

    /// The write with this number has ended. If the next one has begun already, it no longer matters.
    fn end(&self, number: u64) {
        let mut current = self.lock();
        if current.begun != number {
            return;
        }
        if let Some(since) = current.since {
            current.next = Some(since + (PARTS * since.elapsed()).min(LONGEST));
        }
        self.ended.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl WriteTurn ===

impl Drop for WriteTurn {
    fn drop(&mut self) {
        self.turns.end(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;

    async fn take(turns: &Arc<WriteTurns>, user: &str) -> WriteTurn {
        turns.take(user, Others::Active).await.unwrap().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn writes_take_a_third_of_the_time() {
        for (milliseconds, expected) in [(1, 300), (5, 1500), (7, 2000), (15, 2000), (400, 2000)] {
            let (time, expected) = (Duration::from_millis(milliseconds), Duration::from_millis(expected));
            let (turns, begun) = (Arc::new(WriteTurns::default()), Instant::now());
            let mut writes = JoinSet::new();
            for number in 0..100 {
                let turns = Arc::clone(&turns);
                writes.spawn(async move {
                    let turn = take(&turns, &format!("user-{}", number % 7)).await;
                    sleep(time).await;
                    drop(turn);
                });
            }
            writes.join_all().await;
            let measured = begun.elapsed();
            assert!(measured <= expected + time, "{milliseconds} ms: {measured:?}");
            assert!(measured + LONGEST >= expected, "{milliseconds} ms: {measured:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_of_a_write_after_a_while_is_over() {
        let turns = Arc::new(WriteTurns::default());
        for _ in 0..3 {
            let begun = Instant::now();
            drop(take(&turns, "a").await);
            assert_eq!(begun.elapsed(), Duration::ZERO);
            sleep(LONGEST).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_other_clusters_nothing_waits() {
        let turns = Arc::new(WriteTurns::default());
        let _turn = take(&turns, "a").await;
        assert!(turns.take("a", Others::Idle).await.unwrap().is_none());
    }

    /// A user with many writes delays another one by one turn.
    #[tokio::test(start_paused = true)]
    async fn users_take_turns() {
        let turns = Arc::new(WriteTurns::default());
        let mut flood = JoinSet::new();
        for _ in 0..500 {
            let turns = Arc::clone(&turns);
            flood.spawn(async move { take(&turns, "many").await });
        }
        sleep(Duration::from_millis(1)).await;
        // One that has another queue.
        let other =
            ["a", "b", "c", "d"].into_iter().find(|user| !std::ptr::eq(turns.queue_of(user), turns.queue_of("many")));
        let begun = Instant::now();
        drop(take(&turns, other.unwrap()).await);
        assert!(begun.elapsed() <= 2 * LONGEST, "{:?}", begun.elapsed());
        assert!(!flood.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn no_write_waits_for_ever() {
        let turns = Arc::new(WriteTurns::default());
        let mut flood = JoinSet::new();
        for _ in 0..2000 {
            let turns = Arc::clone(&turns);
            flood.spawn(async move {
                let turn = turns.take("many", Others::Active).await;
                if turn.is_ok() {
                    sleep(LONGEST).await;
                }
                turn.map(drop)
            });
        }
        let begun = Instant::now();
        let refused = flood.join_all().await.iter().filter(|taken| taken.is_err()).count();
        assert!((1200..1300).contains(&refused), "{refused}");
        assert!(begun.elapsed() <= QUEUE_WAIT + LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waits_can_be_dropped() {
        let turns = Arc::new(WriteTurns::default());
        let first = take(&turns, "a").await;
        {
            let mut second = pin!(take(&turns, "a"));
            assert!(timeout(LONGEST / 2, &mut second).await.is_err());
        }
        drop(first);
        timeout(LONGEST, take(&turns, "a")).await.unwrap();
    }
}
