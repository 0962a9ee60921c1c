//! Keeps on each Namespace what the admission policies read of its virtual cluster.

use rewrite::ClusterName;
use serde_json::Value;
use tracing::info;

use super::{Root, Trouble, paths};
use crate::clusters::host_api::HostApi;
use crate::namespaces::{Annotations, Member, PATH};

// === impl Root ===

impl<A: HostApi> Root<A> {
    /// Waits until every namespace of the virtual clusters has the annotations that its configuration says. Before, the
    /// admission policies refuse pods in those that have none.
    pub async fn annotated(&self) {
        let namespaces = &self.shared.namespaces;
        let mut told = namespaces.subscribe();
        namespaces.synced().await;
        let is_right = |member: &Member| self.has_its_annotations(member);
        while !self.clusters().iter().all(|cluster| namespaces.members(cluster).iter().all(is_right)) {
            if told.next().await.is_none() {
                return;
            }
        }
    }

    /// What namespaces of this cluster tell; `None` if it is not one of this agent's, and so not ours to say.
    pub(super) fn annotations(&self, cluster: &ClusterName) -> Option<Annotations> {
        self.shared.annotations.load().get(cluster).cloned()
    }

    fn has_its_annotations(&self, member: &Member) -> bool {
        self.annotations(&member.cluster).is_none_or(|wanted| wanted == member.annotations)
    }

    /// Looks at one namespace of a cluster.
    pub(super) async fn annotate_member(&self, member: &Member) -> Result<(), Trouble> {
        if self.has_its_annotations(member) {
            return Ok(());
        }
        match self.shared.api.get(&paths::namespace(&member.host)).await {
            Ok(found) => self.annotate(&member.cluster, found).await.map(drop),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a Namespace of the cluster its annotations, and returns it as it is then.
    pub(super) async fn annotate(&self, cluster: &ClusterName, found: Value) -> Result<Value, Trouble> {
        let wanted = self.annotations(cluster);
        let Some(repaired) = wanted.and_then(|wanted| wanted.repaired(&found)) else { return Ok(found) };
        let name = repaired["metadata"]["name"].as_str().unwrap_or_default();
        let stored = self.shared.api.update(&format!("{PATH}/{name}"), &repaired).await?;
        info!(namespace = name, %cluster, "wrote the annotations for the admission policies");
        Ok(stored)
    }
}
