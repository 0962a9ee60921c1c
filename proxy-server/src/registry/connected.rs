//! The tunnels of connected agents, and the offers of each that the registry refuses: for the status and the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{AgentId, ClusterName, RefusalReason, RefusedClusters};

use crate::tunnel::Tunnel;

/// All tunnels that accept streams, including those that serve no cluster.
#[derive(Debug, Default)]
pub struct Connected(Mutex<Vec<Entry>>);

/// A tunnel, and the offers that are refused.
type Entry = (Arc<Tunnel>, Arc<[RefusedClusters]>);

/// An offer that is refused. All tunnels of an agent together have one for each cluster and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedOffer {
    /// The cluster. It may be unknown to the configuration.
    pub cluster: ClusterName,
    /// The agent.
    pub agent: AgentId,
    /// For programs.
    pub reason: RefusalReason,
    /// For people.
    pub message: String,
}

// === impl Connected ===

impl Connected {
    /// Enters a tunnel, or replaces its refused offers.
    pub(super) fn set(&self, tunnel: &Arc<Tunnel>, refused: &[RefusedClusters]) {
        let refused = refused.into();
        let mut all = self.lock();
        match all.iter_mut().find(|(other, _)| Arc::ptr_eq(other, tunnel)) {
            Some((_, before)) => *before = refused,
            None => all.push((Arc::clone(tunnel), refused)),
        }
    }

    pub(super) fn remove(&self, tunnel: &Arc<Tunnel>) {
        self.lock().retain(|(other, _)| !Arc::ptr_eq(other, tunnel));
    }

    /// All tunnels, for status and drain. They may serve no cluster.
    pub fn tunnels(&self) -> Vec<Arc<Tunnel>> {
        self.lock().iter().map(|(tunnel, _)| Arc::clone(tunnel)).collect()
    }

    /// The offers of a tunnel that are refused.
    pub(super) fn refused_of(&self, tunnel: &Arc<Tunnel>) -> Arc<[RefusedClusters]> {
        let all = self.lock();
        let found = all.iter().find(|(other, _)| Arc::ptr_eq(other, tunnel));
        found.map_or_else(Arc::default, |(_, refused)| Arc::clone(refused))
    }

    /// The offers that are refused now, by cluster: at most `limit` of each agent, and the number of all others.
    pub fn refused(&self, limit: usize) -> (Vec<RefusedOffer>, usize) {
        let all = self.all();
        let mut offers = BTreeMap::new();
        for (tunnel, refused) in &all {
            for RefusedClusters { clusters, refusal } in refused.iter() {
                for cluster in clusters {
                    offers.insert((cluster, &tunnel.agent, refusal.reason), &refusal.message);
                }
            }
        }
        let count = offers.len();
        let mut of_agents: BTreeMap<&AgentId, usize> = BTreeMap::new();
        let shown = offers.into_iter().filter(|((_, agent, _), _)| {
            let shown = of_agents.entry(agent).or_default();
            *shown += 1;
            *shown <= limit
        });
        let shown: Vec<_> = shown
            .map(|((cluster, agent, reason), message)| RefusedOffer {
                cluster: cluster.clone(),
                agent: agent.clone(),
                reason,
                message: message.clone(),
            })
            .collect();
        let others = count - shown.len();
        (shown, others)
    }

    /// The number of clusters that are refused now, by agent and reason.
    pub fn counts(&self) -> Vec<(AgentId, RefusalReason, usize)> {
        let all = self.all();
        let mut clusters: BTreeMap<_, BTreeSet<&ClusterName>> = BTreeMap::new();
        for (tunnel, refused) in &all {
            for refused in refused.iter() {
                clusters.entry((&tunnel.agent, refused.refusal.reason)).or_default().extend(&refused.clusters);
            }
        }
        clusters.into_iter().map(|((agent, reason), clusters)| (agent.clone(), reason, clusters.len())).collect()
    }

    /// Requests wait for the lock, so everything else is done without it.
    fn all(&self) -> Vec<Entry> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
