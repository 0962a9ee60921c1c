//! A virtual cluster has left the configuration: its objects stay on the host, and can be deleted.
//!
//! Only the agent removes the finalizers of mirrors, and it no longer serves this cluster. So it removes them now. The
//! mirrors themselves stay: they grant rights only to users of the virtual cluster, and are needed again if it comes
//! back.

use host_client::api::{HostApi, Partial};
use rewrite::name::CLUSTER_LABEL;
use rewrite::{ClusterName, HostNamespace};
use tracing::info;

use super::bindings::Bindings;
use super::reconcile_error::ReconcileError;
use super::served::ServedClusters;
use crate::namespaces;

/// The maximum number of namespaces that the log message names.
const NAMED: usize = 20;

/// Releases the mirrors in one namespace of a cluster that no agent serves.
pub(crate) async fn release_mirrors(api: &impl HostApi, host: &HostNamespace) -> Result<(), ReconcileError> {
    Bindings::new(api.clone()).release_mirrors(host).await.map(drop)
}

/// Releases the mirrors in all namespaces of a cluster, unless it has come back, and logs what is left.
pub(super) async fn leave(
    bindings: &Bindings<impl HostApi>,
    served: &ServedClusters,
    cluster: &ClusterName,
) -> Result<(), ReconcileError> {
    let label = format!("{CLUSTER_LABEL}={cluster}");
    // Repeat until there is nothing to do: a mirror that was being written when the cluster left may appear late.
    loop {
        if served.contains(cluster) {
            return Ok(());
        }
        let mut hosts = Vec::new();
        let see = |namespace: Partial| hosts.extend(HostNamespace::new(&namespace.metadata.name));
        bindings.api().each(namespaces::PATH, &label, see).await?;
        let mut is_done = true;
        for host in &hosts {
            is_done &= bindings.release_mirrors(host).await?;
        }
        if is_done {
            let root = HostNamespace::root(cluster);
            let names: Vec<_> = hosts.iter().take(NAMED).map(HostNamespace::as_str).collect();
            info!(
                %cluster, left = hosts.len(), namespaces = ?names, %root,
                "the virtual cluster has left the configuration; its objects stay on the host until you \
                delete its namespaces (label {label}) and its root namespace"
            );
            return Ok(());
        }
    }
}
