//! What the first lists of the agent have shown, so that a start after which nothing has to change sends few requests.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use host_client::api::HostApi;
use rewrite::{ClusterName, HostNamespace};
use tracing::debug;

use super::attempts;
use super::binding::{Binding, Repair, Wanted};
use super::found::Found;
use super::present::Present;

/// What the first lists have shown.
#[derive(Debug, Default)]
pub(super) struct FirstLists(Mutex<HashMap<ClusterName, Present>>);

// === impl FirstLists ===

impl FirstLists {
    /// Lists what no watch delivers. If that fails, everything is read later.
    pub(super) async fn read(&self, api: &impl HostApi, clusters: &[ClusterName]) {
        let roots = match attempts::roots_with_role(api).await {
            Ok(roots) => roots,
            Err(error) => {
                debug!(error = &error as &dyn std::error::Error, "cannot list Roles");
                HashSet::new()
            }
        };
        for cluster in clusters.iter().filter(|cluster| roots.contains(&HostNamespace::root(cluster))) {
            self.lock().entry(cluster.clone()).or_default().attempts_role = true;
        }
    }

    /// Records a binding of a root namespace.
    pub(super) fn see(&self, cluster: &ClusterName, binding: &Found) {
        let administrators = Binding::cluster_admin(cluster).protected(cluster);
        let attempts = attempts::binding(cluster);
        let is_as = |wanted: &Wanted| binding.metadata.name == wanted.name && wanted.repair(binding) == Repair::Nothing;
        if is_as(&administrators) {
            self.lock().entry(cluster.clone()).or_default().administrators = true;
        } else if is_as(&attempts) {
            self.lock().entry(cluster.clone()).or_default().attempts_binding = true;
        }
    }

    /// Everything must be read: it has changed since.
    pub(super) fn forget(&self, cluster: &ClusterName) {
        self.lock().remove(cluster);
    }

    /// What need not be read. Only once, because it may change later.
    pub(super) fn take(&self, cluster: &ClusterName) -> Present {
        self.lock().remove(cluster).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClusterName, Present>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
