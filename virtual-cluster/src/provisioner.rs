//! Provisions virtual clusters on the host, and reconciles what they consist of: root namespaces, the four namespaces
//! that every cluster has, and the bindings that put cluster-wide rights into force in each namespace.
//!
//! RBAC on the host has no scope between one namespace and all namespaces. So a ClusterRoleBinding of a virtual cluster
//! is a RoleBinding in its root namespace, with a *mirror* in every namespace of the virtual cluster. Clients never see
//! mirrors. No binding is needed for `vc:<cluster>:system:authenticated`: the host adds `system:authenticated` to the
//! groups of every authenticated user, including impersonated ones (`WithImpersonation` in
//! apiserver/pkg/endpoints/filters), so discovery, version and self reviews work.
//!
//! Everything here is level-triggered: an event only triggers a comparison of the current state with the desired state.
//! Several agents may do the same work at once; the one that loses a race reads again. What is *not* here:
//! ClusterRoleBindings that clients write (they arrive as RoleBindings in the root namespace).
//!
//! Reading order: [`Provisioner`], `run` (the loop), `queue` (the pending work), `provision` and `mirrors` (the work),
//! `attempts` (objects for dry runs of grants), `in_force` (bindings that clients have just written), `dirty`
//! (interrupted writes of clients), `ending` (namespaces that are being deleted), `post_create` (namespaces that were
//! just created), `secure` (levels of Pod Security), `annotate` (annotations for admission policies), `search`
//! (namespaces that others have just created), `leave` (clusters that left the configuration), `former` (names of
//! earlier versions), `binding` and `catalog` (the desired state), `found` (what is there), `paths`, `error`.

mod annotate;
mod attempts;
mod binding;
mod catalog;
mod dirty;
mod ending;
mod former;
mod found;
mod in_force;
mod leave;
mod mirrors;
mod paths;
mod post_create;
mod provision;
mod queue;
mod reconcile_error;
mod room;
mod run;
mod search;
mod secure;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use rewrite::pod_security::Level;
use rewrite::{ClusterName, HostNamespace};
use tokio::sync::watch;

use crate::clusters::VirtualClusters;
use crate::namespaces::{Annotations, Namespaces, Phase};
use crate::roles::Roles;
pub use binding::CLUSTER_ADMIN;
use catalog::Catalog;
use dirty::DirtyClusters;
use host_client::api::HostApi;
pub use post_create::NamespaceReadiness;
pub use reconcile_error::ReconcileError;
pub use room::{Growth, NoRoom};

/// The label of a root namespace; its value is the virtual cluster.
pub const ROOT_LABEL: &str = "atoll.dev/root";
/// The label of mirrors. The agent excludes it from lists and deletions by clients.
pub const MIRROR_LABEL: &str = "atoll.dev/mirror";
/// The finalizer of mirrors. With it, they outlive everything else in a namespace that is being deleted.
pub const MIRROR_FINALIZER: &str = "atoll.dev/mirror";
/// The label of objects that clients see but cannot change.
pub const PROTECTED_LABEL: &str = "atoll.dev/protected";
/// The label of objects in a root namespace that clients do not see.
pub const INTERNAL_LABEL: &str = "atoll.dev/internal";
/// The prefix of a mirror's name, before the name of the binding.
pub const MIRROR_PREFIX: &str = "atoll:crb:";
/// The namespaces that every cluster has: three of the API server's own (`systemnamespaces` in
/// pkg/controlplane/controller) and `default`.
pub const INITIAL_NAMESPACES: [&str; 4] = ["kube-system", "default", "kube-public", "kube-node-lease"];

/// Provisions and reconciles the virtual clusters of one agent. Clones share their state.
pub struct Provisioner<A> {
    shared: Arc<Shared<A>>,
}

