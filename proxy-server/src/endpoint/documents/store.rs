//! The maps of stored documents, with their limits. The caller has a lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use protocol::digest::Digest;
use protocol::{AgentId, ClusterName};

use super::key::Key;
use crate::config::Cluster;

/// The maximum size of all documents, compressed, in bytes: those of about a thousand clusters.
pub(super) const MAX_TOTAL: usize = 32 * 1024 * 1024;

/// The maximum number of documents of one cluster. Clients can request a document in several media types.
pub(super) const MAX_OF_CLUSTER: usize = 64;

/// What a document needs in addition to its bytes.
const OVERHEAD: usize = 512;

/// A stored document. Clones share its bytes.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) digest: Digest,
    /// Compressed.
    /// The bytes are an allocation of their own, so they are freed with the last strong reference, also if weak ones exist.
    pub(super) blocks: Arc<Box<[u8]>>,
    /// The length of the decoded document in bytes.
    pub(super) length: u64,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    clusters: HashMap<ClusterName, OfCluster>,
    size: usize,
    /// The number of uses of all documents, and of documents that have arrived.
    steps: u64,
}

#[derive(Debug, Default)]
struct OfCluster {
    /// Those that may serve it. Others do not learn what it has stored.
    agents: Vec<AgentId>,
    stored: HashMap<Key, Stored>,
    /// In the order of their beginning.
    arriving: BTreeMap<u64, Blocks>,
    size: usize,
}

#[derive(Debug)]
struct Stored {
    entry: Entry,
    /// The step of its last use.
    used: u64,
}

/// The compressed bytes of a document that have arrived.
#[derive(Debug)]
struct Blocks {
    key: Key,
    bytes: Vec<u8>,
}

// === impl Store ===

impl Store {
    pub(super) fn get(&mut self, cluster: &Cluster, key: &Key) -> Option<Entry> {
        let step = self.step();
        let stored =
            self.clusters.get_mut(&cluster.name).filter(|of| of.agents == cluster.agents)?.stored.get_mut(key)?;
        stored.used = step;
        Some(stored.entry.clone())
    }

    pub(super) fn begin(&mut self, cluster: &Cluster, key: Key) -> u64 {
        let number = self.step();
        if self.clusters.get(&cluster.name).is_some_and(|of| of.agents != cluster.agents) {
            self.remove_cluster(&cluster.name);
        }
        let of = self.clusters.entry(cluster.name.clone()).or_default();
        of.agents.clone_from(&cluster.agents);
        let same = of.arriving.iter().find(|(_, blocks)| blocks.key == key).map(|(number, _)| *number);
        self.change(&cluster.name, |of| {
            if let Some(same) = same {
                of.end(same);
            }
            of.size += OVERHEAD + key.size();
            of.arriving.insert(number, Blocks { key, bytes: Vec::new() });
        });
        self.shrink();
        number
    }

    pub(super) fn push(&mut self, cluster: &ClusterName, number: u64, bytes: &[u8]) -> bool {
        self.change(cluster, |of| of.push(number, bytes));
        self.shrink();
        self.clusters.get(cluster).is_some_and(|of| of.arriving.contains_key(&number))
    }

    pub(super) fn end(&mut self, cluster: &ClusterName, number: u64, digest: Digest, length: u64) {
        let used = self.step();
        self.change(cluster, |of| {
            let Some(Blocks { key, bytes }) = of.end(number) else { return };
            of.remove(&key);
            if of.stored.len() >= MAX_OF_CLUSTER {
                of.remove_oldest();
            }
            of.size += OVERHEAD + key.size() + bytes.len();
            of.stored.insert(key, Stored { entry: Entry { digest, blocks: Arc::new(bytes.into()), length }, used });
        });
        self.shrink();
    }

    pub(super) fn abandon(&mut self, cluster: &ClusterName, number: u64) {
        self.change(cluster, |of| drop(of.end(number)));
    }

    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    /// Changes what a cluster has. A cluster without anything has no entry.
    fn change(&mut self, cluster: &ClusterName, change: impl FnOnce(&mut OfCluster)) {
        let Some(of) = self.clusters.get_mut(cluster) else { return };
        let before = of.size;
        change(of);
        self.size = self.size - before + of.size;
        if of.stored.is_empty() && of.arriving.is_empty() {
            self.clusters.remove(cluster);
        }
    }

    fn remove_cluster(&mut self, cluster: &ClusterName) {
        if let Some(of) = self.clusters.remove(cluster) {
            self.size -= of.size;
        }
    }

    /// Removes something of the cluster with the most bytes until all have space.
    fn shrink(&mut self) {
        while self.size > MAX_TOTAL {
            let Some((largest, _)) = self.clusters.iter().max_by_key(|(_, of)| of.size) else { return };
            let largest = largest.clone();
            self.change(&largest, OfCluster::shrink);
        }
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let stored = self.clusters.values().map(|of| of.stored.len()).sum();
        let arriving = self.clusters.values().map(|of| of.arriving.len()).sum();
        assert_eq!(self.size, self.clusters.values().map(OfCluster::computed_size).sum::<usize>());
        (stored, arriving, self.size)
    }
}

// === impl OfCluster ===

impl OfCluster {
    fn push(&mut self, number: u64, bytes: &[u8]) {
        if let Some(blocks) = self.arriving.get_mut(&number) {
            let before = blocks.bytes.capacity();
            blocks.bytes.extend_from_slice(bytes);
            self.size = self.size - before + blocks.bytes.capacity();
        }
    }

    fn end(&mut self, number: u64) -> Option<Blocks> {
        let blocks = self.arriving.remove(&number)?;
        self.size -= OVERHEAD + blocks.key.size() + blocks.bytes.capacity();
        Some(blocks)
    }

    fn remove(&mut self, key: &Key) {
        if let Some(stored) = self.stored.remove(key) {
            self.size -= OVERHEAD + key.size() + stored.entry.blocks.len();
        }
    }

    /// Removes the document whose last use is the longest ago.
    fn remove_oldest(&mut self) {
        if let Some((key, _)) = self.oldest() {
            self.remove(&key);
        }
    }

    /// Removes the document whose last use, or whose beginning, is the longest ago.
    fn shrink(&mut self) {
        let arriving = self.arriving.keys().next().copied();
        match (arriving, self.oldest()) {
            (Some(number), Some((_, used))) if used > number => drop(self.end(number)),
            (_, Some((key, _))) => self.remove(&key),
            (Some(number), None) => drop(self.end(number)),
            (None, None) => {}
        }
    }

    /// The stored document whose last use is the longest ago, and the step of this use.
    fn oldest(&self) -> Option<(Key, u64)> {
        let oldest = self.stored.iter().min_by_key(|(_, stored)| stored.used);
        oldest.map(|(key, stored)| (key.clone(), stored.used))
    }

    #[cfg(test)]
    fn computed_size(&self) -> usize {
        let arriving = self.arriving.values().map(|blocks| OVERHEAD + blocks.key.size() + blocks.bytes.capacity());
        let stored = self.stored.iter().map(|(key, stored)| OVERHEAD + key.size() + stored.entry.blocks.len());
        let computed = arriving.sum::<usize>() + stored.sum::<usize>();
        assert_eq!(self.size, computed);
        computed
    }
}
