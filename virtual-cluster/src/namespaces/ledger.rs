//! Decides which state of a namespace is newest, because states come from two sources.
//!
//! The watch delivers all changes in the order of the host's revisions, but with a delay. The response to the agent's
//! own request arrives earlier, but the watch may already have delivered a newer state. The state with the highest
//! version wins. If the name is unknown and the response is older than the position of the watch, the namespace has
//! been deleted since.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use rewrite::mapping::Identity;
use rewrite::name::endings;
use rewrite::{ClusterName, HostNamespace, Index, VirtualNamespace};

use super::full::Full;
use super::member::{Member, Root};
use super::record::{Gone, Phase, Record, Version};

/// The number of deleted members that are remembered. Events arrive some milliseconds late, so a hundred would suffice.
const MAX_RECENTLY_DELETED: usize = 1000;

/// The namespace whose uid identifies a cluster.
const SYSTEM: &str = "kube-system";

/// The records of all namespaces. The index is kept in addition to them, so that a snapshot is one clone.
pub(super) struct Ledger {
    records: HashMap<HostNamespace, Record>,
    index: Arc<Index>,
    /// Deleted members, for later events about their objects.
    recently_deleted: Arc<Index>,
    /// The names in `recently_deleted`, oldest first.
    gone: VecDeque<HostNamespace>,
    clusters: HashSet<ClusterName>,
    /// The root namespaces of the clusters, also under the names of earlier versions.
    roots: HashMap<HostNamespace, ClusterName>,
    /// The version up to which the watch has delivered all changes.
    seen: Version,
    is_complete: bool,
}

/// The source of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Watch,
    Response,
}

// === impl Ledger ===

impl Ledger {
    pub(super) fn new(clusters: impl IntoIterator<Item = ClusterName>) -> Self {
        let clusters: HashSet<_> = clusters.into_iter().collect();
        Self {
            records: HashMap::new(),
            index: Arc::new(Index::new()),
            recently_deleted: Arc::new(Index::new()),
            gone: VecDeque::new(),
            roots: roots(&clusters),
            clusters,
            seen: Version::default(),
            is_complete: false,
        }
    }

