//! The cache of the host's nodes, and the nodes of each virtual cluster. They determine which objects that belong to a
//! node a virtual cluster sees.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kube_wire::selector::LabelSelector;
use rewrite::mapping::NodeNames;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use host_client::api::Change;
use host_client::api::Following;

/// The path of all Nodes.
pub const PATH: &str = "/api/v1/nodes";

/// The time for which a deleted node still counts. Its objects are deleted later, and watches must deliver that.
const RECENTLY_DELETED: Duration = Duration::from_secs(60);

/// All nodes of the host.
#[derive(Debug, Default)]
pub struct AllNodes {
    nodes: Mutex<NodeLabels>,
    /// Tells of each node that is new, was created again, or has other labels.
    changed: watch::Sender<()>,
    synced: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct NodeLabels {
    labels: HashMap<Bytes, Labels>,
    /// Recently deleted nodes, with the time of the deletion, oldest first. `labels` still has their labels.
    recently_deleted: VecDeque<(Instant, Bytes)>,
    /// Incremented with every change.
    version: u64,
}

/// The nodes of one virtual cluster.
pub struct OwnNodes {
    selector: LabelSelector,
    all: Arc<AllNodes>,
    /// The nodes of the cluster, and the version of all nodes from which they were computed.
    names: Mutex<(u64, Arc<NodeNames>)>,
}

/// The labels of a node.
pub(crate) type Labels = BTreeMap<String, String>;

/// The fields of a Node that the agent reads.
#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: Labels,
}

// === impl AllNodes ===

impl AllNodes {
    /// Keeps the cache up to date forever.
    pub async fn follow(&self, mut following: impl Following) {
        loop {
            self.take(&following.next().await);
        }
    }

    /// Tells of each node that is new or has other labels.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The values of a label. `None` until the first list is complete.
    pub fn values(&self, label: &str) -> Option<BTreeSet<String>> {
        let is_synced = *self.synced.borrow();
        let nodes = lock(&self.nodes);
        is_synced.then(|| nodes.labels.values().filter_map(|labels| labels.get(label)).cloned().collect())
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        synced.wait_for(|synced| *synced).await.expect("the sender is borrowed from self");
    }

    /// Visits the nodes that exist, with their labels. `see` must not block.
    pub(crate) fn visit(&self, mut see: impl FnMut(&str, &Labels)) {
        let nodes = lock(&self.nodes);
        let deleted: HashSet<_> = nodes.recently_deleted.iter().map(|(_, name)| name).collect();
        for (name, labels) in nodes.labels.iter().filter(|(name, _)| !deleted.contains(name)) {
            if let Ok(name) = std::str::from_utf8(name) {
                see(name, labels);
            }
        }
    }

    /// The labels of a node that exists.
    pub(crate) fn labels(&self, node: &str) -> Option<Labels> {
        let nodes = lock(&self.nodes);
        let is_deleted = nodes.recently_deleted.iter().any(|(_, name)| *name == node);
        nodes.labels.get(node.as_bytes()).filter(|_| !is_deleted).cloned()
    }

    fn take(&self, change: &Change) {
        let (node, is_there) = match change {
            Change::Applied(node) => (node, true),
            Change::Deleted(node) => (node, false),
            Change::Synced => {
                self.synced.send_replace(true);
                return;
            }
        };
        // Every object of the host has a name, so an object without one is not a node.
        let Ok(Node { metadata }) = Node::deserialize(node) else { return };
        let name = Bytes::from(metadata.name);
        let mut nodes = lock(&self.nodes);
        let known = nodes.recently_deleted.len();
        nodes.recently_deleted.retain(|(_, deleted)| *deleted != name);
        let is_created_again = nodes.recently_deleted.len() < known;
        while nodes.recently_deleted.front().is_some_and(|(since, _)| since.elapsed() >= RECENTLY_DELETED) {
            if let Some((_, gone)) = nodes.recently_deleted.pop_front() {
                nodes.labels.remove(&gone);
                nodes.version += 1;
            }
        }
        if !is_there {
            nodes.recently_deleted.push_back((Instant::now(), name));
            return;
        }
        let is_changed = nodes.labels.get(&name) != Some(&metadata.labels);
        if is_changed {
            nodes.labels.insert(name, metadata.labels);
            nodes.version += 1;
        }
        drop(nodes);
        if is_changed || is_created_again {
            self.changed.send_replace(());
        }
    }
}

