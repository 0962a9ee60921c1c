//! A virtual cluster has left the configuration: its objects stay on the host, and can be deleted.
//!
//! Only the agent removes the finalizers of mirrors, and it no longer serves this cluster. So it removes them now. The
//! mirrors themselves stay: they grant rights only to users of the virtual cluster, and are needed again if it comes
//! back.

use rewrite::name::CLUSTER_LABEL;
use rewrite::{ClusterName, HostNamespace};
use tracing::info;

use super::{Provisioner, ReconcileError};
use crate::namespaces;
use host_client::api::HostApi;
use host_client::api::Partial;

/// The maximum number of namespaces that the log message names.
const NAMED: usize = 20;

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// Releases the mirrors in all namespaces of a cluster, unless it has come back, and logs what is left.
    pub(super) async fn leave(&self, cluster: &ClusterName) -> Result<(), ReconcileError> {
        let label = format!("{CLUSTER_LABEL}={cluster}");
        // Repeat until there is nothing to do: a mirror that was being written when the cluster left may appear late.
        loop {
            if self.serves(cluster) {
                return Ok(());
            }
            let mut hosts = Vec::new();
            let see = |namespace: Partial| hosts.extend(HostNamespace::new(&namespace.metadata.name));
            self.shared.api.each(namespaces::PATH, &label, see).await?;
            let mut is_done = true;
            for host in &hosts {
                is_done &= self.let_go(host).await?;
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
}
