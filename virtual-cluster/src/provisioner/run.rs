//! The control loop: events of the host fill a work queue, and a few entries are processed at once.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::sync::Arc;

use host_client::api::HostApi;
use rewrite::ClusterName;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::departures::Departures;
use super::dirty::DirtyClusters;
use super::followers::Followers;
use super::mirrors::Progress;
use super::served::ServedClusters;
use super::work::Reconciler;
use super::work_queue::{Work, WorkQueue};
use crate::namespaces::Namespaces;

/// The maximum number of entries that are processed at once.
const MAX_CONCURRENT: usize = 8;
/// The same until each root namespace has been listed. Until then, nearly all entries are such lists. A list costs the host little
/// CPU time, but can wait 0.1 s for the host's watch cache (KEP-2340). With 1,000 virtual clusters and 8 at once, that is 12 s.
const MAX_CONCURRENT_AT_START: usize = 32;
/// The maximum number of changed bindings in memory, before the watches wait. It is small, because clients can write
/// large bindings.
const INBOX: usize = 8;

/// What the loop reads.
pub(super) struct ControlLoop<A> {
    pub(super) api: A,
    pub(super) served: Arc<ServedClusters>,
    pub(super) departures: Arc<Departures>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) queue: WorkQueue<A>,
    pub(super) dirty: Arc<DirtyClusters>,
    pub(super) reconciler: Arc<Reconciler<A>>,
}

/// A cluster that has left, and the tasks that must end before its namespaces are released, because they may still
/// write.
struct Leaving {
    cluster: ClusterName,
    awaited: HashSet<Id>,
}

// === impl ControlLoop ===

impl<A: HostApi> ControlLoop<A> {
    /// Provisions the virtual clusters and reconciles them forever. Dropping the future cancels the current work.
    pub(super) async fn run(self) {
        self.namespaces.synced().await;
        // What has changed before is in the index, which is read below.
        let mut namespace_events = self.namespaces.subscribe();

        let (events, mut inbox) = mpsc::channel(INBOX);
        let mut followers = Followers::new(self.api, events);
        let mut configured = self.served.subscribe();
        configured.mark_unchanged();

        let mut queue = self.queue;
        self.reconciler.list().await;
        let mut running = HashMap::<Id, Work>::new();
        let mut working = JoinSet::new();
        // Clusters can have left before this loop has seen them.
        let mut leaving: Vec<_> = self.departures.all().into_iter().map(Leaving::idle).collect();
        queue.everything();
        loop {
            if queue.has_listed_roots() {
                followers.follow_mirrors();
            }
            for left in leaving.extract_if(.., |leaving| leaving.awaited.is_empty()) {
                queue.left(left.cluster);
            }
            let max_concurrent = if queue.has_listed_roots() { MAX_CONCURRENT } else { MAX_CONCURRENT_AT_START };
            while working.len() < max_concurrent
                && let Some(work) = queue.start(Instant::now())
            {
                let reconciler = Arc::clone(&self.reconciler);
                let task = working.spawn({
                    let work = work.clone();
                    async move { reconciler.work(work).await }
                });
                running.insert(task.id(), work);
            }
            let due = queue.due().filter(|_| working.len() < max_concurrent);
            tokio::select! {
                Some(seen) = inbox.recv() => queue.see_binding(seen),
                Some(event) = namespace_events.next() => queue.see_namespace(event),
                Some(ended) = working.join_next_with_id() => {
                    let (id, outcome) = match ended {
                        Ok((id, outcome)) => (id, Some(outcome)),
                        // The task panicked, which the runtime reports.
                        Err(error) => (error.id(), None),
                    };
                    for leaving in &mut leaving {
                        leaving.awaited.remove(&id);
                    }
                    if let Some(work) = running.remove(&id) {
                        queue.tried(&work);
                        match outcome {
                            Some(Ok(Progress::Done)) => queue.done(work),
                            Some(Ok(Progress::More)) => queue.unfinished(work),
                            Some(Ok(Progress::Later(pause))) => queue.later(work, Instant::now() + pause),
                            Some(Err(_)) | None => queue.failed(work, Instant::now()),
                        }
                    }
                }
                dirty = self.dirty.next() => {
                    dirty.roots.iter().for_each(|cluster| queue.root_of(cluster));
                    dirty.mirrors.iter().for_each(|cluster| queue.namespaces_of(cluster));
                }
                Ok(()) = configured.changed() => {
                    configured.mark_unchanged();
                    let mut left = self.departures.all();
                    leaving.retain(|leaving| left.remove(&leaving.cluster));
                    leaving.extend(left.into_iter().map(|cluster| {
                        let awaited = running.keys().copied().collect();
                        Leaving { cluster, awaited }
                    }));
                    queue.everything();
                }
                () = wait(due) => {}
            }
        }
    }
}

// === impl Leaving ===

impl Leaving {
    /// One for which no task runs.
    fn idle(cluster: ClusterName) -> Self {
        Self { cluster, awaited: HashSet::new() }
    }
}

async fn wait(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
