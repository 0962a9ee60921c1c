//! The clusters of the configuration, and the tunnels that serve them.
//!
//! The configuration determines which agent identities may serve a cluster, and how. Registrations can only choose from
//! that. Each cluster is decided separately, so a refused one does not affect the others. One identity at a time serves a
//! cluster. Several tunnels of that identity (replicas, or several connections of one process) share the load.
//!
//! Other proxy-servers offer the clusters of their agents ([`crate::peers`]). Their tunnels are used while no agent of a cluster is
//! connected here, and while this configuration allows the agent behind them, too.
//!
//! The configuration and the offers may change while tunnels are up: [`Registry::reload`] takes another configuration,
//! and [`Registry::renew`] takes other offers. Clusters that do not change are not affected.

mod connected;
mod peers;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use ops::date::Moment;
use protocol::registration::Mode;
use protocol::{AgentId, ClusterName, Offer, Refusal, RefusalReason, RefusedClusters};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::config::{Cluster, ProxyServerConfiguration};
use crate::tunnel::{Demand, RemoteEnd, ReserveError, StreamReservation, Tunnel};
use crate::workers::{self, WorkerId};
pub use connected::{Connected, RefusedOffer};
pub use peers::PeerTunnels;
use protocol::Authority;

/// The cost of a tunnel on another worker, as a number of streams: a request through it wakes two threads, which costs
/// about as much as the request itself.
const OTHER_WORKER_COST: usize = 32;

/// An agent that disconnected less than this time ago may have moved to another proxy-server.
const RECENT: Duration = Duration::from_secs(2);

/// The clusters of the configuration, and the tunnels that serve them.
#[derive(Debug)]
pub struct Registry {
    clusters: ArcSwap<Clusters>,
    served: Mutex<HashMap<ClusterName, Served>>,
    connected: Connected,
    peers: PeerTunnels,
    /// The number of changes of what agents serve.
    changes: watch::Sender<u64>,
    /// The number of choices among tunnels so far.
    turn: AtomicUsize,
    /// The number of times that all offers had to be checked again: after a reload, or when another proxy-server serves a cluster that
    /// an agent here serves, too.
    rechecks: watch::Sender<u64>,
}

/// The clusters of one configuration, with indexes.
#[derive(Debug, Default)]
pub struct Clusters {
    by_name: HashMap<ClusterName, Arc<Cluster>>,
    by_api_server: HashMap<Authority, AtAddress>,
    have_destinations: bool,
    /// Cancelled when the requests for a cluster must end. A cluster keeps its token while it stays in the
    /// configuration.
    ends: HashMap<ClusterName, CancellationToken>,
}

/// The physical clusters at an address.
#[derive(Clone, Debug)]
pub enum AtAddress {
    /// One.
    One(Arc<Cluster>),
    /// Several: two sites often have the same private addresses.
    Several,
}

/// The agent that serves a cluster.
#[derive(Debug)]
struct Served {
    by: By,
    /// How often its last tunnel has ended.
    interruptions: u64,
}

/// Who serves a cluster.
#[derive(Debug)]
enum By {
    Agent {
        agent: AgentId,
        tunnels: Vec<Arc<Tunnel>>,
    },
    /// No agent, since this time.
    Nobody {
        since: SystemTime,
    },
}

/// Why an offer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    NotGranted,
    Mode {
        ours: Mode,
        theirs: Mode,
    },
    /// Another agent serves the cluster.
    Taken,
    /// The agent offers the cluster more than once.
    Repeated,
}

/// No stream was opened to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No tunnel serves the cluster.
    #[error(transparent)]
    NoAgent(#[from] NoAgent),
    /// The cluster's share of the tunnel, or the tunnel, is used up.
    #[error("the tunnel of {0} has no room for another stream")]
    Full(RemoteEnd),
}

/// No tunnel serves the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cluster {cluster} has no agent connected ({}): check the proxy-agent of its site with `atoll status`", since_when(*.since))]
pub struct NoAgent {
    /// The cluster.
    pub cluster: ClusterName,
    /// The time at which its last tunnel ended. `None` if it had none since this process started.
    pub since: Option<SystemTime>,
}

