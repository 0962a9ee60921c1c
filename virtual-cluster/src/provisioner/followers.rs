//! The watches of mirrors, and of the bindings in each root namespace.

use std::collections::HashMap;

use host_client::api::{Change, Following, HostApi};
use rewrite::{ClusterName, HostNamespace};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::found::Found;
use super::names::MIRROR_LABEL;
use super::paths;

/// A task for each watch.
pub(super) struct Followers<A> {
    api: A,
    events: mpsc::Sender<Seen>,
    tasks: JoinSet<()>,
    by_cluster: HashMap<ClusterName, AbortHandle>,
}

/// A change of a binding.
#[derive(Debug)]
pub(super) enum Seen {
    /// Of a mirror, in any namespace.
    Mirror(Change<Found>),
    /// Of a binding in the root namespace of this cluster.
    Root(ClusterName, Change<Found>),
}

// === impl Followers ===

impl<A: HostApi> Followers<A> {
    /// Watches mirrors, but no root namespaces yet.
    pub(super) fn new(api: A, events: mpsc::Sender<Seen>) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(forward(api.follow(paths::ALL_BINDINGS, MIRROR_LABEL), events.clone(), Seen::Mirror));
        Self { api, events, tasks, by_cluster: HashMap::new() }
    }

    /// From now on, watches the root namespaces of exactly these clusters. Returns those that it no longer watches.
    pub(super) fn follow(&mut self, clusters: &[ClusterName]) -> Vec<ClusterName> {
        for cluster in clusters {
            if !self.by_cluster.contains_key(cluster) {
                let bindings = self.api.follow(&paths::bindings(&HostNamespace::root(cluster)), "");
                let seen = {
                    let cluster = cluster.clone();
                    move |change| Seen::Root(cluster.clone(), change)
                };
                let follower = self.tasks.spawn(forward(bindings, self.events.clone(), seen));
                self.by_cluster.insert(cluster.clone(), follower);
            }
        }
        let gone: Vec<_> = self.by_cluster.keys().filter(|cluster| !clusters.contains(cluster)).cloned().collect();
        for cluster in &gone {
            if let Some(follower) = self.by_cluster.remove(cluster) {
                follower.abort();
            }
        }
        gone
    }
}

async fn forward(
    mut following: impl Following<Found>,
    events: mpsc::Sender<Seen>,
    seen: impl Fn(Change<Found>) -> Seen,
) {
    loop {
        let change = following.next().await;
        if events.send(seen(change)).await.is_err() {
            return;
        }
    }
}
