//! Which clusters there are, and which tunnels serve them now.
//!
//! The configuration says what may be: which agent identities may serve a cluster, and how. Registrations only ever pick
//! from that. A cluster is served by one identity at a time; several tunnels of that identity (replicas, or several
//! connections of one process) share its load.
//!
//! Both sides may change while tunnels are up: [`Registry::reload`] takes another configuration, [`Registry::renew`]
//! other offers. What is not touched by the change does not notice.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use protocol::registration::Mode;
use protocol::{AgentId, ClusterName, Offer, Refusal, RefusalReason};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{Cluster, ProxyServerConfiguration};
use crate::tunnel::Tunnel;
use protocol::Authority;

/// The clusters of the configuration, and the tunnels that serve them.
#[derive(Debug)]
pub struct Registry {
    clusters: ArcSwap<Clusters>,
    served: Mutex<HashMap<ClusterName, Served>>,
    turn: AtomicUsize,
    /// Counts configurations.
    reloads: watch::Sender<u64>,
}

/// One configuration's clusters, with the ways to find them.
#[derive(Debug, Default)]
pub struct Clusters {
    by_name: HashMap<ClusterName, Arc<Cluster>>,
    by_api_server: HashMap<Authority, Arc<Cluster>>,
    /// Cancelled when what runs for a cluster must end. A cluster has the same one in all configurations in which it
    /// goes on.
    ends: HashMap<ClusterName, CancellationToken>,
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
        Self {
            clusters: ArcSwap::from_pointee(clusters),
            served: Mutex::default(),
            turn: AtomicUsize::new(0),
            reloads: watch::Sender::new(0),
        }
    }

    /// Takes a new configuration's clusters. What runs for clusters that are gone, or are served by an agent that may
    /// not any more, ends. Returns the tunnels that serve nothing now: their agents must register anew.
    pub fn reload(&self, clusters: Clusters) -> Vec<Arc<Tunnel>> {
        // Held throughout, so that nothing is checked against the old configuration and entered after the new one.
        let mut served = self.served();
        let before = self.clusters.load_full();
        let mut lost = Vec::new();
        let mut interrupted = HashSet::new();
        served.retain(|name, served| {
            let Served::By { agent, tunnels } = served else { return clusters.by_name.contains_key(name) };
            let granted = clusters.by_name.get(name).is_some_and(|cluster| {
                let before = before.by_name.get(name).map(|before| before.mode);
                cluster.agents.contains(agent) && before == Some(cluster.mode)
            });
            if !granted {
                lost.append(tunnels);
                interrupted.insert(name.clone());
            }
            granted
        });
        let (clusters, ended) = clusters.after(&before, &interrupted);
        self.clusters.store(Arc::new(clusters));
        lost.retain(|tunnel| !served.values().any(|served| served.is_by(tunnel)));
        drop(served);
        for end in ended {
            end.cancel();
        }
        self.reloads.send_modify(|reloads| *reloads += 1);
        lost
    }

    /// Tells of each configuration that comes from now on.
    pub fn reloads(&self) -> watch::Receiver<u64> {
        self.reloads.subscribe()
    }

    /// Cancelled when what runs for this cluster must end; `None` if there is no such cluster.
    pub fn end_of(&self, cluster: &ClusterName) -> Option<CancellationToken> {
        self.clusters.load().ends.get(cluster).cloned()
    }

    /// The clusters of the current configuration.
    pub fn clusters(&self) -> Arc<Clusters> {
        self.clusters.load_full()
    }

    /// Whether an agent may serve what it offers, as things stand.
    pub fn check(&self, agent: &AgentId, offers: &[Offer]) -> Result<(), Refusal> {
        check(&self.clusters.load(), &self.served(), agent, offers)
    }

    /// Lets a tunnel serve what its agent offers, and nothing else; all of it, or all stays as it was.
    pub fn renew(&self, tunnel: &Arc<Tunnel>, offers: &[Offer]) -> Result<(), Refusal> {
        let mut served = self.served();
        check(&self.clusters.load(), &served, &tunnel.agent, offers)?;
        for (name, served) in served.iter_mut() {
            if !offers.iter().any(|offer| offer.name == *name) {
                served.give_up(tunnel);
            }
        }
        for offer in offers {
            let entry = served.entry(offer.name.clone());
            let entry = entry.or_insert(Served::Nobody { since: SystemTime::UNIX_EPOCH });
            match entry {
                Served::By { tunnels, .. } if tunnels.iter().any(|one| Arc::ptr_eq(one, tunnel)) => {}
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
            served.give_up(tunnel);
        }
    }

    /// The tunnel of a cluster that has the fewest streams; of several such tunnels, one after the other, so that
    /// clients that ask for one thing at a time are shared too.
    pub fn tunnel(&self, cluster: &ClusterName) -> Result<Arc<Tunnel>, NoAgent> {
        let served = self.served();
        let since = match served.get(cluster) {
            Some(Served::By { tunnels, .. }) => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) % tunnels.len().max(1);
                let (behind, first) = tunnels.split_at(turn);
                let least = first.iter().chain(behind).min_by_key(|tunnel| tunnel.streams());
                return Ok(Arc::clone(least.expect("a cluster without tunnels is served by nobody")));
            }
            Some(Served::Nobody { since }) => Some(*since),
            None => None,
        };
        Err(NoAgent { cluster: cluster.clone(), since })
    }

    /// All tunnels of a cluster, for status: at least one.
    pub fn tunnels_of(&self, cluster: &ClusterName) -> Result<Vec<Arc<Tunnel>>, NoAgent> {
        match self.served().get(cluster) {
            Some(Served::By { tunnels, .. }) => Ok(tunnels.clone()),
            Some(Served::Nobody { since }) => Err(NoAgent { cluster: cluster.clone(), since: Some(*since) }),
            None => Err(NoAgent { cluster: cluster.clone(), since: None }),
        }
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

// === impl Served ===

impl Served {
    fn is_by(&self, tunnel: &Arc<Tunnel>) -> bool {
        match self {
            Self::By { tunnels, .. } => tunnels.iter().any(|one| Arc::ptr_eq(one, tunnel)),
            Self::Nobody { .. } => false,
        }
    }

    fn give_up(&mut self, tunnel: &Arc<Tunnel>) {
        let Self::By { tunnels, .. } = self else { return };
        tunnels.retain(|other| !Arc::ptr_eq(other, tunnel));
        if tunnels.is_empty() {
            *self = Self::Nobody { since: SystemTime::now() };
        }
    }
}

// === impl Clusters ===

impl Clusters {
    /// Those of a configuration.
    pub fn of(config: &ProxyServerConfiguration) -> Self {
        Self::new(config.clusters.iter().map(|cluster| Arc::new((**cluster).clone())))
    }

    /// Indexes a configuration's clusters; it was validated, so names and addresses are unique.
    pub fn new(clusters: impl IntoIterator<Item = Arc<Cluster>>) -> Self {
        let mut indexed = Self::default();
        for cluster in clusters {
            if let Some(address) = &cluster.api_server {
                indexed.by_api_server.insert(address.clone(), Arc::clone(&cluster));
            }
            indexed.ends.insert(cluster.name.clone(), CancellationToken::new());
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

    /// As the successor of `before`: what runs for a cluster that is the same in both goes on, unless it is
    /// `interrupted`. All others' ends come with it.
    fn after(mut self, before: &Self, interrupted: &HashSet<ClusterName>) -> (Self, Vec<CancellationToken>) {
        let mut ended = Vec::new();
        for (name, end) in &before.ends {
            let goes_on = match (before.by_name.get(name), self.by_name.get(name)) {
                (Some(old), Some(new)) => old.mode == new.mode && old.api_server == new.api_server,
                _ => false,
            };
            if goes_on && !interrupted.contains(name) {
                self.ends.insert(name.clone(), end.clone());
            } else {
                ended.push(end.clone());
            }
        }
        (self, ended)
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
