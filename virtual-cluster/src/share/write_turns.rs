//! Spaces out the writes of a virtual cluster while other clusters are active.
//!
//! For each write, a host needs milliseconds of CPU time: kube-apiserver decodes, admits, validates and encodes the object,
//! etcd stores it, and all watches see it. A few hundred writes per second occupy a small host, and then they delay the
//! requests of all other clusters. Seats do not prevent this, because they do not limit CPU time.
//!
//! So the writes of a cluster are spaced out ([`Spacing`]). They get a third of the host's time, but at least 50 writes per
//! second. 50 is the QPS that kubectl permits itself (`cmd.go` in kubectl), and ten times that of a client-go client by default
//! (`DefaultQPS` in client-go's `rest/config.go`).
//!
//! The users of a cluster take turns. So a user who sends many writes does not hold up the leases of another user's controllers.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, OnceLock};

use host_client::QUEUE_WAIT;
use host_client::spacing::{Spacing, Turn};
use tokio::sync::{Mutex as QueueLock, Semaphore};
use tokio::time::timeout;

use super::activity::Others;

/// The number of queues for users. Users with the same queue do not take turns.
const QUEUES: usize = 64;

/// The number of writes in a queue. At 50 per second, the last one waits for five seconds. More would use up what the cluster may
/// have in flight, also for reads of its other users.
const PLACES: usize = 250;

/// The turns of one virtual cluster.
#[derive(Debug, Default)]
pub struct WriteTurns {
    /// A queue for each user, whose head waits in `spacing`. A cluster that has never had a turn has none.
    users: OnceLock<Box<[Queue]>>,
    /// Random, so that nobody can find two users with the same queue.
    digests: RandomState,
    /// The second queue: at most one write of each user, in the order of their arrival.
    spacing: Arc<Spacing>,
}

/// The writes of a user.
#[derive(Debug)]
struct Queue {
    turn: QueueLock<()>,
    places: Semaphore,
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
    pub async fn take(&self, user: &str, others: Others) -> Result<Option<Turn>, TooManyWrites> {
        if others == Others::Idle {
            return Ok(None);
        }
        let queue = self.queue_of(user);
        let _place = queue.places.try_acquire().map_err(|_| TooManyWrites)?;
        timeout(QUEUE_WAIT, self.begin(queue)).await.map(Some).map_err(|_| TooManyWrites)
    }

    async fn begin(&self, queue: &Queue) -> Turn {
        // The user's queue and the queue in `spacing` are fair. At most one write of each user is in the latter, so users take turns.
        let _of_user = queue.turn.lock().await;
        self.spacing.begin().await
    }

    fn queue_of(&self, user: &str) -> &Queue {
        let queue = |_| Queue { turn: QueueLock::default(), places: Semaphore::new(PLACES) };
        let queues = self.users.get_or_init(|| (0..QUEUES).map(queue).collect());
        let digest = self.digests.hash_one(user) % QUEUES as u64;
        &queues[usize::try_from(digest).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use host_client::spacing::MAX_SPACING;
    use tokio::task::JoinSet;
    use tokio::time::{Instant, sleep};

    use super::*;

    async fn take(turns: &WriteTurns, user: &str) -> Turn {
        turns.take(user, Others::Active).await.unwrap().unwrap()
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
        take(&turns, other.unwrap()).await.end();
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
                turn.map(|turn| turn.map(Turn::end))
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
                turn.map(|turn| turn.map(Turn::end))
            });
        }
        let begun = Instant::now();
        let taken = flood.join_all().await.iter().filter(|taken| taken.is_ok()).count();
        assert!((700..800).contains(&taken), "{taken}");
        assert!(begun.elapsed() <= QUEUE_WAIT + MAX_SPACING);
    }
}
