//! What to reconcile: events of the host become entries of a queue, in which virtual clusters take turns.

use std::sync::Arc;

use host_client::api::Change;
use rewrite::{ClusterName, HostNamespace};
use tokio::time::Instant;

use super::binding::{Binding, Repair};
use super::catalog::{Event, SharedCatalog};
use super::followers::Seen;
use super::found::Found;
use super::names::{CLUSTER_ADMIN, INITIAL_NAMESPACES};
use super::queue::Queue;
use super::served::ServedClusters;
use crate::namespaces::{NamespaceEvent, Namespaces, Phase};

/// The maximum number of entries of one virtual cluster that are processed at once. It is small, so that the requests
/// of clients are not delayed while a thousand namespaces get a mirror.
const OF_ONE: usize = 2;

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Work {
    /// Ensures that everything exists that the cluster needs before its first client.
    Provision(ClusterName),
    /// Reconciles one namespace.
    Namespace(HostNamespace),
    /// Releases the namespaces of a cluster that has left.
    Leave(ClusterName),
}

/// The pending work.
pub(super) struct WorkQueue {
    served: Arc<ServedClusters>,
    namespaces: Arc<Namespaces>,
    catalog: SharedCatalog,
    /// A namespace that no longer exists has no cluster.
    queue: Queue<Work, Option<ClusterName>>,
}

// === impl WorkQueue ===

impl WorkQueue {
    pub(super) fn new(served: Arc<ServedClusters>, namespaces: Arc<Namespaces>, catalog: SharedCatalog) -> Self {
        let owner = {
            let namespaces = Arc::clone(&namespaces);
            move |work: &Work| match work {
                Work::Provision(cluster) | Work::Leave(cluster) => Some(cluster.clone()),
                Work::Namespace(host) => namespaces.member(host).map(|member| member.cluster),
            }
        };
        Self { served, namespaces, catalog, queue: Queue::new(OF_ONE, owner) }
    }

    /// Takes the next entry.
    pub(super) fn start(&mut self, now: Instant) -> Option<Work> {
        self.queue.start(now)
    }

    /// When [`start`](Self::start) may return another entry.
    pub(super) fn due(&self) -> Option<Instant> {
        self.queue.due()
    }

    pub(super) fn done(&mut self, work: Work) {
        self.queue.done(work);
    }

    /// The work has taken its time, and continues when it has its turn again.
    pub(super) fn unfinished(&mut self, work: Work) {
        self.queue.done(work.clone());
        self.queue.add(work);
    }

    pub(super) fn failed(&mut self, work: Work, now: Instant) {
        self.queue.failed(work, now);
    }

    /// A cluster has left the configuration, and nothing works for it any more.
    pub(super) fn left(&mut self, cluster: ClusterName) {
        self.queue.add(Work::Leave(cluster));
    }

    /// Any object may have changed.
    pub(super) fn everything(&mut self) {
        for cluster in self.served.all().iter() {
            self.queue.add(Work::Provision(cluster.clone()));
            self.namespaces_of(cluster);
        }
    }

    /// All mirrors of a cluster may have to change.
    pub(super) fn namespaces_of(&mut self, cluster: &ClusterName) {
        for member in self.namespaces.members(cluster) {
            self.queue.add(Work::Namespace(member.host));
        }
    }

    /// Handles the creation, change or deletion of a namespace.
    pub(super) fn see_namespace(&mut self, event: NamespaceEvent) {
        let host = match event {
            NamespaceEvent::Changed(host) => host,
            NamespaceEvent::Everything => return self.everything(),
        };
        for cluster in self.served.all().iter() {
            if host == HostNamespace::root(cluster) || is_initial(&host, cluster) {
                // One that is being deleted is created again after its deletion, which is an event, too.
                let is_there = self.namespaces.member(&host).is_some_and(|member| member.phase == Phase::Active);
                if !is_there {
                    self.queue.hurry(Work::Provision(cluster.clone()));
                }
            }
        }
        self.queue.hurry(Work::Namespace(host));
    }

    /// Handles the creation, change or deletion of a binding.
    pub(super) fn see_binding(&mut self, seen: Seen) {
        match seen {
            Seen::Mirror(Change::Synced) => {}
            Seen::Mirror(Change::Applied(binding)) if self.is_right(&binding) => {}
            Seen::Mirror(Change::Applied(binding) | Change::Deleted(binding)) => {
                if let Some(host) = namespace_of(&binding) {
                    self.queue.add(Work::Namespace(host));
                }
            }
            Seen::Root(cluster, change) => {
                if self.root_changed(&cluster, &change) {
                    // A right may have been revoked.
                    for member in self.namespaces.members(&cluster) {
                        self.queue.hurry(Work::Namespace(member.host));
                    }
                }
            }
        }
    }

    /// Updates the catalog. Returns whether mirrors must change.
    fn root_changed(&mut self, cluster: &ClusterName, change: &Change<Found>) -> bool {
        let mut catalog = self.catalog.lock();
        match change {
            Change::Synced => {
                let is_news = !catalog.is_complete(cluster);
                catalog.complete(cluster);
                is_news
            }
            Change::Applied(binding) | Change::Deleted(binding) => {
                let name = binding.metadata.name.as_str();
                let is_gone = matches!(change, Change::Deleted(_));
                if name == CLUSTER_ADMIN {
                    let protected = Binding::cluster_admin(cluster).protected();
                    if is_gone || protected.repair(binding) != Repair::Nothing {
                        self.queue.add(Work::Provision(cluster.clone()));
                    }
                    return false;
                }
                let there = Binding::of(binding).filter(|_| !is_gone);
                let event = there.as_ref().map_or(Event::Gone { name, version: binding.version() }, Event::There);
                let is_news = catalog.tell(cluster, event);
                // Before the list is complete, every binding would cause work in every namespace.
                is_news && catalog.is_complete(cluster)
            }
        }
    }

    /// Whether a mirror is as wanted, such as after our own write, so that the namespace needs no work.
    fn is_right(&self, binding: &Found) -> bool {
        let Some(member) = namespace_of(binding).and_then(|host| self.namespaces.member(&host)) else {
            return false;
        };
        let mirrors = self.catalog.lock().mirrors(&member.cluster);
        let mut mirrors = mirrors.iter().map(Arc::as_ref);
        mirrors.find(|wanted| binding.metadata.name == wanted.name).is_some_and(|wanted| {
            if binding.is_deleted() && member.phase == Phase::Terminating {
                // Its finalizer keeps it, until an event of the namespace leads to its release.
                return wanted.patch(binding).is_none();
            }
            wanted.repair(binding) == Repair::Nothing
        })
    }
}

fn namespace_of(binding: &Found) -> Option<HostNamespace> {
    HostNamespace::new(&binding.metadata.namespace).ok()
}

fn is_initial(host: &HostNamespace, cluster: &ClusterName) -> bool {
    INITIAL_NAMESPACES.into_iter().any(|name| {
        let name = rewrite::VirtualNamespace::new(name).expect("a literal in the form of a label");
        HostNamespace::derive(&name, cluster) == *host
            || HostNamespace::derive_formerly(&name, cluster).as_ref() == Some(host)
    })
}
