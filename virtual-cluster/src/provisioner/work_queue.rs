//! What to reconcile: events of the host become entries of a queue, in which virtual clusters take turns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use host_client::api::{Change, HostApi};
use rewrite::{ClusterName, HostNamespace};
use tokio::time::Instant;

use super::administrators::AdministratorMirrors;
use super::binding::{Binding, Repair};
use super::catalog::{Event, SharedCatalog};
use super::first_lists::FirstLists;
use super::followers::Seen;
use super::found::Found;
use super::names::{CLUSTER_ADMIN, INITIAL_NAMESPACES, MIRROR_PREFIX};
use super::namespace_annotations::NamespaceAnnotations;
use super::pod_security::PodSecurity;
use super::queue::Queue;
use super::served::ServedClusters;
use crate::namespaces::{Member, NamespaceEvent, Namespaces, Phase};

/// The maximum number of entries of one virtual cluster that are processed at once. It is small, so that the requests
/// of clients are not delayed while a thousand namespaces get a mirror.
const OF_ONE: usize = 2;

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Work {
    /// Ensures that everything exists that the cluster needs before its first client.
    Provision(ClusterName),
    /// Creates the FlowSchema of a cluster.
    Flow(ClusterName),
    /// Lists the bindings of the root namespace of a cluster.
    Root(ClusterName),
    /// Reconciles one namespace.
    Namespace(HostNamespace),
    /// Releases the namespaces of a cluster that has left.
    Leave(ClusterName),
}

/// The pending work.
///
/// At the start, the root namespaces are listed first, and the mirrors afterwards. Each mirror is compared with the
/// bindings when it arrives, so that only the namespaces that are not as wanted become work.
pub(super) struct WorkQueue<A> {
    known: Known<A>,
    /// The clusters, by their root namespaces.
    by_root: HashMap<HostNamespace, ClusterName>,
    /// Whether the watch of root namespaces has delivered its first list.
    has_roots: bool,
    /// Clusters whose root namespace has not been listed yet since then.
    unlisted: HashSet<ClusterName>,
    /// Whether the watch of mirrors has delivered its first list.
    has_mirrors: bool,
    /// The mirrors of the first list that are as wanted.
    right: HashMap<HostNamespace, HashSet<String>>,
    /// A namespace that no longer exists has no cluster.
    queue: Queue<Work, Option<ClusterName>>,
}

/// What the queue reads and records.
pub(super) struct Known<A> {
    pub(super) served: Arc<ServedClusters>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) catalog: SharedCatalog,
    pub(super) annotations: Arc<NamespaceAnnotations<A>>,
    pub(super) pod_security: Arc<PodSecurity<A>>,
    pub(super) first_lists: Arc<FirstLists>,
    pub(super) administrator_mirrors: Arc<AdministratorMirrors>,
}

// === impl WorkQueue ===

