//! Labels the nodes that match the `nodeExpressions` of a virtual cluster.
//!
//! A pod selects nodes by a map of labels (`PodSpec.nodeSelector`), which cannot contain expressions. A node affinity can, but clients
//! write affinities themselves, and Kubernetes combines the terms of an affinity with OR. So the agent sets a label of its own on each
//! node that matches, and adds this label to the node selector of pods.
//!
//! While the virtual cluster is served, a node that no longer matches loses the label, even after the expressions are removed. When
//! the virtual cluster leaves the configuration, the label stays, because its pods stay and keep their node selectors.
//!
//! Something else can change the label too: a replica with another configuration, or a tool that owns the labels of nodes. So the agent
//! waits longer each time before it writes the same value again.
//!
//! Reading order: `Change` (what must change), [`NodeLabeller`] (the loop), [`remove`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use host_client::api::{ApiError, HostApi};
use kube_wire::name::SegmentName;
use ops::backoff::Backoff;
use rewrite::ClusterName;
use rewrite::name::NODE_PREFIX;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::clusters::VirtualClusters;
use crate::config::VirtualCluster as Config;
use crate::nodes::{self, AllNodes, Labels};
use crate::shared::handover::MANAGER;

/// The pause before a round, so that many changes need few of them.
const PAUSE: Duration = Duration::from_millis(100);
/// A round begins after this time, even without a change.
const RESYNC: Duration = Duration::from_secs(300);
/// The time before the agent writes the same label of a node again. A write must come back in the watch within half of the first one.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(120));
/// After this time without another attempt, a label is no longer contended.
const FORGET: Duration = Duration::from_secs(600);

/// The loop that labels nodes.
pub struct NodeLabeller<A> {
    api: A,
    clusters: Arc<VirtualClusters>,
    nodes: Arc<AllNodes>,
    failure: NodeLabelFailure,
    /// By node and label.
    attempts: HashMap<(String, String), Attempt>,
}

/// Why nodes could not be labelled, if the last attempt failed. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct NodeLabelFailure(watch::Sender<Option<Arc<str>>>);

/// A label that a node must get or lose.
#[derive(Debug)]
struct Change {
    node: String,
    label: String,
    value: Value,
}

/// The value that a label must have. `None` if the node must not have the label.
type Value = Option<&'static str>;

/// The last write of a label.
#[derive(Debug)]
struct Attempt {
    value: Value,
    /// Whether the host has accepted it.
    is_written: bool,
    backoff: Backoff,
    /// The label is not written again before this time.
    until: Instant,
}

// === impl NodeLabeller ===

impl<A: HostApi> NodeLabeller<A> {
    /// A loop for these virtual clusters. It tells `failure` why it fails.
    pub fn new(api: A, clusters: &Arc<VirtualClusters>, failure: NodeLabelFailure) -> Self {
        let nodes = clusters.all_nodes();
        Self { api, clusters: Arc::clone(clusters), nodes, failure, attempts: HashMap::new() }
    }

    /// Compares forever, after each change of nodes or of the configuration.
    pub async fn run(mut self) {
        let (mut changed, mut exchanged) = (self.nodes.changes(), self.clusters.exchanges());
        self.nodes.synced().await;
        loop {
            sleep(PAUSE).await;
            changed.mark_unchanged();
            exchanged.mark_unchanged();
            let rest = self.round().await;
            tokio::select! {
                () = sleep(rest) => {}
                Ok(()) = changed.changed() => {}
                Ok(()) = exchanged.changed() => {}
            }
        }
    }

