//! The virtual clusters that agents add by themselves, if the configuration grants them the names.
//!
//! ```text
//! offer of an unknown name -> a grant allows it -> a client CA on disk -> a new list of clusters -> the offer is in force
//! ```
//! An added cluster is like one of the configuration file from then on, and stays when its agent disconnects or this process
//! restarts. It is removed some time after its agent has withdrawn it, or when the grant no longer allows it. Clusters of the file
//! come first: no grant applies to their names.

mod members;
mod store;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ops::log::chain;
use ops::pki::Authority;
use protocol::registration::Mode;
use protocol::user_certificate::ClientAddress;
use protocol::{AgentId, ClusterName, Offer};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

pub use store::{Added, AddedCluster, Addition, Store, StoreError};

use members::Members;

use crate::config::{self, LONGEST_NAME, MemberFacts, ProxyServerConfiguration, Through};
use crate::registry::Registry;

/// How long a cluster stays after its agent has withdrawn it. An operator can move a cluster between the file of the agent and an
/// object of the host, or another replica of the agent can be about to offer it.
const GRACE_PERIOD: Duration = Duration::from_secs(60);

/// The interval at which the directory is read again: another proxy-server, or the operator, may have changed it.
const PERIOD: Duration = Duration::from_secs(5);

/// The interval at which the directories of removed clusters are looked for.
const SWEEP_PERIOD: Duration = Duration::from_secs(600);

/// The time for an added cluster to be in force. Longer, and the offer is refused; it is checked again when the cluster is in force.
const IN_FORCE_TIMEOUT: Duration = Duration::from_secs(5);

/// The clusters that agents have added, and those that they may add.
#[derive(Debug)]
pub struct Grants {
    store: Store,
    /// The grants in force.
    config: Mutex<Arc<ProxyServerConfiguration>>,
    registry: Arc<Registry>,
    added: watch::Sender<Arc<Added>>,
    members: Members,
    /// The clusters that are no longer offered, and since when.
    withdrawn: Mutex<HashMap<ClusterName, Instant>>,
}

/// What an agent gets for the users of its clusters.
#[derive(Clone, Debug)]
pub(crate) struct GrantedKubeconfigs {
    /// How long a certificate is valid.
    pub(crate) lifetime: Duration,
    through: Through,
    url: String,
    domain: String,
}

/// The configuration with the clusters that its agents have added, for commands that read it.
pub fn with_added(config: &ProxyServerConfiguration) -> Result<ProxyServerConfiguration, StoreError> {
    let Some(grants) = &config.grants else { return Ok(config.clone()) };
    Ok(merge(config, &Store::new(grants.directory.to_path_buf()).list()?))
}

/// The configuration with these clusters, unless it has one with the same name, or does not grant it.
pub(crate) fn merge(config: &ProxyServerConfiguration, added: &Added) -> ProxyServerConfiguration {
    let mut merged = config.clone();
    if let Some(grants) = &config.grants {
        for (name, AddedCluster { agent, member }) in added {
            let Some(grant) = may_add(config, agent, name) else { continue };
            merged.clusters.push(grants.cluster(name, agent).into());
            if let (Some(karmada), Some(member), true) = (&mut merged.karmada, member, grant.member_settings) {
                karmada.members.push(MemberFacts::of(name, member).into());
            }
        }
    }
    merged
}

/// The grant by which an agent may add a cluster that the file does not have.
fn may_add<'c>(config: &'c ProxyServerConfiguration, agent: &AgentId, name: &ClusterName) -> Option<&'c config::Grant> {
    let grant = config.grants.as_ref()?.allow(agent, name)?;
    let is_too_long = name.as_str().len() > LONGEST_NAME && config.karmada.as_ref().is_some_and(|to| to.wants(name));
    let is_listed = config.clusters.iter().any(|cluster| cluster.name == *name);
    (!is_too_long && !is_listed).then_some(grant)
}

/// The clusters of the directory, and those that are missing for the first time: a shared file system can show an old directory for
/// a moment, and what a cluster has in Karmada is deleted when it leaves.
fn confirmed(mut all: Added, known: &Added, absent: &mut BTreeSet<ClusterName>) -> Added {
    let missing: Vec<_> = known.iter().filter(|(name, _)| !all.contains_key(*name)).collect();
    let before = std::mem::replace(absent, missing.iter().map(|(name, _)| (*name).clone()).collect());
    let first = missing.into_iter().filter(|(name, _)| !before.contains(*name));
    all.extend(first.map(|(name, cluster)| (name.clone(), cluster.clone())));
    all
}

