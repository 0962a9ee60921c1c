//! What a virtual cluster needs before its first client: its root namespace, the administrators' binding, the default
//! roles and the default namespaces.

use std::sync::Arc;

use host_client::api::HostApi;
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use rewrite::pod_security::Level;
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::{Map, Value, json};
use tracing::info;

use super::attempts::ensure_attempts;
use super::binding::{Binding, is_deleted};
use super::bindings::Bindings;
use super::former::move_in;
use super::names::{INITIAL_NAMESPACES, ROOT_LABEL};
use super::namespace_annotations::NamespaceAnnotations;
use super::paths;
use super::pod_security::PodSecurity;
use super::reconcile_error::{ReconcileError, is_already_there};
use crate::namespaces::{self, Namespaces};
use crate::roles::Roles;

/// Creates what is missing.
pub(super) struct Provision<A> {
    pub(super) bindings: Bindings<A>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) roles: Arc<Roles>,
    pub(super) annotations: Arc<NamespaceAnnotations<A>>,
    pub(super) pod_security: Arc<PodSecurity<A>>,
}

// === impl Provision ===

impl<A: HostApi> Provision<A> {
    /// Ensures that everything exists that the cluster needs before its first client. Mirrors follow, because each new
    /// namespace causes an event.
    pub(super) async fn reconcile(&self, cluster: &ClusterName) -> Result<(), ReconcileError> {
        let root = HostNamespace::root(cluster);
        self.ensure_namespace(cluster, &root, &json!({ROOT_LABEL: cluster.as_str()}), None).await?;
        self.bindings.ensure(&root, &Binding::cluster_admin(cluster).protected()).await?;
        ensure_attempts(&self.bindings, cluster, &root).await?;
        move_in(self.bindings.api(), cluster, &root).await?;
        self.roles.copy(self.bindings.api(), cluster).await?;
        for name in INITIAL_NAMESPACES {
            let name = VirtualNamespace::new(name).expect("a literal in the form of a label");
            // An earlier version may have created it under another name.
            let index = self.namespaces.index();
            let host = index.host(cluster, &name).cloned().unwrap_or_else(|| HostNamespace::derive(&name, cluster));
            let labels = json!({CLUSTER_LABEL: cluster.as_str(), NAMESPACE_LABEL: name.as_str()});
            self.ensure_namespace(cluster, &host, &labels, self.pod_security.level(cluster)).await?;
        }
        Ok(())
    }

    /// Ensures that a namespace of the cluster exists. `level` is the level of Pod Security for a new one.
    async fn ensure_namespace(
        &self,
        cluster: &ClusterName,
        host: &HostNamespace,
        labels: &Value,
        level: Option<Level>,
    ) -> Result<(), ReconcileError> {
        let api = self.bindings.api();
        let found = match api.get(&paths::namespace(host)).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => {
                let annotations = self.annotations.of(cluster).unwrap_or_default();
                let annotations: Map<_, _> =
                    annotations.entries().map(|(key, value)| (key.to_owned(), value.into())).collect();
                let mut object = json!({
                    "apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": host.as_str(), "labels": labels, "annotations": annotations},
                });
                for (key, value) in level.map(|level| level.labels(None)).into_iter().flatten() {
                    object["metadata"]["labels"][key] = value.into();
                }
                match api.create(namespaces::PATH, &object).await {
                    Ok(created) => {
                        info!(namespace = %host, "namespace created");
                        created
                    }
                    // Another agent created it first, or it is not ours: check its labels.
                    Err(error) if is_already_there(&error) => api.get(&paths::namespace(host)).await?,
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
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
        Ok(())
    }
}
