//! A virtual cluster has left the configuration: what it has on the host stays, and stays deletable.
//!
//! The finalizers of mirrors are ours to remove, and after this nobody does. So they go now; the bindings themselves stay,
//! for they give rights to nobody but users of the virtual cluster, and are right again should it come back.

use rewrite::name::CLUSTER_LABEL;
use rewrite::{ClusterName, HostNamespace};
use tracing::info;

use super::{Root, Trouble};
use crate::clusters::host_api::HostApi;
use crate::host::api::Partial;
use crate::namespaces;

/// So many namespaces are named in the log.
const NAMED: usize = 20;

// === impl Root ===

impl<A: HostApi> Root<A> {
    /// Lets go of the namespaces of a cluster, unless it has come back, and says what is left.
    pub(super) async fn leave(&self, cluster: &ClusterName) -> Result<(), Trouble> {
        let label = format!("{CLUSTER_LABEL}={cluster}");
        // Until nothing is found to be done: a mirror that was being written when the cluster left comes late.
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
                    "the virtual cluster has left the configuration; what it has stays on the host until somebody \
                     deletes its namespaces (label {label}) and its root namespace"
                );
                return Ok(());
            }
        }
    }
}
