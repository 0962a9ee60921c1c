//! Maintains the annotations of Namespaces that the admission policies read.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use host_client::api::HostApi;
use rewrite::ClusterName;
use serde_json::Value;
use tracing::info;

use super::paths;
use super::reconcile_error::ReconcileError;
use crate::namespaces::{Annotations, Member, Namespaces};

/// The annotations that the namespaces of each virtual cluster must have.
pub(super) struct NamespaceAnnotations<A> {
    api: A,
    namespaces: Arc<Namespaces>,
    by_cluster: ArcSwap<HashMap<ClusterName, Annotations>>,
}

// === impl NamespaceAnnotations ===

impl<A: HostApi> NamespaceAnnotations<A> {
    pub(super) fn new(api: A, namespaces: Arc<Namespaces>, by_cluster: HashMap<ClusterName, Annotations>) -> Self {
        Self { api, namespaces, by_cluster: ArcSwap::from_pointee(by_cluster) }
    }

    /// From now on, the namespaces of exactly these clusters must have these annotations.
    pub(super) fn replace(&self, by_cluster: HashMap<ClusterName, Annotations>) {
        self.by_cluster.store(Arc::new(by_cluster));
    }

    /// The annotations for namespaces of this cluster; `None` if this agent does not serve it.
    pub(super) fn of(&self, cluster: &ClusterName) -> Option<Annotations> {
        self.by_cluster.load().get(cluster).cloned()
    }

    /// Waits until every known namespace has its annotations.
    pub(super) async fn written(&self) {
        let mut events = self.namespaces.subscribe();
        self.namespaces.synced().await;
        let is_right = |cluster: &ClusterName| self.namespaces.members(cluster).iter().all(|it| self.are_of(it));
        while !self.by_cluster.load().keys().all(is_right) {
            if events.next().await.is_none() {
                return;
            }
        }
    }

    /// Whether a namespace of the cluster needs no other annotations.
    pub(super) fn are_right(&self, cluster: &ClusterName, annotations: &Annotations) -> bool {
        self.by_cluster.load().get(cluster).is_none_or(|wanted| wanted == annotations)
    }

    /// Whether this namespace needs no other annotations.
    pub(super) fn are_of(&self, member: &Member) -> bool {
        self.are_right(&member.cluster, &member.annotations)
    }

    /// Reconciles the annotations of one namespace of a cluster.
    pub(super) async fn reconcile(&self, member: &Member) -> Result<(), ReconcileError> {
        if self.are_of(member) {
            return Ok(());
        }
        match self.api.get(&paths::namespace(&member.host)).await {
            Ok(found) => self.write(&member.cluster, found).await.map(drop),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the annotations of a Namespace of the cluster, and returns the updated Namespace.
    pub(super) async fn write(&self, cluster: &ClusterName, found: Value) -> Result<Value, ReconcileError> {
        let Some(repaired) = self.of(cluster).and_then(|wanted| wanted.repaired(&found)) else { return Ok(found) };
        let name = repaired["metadata"]["name"].as_str().unwrap_or_default();
        let stored = self.api.update(&format!("{}/{name}", crate::namespaces::PATH), &repaired).await?;
        info!(namespace = name, %cluster, "wrote the annotations for the admission policies");
        Ok(stored)
    }
}
