//! Lets TLS handshakes take turns, so that a flood of them does not stop a worker.
//!
//! A step of a handshake takes up to a millisecond, and a request takes a few hundredths of that. A worker runs its tasks in
//! the order in which they become ready. So a thousand clients that connect at the same time would delay each request by
//! a second, also those of other clusters. With turns, only one handshake at a time is ready in each round of a worker:
//!
//! - Each worker has one *turn*. A handshake takes it for one step. A task of its own gives it back when the worker has run
//!   the other tasks that are ready, and has looked for new input.
//! - The handshakes of one cluster are in one *lane*, and each lane waits for the turn with one handshake. So the clusters
//!   take the turn one after another. Kubernetes' API priority and fairness also has a limited number of queues, which are
//!   chosen by a hash. Two clusters share one with a probability of one in [`LANES`].
//!
//! A handshake that waits for its client holds neither, so a silent client stops nobody.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::task::ready;

use ops::drain::Tasks;
use ops::workers::PerWorker;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio_util::sync::PollSemaphore;

/// The number of lanes of a worker.
const LANES: usize = 64;

/// The turns of all workers.
#[derive(Debug)]
pub(super) struct Handshakes {
    hasher: RandomState,
    of_workers: PerWorker<OfWorker>,
}

#[derive(Debug)]
struct OfWorker {
    turn: Arc<Semaphore>,
    lanes: Box<[Arc<Semaphore>]>,
}

// === impl Handshakes ===

impl Handshakes {
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), of_workers: PerWorker::new(OfWorker::new) }
    }

    /// Completes a handshake with a cluster, or with none yet. Each step waits for its turn on this thread. The turns end in
    /// `tasks`.
    pub(super) async fn in_turn<F: Future>(&self, cluster: Option<&str>, handshake: F, tasks: &Tasks) -> F::Output {
        let of_worker = self.of_workers.here();
        let lane = usize::try_from(self.hasher.hash_one(cluster) % LANES as u64).expect("LANES is small");
        let mut lane = PollSemaphore::new(Arc::clone(&of_worker.lanes[lane]));
        let mut turn = PollSemaphore::new(Arc::clone(&of_worker.turn));
        let (mut handshake, mut in_lane) = (pin!(handshake), None);
        poll_fn(|cx| {
            if in_lane.is_none() {
                in_lane = ready!(lane.poll_acquire(cx));
            }
            let turn = (ready!(turn.poll_acquire(cx)), in_lane.take());
            let polled = handshake.as_mut().poll(cx);
            tasks.spawn("turn", async move {
                // Returns when the worker has run what is ready, and has looked for input of its connections.
                yield_now().await;
                drop(turn);
            });
            polled
        })
        .await
    }
}

// === impl OfWorker ===

impl OfWorker {
    fn new() -> Self {
        let semaphore = || Arc::new(Semaphore::new(1));
        Self { turn: semaphore(), lanes: (0..LANES).map(|_| semaphore()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;

    /// The order in which handshakes of several steps with these clusters, and then one other task, run on one thread.
    async fn run(handshakes: Handshakes, clusters: &[&str]) -> Vec<String> {
        let (handshakes, order, tasks) = (Arc::new(handshakes), Arc::new(Mutex::new(Vec::new())), Tasks::new());
        let steps = |name: &str| {
            let (order, name) = (Arc::clone(&order), name.to_owned());
            async move {
                for _ in 0..3 {
                    order.lock().unwrap().push(name.clone());
                    yield_now().await;
                }
            }
        };
        let mut running = Vec::new();
        for cluster in clusters {
            let (handshakes, tasks, steps) = (Arc::clone(&handshakes), tasks.clone(), steps(cluster));
            let cluster = (*cluster).to_owned();
            let handshake = async move { handshakes.in_turn(Some(&cluster), steps, &tasks.clone()).await };
            running.push(Tasks::new().spawn("handshake", handshake));
        }
        running.push(tasks.spawn("request", steps("request")));
        for task in running {
            task.await.unwrap();
        }
        let order = order.lock().unwrap();
        order.clone()
    }

    #[track_caller]
    fn ends_soon(order: &[String], name: &str) {
        let last = order.iter().rposition(|step| step == name).unwrap();
        assert!(last < 16, "{last} steps before the last one of {name}");
    }

    #[tokio::test]
    async fn a_flood_of_handshakes_leaves_room_for_others() {
        let handshakes = Handshakes::new();
        let lane = |name: &str| handshakes.hasher.hash_one(Some(name)) % LANES as u64;
        let other = (0..1000).map(|number| format!("b-{number}")).find(|name| lane(name) != lane("a")).unwrap();
        let mut clusters = vec!["a"; 1000];
        clusters.push(&other);
        let order = run(handshakes, &clusters).await;
        assert_eq!(order.len(), 3 * 1002);
        ends_soon(&order, "request");
        ends_soon(&order, &other);
    }

    #[tokio::test]
    async fn a_silent_client_and_one_that_has_left_keep_no_turn() {
        let (handshakes, tasks) = (Handshakes::new(), Tasks::new());
        let mut silent = Box::pin(handshakes.in_turn(Some("a"), pending::<()>(), &tasks));
        assert!(is_pending(silent.as_mut()).await);
        assert_eq!(handshakes.in_turn(Some("a"), async { 1 }, &tasks).await, 1);
        // Waits until the turns have been given back.
        assert_eq!(handshakes.in_turn(Some("a"), async { 2 }, &tasks).await, 2);
        tasks.drain(Duration::from_secs(60), pending::<()>()).await;
        let tasks = Tasks::new();
        // One that waits in its lane, and leaves.
        let turn = Arc::clone(&handshakes.of_workers.here().turn).try_acquire_owned().unwrap();
        let mut waiting = Box::pin(handshakes.in_turn(Some("a"), async { 2 }, &tasks));
        assert!(is_pending(waiting.as_mut()).await);
        drop((waiting, turn));
        assert_eq!(handshakes.in_turn(Some("a"), async { 3 }, &tasks).await, 3);
    }

    async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }
}