// === impl NoAgent ===

impl NoAgent {
    /// Whether an agent was connected a moment ago.
    pub fn is_recent(&self) -> bool {
        self.since.and_then(|since| since.elapsed().ok()).is_some_and(|elapsed| elapsed < RECENT)
    }
}

// === impl Registry ===

impl Registry {
    /// A registry without tunnels.
    pub fn new(clusters: Clusters) -> Self {
        Self {
            clusters: ArcSwap::from_pointee(clusters),
            served: Mutex::default(),
            connected: Connected::default(),
            peers: PeerTunnels::default(),
            changes: watch::Sender::new(0),
            turn: AtomicUsize::new(0),
            rechecks: watch::Sender::new(0),
        }
    }

    /// Replaces the clusters by those of a new configuration. Requests end if their cluster is removed, or if its agent may no
    /// longer serve it. Returns the tunnels that have lost their last cluster: their agents must register again.
    pub fn reload(&self, clusters: Clusters) -> Vec<Arc<Tunnel>> {
        // Held throughout, so that no offer is checked against the old configuration and entered after the new one.
        let mut served = self.served();
        let before = self.clusters.load_full();
        let mut lost = Vec::new();
        let mut interrupted = HashSet::new();
        served.retain(|name, served| {
            let By::Agent { agent, tunnels } = &mut served.by else { return clusters.by_name.contains_key(name) };
            let mode = |clusters: &Clusters| clusters.by_name.get(name).map(|cluster| cluster.mode);
            let granted = clusters.may_serve(name, agent) && mode(&clusters) == mode(&before);
            if !granted {
                lost.append(tunnels);
                interrupted.insert(name.clone());
            }
            granted
        });
        interrupted.extend(
            self.peers
                .retain(|name| clusters.by_name.contains_key(name), |name, agent| clusters.may_serve(name, agent)),
        );
        let (clusters, ended) = clusters.after(&before, &interrupted);
        self.clusters.store(Arc::new(clusters));
        lost.retain(|tunnel| !served.values().any(|served| served.is_by(tunnel)) && !self.may_serve_other(tunnel));
        drop(served);
        for end in ended {
            end.cancel();
        }
        count(&self.rechecks);
        count(&self.changes);
        lost
    }

    /// Whether the current configuration grants a cluster that a tunnel has offered in vain. Its offers are checked again.
    fn may_serve_other(&self, tunnel: &Arc<Tunnel>) -> bool {
        let clusters = self.clusters.load();
        let refused = self.connected.refused_of(tunnel);
        refused.iter().flat_map(|refused| &refused.clusters).any(|name| clusters.may_serve(name, &tunnel.agent))
    }

    /// Reports from now on that all offers must be checked again.
    pub fn rechecks(&self) -> watch::Receiver<u64> {
        self.rechecks.subscribe()
    }

    /// Cancelled when the requests for this cluster must end. `None` if there is no such cluster.
    pub fn end_of(&self, cluster: &ClusterName) -> Option<CancellationToken> {
        self.clusters.load().ends.get(cluster).cloned()
    }

    /// The clusters of the current configuration.
    pub fn clusters(&self) -> Arc<Clusters> {
        self.clusters.load_full()
    }

    /// Reports from now on that agents may serve other clusters.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The clusters that agents serve through this process.
    pub fn own_offers(&self) -> Vec<Offer> {
        let (clusters, served) = (self.clusters.load(), self.served());
        let mut offers: Vec<_> = served
            .iter()
            .filter_map(|(name, served)| match &served.by {
                By::Agent { agent, .. } => Some((name, agent)),
                By::Nobody { .. } => None,
            })
            .filter_map(|(name, agent)| {
                let mode = clusters.by_name.get(name)?.mode;
                Some(Offer { agent: Some(agent.clone()), ..Offer::new(name.clone(), mode) })
            })
            .collect();
        offers.sort_by(|one, other| one.name.cmp(&other.name));
        offers
    }

