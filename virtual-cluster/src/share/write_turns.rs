//! Spaces out the writes of a virtual cluster while other clusters are active.
//!
//! For each write, a host needs milliseconds of CPU time: kube-apiserver decodes, admits, validates and encodes the object,
//! etcd stores it, and all watches see it. A few hundred writes per second occupy a small host, and then they delay the
//! requests of all other clusters. Seats do not prevent this, because they do not limit CPU time.
//!
//! So after a write of a cluster, the next one waits for twice as long as the host has worked on it, but no write delays the
//! next one for more than 20 ms: the host may be waiting for its disk or for a webhook. A cluster can therefore always send 50
//! writes per second, and more to a fast host. This is the QPS that kubectl permits itself (`cmd.go` in kubectl), and ten times
//! that of a client-go client by default (`DefaultQPS` in client-go's `rest/config.go`).
//!
//! The users of a cluster take turns. So a user who sends many writes does not hold up the leases of another user's controllers.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as QueueLock, Notify, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::activity::Others;
use host_client::QUEUE_WAIT;

/// The longest time between the begins of two writes, if another one waits.
const MAX_SPACING: Duration = Duration::from_millis(20);

/// Writes get one part in this many of the host's time, unless [`MAX_SPACING`] lets the next one begin earlier.
const PARTS: u32 = 3;

/// The number of queues for users. Users with the same queue do not take turns.
const QUEUES: usize = 64;

/// The number of writes in a queue. At 50 per second, the last one waits for five seconds. More would use up what the cluster may
/// have in flight, also for reads of its other users.
const PLACES: usize = 250;

/// The turns of one virtual cluster.
#[derive(Debug, Default)]
pub struct WriteTurns {
    /// A queue for each user, whose head waits in `first`. A cluster that has never had a turn has none.
    users: OnceLock<Box<[Queue]>>,
    /// Random, so that nobody can find two users with the same queue.
    digests: RandomState,
    /// One write of each queue, in the order of their arrival.
    first: QueueLock<()>,
    latest: Mutex<Latest>,
    ended: Notify,
}

/// The writes of a user.
#[derive(Debug)]
struct Queue {
    turn: QueueLock<()>,
    places: Semaphore,
}

/// The write that has begun last. It may have ended.
#[derive(Debug, Default)]
struct Latest {
    /// The number of writes that have begun.
    begun: u64,
    since: Option<Instant>,
    /// The time at which the next one may begin.
    next: Option<Instant>,
}

/// A write that has begun. Drop this when its response begins.
#[derive(Debug)]
pub struct WriteTurn {
    turns: Arc<WriteTurns>,
    number: u64,
}

/// A write would wait for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyWrites;

// === impl WriteTurns ===

impl WriteTurns {
    /// Waits until a write of this user may begin. If other clusters are idle, it begins at once, and needs no turn.
    ///
    /// # Errors
    ///
    /// The user has too many writes that wait, or this one has waited for as long as in the host's own queues ([`QUEUE_WAIT`]).
    pub async fn take(self: &Arc<Self>, user: &str, others: Others) -> Result<Option<WriteTurn>, TooManyWrites> {
        if others == Others::Idle {
            return Ok(None);
        }
        let queue = self.queue_of(user);
        let _place = queue.places.try_acquire().map_err(|_| TooManyWrites)?;
        timeout(QUEUE_WAIT, self.begin(queue)).await.map(Some).map_err(|_| TooManyWrites)
    }

    async fn begin(self: &Arc<Self>, queue: &Queue) -> WriteTurn {
        // Both queues are fair. At most one write of each user is in the second one, so the users take turns there.
        let _of_user = queue.turn.lock().await;
        let _first = self.first.lock().await;
        loop {
            let ended = self.ended.notified();
            let Some(next) = self.lock().next.filter(|next| *next > Instant::now()) else { break };
            // When the last write has ended, the next one may begin earlier.
            let _ = timeout_at(next, ended).await;
        }
        let now = Instant::now();
        let mut latest = self.lock();
        latest.begun += 1;
        (latest.since, latest.next) = (Some(now), Some(now + MAX_SPACING));
        WriteTurn { turns: Arc::clone(self), number: latest.begun }
    }

    fn queue_of(&self, user: &str) -> &Queue {
        let queue = |_| Queue { turn: QueueLock::default(), places: Semaphore::new(PLACES) };
        let queues = self.users.get_or_init(|| (0..QUEUES).map(queue).collect());
        let digest = self.digests.hash_one(user) % QUEUES as u64;
        &queues[usize::try_from(digest).unwrap_or_default()]
    }

    /// The write with this number has ended. If the next one has begun already, it no longer matters.
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
            assert!(measured + MAX_SPACING >= expected, "{milliseconds} ms: {measured:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_a_write_begins_at_once() {
        let turns = Arc::new(WriteTurns::default());
        for _ in 0..3 {
            let begun = Instant::now();
            drop(take(&turns, "a").await);
            assert_eq!(begun.elapsed(), Duration::ZERO);
            sleep(MAX_SPACING).await;
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
        assert!(begun.elapsed() <= 2 * MAX_SPACING, "{:?}", begun.elapsed());
        assert!(!flood.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn few_writes_of_a_user_wait() {
        let turns = Arc::new(WriteTurns::default());
        let mut flood = JoinSet::new();
        for _ in 0..2 * PLACES {
            let turns = Arc::clone(&turns);
            flood.spawn(async move {
                let turn = turns.take("many", Others::Active).await;
                sleep(MAX_SPACING).await;
                turn.map(drop)
            });
        }
        // The first one does not wait.
        let refused = flood.join_all().await.iter().filter(|taken| taken.is_err()).count();
        assert_eq!(refused, PLACES - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_write_waits_forever() {
        let turns = Arc::new(WriteTurns::default());
        let mut flood = JoinSet::new();
        for number in 0..5000 {
            let turns = Arc::clone(&turns);
            flood.spawn(async move {
                let turn = turns.take(&format!("user-{number}"), Others::Active).await;
                if turn.is_ok() {
                    sleep(MAX_SPACING).await;
                }
                turn.map(drop)
            });
        }
        let begun = Instant::now();
        let taken = flood.join_all().await.iter().filter(|taken| taken.is_ok()).count();
        assert!((700..800).contains(&taken), "{taken}");
        assert!(begun.elapsed() <= QUEUE_WAIT + MAX_SPACING);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waits_can_be_dropped() {
        let turns = Arc::new(WriteTurns::default());
        let first = take(&turns, "a").await;
        {
            let mut second = pin!(take(&turns, "a"));
            assert!(timeout(MAX_SPACING / 2, &mut second).await.is_err());
        }
        drop(first);
        timeout(MAX_SPACING, take(&turns, "a")).await.unwrap();
    }
}
