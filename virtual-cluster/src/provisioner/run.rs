//! The control loop: events of the host fill a work queue, and a few entries are processed at once.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::sync::Arc;

use rewrite::{ClusterName, HostNamespace};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::binding::{Binding, CLUSTER_ADMIN, Repair};
use super::catalog::Event;
use super::found::Found;
use super::mirrors::Progress;
use super::queue::Queue;
use super::{MIRROR_LABEL, ProvisionState, Provisioner, ReconcileError, paths};
use crate::namespaces::{NamespaceEvent, Phase};
use host_client::api::Change;
use host_client::api::{Following, HostApi};

/// The maximum number of entries that are processed at once.
const AT_ONCE: usize = 8;
/// The same for one virtual cluster. It is small, so that the requests of clients are not delayed while a thousand
/// namespaces get a mirror.
const OF_ONE: usize = 2;
/// The maximum number of changed bindings in memory, before the watches wait. It is small, because clients can write
/// large bindings.
const INBOX: usize = 8;

/// An entry of the queue: what to reconcile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Work {
    Provision(ClusterName),
    Mirrors(HostNamespace),
    Leave(ClusterName),
}

/// The queue, in which virtual clusters take turns. A namespace that no longer exists has no cluster.
type Line = Queue<Work, Option<ClusterName>>;

/// The watches of mirrors, and of the bindings in each root namespace.
struct Followers<A> {
    api: A,
    events: mpsc::Sender<Seen>,
    tasks: JoinSet<()>,
    by_cluster: HashMap<ClusterName, AbortHandle>,
}

/// A cluster that has left, and the tasks that must end before its namespaces are released, because they may still
/// write.
struct Leaving {
    cluster: ClusterName,
    awaited: HashSet<Id>,
}