    /// Whether an agent may serve any of these offers now. If not, an agent that offers something is refused.
    pub fn check(&self, agent: &AgentId, offers: &[Offer]) -> Result<(), Refusal> {
        let (granted, refused) = self.check_all(&self.served(), agent, offers);
        match RefusedClusters::summary(&refused) {
            Some(refusal) if granted.is_empty() => Err(refusal),
            _ => Ok(()),
        }
    }

    fn check_all<'a>(
        &self,
        served: &HashMap<ClusterName, Served>,
        agent: &AgentId,
        offers: &'a [Offer],
    ) -> (Vec<&'a Offer>, Vec<RefusedClusters>) {
        let is_taken = |cluster: &ClusterName| match served.get(cluster).map(|served| &served.by) {
            Some(By::Agent { agent: owner, .. }) if owner != agent => true,
            Some(By::Agent { .. }) => self.peers.other_agent(cluster, agent).is_some_and(|other| other < *agent),
            Some(By::Nobody { .. }) | None => self.peers.other_agent(cluster, agent).is_some(),
        };
        check(&self.clusters.load(), is_taken, agent, offers)
    }

    /// Makes a tunnel serve exactly those offers of its agent that the agent may serve. Returns the others. Nothing changes
    /// for a closing tunnel.
    pub fn renew(&self, tunnel: &Arc<Tunnel>, offers: &[Offer]) -> Vec<RefusedClusters> {
        if tunnel.is_peer {
            self.renew_peer(tunnel, offers);
            return Vec::new();
        }
        let mut served = self.served();
        let (granted, refused) = self.check_all(&served, &tunnel.agent, offers);
        if tunnel.is_closing() {
            return refused;
        }
        let names: HashSet<&ClusterName> = granted.iter().map(|offer| &offer.name).collect();
        for (name, served) in served.iter_mut() {
            if !names.contains(name) {
                served.remove(tunnel);
            }
        }
        for offer in granted {
            let entry = served.entry(offer.name.clone());
            entry.or_default().add(tunnel);
        }
        self.connected.set(tunnel, &refused);
        drop(served);
        count(&self.changes);
        refused
    }

    /// The tunnel of another proxy-server serves those of its offers that are in the configuration. Ignores the others:
    /// operators may change the configurations one after the other.
    fn renew_peer(&self, tunnel: &Arc<Tunnel>, offers: &[Offer]) {
        let clusters = self.clusters.load();
        let known =
            offers.iter().filter(|offer| clusters.get(offer.name.as_str()).is_some_and(|own| own.mode == offer.mode));
        let served = known.filter_map(|offer| Some((&offer.name, offer.agent.as_ref()?)));
        let allowed: HashMap<_, _> = served.filter(|(name, agent)| clusters.may_serve(name, agent)).collect();
        self.peers.set(tunnel, &allowed);
        if tunnel.is_closing() {
            return;
        }
        self.connected.set(tunnel, &[]);
        // Two agents have connected to two proxy-servers in the same moment. Both proxy-servers decide for the same one.
        let served = self.served();
        let is_taken = allowed.iter().any(|(name, other)| match served.get(*name).map(|served| &served.by) {
            Some(By::Agent { agent, .. }) => *other < agent,
            Some(By::Nobody { .. }) | None => false,
        });
        drop(served);
        if is_taken {
            count(&self.rechecks);
        }
    }

    /// What other proxy-servers offer.
    pub fn peers(&self) -> &PeerTunnels {
        &self.peers
    }

    /// All tunnels, and the offers of each that are refused.
    pub fn connected(&self) -> &Connected {
        &self.connected
    }

    /// Removes a tunnel that must get no more streams. Its open streams may continue.
    pub fn remove(&self, tunnel: &Arc<Tunnel>) {
        let mut served = self.served();
        // Under the lock, so that no offers enter it again.
        tunnel.close();
        for served in served.values_mut() {
            served.remove(tunnel);
        }
        self.peers.remove(tunnel);
        self.connected.remove(tunnel);
        drop(served);
        count(&self.changes);
    }

    /// Reserves a stream to a cluster.
    pub async fn reserve(
        &self,
        cluster: &ClusterName,
        demand: Option<Demand<'_>>,
    ) -> Result<StreamReservation, OpenError> {
        self.reserve_of(demand, || self.cheapest(cluster, cost_here)).await
    }

    /// The same for a stream of another proxy-server, which must not pass through a third one.
    pub async fn reserve_own(
        &self,
        cluster: &ClusterName,
        demand: Option<Demand<'_>>,
    ) -> Result<StreamReservation, OpenError> {
        self.reserve_of(demand, || self.cheapest_own(cluster, cost_here)).await
    }

    /// If a tunnel turns out to be closing, removes it and tries the next one: a closing tunnel has the fewest streams, and may exist
    /// for hours, until its last stream has ended.
    async fn reserve_of(
        &self,
        demand: Option<Demand<'_>>,
        tunnel: impl Fn() -> Result<Arc<Tunnel>, NoAgent>,
    ) -> Result<StreamReservation, OpenError> {
        loop {
            let tunnel = tunnel()?;
            match tunnel.reserve(demand).await {
                Ok(reservation) => return Ok(reservation),
                Err(ReserveError::Full(remote)) => return Err(OpenError::Full(remote)),
                Err(closing @ ReserveError::Closing(..)) => {
                    debug!(error = &closing as &dyn std::error::Error, "trying another tunnel");
                    self.remove(&tunnel);
                }
            }
        }
    }

    /// The worker for a new connection to this cluster: that of the tunnel with the fewest streams. It does not prefer this
    /// worker, because one worker accepts all connections, and they must be distributed to all tunnels of the cluster.
    pub fn worker_of(&self, cluster: &ClusterName) -> Option<WorkerId> {
        self.cheapest(cluster, Tunnel::streams).ok()?.worker
    }

    /// All tunnels of a cluster, for the status. At least one. They are those of other proxy-servers if no agent is connected here.
    pub fn tunnels_of(&self, cluster: &ClusterName) -> Result<Vec<Arc<Tunnel>>, NoAgent> {
        let since = match self.served().get(cluster).map(|served| &served.by) {
            Some(By::Agent { tunnels, .. }) => return Ok(tunnels.clone()),
            Some(By::Nobody { since }) => Some(*since),
            None => None,
        };
        self.peers.of(cluster).map_err(|elsewhere| NoAgent { cluster: cluster.clone(), since: since.max(elsewhere) })
    }

    /// How often the last tunnel of each cluster has ended since this process started.
    pub fn interruptions(&self) -> HashMap<ClusterName, u64> {
        self.served().iter().map(|(name, served)| (name.clone(), served.interruptions)).collect()
    }

    /// The tunnel of a cluster that costs the least: of its agents, or else of other proxy-servers.
    fn cheapest(&self, cluster: &ClusterName, cost: impl Fn(&Tunnel) -> usize) -> Result<Arc<Tunnel>, NoAgent> {
        let own = self.cheapest_own(cluster, &cost);
        own.or_else(|absent| match self.peers.of(cluster) {
            Ok(tunnels) => Ok(self.cheapest_of(&tunnels, cost).expect("a cluster that is offered has a tunnel")),
            Err(since) => Err(NoAgent { since: since.max(absent.since), ..absent }),
        })
    }

    /// The same, but only of its agents.
    fn cheapest_own(&self, cluster: &ClusterName, cost: impl Fn(&Tunnel) -> usize) -> Result<Arc<Tunnel>, NoAgent> {
        let since = match self.served().get(cluster).map(|served| &served.by) {
            Some(By::Agent { tunnels, .. }) => {
                return Ok(self.cheapest_of(tunnels, cost).expect("a cluster that is served has a tunnel"));
            }
            Some(By::Nobody { since }) => Some(*since),
            None => None,
        };
        Err(NoAgent { cluster: cluster.clone(), since })
    }

    /// Tunnels of equal cost take turns, so that the requests of clients that send one at a time are also distributed.
    fn cheapest_of(&self, tunnels: &[Arc<Tunnel>], cost: impl Fn(&Tunnel) -> usize) -> Option<Arc<Tunnel>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % tunnels.len().max(1);
        let (behind, first) = tunnels.split_at(turn);
        first.iter().chain(behind).min_by_key(|tunnel| cost(tunnel)).map(Arc::clone)
    }

    fn served(&self) -> MutexGuard<'_, HashMap<ClusterName, Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Served ===

