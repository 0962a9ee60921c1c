//! Maintains the annotations of Namespaces that the admission policies read.

use rewrite::ClusterName;
use serde_json::Value;
use tracing::info;

use super::{Provisioner, ReconcileError, paths};
use crate::namespaces::{Annotations, Member, PATH};
use host_client::api::HostApi;

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// Waits until every namespace of the virtual clusters has the configured annotations. Before that, the admission
    /// policies refuse pods in namespaces without annotations.
    pub async fn annotated(&self) {
        let namespaces = &self.shared.namespaces;
        let mut events = namespaces.subscribe();
        namespaces.synced().await;
        let is_right = |member: &Member| self.has_its_annotations(member);
        while !self.clusters().iter().all(|cluster| namespaces.members(cluster).iter().all(is_right)) {
            if events.next().await.is_none() {
                return;
            }
        }
    }

    /// The annotations for namespaces of this cluster; `None` if this agent does not serve it.
    pub(super) fn annotations(&self, cluster: &ClusterName) -> Option<Annotations> {
        self.shared.annotations.load().get(cluster).cloned()
    }

    fn has_its_annotations(&self, member: &Member) -> bool {
        self.annotations(&member.cluster).is_none_or(|wanted| wanted == member.annotations)
    }

    /// Reconciles the annotations of one namespace of a cluster.
    pub(super) async fn annotate_member(&self, member: &Member) -> Result<(), ReconcileError> {
        if self.has_its_annotations(member) {
            return Ok(());
        }
        match self.shared.api.get(&paths::namespace(&member.host)).await {
            Ok(found) => self.annotate(&member.cluster, found).await.map(drop),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the annotations of a Namespace of the cluster, and returns the updated Namespace.
    pub(super) async fn annotate(&self, cluster: &ClusterName, found: Value) -> Result<Value, ReconcileError> {
        let wanted = self.annotations(cluster);
        let Some(repaired) = wanted.and_then(|wanted| wanted.repaired(&found)) else { return Ok(found) };
        let name = repaired["metadata"]["name"].as_str().unwrap_or_default();
        let stored = self.shared.api.update(&format!("{PATH}/{name}"), &repaired).await?;
        info!(namespace = name, %cluster, "wrote the annotations for the admission policies");
        Ok(stored)
    }
}
