//! All scopes with open watches or cached permissions, and their rounds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rewrite::{ClusterName, HostNamespace};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::concern::Concern;
use super::leases::Leases;
use super::recent::Recent;
use super::scope::{Scope, Turns};

/// The maximum number of reviews at a time for the watches of one virtual cluster, and of all of them.
pub(super) const CLUSTER_REVIEWS: usize = 4;
const REVIEWS: usize = 64;

/// The maximum time between two looks at the scopes.
pub(super) const LOOK: Duration = Duration::from_secs(30);

/// All scopes with open watches or cached permissions.
pub(super) struct Scopes {
    known: Mutex<Known>,
    leases: Arc<Leases>,
    /// The reviews of all virtual clusters.
    reviews: Arc<Semaphore>,
    changed: Notify,
}

#[derive(Default)]
struct Known {
    /// More than one for a moment, if a namespace has got another owner.
    by_namespace: HashMap<HostNamespace, Vec<Weak<Scope>>>,
    /// The reviews of each virtual cluster.
    reviews: HashMap<ClusterName, Arc<Semaphore>>,
    recent: Recent,
}

// === impl Scopes ===

impl Scopes {
    pub(super) fn new(leases: &Arc<Leases>) -> Self {
        let (leases, reviews) = (Arc::clone(leases), Arc::new(Semaphore::new(REVIEWS)));
        Self { known: Mutex::default(), leases, reviews, changed: Notify::new() }
    }

    /// The scope of the watches in a namespace. `forget` forgets the answers to reviews from before a recent change.
    pub(super) fn scope(
        &self,
        cluster: &ClusterName,
        namespace: &HostNamespace,
        forget: impl Fn(&ClusterName),
    ) -> Arc<Scope> {
        let now = Instant::now();
        let mut known = self.lock();
        let reviews = known.reviews.entry(cluster.clone()).or_insert_with(|| Arc::new(Semaphore::new(CLUSTER_REVIEWS)));
        let turns = Turns { cluster: Arc::clone(reviews), all: Arc::clone(&self.reviews) };
        let same = known.by_namespace.entry(namespace.clone()).or_default();
        same.retain(|scope| scope.strong_count() > 0);
        if let Some(scope) = same.iter().filter_map(Weak::upgrade).find(|scope| scope.cluster() == cluster) {
            return scope;
        }
        let scope = Arc::new(Scope::new(cluster.clone(), turns, Arc::clone(&self.leases), now));
        same.push(Arc::downgrade(&scope));
        // No scope had a round for this change.
        if known.recent.concerns(cluster, namespace, now) {
            forget(cluster);
            scope.changed(now);
            drop(known);
            self.changed.notify_one();
        }
        scope
    }

    /// An RBAC object has changed.
    pub(super) fn note(&self, concern: &Concern) {
        let now = Instant::now();
        let mut known = self.lock();
        match concern {
            Concern::Nobody => return,
            Concern::Namespace(namespace) => {
                let scopes = known.by_namespace.get(namespace.as_bytes()).into_iter().flatten();
                scopes.filter_map(Weak::upgrade).for_each(|scope| scope.changed(now));
            }
            Concern::Cluster(cluster) => {
                known.all().filter(|scope| scope.cluster() == cluster).for_each(|scope| scope.changed(now));
            }
            Concern::Everybody => known.all().for_each(|scope| scope.changed(now)),
        }
        known.recent.note(concern, now);
        drop(known);
        self.changed.notify_one();
    }

    /// Begins rounds when they are due, forever. `forget` forgets the answers to the reviews of earlier rounds.
    pub(super) async fn begin_rounds(&self, forget: impl Fn(&ClusterName)) {
        loop {
            let next = self.begin_due_rounds(Instant::now(), &forget);
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Begins the rounds that are due. Returns when to do it again.
    fn begin_due_rounds(&self, now: Instant, forget: impl Fn(&ClusterName)) -> Instant {
        let live: Vec<_> = {
            let mut known = self.lock();
            known.by_namespace.retain(|_, scopes| {
                scopes.retain(|scope| scope.strong_count() > 0);
                !scopes.is_empty()
            });
            known.all().collect()
        };
        let next = live.iter().map(|scope| scope.begin_due_round(now, &forget)).min();
        next.unwrap_or(now + LOOK).min(now + LOOK)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of namespaces with scopes, and of scopes.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let known = self.lock();
        (known.by_namespace.len(), known.all().count())
    }
}

// === impl Known ===

impl Known {
    fn all(&self) -> impl Iterator<Item = Arc<Scope>> {
        self.by_namespace.values().flatten().filter_map(Weak::upgrade)
    }
}
