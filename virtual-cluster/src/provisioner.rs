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
//! Reading order: [`Provisioner`], `run` (the control loop), `work_queue` and `queue` (the pending work), `followers`
//! (what fills it), `work` (processes one entry), `first_lists` and `present` (what needs no work at the start). The
//! work: `provision` (a cluster, with `attempts`, `administrators` and `former`), `flow_schema`, `roots` (the bindings of
//! a root namespace), `mirrors` (the bindings of one namespace), `pod_security` and `namespace_annotations` (a namespace
//! itself), `leave` and `departures` (a cluster that left the configuration). For requests of clients: `post_create` (namespaces that
//! were just created), `written` and `canary` (bindings that clients have just written), `dirty` (if they were
//! interrupted), `search` (namespaces that others have just created), `quota`. Below all of them: `bindings` (writes
//! them), `catalog`, `binding` and `found` (the desired state, and what is there), `served`, `provision_state`, `names`,
//! `paths`, `reconcile_error`.

mod administrators;
mod attempts;
mod binding;
mod bindings;
mod canary;
mod catalog;
mod departures;
mod dirty;
mod first_lists;
mod flow_schema;
mod followers;
mod former;
mod found;
mod leave;
mod mirrors;
mod names;
mod namespace_annotations;
mod paths;
mod pod_security;
mod post_create;
mod present;
mod provision;
mod provision_state;
mod queue;
mod quota;
mod reconcile_error;
mod roots;
mod run;
mod search;
mod served;
mod work;
mod work_queue;
mod written;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use host_client::api::HostApi;
use rewrite::{ClusterName, HostNamespace};
use serde_json::Value;

use crate::clusters::VirtualClusters;
use crate::config::Shares;
use crate::namespaces::{Annotations, Namespaces};
use crate::roles::Roles;
use administrators::AdministratorMirrors;
use bindings::Bindings;
pub use canary::CANARY;
use canary::Canaries;
use catalog::SharedCatalog;
use departures::Departures;
use dirty::DirtyClusters;
use first_lists::FirstLists;
use flow_schema::FlowSchemas;
pub use flow_schema::PRIORITY_LEVEL;
pub(crate) use flow_schema::flow_schema_of;
pub(crate) use leave::release_mirrors;
use mirrors::Mirrors;
pub use names::{
    CLUSTER_ADMIN, INITIAL_NAMESPACES, INTERNAL_LABEL, MIRROR_FINALIZER, MIRROR_LABEL, MIRROR_PREFIX, PROTECTED_LABEL,
    ROOT_LABEL,
};
use namespace_annotations::NamespaceAnnotations;
pub use pod_security::Levels;
use pod_security::PodSecurity;
pub use post_create::NamespaceReadiness;
use post_create::NewNamespaces;
use provision::Provision;
pub use provision_state::ProvisionState;
use provision_state::ProvisionStates;
use quota::Quota;
pub use quota::{Growth, NoRoom};
pub use reconcile_error::ReconcileError;
use roots::Roots;
use run::ControlLoop;
use served::ServedClusters;
use work::Reconciler;
use work_queue::{Known, WorkQueue};
use written::WrittenBindings;

/// Provisions and reconciles the virtual clusters of one agent. Clones share their state.
pub struct Provisioner<A> {
    shared: Arc<Shared<A>>,
}