impl Served {
    fn is_by(&self, tunnel: &Arc<Tunnel>) -> bool {
        match &self.by {
            By::Agent { tunnels, .. } => tunnels.iter().any(|one| Arc::ptr_eq(one, tunnel)),
            By::Nobody { .. } => false,
        }
    }

    /// The agent of the tunnel may serve the cluster.
    fn add(&mut self, tunnel: &Arc<Tunnel>) {
        match &mut self.by {
            By::Agent { tunnels, .. } if tunnels.iter().any(|one| Arc::ptr_eq(one, tunnel)) => {}
            By::Agent { tunnels, .. } => tunnels.push(Arc::clone(tunnel)),
            By::Nobody { .. } => {
                self.by = By::Agent { agent: tunnel.agent.clone(), tunnels: vec![Arc::clone(tunnel)] };
            }
        }
    }

    fn remove(&mut self, tunnel: &Arc<Tunnel>) {
        let By::Agent { tunnels, .. } = &mut self.by else { return };
        tunnels.retain(|other| !Arc::ptr_eq(other, tunnel));
        if tunnels.is_empty() {
            self.by = By::Nobody { since: SystemTime::now() };
            self.interruptions += 1;
        }
    }
}

impl Default for Served {
    fn default() -> Self {
        Self { by: By::Nobody { since: SystemTime::UNIX_EPOCH }, interruptions: 0 }
    }
}

