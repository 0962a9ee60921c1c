//! Lets TLS handshakes take turns, so that a flood of them does not stop a worker.
//!
//! A step of a handshake takes up to a millisecond, and a request takes a few hundredths of that. A worker runs its tasks in
//! the order in which they become ready. So a thousand clients that connect at the same time would delay each request by
//! a second, including those to other clusters. So a worker runs one step of one handshake, then all other ready tasks,
//! and then the next step:
//!
//! - Each worker has one *turn*: a semaphore with one permit. A handshake takes the turn for one step. A separate task
//!   returns it after the worker has run the other ready tasks and has polled for I/O.
//! - Each worker has several *queues*. The handshakes of a cluster are in the queue that a hash chooses, as in Kubernetes'
//!   API priority and fairness. Only the first handshake of a queue waits for the turn, so the clusters take the turn one
//!   after another. Two clusters share a queue with a probability of one in [`QUEUES`].
//!
//! A handshake that waits for its client holds neither, so a silent client does not block others.

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

/// The number of queues of a worker.
const QUEUES: usize = 64;

/// The turns and queues of all workers.
#[derive(Debug)]
pub(super) struct Handshakes {
    hasher: RandomState,
    by_worker: PerWorker<WorkerQueues>,
}

#[derive(Debug)]
struct WorkerQueues {
    turn: Arc<Semaphore>,
    queues: Box<[Arc<Semaphore>]>,
}

// === impl Handshakes ===

impl Handshakes {
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), by_worker: PerWorker::new(WorkerQueues::new) }
    }

    /// Runs a handshake for a cluster, or for a connection whose cluster is not known yet. Each step waits for the turn of
    /// this worker. `tasks` return the turn.
    pub(super) async fn in_turn<F: Future>(&self, cluster: Option<&str>, handshake: F, tasks: &Tasks) -> F::Output {
        let worker = self.by_worker.here();
        let queue = usize::try_from(self.hasher.hash_one(cluster) % QUEUES as u64).expect("QUEUES is small");
        let mut queue = PollSemaphore::new(Arc::clone(&worker.queues[queue]));
        let mut turn = PollSemaphore::new(Arc::clone(&worker.turn));
        let (mut handshake, mut in_queue) = (pin!(handshake), None);
        poll_fn(|cx| {
            if in_queue.is_none() {
                in_queue = ready!(queue.poll_acquire(cx));
            }
            let turn = (ready!(turn.poll_acquire(cx)), in_queue.take());
            let polled = handshake.as_mut().poll(cx);
            tasks.spawn("turn", async move {
                // Resumes after the worker has run the ready tasks and has polled for I/O.
                yield_now().await;
                drop(turn);
            });
            polled
        })
        .await
    }
}

// === impl WorkerQueues ===

impl WorkerQueues {
    fn new() -> Self {
        let semaphore = || Arc::new(Semaphore::new(1));
        Self { turn: semaphore(), queues: (0..QUEUES).map(|_| semaphore()).collect() }
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
    async fn a_flood_of_handshakes_does_not_delay_other_tasks() {
        let handshakes = Handshakes::new();
        let queue = |name: &str| handshakes.hasher.hash_one(Some(name)) % QUEUES as u64;
        let other = (0..1000).map(|number| format!("b-{number}")).find(|name| queue(name) != queue("a")).unwrap();
        let mut clusters = vec!["a"; 1000];
        clusters.push(&other);
        let order = run(handshakes, &clusters).await;
        assert_eq!(order.len(), 3 * 1002);
        ends_soon(&order, "request");
        ends_soon(&order, &other);
    }

    #[tokio::test]
    async fn a_pending_or_dropped_handshake_does_not_hold_the_turn() {
        let (handshakes, tasks) = (Handshakes::new(), Tasks::new());
        let mut silent = Box::pin(handshakes.in_turn(Some("a"), pending::<()>(), &tasks));
        assert!(is_pending(silent.as_mut()).await);
        assert_eq!(handshakes.in_turn(Some("a"), async { 1 }, &tasks).await, 1);
        // Waits until the turns have been given back.
        assert_eq!(handshakes.in_turn(Some("a"), async { 2 }, &tasks).await, 2);
        tasks.drain(Duration::from_secs(60), pending::<()>()).await;
        let tasks = Tasks::new();
        // A handshake that is dropped while it waits in its queue.
        let turn = Arc::clone(&handshakes.by_worker.here().turn).try_acquire_owned().unwrap();
        let mut waiting = Box::pin(handshakes.in_turn(Some("a"), async { 2 }, &tasks));
        assert!(is_pending(waiting.as_mut()).await);
        drop((waiting, turn));
        assert_eq!(handshakes.in_turn(Some("a"), async { 3 }, &tasks).await, 3);
    }

    async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }
}