/// Says which clusters of an offer were not added, and what the operator can do.
fn report(agent: &AgentId, addition: &Addition, limit: usize) {
    let Addition { of_others, beyond_limit, failed, .. } = addition;
    if !of_others.is_empty() {
        warn!(%agent, clusters = shown(of_others), "clusters not added: another agent has added them, so delete them there first");
    }
    if !beyond_limit.is_empty() {
        warn!(%agent, clusters = shown(beyond_limit), limit, "clusters not added: raise `maxClusters` of the agent's grant");
    }
    for (name, error) in failed {
        error!(%agent, cluster = %name, error = %chain(error), "cannot add a cluster that an agent offers");
    }
}

/// The first ones.
fn shown(names: &[ClusterName]) -> String {
    let first: Vec<_> = names.iter().take(10).map(ClusterName::as_str).collect();
    let more = if names.len() > first.len() { ", ..." } else { "" };
    format!("{}{more}", first.join(", "))
}

// === impl GrantedKubeconfigs ===

impl GrantedKubeconfigs {
    /// How clients reach a cluster.
    pub(crate) fn address(&self, name: &ClusterName) -> ClientAddress {
        self.through.address(&self.url, name, &self.domain)
    }
}

// === impl Grants ===

impl Grants {
    /// Reads the directory. `None` if the configuration has no grants.
    pub(crate) fn open(
        config: &ProxyServerConfiguration,
        registry: &Arc<Registry>,
    ) -> Result<Option<Arc<Self>>, StoreError> {
        let Some(grants) = &config.grants else { return Ok(None) };
        let store = Store::new(grants.directory.to_path_buf());
        let added = watch::Sender::new(Arc::new(store.list()?));
        let (registry, config) = (Arc::clone(registry), Mutex::new(Arc::new(config.clone())));
        let (members, withdrawn) = (Members::default(), Mutex::default());
        Ok(Some(Arc::new(Self { store, config, registry, added, members, withdrawn })))
    }

    /// The clusters that agents have added.
    pub(crate) fn added(&self) -> watch::Receiver<Arc<Added>> {
        self.added.subscribe()
    }

    /// Puts the grants of another configuration file into force.
    pub(crate) fn exchange(&self, config: Arc<ProxyServerConfiguration>) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Adds the clusters that an agent offers for the first time and may add. Completes when they are in force.
    pub(crate) async fn admit(self: &Arc<Self>, agent: &AgentId, offers: &[Offer]) {
        {
            let added = Arc::clone(&self.added.borrow());
            let mut withdrawn = self.withdrawn();
            if !withdrawn.is_empty() {
                // The offers of other agents, which are refused, do not keep it.
                let is_own = |name: &ClusterName| added.get(name).is_some_and(|cluster| cluster.agent == *agent);
                withdrawn.retain(|name, _| !(is_own(name) && offers.iter().any(|offer| offer.name == *name)));
            }
        }
        let config = self.config();
        let known = self.registry.clusters();
        let grant = |offer: &&Offer| may_add(&config, agent, &offer.name);
        let new: Vec<_> = offers
            .iter()
            .filter(|offer| offer.mode == Mode::Virtual && known.get(offer.name.as_str()).is_none())
            .filter(|offer| grant(offer).is_some())
            .collect();
        let Some(limit) = new.first().and_then(grant).map(|grant| grant.max_clusters) else { return };
        let names: Vec<_> = new.into_iter().map(|offer| offer.name.clone()).collect();
        let (this, by) = (Arc::clone(self), agent.clone());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        // The worker must not wait for files, because it serves all its other connections.
        let written = spawn_blocking(move || {
            let addition = this.store.add(&by, &names, limit)?;
            Ok::<_, StoreError>((addition, this.store.list()?))
        });
        match written.await {
            Ok(Ok((addition, all))) => {
                report(agent, &addition, limit);
                self.publish(all);
                self.in_force(&addition.owned).await;
            }
            Ok(Err(error)) => {
                error!(%agent, error = %chain(&error), "cannot add the clusters that an agent offers");
            }
            Err(error) => error!(%agent, %error, "cannot add the clusters that an agent offers"),
        }
    }

