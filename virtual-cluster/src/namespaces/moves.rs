//! Namespaces that get another owner while they exist, because the operator changes their labels.
//!
//! No event says that their objects appear in one virtual cluster or disappear from another. So clients of both must list
//! again. A namespace that is created or deleted is no move: the events of its objects say everything.

use std::collections::HashMap;
use std::time::Duration;

use rewrite::ClusterName;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// A list that was mapped before the move can be complete only after it, and a watch follows. So watches that begin within this
/// time after a move end, too.
const SETTLING: Duration = Duration::from_secs(5);

/// The moves of each virtual cluster.
#[derive(Debug, Default)]
pub(super) struct Moves(watch::Sender<HashMap<ClusterName, Moved>>);

/// The moves of one virtual cluster.
#[derive(Clone, Copy, Debug)]
struct Moved {
    count: u64,
    last: Instant,
}

// === impl Moves ===

impl Moves {
    /// A namespace has left or joined this virtual cluster.
    pub(super) fn note(&self, cluster: &ClusterName) {
        let last = Instant::now();
        self.0.send_modify(|moves| {
            let moved = moves.entry(cluster.clone()).or_insert(Moved { count: 0, last });
            *moved = Moved { count: moved.count + 1, last };
        });
    }

    /// Completes when a watch that begins now must end.
    pub(super) fn next(&self, cluster: &ClusterName) -> impl Future<Output = ()> + Send + 'static {
        let (mut moves, cluster) = (self.0.subscribe(), cluster.clone());
        let before = moves.borrow().get(&cluster).copied();
        async move {
            if let Some(Moved { last, .. }) = before.filter(|moved| moved.last.elapsed() < SETTLING) {
                return sleep_until(last + SETTLING).await;
            }
            let before = before.map(|moved| moved.count);
            let has_moved =
                |moves: &HashMap<ClusterName, Moved>| moves.get(&cluster).map(|moved| moved.count) != before;
            if moves.wait_for(has_moved).await.is_err() {
                // The index lives as long as the agent.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_move_ends_the_watches_of_its_cluster() {
        let (moves, begun) = (Moves::default(), Instant::now());
        let [ke, hz] = ["ke", "hz"].map(|name| ClusterName::new(name).unwrap());
        moves.note(&ke);
        tokio::time::advance(Duration::from_secs(10)).await;
        let (first, other) = (moves.next(&ke), moves.next(&hz));
        let idle = timeout(Duration::from_secs(60), moves.next(&ke)).await;
        assert!(idle.is_err(), "the last move was long before");
        moves.note(&ke);
        first.await;
        assert_eq!(begun.elapsed().as_secs(), 70, "at once");
        // A watch that begins now may continue a list from before.
        tokio::time::advance(Duration::from_secs(2)).await;
        moves.next(&ke).await;
        assert_eq!(begun.elapsed().as_secs(), 75);
        assert!(timeout(Duration::from_secs(60), moves.next(&ke)).await.is_err());
        assert!(timeout(Duration::from_secs(60), other).await.is_err());
    }
}
