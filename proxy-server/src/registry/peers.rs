//! The tunnels of other proxy-servers, by cluster.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use protocol::{AgentId, ClusterName};

use crate::tunnel::Tunnel;

/// What other proxy-servers offer.
#[derive(Debug, Default)]
pub struct PeerTunnels {
    clusters: Mutex<HashMap<ClusterName, Offered>>,
    /// The tunnels whose proxy-servers have sent their offers.
    known: Mutex<Vec<Arc<Tunnel>>>,
    was_known: AtomicBool,
}

/// A cluster that other proxy-servers offer, or have offered.
#[derive(Debug, Default)]
struct Offered {
    /// The tunnels, and the agent behind each.
    tunnels: Vec<(Arc<Tunnel>, AgentId)>,
    /// When the last of them ended.
    since: Option<SystemTime>,
}

// === impl PeerTunnels ===

impl PeerTunnels {
    /// Replaces the clusters of a tunnel.
    pub(super) fn set(&self, tunnel: &Arc<Tunnel>, clusters: &HashMap<&ClusterName, &AgentId>) {
        let mut all = lock(&self.clusters);
        // Under the lock, so that a tunnel that is being removed does not enter again.
        let is_closing = tunnel.is_closing();
        for (name, offered) in &mut *all {
            let agent = clusters.get(name).filter(|_| !is_closing);
            offered.retain(|other, of| !Arc::ptr_eq(other, tunnel) || agent == Some(&of));
        }
        for (name, agent) in clusters.iter().filter(|_| !is_closing) {
            let tunnels = &mut all.entry((*name).clone()).or_default().tunnels;
            if !tunnels.iter().any(|(other, _)| Arc::ptr_eq(other, tunnel)) {
                tunnels.push((Arc::clone(tunnel), (*agent).clone()));
            }
        }
    }

    /// Records that the proxy-server of a tunnel has sent its offers.
    pub fn heard(&self, tunnel: &Arc<Tunnel>) {
        let mut known = lock(&self.known);
        if !known.iter().any(|other| Arc::ptr_eq(other, tunnel)) {
            known.push(Arc::clone(tunnel));
        }
        self.was_known.store(true, Ordering::Relaxed);
    }

    /// Removes a tunnel.
    pub(super) fn remove(&self, tunnel: &Arc<Tunnel>) {
        self.set(tunnel, &HashMap::new());
        lock(&self.known).retain(|other| !Arc::ptr_eq(other, tunnel));
    }

    /// Keeps the clusters that the configuration has, and the tunnels whose agents it allows. Returns the clusters that have lost one.
    pub(super) fn retain(
        &self,
        is_known: impl Fn(&ClusterName) -> bool,
        is_granted: impl Fn(&ClusterName, &AgentId) -> bool,
    ) -> Vec<ClusterName> {
        let mut lost = Vec::new();
        lock(&self.clusters).retain(|name, offered| {
            if offered.retain(|_, agent| is_granted(name, agent)) {
                lost.push(name.clone());
            }
            is_known(name)
        });
        lost
    }

    /// The tunnels to a cluster. If there are none, the time at which the last one ended.
    pub(super) fn of(&self, cluster: &ClusterName) -> Result<Vec<Arc<Tunnel>>, Option<SystemTime>> {
        match lock(&self.clusters).get(cluster) {
            Some(Offered { tunnels, since }) if tunnels.is_empty() => Err(*since),
            Some(Offered { tunnels, .. }) => Ok(tunnels.iter().map(|(tunnel, _)| Arc::clone(tunnel)).collect()),
            None => Err(None),
        }
    }

    /// The first agent, by name, that serves a cluster elsewhere and is not this one.
    pub(super) fn other_agent(&self, cluster: &ClusterName, agent: &AgentId) -> Option<AgentId> {
        let clusters = lock(&self.clusters);
        let agents = clusters.get(cluster)?.tunnels.iter().map(|(_, agent)| agent);
        agents.filter(|other| *other != agent).min().cloned()
    }

    /// The processes that have sent their offers, and whose tunnels are up.
    pub fn known(&self) -> BTreeSet<String> {
        lock(&self.known).iter().map(|tunnel| tunnel.instance.clone()).collect()
    }

    /// Whether another proxy-server has sent its offers since this process started.
    pub fn was_known(&self) -> bool {
        self.was_known.load(Ordering::Relaxed)
    }
}

// === impl Offered ===

impl Offered {
    /// Keeps some of the tunnels. Whether one was removed.
    fn retain(&mut self, is_kept: impl Fn(&Arc<Tunnel>, &AgentId) -> bool) -> bool {
        let before = self.tunnels.len();
        self.tunnels.retain(|(tunnel, agent)| is_kept(tunnel, agent));
        if self.tunnels.is_empty() && before > 0 {
            self.since = Some(SystemTime::now());
        }
        self.tunnels.len() < before
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
