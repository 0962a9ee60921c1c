//! Which clusters there are, and which tunnels serve them now.
//!
//! The configuration says what may be: which agent identities may serve a cluster, and how. Registrations only ever pick
//! from that. A cluster is served by one identity at a time; several tunnels of that identity (replicas, or several
//! connections of one process) share its load.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use protocol::registration::Mode;
use protocol::{AgentId, ClusterName, Offer, Refusal, RefusalReason};

use crate::config::Cluster;
use crate::tunnel::Tunnel;
use protocol::Authority;

/// The clusters of the configuration, and the tunnels that serve them.
#[derive(Debug)]
pub struct Registry {
    clusters: ArcSwap<Clusters>,
    served: Mutex<HashMap<ClusterName, Served>>,
}

/// One configuration's clusters, with the ways to find them.
#[derive(Debug, Default)]
pub struct Clusters {
    by_name: HashMap<ClusterName, Arc<Cluster>>,
    by_api_server: HashMap<Authority, Arc<Cluster>>,
}

/// Who serves a cluster.
#[derive(Debug)]
enum Served {
    By {
        agent: AgentId,
        tunnels: Vec<Arc<Tunnel>>,
    },
    /// Nobody, since then.
    Nobody {
        since: SystemTime,
    },
}

/// No tunnel serves the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cluster {cluster} has no agent connected{}", for_how_long(*.since))]
pub struct NoAgent {
    /// The cluster.
    pub cluster: ClusterName,
    /// When its last tunnel went; `None` if it never had one since this process started.
    pub since: Option<SystemTime>,
}

// === impl Registry ===

impl Registry {
    /// A registry without tunnels.
    pub fn new(clusters: Clusters) -> Self {
        Self { clusters: ArcSwap::from_pointee(clusters), served: Mutex::default() }
    }

    /// Takes a new configuration's clusters. Tunnels of clusters that are gone are returned: their agents must register
    /// anew.
    pub fn reload(&self, clusters: Clusters) -> Vec<Arc<Tunnel>> {
        let clusters = Arc::new(clusters);
        self.clusters.store(Arc::clone(&clusters));
        let mut orphans = Vec::new();
        self.served().retain(|name, served| {
            let Served::By { agent, tunnels } = served else { return true };
            let granted = clusters.by_name.get(name).is_some_and(|cluster| cluster.agents.contains(agent));
            if !granted {
                orphans.append(tunnels);
            }
            granted
        });
        orphans
    }

    /// The clusters of the current configuration.
    pub fn clusters(&self) -> Arc<Clusters> {
        self.clusters.load_full()
    }

    /// Whether an agent may serve what it offers, as things stand.
    pub fn check(&self, agent: &AgentId, offers: &[Offer]) -> Result<(), Refusal> {
        check(&self.clusters.load(), &self.served(), agent, offers)
    }

    /// Lets a tunnel serve what its agent offers; all of it or nothing.
    pub fn register(&self, tunnel: &Arc<Tunnel>, offers: &[Offer]) -> Result<(), Refusal> {
        let mut served = self.served();
        check(&self.clusters.load(), &served, &tunnel.agent, offers)?;
        for offer in offers {
            let entry = served.entry(offer.name.clone());
            let entry = entry.or_insert(Served::Nobody { since: SystemTime::UNIX_EPOCH });
            match entry {
                Served::By { tunnels, .. } => tunnels.push(Arc::clone(tunnel)),
                Served::Nobody { .. } => {
                    *entry = Served::By { agent: tunnel.agent.clone(), tunnels: vec![Arc::clone(tunnel)] };
                }
            }
        }
        Ok(())
    }

    /// Forgets a tunnel that ended.
    pub fn remove(&self, tunnel: &Arc<Tunnel>) {
        for served in self.served().values_mut() {
            let Served::By { tunnels, .. } = served else { continue };
            tunnels.retain(|other| !Arc::ptr_eq(other, tunnel));
            if tunnels.is_empty() {
                *served = Served::Nobody { since: SystemTime::now() };
            }
        }
    }