impl<A: HostApi> WorkQueue<A> {
    pub(super) fn new(known: Known<A>) -> Self {
        let owner = {
            let namespaces = Arc::clone(&known.namespaces);
            move |work: &Work| match work {
                Work::Provision(cluster) | Work::Flow(cluster) | Work::Root(cluster) | Work::Leave(cluster) => {
                    Some(cluster.clone())
                }
                Work::Namespace(host) => namespaces.member(host).map(|member| member.cluster),
            }
        };
        Self {
            known,
            by_root: HashMap::new(),
            has_roots: false,
            unlisted: HashSet::new(),
            has_mirrors: false,
            right: HashMap::new(),
            queue: Queue::new(OF_ONE, owner),
        }
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

    /// The work makes no sense before it is due.
    pub(super) fn later(&mut self, work: Work, due: Instant) {
        self.queue.later(work, due);
    }

    /// The work was done or has failed.
    pub(super) fn tried(&mut self, work: &Work) {
        if let Work::Root(cluster) = work {
            self.unlisted.remove(cluster);
        }
    }

    /// Whether each root namespace was listed, or could not be listed at the first attempt.
    pub(super) fn has_listed_roots(&self) -> bool {
        self.has_roots && self.unlisted.is_empty()
    }

    /// A cluster has left the configuration, and nothing works for it any more.
    pub(super) fn left(&mut self, cluster: ClusterName) {
        self.queue.add(Work::Leave(cluster));
    }

    /// Any object may have changed.
    pub(super) fn everything(&mut self) {
        let clusters = self.known.served.all();
        self.by_root = clusters.iter().map(|cluster| (HostNamespace::root(cluster), cluster.clone())).collect();
        self.unlisted.retain(|cluster| clusters.contains(cluster));
        for cluster in clusters.iter() {
            self.root_of(cluster);
            if self.has_mirrors {
                self.cluster(cluster);
                self.namespaces_of(cluster);
            }
        }
    }

    /// All mirrors of the first list have arrived.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_mirrors, true) {
            return;
        }
        let right = std::mem::take(&mut self.right);
        for cluster in self.known.served.all().iter() {
            self.cluster(cluster);
            let wanted = self.wanted(cluster);
            for member in self.known.namespaces.members(cluster) {
                let is_mirrored = wanted.is_some() && right.get(&member.host).map(HashSet::len) == wanted;
                if !is_mirrored || !self.known.is_as_configured(&member) {
                    self.queue.add(Work::Namespace(member.host));
                }
            }
        }
    }

    /// The number of mirrors that each namespace of a cluster must have. `None` if it is not known yet.
    fn wanted(&self, cluster: &ClusterName) -> Option<usize> {
        let catalog = self.known.catalog.lock();
        catalog.is_complete(cluster).then(|| catalog.mirrors(cluster).len())
    }

    fn cluster(&mut self, cluster: &ClusterName) {
        self.queue.add(Work::Provision(cluster.clone()));
        self.queue.add(Work::Flow(cluster.clone()));
    }

    /// Bindings of a root namespace may have no label. Without the first list of the watch, nothing would show that a
    /// binding that is listed is deleted later.
    pub(super) fn root_of(&mut self, cluster: &ClusterName) {
        if self.has_roots {
            self.queue.add(Work::Root(cluster.clone()));
        }
    }

    /// All mirrors of a cluster may have to change.
    pub(super) fn namespaces_of(&mut self, cluster: &ClusterName) {
        // Before that, the first list of mirrors shows which ones.
        if self.has_mirrors {
            for member in self.known.namespaces.members(cluster) {
                self.queue.add(Work::Namespace(member.host));
            }
        }
    }

    /// Handles the creation, change or deletion of a namespace.
    pub(super) fn see_namespace(&mut self, event: NamespaceEvent) {
        let host = match event {
            NamespaceEvent::Changed(host) => host,
            NamespaceEvent::Everything => return self.everything(),
        };
        if let Some(cluster) = self.by_root.get(&host).cloned() {
            if self.known.root_is_right(&cluster) {
                self.queue.add(Work::Flow(cluster));
            } else {
                self.queue.hurry(Work::Provision(cluster));
            }
        }
        // One that is being deleted is created again after its deletion, which is an event, too.
        let is_there = self.known.namespaces.member(&host).is_some_and(|member| member.phase == Phase::Active);
        if !is_there {
            for cluster in self.known.served.all().iter().filter(|cluster| is_initial(&host, cluster)) {
                self.queue.hurry(Work::Provision(cluster.clone()));
            }
        }
        self.queue.hurry(Work::Namespace(host));
    }

    /// Handles the creation, change or deletion of a binding.
    pub(super) fn see_binding(&mut self, seen: Seen) {
        match seen {
            Seen::Mirror(Change::Synced) => self.begin(),
            Seen::Mirror(Change::Applied(binding)) => {
                let is_right = self.is_right(&binding);
                self.see_mirror(&binding, is_right);
            }
            Seen::Mirror(Change::Deleted(binding)) => self.see_mirror(&binding, false),
            Seen::Root(Change::Synced) => {
                if !std::mem::replace(&mut self.has_roots, true) {
                    let clusters = self.known.served.all();
                    self.unlisted.extend(clusters.iter().cloned());
                    clusters.iter().for_each(|cluster| self.root_of(cluster));
                }
            }
            Seen::Root(Change::Applied(binding)) => self.root_changed(&binding, false),
            Seen::Root(Change::Deleted(binding)) => self.root_changed(&binding, true),
        }
    }

    fn see_mirror(&mut self, mirror: &Found, is_right: bool) {
        let Some(host) = namespace_of(mirror) else { return };
        let name = &mirror.metadata.name;
        if name.strip_prefix(MIRROR_PREFIX) == Some(CLUSTER_ADMIN) {
            self.known.administrator_mirrors.set(host.clone(), is_right);
        }
        if self.has_mirrors {
            // They are all compared.
        } else if is_right {
            self.right.entry(host.clone()).or_default().insert(name.clone());
        } else if let Some(right) = self.right.get_mut(&host) {
            right.remove(name);
        }
        if !is_right {
            self.queue.add(Work::Namespace(host));
        }
    }

    /// Handles a binding in a root namespace, or its deletion.
    fn root_changed(&mut self, binding: &Found, is_gone: bool) {
        let cluster = namespace_of(binding).and_then(|root| self.by_root.get(&root).cloned());
        let Some(cluster) = cluster else { return };
        let name = binding.metadata.name.as_str();
        if name == CLUSTER_ADMIN {
            let protected = Binding::cluster_admin(&cluster).protected(&cluster);
            if is_gone || protected.repair(binding) != Repair::Nothing {
                self.known.first_lists.forget(&cluster);
                self.queue.add(Work::Provision(cluster));
            }
            return;
        }
        let there = Binding::of(binding).filter(|_| !is_gone);
        let event = there.as_ref().map_or(Event::Gone { name, version: binding.version() }, Event::There);
        let is_news = {
            let mut catalog = self.known.catalog.lock();
            // Before the list is complete, every binding would cause work in every namespace.
            catalog.tell(&cluster, event) && catalog.is_complete(&cluster)
        };
        if is_gone {
            // It may only have lost its label.
            self.root_of(&cluster);
        }
        if is_news {
            // A right may have been revoked.
            for member in self.known.namespaces.members(&cluster) {
                self.queue.hurry(Work::Namespace(member.host));
            }
        }
    }

    /// Whether a mirror is as wanted, such as after our own write, so that the namespace needs no work.
    fn is_right(&self, binding: &Found) -> bool {
        let Some(member) = namespace_of(binding).and_then(|host| self.known.namespaces.member(&host)) else {
            return false;
        };
        let mirrors = self.known.catalog.lock().mirrors(&member.cluster);
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

// === impl Known ===

impl<A: HostApi> Known<A> {
    /// Whether a namespace has the annotations and the Pod Security labels of the configuration.
    fn is_as_configured(&self, member: &Member) -> bool {
        member.phase == Phase::Active && self.annotations.are_of(member) && self.pod_security.is_right(member)
    }

    fn root_is_right(&self, cluster: &ClusterName) -> bool {
        self.namespaces
            .root(cluster)
            .is_some_and(|root| root.phase == Phase::Active && self.annotations.are_right(cluster, &root.annotations))
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
