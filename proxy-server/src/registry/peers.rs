//! The tunnels of other proxy-servers, by cluster.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::ClusterName;

use crate::tunnel::Tunnel;

/// The clusters that other proxy-servers offer.
#[derive(Debug, Default)]
pub(super) struct PeerTunnels(Mutex<HashMap<ClusterName, Vec<Arc<Tunnel>>>>);

// === impl PeerTunnels ===

impl PeerTunnels {
    /// Replaces the clusters of a tunnel.
    pub(super) fn set(&self, tunnel: &Arc<Tunnel>, clusters: &HashSet<&ClusterName>) {
        let mut all = self.lock();
        // Under the lock, so that a tunnel that is being removed does not enter again.
        let is_closing = tunnel.is_closing();
        all.retain(|name, tunnels| {
            tunnels.retain(|other| !Arc::ptr_eq(other, tunnel) || (clusters.contains(name) && !is_closing));
            !tunnels.is_empty()
        });
        for name in clusters.iter().filter(|_| !is_closing) {
            let tunnels = all.entry((*name).clone()).or_default();
            if !tunnels.iter().any(|other| Arc::ptr_eq(other, tunnel)) {
                tunnels.push(Arc::clone(tunnel));
            }
        }
    }

    /// Removes a tunnel.
    pub(super) fn remove(&self, tunnel: &Arc<Tunnel>) {
        self.set(tunnel, &HashSet::new());
    }

    /// The tunnels to a cluster.
    pub(super) fn of(&self, cluster: &ClusterName) -> Vec<Arc<Tunnel>> {
        self.lock().get(cluster).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClusterName, Vec<Arc<Tunnel>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