struct Shared<A> {
    api: A,
    namespaces: Arc<Namespaces>,
    roles: Arc<Roles>,
    clusters: watch::Sender<Arc<[ClusterName]>>,
    /// The annotations of each cluster's namespaces for the admission policies.
    annotations: ArcSwap<HashMap<ClusterName, Annotations>>,
    catalog: Mutex<Catalog>,
    provision_states: watch::Sender<BTreeMap<ClusterName, ProvisionState>>,
    dirty: DirtyClusters,
    /// The levels of Pod Security that are enforced.
    levels: ArcSwap<Levels>,
}

/// The level of Pod Security that is enforced in each virtual cluster, if any.
pub type Levels = HashMap<ClusterName, Level>;

/// How far a virtual cluster is provisioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionState {
    /// It has not been checked yet.
    Pending,
    /// Its namespaces and its administrators' binding exist.
    Provisioned,
    /// Provisioning failed, for this reason. The agent tries again.
    Failed(Arc<str>),
}

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// A `Provisioner` for these virtual clusters. It does nothing until [`run`](Self::run).
    pub fn new(api: A, namespaces: Arc<Namespaces>, clusters: &VirtualClusters) -> Self {
        let provisioner = Self::of(api, namespaces, clusters.roles(), clusters.annotations());
        provisioner.enforce(clusters.levels());
        provisioner
    }

    /// Enforces these levels of Pod Security from the next [`serve`](Self::serve) on.
    pub fn enforce(&self, levels: Levels) {
        self.shared.levels.store(Arc::new(levels));
    }

    fn of(api: A, namespaces: Arc<Namespaces>, roles: Arc<Roles>, clusters: HashMap<ClusterName, Annotations>) -> Self {
        let annotations = ArcSwap::from_pointee(clusters.clone());
        let clusters: Vec<_> = clusters.into_keys().collect();
        let states = clusters.iter().map(|cluster| (cluster.clone(), ProvisionState::Pending)).collect();
        let catalog = Mutex::new(Catalog::new(&clusters));
        let provision_states = watch::Sender::new(states);
        let clusters = watch::Sender::new(clusters.into());
        let dirty = DirtyClusters::default();
        let levels = ArcSwap::default();
        let shared = Shared { api, namespaces, roles, clusters, annotations, catalog, provision_states, dirty, levels };
        Self { shared: Arc::new(shared) }
    }

    /// From now on, reconciles exactly these clusters. The objects of others stay on the host, without our finalizers.
    pub fn serve(&self, clusters: HashMap<ClusterName, Annotations>) {
        self.shared.annotations.store(Arc::new(clusters.clone()));
        let clusters: Vec<_> = clusters.into_keys().collect();
        self.catalog().serve(&clusters);
        self.shared.provision_states.send_modify(|states| {
            states.retain(|cluster, _| clusters.contains(cluster));
            for cluster in &clusters {
                states.entry(cluster.clone()).or_insert(ProvisionState::Pending);
            }
        });
        self.shared.clusters.send_replace(clusters.into());
    }

    /// How far this virtual cluster is provisioned; `None` if this agent does not serve it.
    pub fn provision_state(&self, cluster: &ClusterName) -> Option<ProvisionState> {
        self.shared.provision_states.borrow().get(cluster).cloned()
    }

    /// Whether this namespace of a virtual cluster is being deleted.
    pub fn is_ending(&self, host: &HostNamespace) -> bool {
        self.shared.namespaces.member(host).is_some_and(|member| member.phase == Phase::Terminating)
    }

    /// Waits until every virtual cluster is provisioned, so that the agent can serve clients.
    pub async fn provisioned(&self) {
        let mut states = self.shared.provision_states.subscribe();
        let all = states.wait_for(|all| all.values().all(|one| *one == ProvisionState::Provisioned));
        all.await.expect("the sender is borrowed from self");
    }

    fn clusters(&self) -> Arc<[ClusterName]> {
        Arc::clone(&self.shared.clusters.borrow())
    }

    fn serves(&self, cluster: &ClusterName) -> bool {
        self.shared.clusters.borrow().contains(cluster)
    }

    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.shared.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> Clone for Provisioner<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<A> fmt::Debug for Provisioner<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provisioner")
            .field("provision_states", &*self.shared.provision_states.borrow())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