// === impl Clusters ===

impl Clusters {
    /// Reads a configuration, and logs the addresses that no client can use.
    pub fn of(config: &ProxyServerConfiguration) -> Self {
        let clusters = Self::new(config.clusters.iter().map(|cluster| Arc::new((**cluster).clone())));
        for (address, at) in &clusters.by_api_server {
            if matches!(at, AtAddress::Several) {
                warn!(%address, "several clusters have this apiServer: clients can reach them only by name");
            }
        }
        clusters
    }

    /// Indexes the clusters of a configuration. It is valid, so names are unique. Addresses need not be.
    pub fn new(clusters: impl IntoIterator<Item = Arc<Cluster>>) -> Self {
        let mut indexed = Self::default();
        for cluster in clusters {
            if let Some(address) = &cluster.api_server {
                let entry = indexed.by_api_server.entry(address.clone());
                entry.and_modify(|at| *at = AtAddress::Several).or_insert_with(|| AtAddress::One(Arc::clone(&cluster)));
            }
            indexed.have_destinations |= !cluster.destinations.is_empty();
            indexed.ends.insert(cluster.name.clone(), CancellationToken::new());
            indexed.by_name.insert(cluster.name.clone(), cluster);
        }
        indexed
    }

    /// By name.
    pub fn get(&self, name: &str) -> Option<&Arc<Cluster>> {
        self.by_name.get(name)
    }

    /// The physical clusters whose API server has this address.
    pub fn by_api_server(&self, authority: &Authority) -> Option<&AtAddress> {
        self.by_api_server.get(authority)
    }

    /// Whether a cluster has destinations.
    pub fn have_destinations(&self) -> bool {
        self.have_destinations
    }