    pub(super) fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index)
    }

    /// Deleted members.
    pub(super) fn recently_deleted(&self) -> Arc<Index> {
        Arc::clone(&self.recently_deleted)
    }

    /// Whether the watch has delivered all changes up to this version.
    pub(super) fn has_seen(&self, version: u64) -> bool {
        Version(version) <= self.seen
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Returns whether anything has changed that subscribers read.
    pub(super) fn learn(&mut self, host: &HostNamespace, record: Record, source: Source) -> bool {
        let is_past = record.version <= self.seen;
        if source == Source::Watch {
            self.seen = self.seen.max(record.version);
        }
        let known = self.records.get(host);
        match known {
            Some(known) if known.version > record.version => return false,
            None if source == Source::Response && self.is_complete && is_past => return false,
            _ => {}
        }
        // The status of a namespace that is being deleted lists its remaining content, so each change is an event.
        let is_news = record.phase == Phase::Terminating
            || known.is_none_or(|known| {
                let of = |record: &Record| {
                    let Record { version: _, uid, phase, claim, root_of, posture, annotations, identity, full } =
                        record.clone();
                    ((uid, phase, claim, root_of), (posture, annotations, identity, full))
                };
                of(known) != of(&record)
            });
        let claim = record.claim.clone();
        let before = self.records.insert(host.clone(), record).map(|before| before.claim);
        if before.as_ref() != Some(&claim) {
            self.enter(host, claim.as_ref());
            self.enter(host, before.flatten().as_ref());
        }
        if is_news {
            self.identify(host);
        }
        is_news
    }

    /// Returns whether the namespace was known.
    pub(super) fn forget(&mut self, host: &HostNamespace, gone: &Gone) -> bool {
        if let Some(version) = gone.version {
            self.seen = self.seen.max(version);
        }
        let Some(known) = self.records.get(host) else { return false };
        // This removes the namespace and its predecessors of the same name, but not one that was created since.
        let is_later = match (gone.version, &gone.uid) {
            (_, Some(uid)) if *uid == known.uid => false,
            (Some(version), _) => known.version > version,
            (None, Some(_)) => true,
            (None, None) => false,
        };
        if is_later {
            return false;
        }
        if let Some(record) = self.records.remove(host) {
            if let Some(member) = self.member_of(host, &record) {
                self.tombstone(member);
            }
            self.enter(host, record.claim.as_ref());
            self.identify_clusters(record.claim.iter().map(|(cluster, _)| cluster).chain(&record.root_of));
        }
        true
    }

    /// Replaces the virtual clusters. Returns the namespaces whose owner changes.
    pub(super) fn serve(&mut self, clusters: impl IntoIterator<Item = ClusterName>) -> Vec<HostNamespace> {
        let former = std::mem::replace(&mut self.clusters, clusters.into_iter().collect());
        self.roots = roots(&self.clusters);
        self.index = Arc::new(Index::new());
        let hosts: Vec<_> = self.records.keys().cloned().collect();
        for host in &hosts {
            self.enter_one(host);
        }
        let served = self.clusters.clone();
        self.identify_clusters(&served);
        let has_changed = |cluster: &&ClusterName| self.clusters.contains(*cluster) != former.contains(*cluster);
        let changed: HashSet<_> = self.clusters.iter().chain(&former).filter(has_changed).collect();
        let changed_roots = roots(changed.iter().copied());
        let is_changed = |host: &HostNamespace| {
            let claim = self.records[host].claim.as_ref();
            claim.is_some_and(|(cluster, _)| changed.contains(cluster)) || changed_roots.contains_key(host)
        };
        hosts.into_iter().filter(is_changed).collect()
    }

    /// The virtual cluster with this root namespace, if it is served.
    pub(super) fn cluster_of_root(&self, host: &str) -> Option<ClusterName> {
        self.roots.get(host.as_bytes()).cloned()
    }

    /// A virtual cluster with a root namespace, whose namespaces can have the same host names as those of `cluster`. `None` if
    /// `cluster` itself has a root namespace already.
    pub(super) fn name_conflict(&self, cluster: &ClusterName) -> Option<ClusterName> {
        let ends = |long: &ClusterName, short: &ClusterName| endings(long.as_str()).any(|end| end == short.as_str());
        let mut conflict = None;
        for other in self.records.values().filter_map(|record| record.root_of.as_ref()) {
            if other == cluster {
                return None;
            }
            if ends(other, cluster) || ends(cluster, other) {
                conflict = Some(other.clone());
            }
        }
        conflict
    }

    /// Whether the namespace exists.
    pub(super) fn knows(&self, host: &HostNamespace) -> bool {
        self.records.contains_key(host)
    }

    pub(super) fn member(&self, host: &HostNamespace) -> Option<Member> {
        self.member_of(host, self.records.get(host)?)
    }

    /// The same as [`member`](Self::member), without a copy for each request.
    pub(super) fn is_ending(&self, host: &HostNamespace) -> bool {
        let record = self.records.get(host).filter(|record| record.phase == Phase::Terminating);
        record.is_some_and(|record| self.member_of(host, record).is_some())
    }

    pub(super) fn members(&self, cluster: &ClusterName) -> Vec<Member> {
        let members = self.records.iter().filter_map(|(host, record)| self.member_of(host, record));
        members.filter(|member| member.cluster == *cluster).collect()
    }

    pub(super) fn root(&self, cluster: &ClusterName) -> Option<Root> {
        let record = self.records.get(&HostNamespace::root(cluster))?;
        (record.root_of.as_ref() == Some(cluster)).then(|| Root {
            uid: Arc::clone(&record.uid),
            phase: record.phase,
            annotations: record.annotations.clone(),
        })
    }

    /// The member for a record, regardless of the index.
    pub(super) fn member_of(&self, host: &HostNamespace, record: &Record) -> Option<Member> {
        let (cluster, name) = record.claim.clone().filter(|(cluster, _)| self.clusters.contains(cluster))?;
        // A namespace with a name of the current version has precedence over one with a name of an earlier version.
        // Both exist only if agents of both versions have run at the same time.
        if HostNamespace::derive_formerly(&name, &cluster).as_ref() == Some(host) {
            let today = self.records.get(&HostNamespace::derive(&name, &cluster));
            if today.is_some_and(|today| today.claim == record.claim) {
                return None;
            }
        }
        Some(Member {
            cluster,
            name,
            host: host.clone(),
            uid: Arc::clone(&record.uid),
            phase: record.phase,
            posture: record.posture,
            annotations: record.annotations.clone(),
        })
    }

    /// The keys of the labels by which virtual clusters select their nodes, from the annotations of root namespaces.
    pub(super) fn node_labels(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        for (_, root) in self.records.iter().filter(|(host, _)| host.is_root()) {
            root.annotations.collect_node_labels(&mut keys);
        }
        keys
    }

    /// The virtual clusters that have reached limits, from the annotations of root namespaces.
    pub(super) fn full(&self) -> BTreeMap<ClusterName, Full> {
        self.records.values().filter_map(|record| record.full.as_deref().cloned()).collect()
    }

    fn tombstone(&mut self, member: Member) {
        let recently_deleted = Arc::make_mut(&mut self.recently_deleted);
        if recently_deleted.owner(member.host.as_ref()).is_none() {
            self.gone.push_back(member.host.clone());
        }
        // This cannot be ambiguous, because the host name is derived from the cluster and the virtual name.
        let _ = recently_deleted.insert(member.host, member.cluster, member.name);
        if self.gone.len() > MAX_RECENTLY_DELETED
            && let Some(oldest) = self.gone.pop_front()
        {
            recently_deleted.remove(&oldest);
        }
    }

    /// Updates the index for a namespace, and for the namespace that had the same virtual name before.
    fn enter(&mut self, host: &HostNamespace, claim: Option<&(ClusterName, VirtualNamespace)>) {
        // That one may have to be removed, or become a member again.
        let former = claim.and_then(|(cluster, name)| HostNamespace::derive_formerly(name, cluster));
        let former = former.filter(|former| former != host);
        if let Some(former) = &former {
            Arc::make_mut(&mut self.index).remove(former);
        }
        self.enter_one(host);
        if let Some(former) = &former {
            self.enter_one(former);
        }
    }

    /// Updates the identity of the virtual cluster to which the namespace belongs, if it decides about it.
    fn identify(&mut self, host: &HostNamespace) {
        let Some(record) = self.records.get(host) else { return };
        let system = record.claim.iter().filter(|(_, name)| name.as_str() == SYSTEM).map(|(cluster, _)| cluster);
        let clusters: Vec<_> = system.chain(&record.root_of).cloned().collect();
        self.identify_clusters(&clusters);
    }

    fn identify_clusters<'c>(&mut self, clusters: impl IntoIterator<Item = &'c ClusterName>) {
        for cluster in clusters {
            let identity = self.identity(cluster);
            if self.index.identity(cluster) != identity.as_ref() {
                Arc::make_mut(&mut self.index).identify(cluster, identity);
            }
        }
    }

    /// The identity of a virtual cluster, if it is not that of its `kube-system` on the host.
    fn identity(&self, cluster: &ClusterName) -> Option<Identity> {
        let root = self.records.get(&HostNamespace::root(cluster))?;
        let shown = root.identity.as_ref().filter(|_| root.root_of.as_ref() == Some(cluster))?;
        let system = self.index.host(cluster, &VirtualNamespace::new(SYSTEM).ok()?)?;
        let host = &self.records.get(system)?.uid;
        let bytes = |uid: &str| uid.as_bytes().to_vec().into();
        (shown != host).then(|| Identity { host: bytes(host), shown: bytes(shown) })
    }

    fn enter_one(&mut self, host: &HostNamespace) {
        let record = self.records.get(host);
        let is_known = record.is_some();
        let member = record.and_then(|record| self.member_of(host, record));
        let index = Arc::make_mut(&mut self.index);
        let is_entered = member.is_some_and(|member| {
            // This cannot be ambiguous: of two namespaces with the same virtual name, only one is a member.
            index.insert(member.host, member.cluster, member.name).is_ok()
        });
        match (is_entered, is_known) {
            (true, _) => {}
            (false, true) => index.insert_host(host.clone()),
            (false, false) => index.remove(host),
        }
    }
}

/// The root namespaces of these clusters.
fn roots<'c>(clusters: impl IntoIterator<Item = &'c ClusterName>) -> HashMap<HostNamespace, ClusterName> {
    let names = |cluster: &'c ClusterName| {
        let roots = HostNamespace::former_root(cluster).into_iter().chain([HostNamespace::root(cluster)]);
        roots.map(move |root| (root, cluster.clone()))
    };
    clusters.into_iter().flat_map(names).collect()
}

#[cfg(test)]
mod tests;