    /// Completes when the registry has these clusters.
    async fn in_force(&self, names: &[ClusterName]) {
        let mut changes = self.registry.rechecks();
        let complete = async {
            loop {
                let clusters = self.registry.clusters();
                if names.iter().all(|name| clusters.get(name.as_str()).is_some()) || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        if timeout(IN_FORCE_TIMEOUT, complete).await.is_err() {
            warn!(clusters = names.len(), "added clusters are not in force yet");
        }
    }

    /// Uses what an agent asks for in Karmada, if its grant lets it choose, for the clusters that it has added. Only the offers on the
    /// stream have it: a registration is too small.
    pub(crate) fn describe(&self, agent: &AgentId, offers: &[Offer]) {
        let config = self.config();
        let grant = config.grants.as_ref().and_then(|grants| grants.of(agent));
        self.members.note(agent, offers, &self.added.borrow(), grant.is_some_and(|grant| grant.member_settings));
    }

    /// What the agent gets for the users of its clusters. `None` if it may not have certificates.
    pub(crate) fn kubeconfigs_of(&self, agent: &AgentId) -> Option<GrantedKubeconfigs> {
        let config = self.config();
        let grants = config.grants.as_ref()?;
        let kubeconfigs = grants.kubeconfigs.as_ref().filter(|_| grants.of(agent).is_some_and(|to| to.kubeconfigs))?;
        Some(GrantedKubeconfigs {
            lifetime: kubeconfigs.certificate_lifetime.get(),
            through: kubeconfigs.through,
            url: kubeconfigs.url.to_string(),
            domain: config.domain.to_string(),
        })
    }

    /// The client CA of a cluster that this agent has added, and that the configuration still grants to it. Uses files, so it can
    /// block.
    pub(crate) fn client_ca(&self, agent: &AgentId, name: &ClusterName) -> Result<Option<Authority>, StoreError> {
        if may_add(&self.config(), agent, name).is_none() {
            return Ok(None);
        }
        self.store.client_ca(name, agent)
    }

    /// An agent no longer offers these clusters, although its tunnel is up.
    pub(crate) fn withdraw<'n>(&self, agent: &AgentId, names: impl Iterator<Item = &'n ClusterName>) {
        let added = Arc::clone(&self.added.borrow());
        let own = names.filter(|name| added.get(*name).is_some_and(|cluster| cluster.agent == *agent));
        self.withdrawn().extend(own.map(|name| (name.clone(), Instant::now())));
    }

    /// Keeps up with the directory, and removes withdrawn clusters, for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        let (mut absent, mut swept) = (BTreeSet::new(), Instant::now());
        loop {
            sleep(PERIOD).await;
            let is_sweep = swept.elapsed() >= SWEEP_PERIOD;
            if is_sweep {
                swept = Instant::now();
            }
            let ended = self.ended();
            let known = Arc::clone(&self.added.borrow());
            let (this, seen, changes) = (Arc::clone(&self), Arc::clone(&known), self.members.take());
            let read = spawn_blocking(move || {
                let failed = this.store.describe(changes);
                this.members.put_back(failed);
                if is_sweep {
                    this.store.sweep(SystemTime::now())?;
                }
                for (name, agent) in &ended {
                    this.store.remove(name, agent)?;
                    info!(cluster = %name, %agent, "a cluster is removed: its agent has withdrawn it");
                }
                this.store.list_again(&seen)
            });
            match read.await {
                Ok(Ok(all)) => self.publish(confirmed(all, &known, &mut absent)),
                Ok(Err(error)) => warn!(error = %chain(&error), "cannot read the added clusters"),
                Err(error) => error!(%error, "cannot read the added clusters"),
            }
        }
    }

    /// The clusters whose grace period is over, and which no agent offers again.
    fn ended(&self) -> Vec<(ClusterName, AgentId)> {
        let mut ended = Vec::new();
        let added = Arc::clone(&self.added.borrow());
        self.withdrawn().retain(|name, since| {
            let Some(AddedCluster { agent, .. }) = added.get(name) else { return false };
            // Another replica of the agent, or another proxy-server, may serve it.
            let is_served = self.registry.tunnels_of(name).is_ok();
            let is_over = since.elapsed() >= GRACE_PERIOD;
            if is_over && !is_served {
                ended.push((name.clone(), agent.clone()));
            }
            !is_over && !is_served
        });
        ended
    }

    fn publish(&self, all: Added) {
        let config = self.config();
        self.added.send_if_modified(|added| {
            if **added == all {
                return false;
            }
            for (name, AddedCluster { agent, .. }) in all.iter().filter(|(name, _)| !added.contains_key(*name)) {
                if may_add(&config, agent, name).is_some() {
                    info!(cluster = %name, %agent, "a cluster is added: the configuration grants its name to the agent");
                }
            }
            *added = Arc::new(all);
            true
        });
    }

    fn config(&self) -> Arc<ProxyServerConfiguration> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn withdrawn(&self) -> MutexGuard<'_, HashMap<ClusterName, Instant>> {
        self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