    /// All clusters, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Cluster>> {
        self.by_name.values()
    }

    /// Takes over the tokens of `before`: requests continue for a cluster that is the same in both, unless it is
    /// `interrupted`. All other requests end.
    fn after(mut self, before: &Self, interrupted: &HashSet<ClusterName>) -> (Self, Vec<CancellationToken>) {
        let mut ended = Vec::new();
        for (name, end) in &before.ends {
            let is_same = match (before.by_name.get(name), self.by_name.get(name)) {
                (Some(old), Some(new)) => old.mode == new.mode && old.api_server == new.api_server,
                _ => false,
            };
            if is_same && !interrupted.contains(name) {
                self.ends.insert(name.clone(), end.clone());
            } else {
                ended.push(end.clone());
            }
        }
        (self, ended)
    }

    /// Whether the configuration allows an agent to serve a cluster.
    fn may_serve(&self, cluster: &ClusterName, agent: &AgentId) -> bool {
        self.by_name.get(cluster).is_some_and(|cluster| cluster.agents.contains(agent))
    }

    /// Whether the configuration grants an agent all of these offers.
    pub fn grants_all<'a>(&self, agent: &AgentId, offers: impl IntoIterator<Item = &'a Offer>) -> bool {
        offers.into_iter().all(|offer| self.grant(agent, offer).is_ok())
    }

    fn grant(&self, agent: &AgentId, offer: &Offer) -> Result<(), Why> {
        // The same reason for "unknown" and "not yours": an agent learns nothing about other sites.
        let cluster = self.by_name.get(&offer.name).filter(|cluster| cluster.agents.contains(agent));
        let mode = cluster.ok_or(Why::NotGranted)?.mode;
        if mode == offer.mode { Ok(()) } else { Err(Why::Mode { ours: mode, theirs: offer.mode }) }
    }
}

// === impl Why ===

impl Why {
    fn refusal(self, agent: &AgentId) -> Refusal {
        match self {
            Self::NotGranted => Refusal::new(
                RefusalReason::NotGranted,
                format!(
                    "not granted to agent {agent}: add the agent to `agents` of the cluster in the proxy-server's \
                     configuration, add the name to `grants`, or remove the cluster at the agent"
                ),
            ),
            Self::Mode { ours, theirs } => Refusal::new(
                RefusalReason::NotGranted,
                format!("{} at the proxy-server, but {} at agent {agent}", mode_word(ours), mode_word(theirs)),
            ),
            Self::Taken => Refusal::new(RefusalReason::Conflict, "served by another agent; stop that one first"),
            Self::Repeated => Refusal::new(RefusalReason::NotGranted, format!("agent {agent} has offered it twice")),
        }
    }
}

/// The offers that an agent may serve now, and the others. The messages are built once for each reason, because an agent may
/// offer thousands of names, and requests wait meanwhile.
fn check<'a>(
    clusters: &Clusters,
    is_taken: impl Fn(&ClusterName) -> bool,
    agent: &AgentId,
    offers: &'a [Offer],
) -> (Vec<&'a Offer>, Vec<RefusedClusters>) {
    let mut seen = HashSet::new();
    let repeated: HashSet<_> = offers.iter().map(|offer| &offer.name).filter(|name| !seen.insert(*name)).collect();
    let mut reported = HashSet::new();
    let mut granted = Vec::new();
    let mut refused: Vec<(Why, Vec<ClusterName>)> = Vec::new();
    for offer in offers {
        let why = match clusters.grant(agent, offer) {
            _ if repeated.contains(&offer.name) => {
                if !reported.insert(&offer.name) {
                    continue;
                }
                Why::Repeated
            }
            Ok(()) if is_taken(&offer.name) => Why::Taken,
            Ok(()) => {
                granted.push(offer);
                continue;
            }
            Err(why) => why,
        };
        match refused.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(offer.name.clone()),
            None => refused.push((why, vec![offer.name.clone()])),
        }
    }
    let refused = refused.into_iter().map(|(why, clusters)| RefusedClusters { clusters, refusal: why.refusal(agent) });
    (granted, refused.collect())
}

/// One more change.
fn count(changes: &watch::Sender<u64>) {
    changes.send_modify(|changes| *changes += 1);
}

/// The number of streams of a tunnel, with a preference for tunnels of this worker (see [`OTHER_WORKER_COST`]).
fn cost_here(tunnel: &Tunnel) -> usize {
    tunnel.streams() + if tunnel.worker == workers::here() { 0 } else { OTHER_WORKER_COST }
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Virtual => "virtual",
        Mode::Physical => "physical",
    }
}

fn since_when(time: Option<SystemTime>) -> String {
    time.map_or_else(|| "none since this proxy-server started".into(), |time| format!("since {}", Moment::from(time)))
}

#[cfg(test)]
mod tests;