struct Shared<A> {
    api: A,
    namespaces: Arc<Namespaces>,
    served: Arc<ServedClusters>,
    departures: Arc<Departures>,
    states: Arc<ProvisionStates>,
    /// The annotations of each cluster's namespaces for the admission policies.
    annotations: Arc<NamespaceAnnotations<A>>,
    pod_security: Arc<PodSecurity<A>>,
    catalog: SharedCatalog,
    quota: Quota,
    new_namespaces: NewNamespaces<A>,
    written: WrittenBindings<A>,
    reconciler: Arc<Reconciler<A>>,
    first_lists: Arc<FirstLists>,
    administrator_mirrors: Arc<AdministratorMirrors>,
    canaries: Canaries,
}

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// A `Provisioner` for these virtual clusters. It does nothing until [`run`](Self::run).
    pub fn new(api: A, namespaces: Arc<Namespaces>, clusters: &VirtualClusters) -> Self {
        let provisioner = Self::of(api, namespaces, clusters.roles(), clusters.annotations());
        provisioner.enforce(clusters.levels());
        provisioner.limit(clusters.shares());
        provisioner
    }

    fn of(
        api: A,
        namespaces: Arc<Namespaces>,
        roles: Arc<Roles>,
        annotations: HashMap<ClusterName, Annotations>,
    ) -> Self {
        let clusters: Vec<_> = annotations.keys().cloned().collect();
        let states = Arc::new(ProvisionStates::new(&clusters));
        let catalog = SharedCatalog::new(&clusters);
        let served = Arc::new(ServedClusters::new(clusters));
        let departures = Arc::<Departures>::default();
        let annotations = Arc::new(NamespaceAnnotations::new(api.clone(), Arc::clone(&namespaces), annotations));
        let pod_security = Arc::new(PodSecurity::new(api.clone(), Arc::clone(&namespaces)));
        let bindings = Bindings::new(api.clone());
        let mirrors = Arc::new(Mirrors::new(
            Arc::clone(&namespaces),
            Arc::clone(&annotations),
            catalog.clone(),
            bindings.clone(),
        ));
        let (first_lists, administrator_mirrors) = (Arc::default(), Arc::default());
        let provision = Provision {
            bindings: bindings.clone(),
            namespaces: Arc::clone(&namespaces),
            roles,
            annotations: Arc::clone(&annotations),
            pod_security: Arc::clone(&pod_security),
            first_lists: Arc::clone(&first_lists),
            administrator_mirrors: Arc::clone(&administrator_mirrors),
        };
        let dirty = Arc::new(DirtyClusters::default());
        let written = WrittenBindings {
            api: api.clone(),
            namespaces: Arc::clone(&namespaces),
            catalog: catalog.clone(),
            dirty: Arc::clone(&dirty),
            mirrors: Arc::clone(&mirrors),
        };
        let reconciler = Reconciler {
            served: Arc::clone(&served),
            departures: Arc::clone(&departures),
            states: Arc::clone(&states),
            provision,
            pod_security: Arc::clone(&pod_security),
            namespaces: Arc::clone(&namespaces),
            flow_schemas: FlowSchemas::default(),
            first_lists: Arc::clone(&first_lists),
            roots: Roots { api: api.clone(), catalog: catalog.clone(), dirty, first_lists: Arc::clone(&first_lists) },
            mirrors,
            bindings: bindings.clone(),
        };
        let shared = Shared {
            quota: Quota::new(Arc::clone(&namespaces), catalog.clone()),
            new_namespaces: NewNamespaces::new(Arc::clone(&namespaces), catalog.clone(), bindings),
            reconciler: Arc::new(reconciler),
            api,
            namespaces,
            served,
            departures,
            states,
            annotations,
            pod_security,
            catalog,
            written,
            first_lists,
            administrator_mirrors,
            canaries: Canaries::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Enforces these levels of Pod Security from the next [`serve`](Self::serve) on.
    pub fn enforce(&self, levels: Levels) {
        self.shared.pod_security.enforce(levels);
    }

    /// From now on, virtual clusters may store this much on the host.
    pub fn limit(&self, shares: HashMap<ClusterName, Shares>) {
        self.shared.quota.limit(shares);
    }

    /// From now on, reconciles exactly these clusters. The objects of others stay on the host, without our finalizers.
    pub fn serve(&self, clusters: HashMap<ClusterName, Annotations>) {
        let names: Vec<_> = clusters.keys().cloned().collect();
        self.shared.annotations.replace(clusters);
        self.shared.catalog.lock().serve(&names);
        self.shared.states.serve(&names);
        self.shared.departures.replace(&self.shared.served.all(), &names);
        self.shared.served.replace(names);
    }

    /// Provisions the virtual clusters and reconciles them forever. Dropping the future cancels the current work.
    pub async fn run(self) {
        let shared = &self.shared;
        let known = Known {
            served: Arc::clone(&shared.served),
            namespaces: Arc::clone(&shared.namespaces),
            catalog: shared.catalog.clone(),
            annotations: Arc::clone(&shared.annotations),
            pod_security: Arc::clone(&shared.pod_security),
            first_lists: Arc::clone(&shared.first_lists),
            administrator_mirrors: Arc::clone(&shared.administrator_mirrors),
        };
        let control_loop = ControlLoop {
            api: shared.api.clone(),
            served: Arc::clone(&shared.served),
            departures: Arc::clone(&shared.departures),
            namespaces: Arc::clone(&shared.namespaces),
            queue: WorkQueue::new(known),
            dirty: Arc::clone(&shared.written.dirty),
            reconciler: Arc::clone(&shared.reconciler),
        };
        control_loop.run().await;
    }

    /// How far this virtual cluster is provisioned; `None` if this agent does not serve it.
    pub fn provision_state(&self, cluster: &ClusterName) -> Option<ProvisionState> {
        self.shared.states.get(cluster)
    }

    /// Whether this virtual cluster has left, and the agent may still write objects of it.
    pub fn is_leaving(&self, cluster: &ClusterName) -> bool {
        self.shared.departures.contains(cluster)
    }

    /// Waits until every virtual cluster is provisioned, so that the agent can serve clients.
    pub async fn provisioned(&self) {
        self.shared.states.wait_for(|all| all.values().all(|one| *one == ProvisionState::Provisioned)).await;
    }

    /// Waits until every namespace of the virtual clusters has the configured annotations. Before that, the admission
    /// policies refuse pods in namespaces without annotations.
    pub async fn annotated(&self) {
        self.shared.annotations.written().await;
    }

    /// Whether this namespace of a virtual cluster is being deleted.
    pub fn is_ending(&self, host: &HostNamespace) -> bool {
        self.shared.namespaces.is_ending(host)
    }

    /// Reads the namespace from the host, and adds it to the index if it belongs to one of our virtual clusters.
    /// Returns whether it does.
    pub async fn look_for(&self, host: &HostNamespace) -> bool {
        search::look_for(&self.shared.api, &self.shared.namespaces, host).await
    }

    /// Adds a new namespace to the index, writes its mirrors, and waits for at most five seconds until they are in force.
    /// Call it with the host's response to the creation, before the client gets the response. If this future is
    /// dropped, the reconciler finishes the namespace.
    pub async fn post_create(&self, created: &Value) -> NamespaceReadiness {
        self.shared.new_namespaces.complete(created).await
    }

    /// Whether the quota of this virtual cluster has room for the write. The known state may be slightly out of date.
    pub fn has_room(&self, cluster: &ClusterName, growth: Growth<'_>) -> Result<(), NoRoom> {
        self.shared.quota.has_room(cluster, growth)
    }

    /// Whether a ClusterRoleBinding, as the RoleBinding in the root namespace that would be stored, is new, or larger
    /// than the stored one. The known state may be slightly out of date.
    pub fn is_growth(&self, cluster: &ClusterName, binding: &Value) -> bool {
        self.shared.quota.is_growth(cluster, binding)
    }

    /// Reconciles the mirrors of a ClusterRoleBinding that a client has just written or deleted.
    pub async fn written(&self, cluster: &ClusterName, name: &str) {
        self.shared.written.one(cluster, name).await;
    }

    /// Lists ClusterRoleBindings and waits until they are mirrored. Call it after a request that wrote or deleted ones
    /// whose names only the host knows.
    pub async fn reread(&self, cluster: &ClusterName) {
        self.shared.written.all(cluster).await;
    }

    /// Waits for at most five seconds until all earlier writes to the host are in force.
    pub async fn in_force(&self, cluster: &ClusterName) {
        self.shared.canaries.in_force(&self.shared.api, cluster).await;
    }
}

impl<A> Clone for Provisioner<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<A> fmt::Debug for Provisioner<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provisioner").field("provision_states", &self.shared.states).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
