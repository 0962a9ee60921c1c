//! What a virtual cluster needs before its first client: its root namespace, the administrators' binding and its mirrors,
//! the default roles, and the default namespaces.

use std::sync::Arc;
use std::time::Duration;

use host_client::api::HostApi;
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use rewrite::pod_security::Level;
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tracing::{info, warn};

use super::administrators::{AdministratorMirrors, in_force};
use super::attempts::ensure_attempts;
use super::binding::{Binding, is_deleted};
use super::bindings::Bindings;
use super::first_lists::FirstLists;
use super::former::move_in;
use super::names::{INITIAL_NAMESPACES, ROOT_LABEL};
use super::namespace_annotations::NamespaceAnnotations;
use super::paths;
use super::pod_security::PodSecurity;
use super::reconcile_error::{ReconcileError, is_already_there};
use crate::namespaces::{self, Annotations, Namespaces, Phase};
use crate::roles::Roles;

/// The time to wait until the rights of the administrators are in force.
const IN_FORCE_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates what is missing.
pub(super) struct Provision<A> {
    pub(super) bindings: Bindings<A>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) roles: Arc<Roles>,
    pub(super) annotations: Arc<NamespaceAnnotations<A>>,
    pub(super) pod_security: Arc<PodSecurity<A>>,
    pub(super) first_lists: Arc<FirstLists>,
    pub(super) administrator_mirrors: Arc<AdministratorMirrors>,
}

// === impl Provision ===

impl<A: HostApi> Provision<A> {
    /// Ensures that everything exists that the cluster needs before its first client, and that its administrators can act.
    /// The other mirrors follow, because each new namespace causes an event.
    pub(super) async fn reconcile(&self, cluster: &ClusterName) -> Result<(), ReconcileError> {
        if let Some(other) = self.namespaces.name_conflict(cluster) {
            return Err(ReconcileError::NameConflict { other });
        }
        let root = HostNamespace::root(cluster);
        let is_new = self.ensure_namespace(cluster, &root, &json!({ROOT_LABEL: cluster.as_str()}), None).await?;
        let (administrators, present) = (Binding::cluster_admin(cluster), self.first_lists.take(cluster));
        if !present.administrators {
            self.bindings.write(&root, &administrators.protected(cluster), is_new).await?;
        }
        ensure_attempts(&self.bindings, cluster, &root, is_new, present).await?;
        let index = self.namespaces.index();
        if HostNamespace::former_root(cluster).is_some_and(|former| index.owner(former.as_ref()).is_some()) {
            move_in(self.bindings.api(), cluster, &root).await?;
        }
        self.roles.copy(self.bindings.api(), cluster).await?;
        let mut last = None;
        for name in INITIAL_NAMESPACES {
            let name = VirtualNamespace::new(name).expect("a literal in the form of a label");
            // An earlier version may have created it under another name.
            let index = self.namespaces.index();
            let host = index.host(cluster, &name).cloned().unwrap_or_else(|| HostNamespace::derive(&name, cluster));
            let labels = json!({CLUSTER_LABEL: cluster.as_str(), NAMESPACE_LABEL: name.as_str()});
            let is_new = self.ensure_namespace(cluster, &host, &labels, self.pod_security.level(cluster)).await?;
            if is_new || !self.administrator_mirrors.contains(&host) {
                self.bindings.write(&host, &administrators.mirror(), is_new).await?;
                last = Some(host);
            }
        }
        // RBAC's caches receive changes in order, so all are in force when the last one is.
        if let Some(host) = last
            && timeout(IN_FORCE_TIMEOUT, in_force(self.bindings.api(), cluster, &host)).await.is_err()
        {
            warn!(%cluster, "the rights of the cluster's administrators did not take effect in time");
        }
        Ok(())
    }

    /// A namespace of the cluster as the index has it.
    fn indexed(&self, cluster: &ClusterName, host: &HostNamespace) -> Option<(Phase, Annotations)> {
        if *host == HostNamespace::root(cluster) {
            return self.namespaces.root(cluster).map(|root| (root.phase, root.annotations));
        }
        let member = self.namespaces.member(host).filter(|member| member.cluster == *cluster)?;
        Some((member.phase, member.annotations))
    }

    /// Reads a namespace from the host. `None` without a request if the index does not have it: it is probably missing, and
    /// its creation shows whether it is.
    async fn read(&self, cluster: &ClusterName, host: &HostNamespace) -> Result<Option<Value>, ReconcileError> {
        if self.indexed(cluster, host).is_none() {
            return Ok(None);
        }
        match self.bindings.api().get(&paths::namespace(host)).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a namespace, and returns whether it is new.
    async fn create(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        labels: &Value,
        level: Option<Level>,
    ) -> Result<(Value, bool), ReconcileError> {
        let annotations = self.annotations.of(cluster).unwrap_or_default();
        let annotations: Map<_, _> = annotations.entries().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let mut object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": host.as_str(), "labels": labels, "annotations": annotations},
        });
        for (key, value) in level.map(|level| level.labels(None)).into_iter().flatten() {
            object["metadata"]["labels"][key] = value.into();
        }
        let api = self.bindings.api();
        match api.create(namespaces::PATH, &object).await {
            Ok(created) => {
                info!(namespace = %host, "namespace created");
                Ok((created, true))
            }
            // Another agent created it first, or it is not ours: check its labels.
            Err(error) if is_already_there(&error) => Ok((api.get(&paths::namespace(host)).await?, false)),
            Err(error) => Err(error.into()),
        }
    }

    /// Ensures that a namespace of the cluster exists, and returns whether it was created. `level` is the level of Pod
    /// Security for a new one.
    async fn ensure_namespace(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        labels: &Value,
        level: Option<Level>,
    ) -> Result<bool, ReconcileError> {
        if let Some((Phase::Active, annotations)) = self.indexed(cluster, host)
            && self.annotations.are_right(cluster, &annotations)
        {
            return Ok(false);
        }
        let (found, is_new) = match self.read(cluster, host).await? {
            Some(found) => (found, false),
            None => self.create(cluster, host, labels, level).await?,
        };
        let mut wanted = labels.as_object().into_iter().flatten();
        if let Some((key, value)) = wanted.find(|(key, value)| found["metadata"]["labels"][key] != **value) {
            let label = format!("{key}={}", value.as_str().unwrap_or_default());
            return Err(ReconcileError::Taken { host: host.clone(), label });
        }
        if is_deleted(&found) {
            return Err(ReconcileError::Ending(host.clone()));
        }
        let found = self.annotations.write(cluster, found).await?;
        // The host accepted the name, so this succeeds. If it does not, the watch reports the error.
        let _ = self.namespaces.learn(&found);
        Ok(is_new)
    }
}