    /// Compares once. Returns the time until the next round.
    async fn round(&mut self) -> Duration {
        let (mut rest, mut failed) = (RESYNC, None);
        self.attempts.retain(|_, attempt| attempt.until + FORGET > Instant::now());
        let changes = self.changes();
        if changes.is_empty() {
            self.failure.set(None);
        }
        for change in changes {
            // A round can take long.
            if !self.is_due(&change) {
                continue;
            }
            let key = (change.node.clone(), change.label.clone());
            let attempt = self.attempts.entry(key).or_insert_with(|| Attempt::new(change.value));
            if attempt.value != change.value {
                *attempt = Attempt::new(change.value);
            }
            let now = Instant::now();
            if attempt.until > now {
                rest = rest.min(attempt.until - now);
                continue;
            }
            if attempt.is_written {
                failed = Some(format!("something else changes the label {} of node {}", change.label, change.node));
            }
            let pause = attempt.backoff.fail_with_half_jitter();
            attempt.until = now + pause;
            rest = rest.min(pause);
            match change.write(&self.api).await {
                Ok(()) => {
                    attempt.is_written = true;
                    info!(node = change.node, "{change}");
                }
                // The watch has not told of it yet.
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    failed = Some(format!("cannot label node {} ({change}): {error}", change.node));
                    // Usually, the agent has this right for all nodes, or for none. The next round begins with the other nodes.
                    if error.is_forbidden() {
                        break;
                    }
                }
            }
        }
        if failed.is_some() {
            self.failure.set(failed);
        }
        rest
    }

    /// What must change so that exactly the nodes of each virtual cluster have its label. First the labels that must go, because pods
    /// could get to these nodes.
    fn changes(&self) -> Vec<Change> {
        let all = self.clusters.all();
        let marked = all.iter().filter(|cluster| cluster.node_selector.is_marked);
        let marked: Vec<_> = marked.map(|cluster| Config::own_label(cluster.name.as_str())).collect();
        let mut changes = Vec::new();
        self.nodes.visit(|node, labels| {
            let present = labels.keys().filter(|key| key.starts_with(NODE_PREFIX));
            for label in marked.iter().filter(|label| !labels.contains_key(*label)).chain(present) {
                if let Some(value) = self.due(label, labels) {
                    changes.push(Change { node: node.to_owned(), label: label.clone(), value });
                }
            }
        });
        changes.sort_by_key(|change| change.value.is_some());
        changes
    }

    /// Whether a change is still necessary.
    fn is_due(&self, change: &Change) -> bool {
        let labels = self.nodes.labels(&change.node);
        labels.is_some_and(|labels| self.due(&change.label, &labels) == Some(change.value))
    }

    /// What must become of a label of a node with these labels. `None` if it is right, or if this agent does not serve the virtual
    /// cluster.
    fn due(&self, label: &str, labels: &Labels) -> Option<Value> {
        let cluster = self.clusters.get(&label.strip_prefix(NODE_PREFIX)?.parse().ok()?)?;
        let selector = &cluster.node_selector;
        let is_own = selector.configured.matches(|key| labels.get(key).map(String::as_str));
        match labels.get(label) {
            Some(_) if !is_own => Some(None),
            value if is_own && selector.is_marked && value.is_none_or(|value| value != Config::OWN_LABEL_VALUE) => {
                Some(Some(Config::OWN_LABEL_VALUE))
            }
            _ => None,
        }
    }
}

impl<A> fmt::Debug for NodeLabeller<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeLabeller").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

/// Removes the label of a virtual cluster that no agent serves from all nodes.
pub async fn remove(api: &impl HostApi, cluster: &ClusterName) -> Result<(), ApiError> {
    let mut marked = Vec::new();
    api.each(nodes::PATH, &Config::own_label(cluster.as_str()), |node| marked.push(node.metadata.name)).await?;
    for node in marked {
        remove_from(api, node, cluster).await?;
    }
    Ok(())
}

/// Removes it from one node.
pub(crate) async fn remove_from(api: &impl HostApi, node: String, cluster: &ClusterName) -> Result<(), ApiError> {
    let removal = Change { node, label: Config::own_label(cluster.as_str()), value: None };
    match removal.write(api).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

// === impl Change ===

impl Change {
    async fn write(&self, api: &impl HostApi) -> Result<(), ApiError> {
        // Every node of the host has a name that can be a part of a path.
        let Ok(node) = SegmentName::new(&*self.node) else { return Ok(()) };
        let labels = BTreeMap::from([(&self.label, self.value)]);
        let patch = json!({"metadata": {"labels": labels}});
        let path = format!("{}/{}?fieldManager={MANAGER}", nodes::PATH, node.as_str());
        api.patch_text(&path, patch.to_string()).await
    }
}

/// As `kubectl label` takes it: with a minus sign if the label is removed.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{}={value}", self.label),
            None => write!(f, "{}-", self.label),
        }
    }
}

// === impl Attempt ===

impl Attempt {
    fn new(value: Value) -> Self {
        Self { value, is_written: false, backoff: BACKOFF, until: Instant::now() }
    }
}

// === impl NodeLabelFailure ===

impl NodeLabelFailure {
    /// Why the last attempt failed.
    pub fn get(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }

    fn set(&self, failure: Option<String>) {
        self.0.send_if_modified(|known| {
            let is_new = known.as_deref() != failure.as_deref();
            if is_new {
                if let Some(failure) = &failure {
                    warn!("{failure}; trying again");
                } else {
                    info!("all nodes that match are labelled again");
                }
                *known = failure.map(Arc::from);
            }
            is_new
        });
    }
}

#[cfg(test)]
mod tests;