// === impl OwnNodes ===

impl OwnNodes {
    /// The nodes in `all` that `selector` matches.
    pub fn new(selector: LabelSelector, all: Arc<AllNodes>) -> Self {
        Self { selector, all, names: Mutex::default() }
    }

    /// The current names of the nodes.
    pub fn names(&self) -> Arc<NodeNames> {
        let mut names = lock(&self.names);
        let all = lock(&self.all.nodes);
        if names.0 != all.version {
            let matches = |labels: &Labels| self.selector.matches(|key| labels.get(key).map(String::as_str));
            let own = all.labels.iter().filter(|(_, labels)| matches(labels)).map(|(name, _)| name.clone());
            *names = (all.version, Arc::new(own.collect()));
        }
        Arc::clone(&names.1)
    }

    /// Waits until there is a node that is not one of `before`.
    pub async fn joined(&self, before: &NodeNames) {
        let mut changed = self.all.changed.subscribe();
        while self.names().is_subset(before) {
            changed.changed().await.expect("the sender is borrowed from self");
        }
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        self.all.synced().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;

    fn node(name: &str, location: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"location": location}}})
    }

    fn own(nodes: &OwnNodes) -> Vec<String> {
        let mut names: Vec<_> = nodes.names().iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_are_added_changed_and_deleted() {
        let all = Arc::new(AllNodes::default());
        let nodes = OwnNodes::new("location=beijing".parse().unwrap(), Arc::clone(&all));
        for (name, location) in [("b1", "beijing"), ("h1", "hangzhou"), ("b2", "beijing")] {
            all.take(&Change::Applied(node(name, location)));
        }
        all.take(&Change::Synced);
        nodes.synced().await;
        assert_eq!(own(&nodes), ["b1", "b2"]);
        all.take(&Change::Applied(node("b2", "hangzhou")));
        all.take(&Change::Applied(node("h1", "beijing")));
        assert_eq!(own(&nodes), ["b1", "h1"]);
        // The objects of a node are deleted after it.
        all.take(&Change::Deleted(json!({"metadata": {"name": "b1"}})));
        all.take(&Change::Deleted(json!({"metadata": {"name": "b2"}})));
        assert_eq!(own(&nodes), ["b1", "h1"]);
        tokio::time::advance(RECENTLY_DELETED).await;
        all.take(&Change::Applied(node("h2", "hangzhou")));
        assert_eq!(own(&nodes), ["h1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_joins_when_it_has_the_labels() {
        let all = Arc::new(AllNodes::default());
        let nodes = OwnNodes::new("location=beijing".parse().unwrap(), Arc::clone(&all));
        all.take(&Change::Applied(node("b1", "beijing")));
        let before = nodes.names();
        let mut joined = std::pin::pin!(nodes.joined(&before));
        for change in [
            Change::Applied(node("h1", "hangzhou")),
            Change::Applied(node("b1", "hangzhou")),
            Change::Applied(node("b1", "beijing")),
            Change::Deleted(node("b1", "beijing")),
        ] {
            all.take(&change);
            assert!(timeout(Duration::ZERO, joined.as_mut()).await.is_err(), "{change:?}");
        }
        all.take(&Change::Applied(node("h1", "beijing")));
        assert!(timeout(Duration::ZERO, joined).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_created_again_is_kept() {
        let all = Arc::new(AllNodes::default());
        let nodes = OwnNodes::new("location=beijing".parse().unwrap(), Arc::clone(&all));
        all.take(&Change::Applied(node("b1", "beijing")));
        all.take(&Change::Deleted(node("b1", "beijing")));
        all.take(&Change::Applied(node("b1", "beijing")));
        tokio::time::advance(RECENTLY_DELETED).await;
        all.take(&Change::Applied(node("h1", "hangzhou")));
        assert_eq!(own(&nodes), ["b1"]);
        all.take(&Change::Deleted(node("b1", "beijing")));
        all.take(&Change::Applied(node("b1", "hangzhou")));
        assert!(own(&nodes).is_empty());
    }
}
