//! The deletion of what a virtual cluster has on its host: its namespaces with everything in them, its root namespace, its
//! ClusterRoles, and its label on nodes.
//!
//! Other cluster-scoped objects stay; `atoll clusters remove` removes them. What is *not* here: waiting. The caller calls
//! [`remove`] again until nothing is left.

use host_client::api::{ApiError, HostApi, Partial, Selection};
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use rewrite::name::{CLUSTER_LABEL, ROOT_LABEL};
use rewrite::{ClusterName, HostNamespace};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::namespaces::{self, claim};
use crate::node_labels;
use crate::provisioner::{ReconcileError, release_mirrors};
use crate::roles;

/// What a virtual cluster still has on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Its namespaces, without its root namespace.
    pub namespaces: Vec<HostNamespace>,
    /// Whether its root namespace exists.
    pub root: bool,
}

// === impl Left ===

impl Left {
    /// Whether nothing is left.
    pub fn is_nothing(&self) -> bool {
        self.namespaces.is_empty() && !self.root
    }
}

/// Deletes everything that is not being deleted yet, and returns what was left before. No agent may serve the cluster.
pub async fn remove(api: &impl HostApi, cluster: &ClusterName) -> Result<Left, ReconcileError> {
    let members = namespaces_of(api, cluster, CLUSTER_LABEL).await?;
    for (host, is_ending) in &members {
        if !is_ending {
            delete(api, &format!("{}/{host}", namespaces::PATH)).await?;
        }
        // Nobody else removes our finalizers when no agent serves the cluster.
        release_mirrors(api, host).await?;
    }
    // The root namespace determines the rights in the others, so it is the last one.
    let root = namespaces_of(api, cluster, ROOT_LABEL).await?;
    if members.is_empty() {
        for (host, is_ending) in &root {
            if !is_ending {
                delete(api, &format!("{}/{host}", namespaces::PATH)).await?;
            }
            release_mirrors(api, host).await?;
        }
        delete_roles(api, cluster).await?;
        node_labels::remove(api, cluster).await?;
    }
    Ok(Left { namespaces: members.into_iter().map(|(host, _)| host).collect(), root: !root.is_empty() })
}

/// The namespaces whose label names the cluster, and which have the name that the agent derives. With each, whether it is being
/// deleted.
async fn namespaces_of(
    api: &impl HostApi,
    cluster: &ClusterName,
    label: &str,
) -> Result<Vec<(HostNamespace, bool)>, ApiError> {
    let selection = Selection::labelled(&format!("{label}={cluster}")).metadata();
    let mut pages = api.pages(namespaces::PATH, &selection);
    let mut found = Vec::new();
    while let Some(page) = pages.next::<Value>().await? {
        found.extend(page.iter().filter_map(|namespace| {
            let metadata = &namespace["metadata"];
            let host = HostNamespace::new(metadata["name"].as_str()?).ok()?;
            let is_ours = match label {
                ROOT_LABEL => host.is_root(),
                _ => claim(&host, &metadata["labels"]).is_some_and(|(claimed, _)| claimed == *cluster),
            };
            is_ours.then_some((host, !metadata["deletionTimestamp"].is_null()))
        }));
    }
    Ok(found)
}

async fn delete_roles(api: &impl HostApi, cluster: &ClusterName) -> Result<(), ApiError> {
    let prefix = format!("vc:{cluster}:");
    let mut names = Vec::new();
    let see = |role: Partial| names.extend(Some(role.metadata.name).filter(|name| name.starts_with(&prefix)));
    api.each(roles::PATH, "", see).await?;
    for name in names {
        let Ok(name) = SegmentName::new(&name) else { continue };
        let path =
            ResourcePath { name: Some(name), ..ResourcePath::new("rbac.authorization.k8s.io", "v1", "clusterroles") };
        delete(api, &path.build()).await?;
    }
    Ok(())
}

async fn delete(api: &impl HostApi, path: &str) -> Result<(), ApiError> {
    match api.delete::<IgnoredAny>(path, &json!({})).await {
        Err(error) if error.is_not_found() => Ok(()),
        // A namespace that is being deleted already.
        Err(error) if error.is_conflict() => Ok(()),
        outcome => outcome.map(drop),
    }
}

#[cfg(test)]
mod tests;