    /// The tunnel of a cluster that has the fewest streams.
    pub fn tunnel(&self, cluster: &ClusterName) -> Result<Arc<Tunnel>, NoAgent> {
        let served = self.served();
        let since = match served.get(cluster) {
            Some(Served::By { tunnels, .. }) => {
                let least = tunnels.iter().min_by_key(|tunnel| tunnel.streams());
                return Ok(Arc::clone(least.expect("a cluster without tunnels is served by nobody")));
            }
            Some(Served::Nobody { since }) => Some(*since),
            None => None,
        };
        Err(NoAgent { cluster: cluster.clone(), since })
    }

    /// Every tunnel, for status and drain.
    pub fn tunnels(&self) -> Vec<Arc<Tunnel>> {
        let mut all: Vec<Arc<Tunnel>> = Vec::new();
        for served in self.served().values() {
            let Served::By { tunnels, .. } = served else { continue };
            for tunnel in tunnels {
                if !all.iter().any(|known| Arc::ptr_eq(known, tunnel)) {
                    all.push(Arc::clone(tunnel));
                }
            }
        }
        all
    }

    fn served(&self) -> MutexGuard<'_, HashMap<ClusterName, Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Clusters ===

impl Clusters {
    /// Indexes a configuration's clusters; it was validated, so names and addresses are unique.
    pub fn new(clusters: impl IntoIterator<Item = Arc<Cluster>>) -> Self {
        let mut indexed = Self::default();
        for cluster in clusters {
            if let Some(address) = &cluster.api_server {
                indexed.by_api_server.insert(address.clone(), Arc::clone(&cluster));
            }
            indexed.by_name.insert(cluster.name.clone(), cluster);
        }
        indexed
    }

    /// By name.
    pub fn get(&self, name: &str) -> Option<&Arc<Cluster>> {
        self.by_name.get(name)
    }

    /// A physical cluster by the address of its API server.
    pub fn by_api_server(&self, authority: &Authority) -> Option<&Arc<Cluster>> {
        self.by_api_server.get(authority)
    }

    /// All, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Cluster>> {
        self.by_name.values()
    }

    fn grant(&self, agent: &AgentId, offer: &Offer) -> Result<(), Refusal> {
        let refuse = |why: String| Err(Refusal::new(RefusalReason::NotGranted, why));
        let Offer { name, mode } = offer;
        // One text for "unknown" and "not yours": an agent learns nothing of other sites.
        let Some(cluster) = self.by_name.get(name).filter(|cluster| cluster.agents.contains(agent)) else {
            return refuse(format!(
                "agent {agent} may not serve cluster {name}; add it to that cluster's agents in the proxy-server's \
                 configuration, or remove the cluster from the agent's"
            ));
        };
        if cluster.mode != *mode {
            let (theirs, ours) = (mode_word(*mode), mode_word(cluster.mode));
            return refuse(format!("cluster {name} is {ours} at the proxy-server, but {theirs} at agent {agent}"));
        }
        Ok(())
    }
}

fn check(
    clusters: &Clusters,
    served: &HashMap<ClusterName, Served>,
    agent: &AgentId,
    offers: &[Offer],
) -> Result<(), Refusal> {
    for offer in offers {
        clusters.grant(agent, offer)?;
        if let Some(Served::By { agent: owner, .. }) = served.get(&offer.name)
            && owner != agent
        {
            return Err(Refusal::new(
                RefusalReason::Conflict,
                format!("cluster {} is served by another agent; stop that one first", offer.name),
            ));
        }
    }
    Ok(())
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Virtual => "virtual",
        Mode::Physical => "physical",
    }
}

fn for_how_long(time: Option<SystemTime>) -> String {
    let seconds = time.and_then(|time| time.elapsed().ok()).map(|elapsed| elapsed.as_secs());
    seconds.map_or_else(|| " since this proxy-server started".into(), |seconds| format!(" for {seconds} s"))
}

#[cfg(test)]
mod tests;