/// A change of a binding.
#[derive(Debug)]
enum Seen {
    /// Of a mirror, in any namespace.
    Mirror(Change<Found>),
    /// Of a binding in the root namespace of this cluster.
    Provisioner(ClusterName, Change<Found>),
}

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// Provisions the virtual clusters and reconciles them for ever. Dropping the future cancels the current work.
    pub async fn run(self) {
        let mut namespace_events = self.shared.namespaces.subscribe();
        self.shared.namespaces.synced().await;

        let (events, mut inbox) = mpsc::channel(INBOX);
        let mut followers = Followers::new(self.shared.api.clone(), events);
        let mut configured = self.shared.clusters.subscribe();
        followers.follow(&configured.borrow_and_update());

        let namespaces = Arc::clone(&self.shared.namespaces);
        let mut queue = Queue::new(OF_ONE, move |work: &Work| match work {
            Work::Provision(cluster) | Work::Leave(cluster) => Some(cluster.clone()),
            Work::Mirrors(host) => namespaces.member(host).map(|member| member.cluster),
        });
        let mut running = HashMap::<Id, Work>::new();
        let mut working = JoinSet::new();
        let mut leaving = Vec::<Leaving>::new();
        self.everything(&mut queue);
        loop {
            for left in leaving.extract_if(.., |leaving| leaving.awaited.is_empty()) {
                queue.add(Work::Leave(left.cluster));
            }
            while working.len() < AT_ONCE
                && let Some(work) = queue.start(Instant::now())
            {
                let provisioner = self.clone();
                let task = working.spawn({
                    let work = work.clone();
                    async move { provisioner.work(work).await }
                });
                running.insert(task.id(), work);
            }
            let due = queue.due().filter(|_| working.len() < AT_ONCE);
            tokio::select! {
                Some(seen) = inbox.recv() => self.see(seen, &mut queue),
                Some(event) = namespace_events.next() => match event {
                    NamespaceEvent::Changed(host) => self.look_at(host, &mut queue),
                    NamespaceEvent::Everything => self.everything(&mut queue),
                },
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
                        match outcome {
                            Some(Ok(Progress::Done)) => queue.done(work),
                            Some(Ok(Progress::More)) => {
                                queue.done(work.clone());
                                queue.add(work);
                            }
                            Some(Err(_)) | None => queue.failed(work, Instant::now()),
                        }
                    }
                }
                clusters = self.shared.dirty.next() => {
                    for cluster in &clusters {
                        self.all_mirrors(cluster, &mut queue);
                    }
                }
                Ok(()) = configured.changed() => {
                    let clusters = Arc::clone(&configured.borrow_and_update());
                    for cluster in followers.follow(&clusters) {
                        leaving.push(Leaving { cluster, awaited: running.keys().copied().collect() });
                    }
                    self.everything(&mut queue);
                }
                () = wait(due) => {}
            }
        }
    }

    async fn work(&self, work: Work) -> Result<Progress, ReconcileError> {
        match &work {
            Work::Provision(cluster) if !self.serves(cluster) => Ok(Progress::Done),
            Work::Provision(cluster) => {
                let provisioned = self.provision(cluster).await;
                self.set_provision_state(cluster, provisioned.as_ref().err());
                provisioned.map(|()| Progress::Done)
            }
            Work::Mirrors(host) => {
                if let Err(failure) = self.secure(host).await {
                    let error: &dyn std::error::Error = &failure;
                    warn!(error, namespace = %host, "cannot set the Pod Security labels of a namespace yet");
                    return Err(failure);
                }
                let mirrored = self.mirror(host).await;
                if let Err(error) = &mirrored {
                    let error: &dyn std::error::Error = error;
                    warn!(error, namespace = %host, "cannot reconcile the bindings of a namespace yet");
                }
                mirrored
            }
            Work::Leave(cluster) => {
                let left = self.leave(cluster).await;
                if let Err(error) = &left {
                    let error: &dyn std::error::Error = error;
                    warn!(error, %cluster, "a virtual cluster has left, but its finalizers cannot be removed yet");
                }
                left.map(|()| Progress::Done)
            }
        }
    }

    fn set_provision_state(&self, cluster: &ClusterName, error: Option<&ReconcileError>) {
        let now = match error {
            None => ProvisionState::Provisioned,
            Some(error) => ProvisionState::Failed(chain(error).into()),
        };
        self.shared.provision_states.send_if_modified(|states| {
            let Some(before) = states.get_mut(cluster).filter(|before| **before != now) else { return false };
            match &now {
                ProvisionState::Failed(reason) => {
                    warn!(%cluster, %reason, "the virtual cluster is not provisioned yet");
                }
                ProvisionState::Provisioned | ProvisionState::Pending => {
                    info!(%cluster, "the virtual cluster is provisioned");
                }
            }
            *before = now;
            true
        });
    }

    fn everything(&self, queue: &mut Line) {
        for cluster in self.clusters().iter() {
            queue.add(Work::Provision(cluster.clone()));
            self.all_mirrors(cluster, queue);
        }
    }

    fn all_mirrors(&self, cluster: &ClusterName, queue: &mut Line) {
        for member in self.shared.namespaces.members(cluster) {
            queue.add(Work::Mirrors(member.host));
        }
    }

    /// Handles the creation, change or deletion of a namespace.
    fn look_at(&self, host: HostNamespace, queue: &mut Line) {
        for cluster in self.clusters().iter() {
            if host == HostNamespace::root(cluster) || is_initial(&host, cluster) {
                // One that is being deleted is created again after its deletion, which is an event, too.
                let is_there = self.shared.namespaces.member(&host).is_some_and(|member| member.phase == Phase::Active);
                if !is_there {
                    queue.hurry(Work::Provision(cluster.clone()));
                }
            }
        }
        queue.hurry(Work::Mirrors(host));
    }

    /// Handles the creation, change or deletion of a binding.
    fn see(&self, seen: Seen, queue: &mut Line) {
        match seen {
            Seen::Mirror(Change::Synced) => {}
            Seen::Mirror(Change::Applied(binding)) if self.is_right(&binding) => {}
            Seen::Mirror(Change::Applied(binding) | Change::Deleted(binding)) => {
                if let Some(host) = namespace_of(&binding) {
                    queue.add(Work::Mirrors(host));
                }
            }
            Seen::Provisioner(cluster, change) => {
                if self.root_changed(&cluster, &change, queue) {
                    // A right may have been revoked.
                    for member in self.shared.namespaces.members(&cluster) {
                        queue.hurry(Work::Mirrors(member.host));
                    }
                }
            }
        }
    }

    /// Updates the catalog. Returns whether mirrors must change.
    fn root_changed(&self, cluster: &ClusterName, change: &Change<Found>, queue: &mut Line) -> bool {
        let mut catalog = self.catalog();
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
                        queue.add(Work::Provision(cluster.clone()));
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
        let Some(member) = namespace_of(binding).and_then(|host| self.shared.namespaces.member(&host)) else {
            return false;
        };
        let mirrors = self.catalog().mirrors(&member.cluster);
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

// === impl Followers ===

impl<A: HostApi> Followers<A> {
    /// Watches mirrors, but no root namespaces yet.
    fn new(api: A, events: mpsc::Sender<Seen>) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(forward(api.follow(paths::ALL_BINDINGS, MIRROR_LABEL), events.clone(), Seen::Mirror));
        Self { api, events, tasks, by_cluster: HashMap::new() }
    }

    /// From now on, watches the root namespaces of exactly these clusters. Returns those that it no longer watches.
    fn follow(&mut self, clusters: &[ClusterName]) -> Vec<ClusterName> {
        for cluster in clusters {
            if !self.by_cluster.contains_key(cluster) {
                let bindings = self.api.follow(&paths::bindings(&HostNamespace::root(cluster)), "");
                let seen = {
                    let cluster = cluster.clone();
                    move |change| Seen::Provisioner(cluster.clone(), change)
                };
                let follower = self.tasks.spawn(forward(bindings, self.events.clone(), seen));
                self.by_cluster.insert(cluster.clone(), follower);
            }
        }
        let gone: Vec<_> = self.by_cluster.keys().filter(|cluster| !clusters.contains(cluster)).cloned().collect();
        for cluster in &gone {
            if let Some(follower) = self.by_cluster.remove(cluster) {
                follower.abort();
            }
        }
        gone
    }
}

async fn forward(
    mut following: impl Following<Found>,
    events: mpsc::Sender<Seen>,
    seen: impl Fn(Change<Found>) -> Seen,
) {
    loop {
        let change = following.next().await;
        if events.send(seen(change)).await.is_err() {
            return;
        }
    }
}

fn namespace_of(binding: &Found) -> Option<HostNamespace> {
    HostNamespace::new(&binding.metadata.namespace).ok()
}

fn is_initial(host: &HostNamespace, cluster: &ClusterName) -> bool {
    super::INITIAL_NAMESPACES.into_iter().any(|name| {
        let name = rewrite::VirtualNamespace::new(name).expect("a literal in the form of a label");
        HostNamespace::derive(&name, cluster) == *host
            || HostNamespace::derive_formerly(&name, cluster).as_ref() == Some(host)
    })
}

/// An error with all its sources, for users who cannot read the log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

async fn wait(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
