//! The watches of mirrors, and of the bindings in root namespaces: one of each for all virtual clusters.

use host_client::api::{Change, Following, HostApi};
use rewrite::HostNamespace;
use rewrite::name::CLUSTER_LABEL;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::found::Found;
use super::names::MIRROR_LABEL;
use super::paths;

/// A task for each watch.
pub(super) struct Followers<A> {
    api: A,
    events: mpsc::Sender<Seen>,
    tasks: JoinSet<()>,
    has_mirrors: bool,
}

/// A change of a binding.
#[derive(Debug)]
pub(super) enum Seen {
    /// Of a mirror, in any namespace.
    Mirror(Change<Found>),
    /// Of a binding in the root namespace of a virtual cluster, which this agent may not serve.
    Root(Change<Found>),
}

// === impl Followers ===

impl<A: HostApi> Followers<A> {
    /// Watches root namespaces, but no mirrors yet.
    pub(super) fn new(api: A, events: mpsc::Sender<Seen>) -> Self {
        let mut tasks = JoinSet::new();
        // Users can give their own bindings the label if the host does not enforce the admission policies.
        let roots = api.follow_in(paths::ALL_BINDINGS, CLUSTER_LABEL, is_root);
        tasks.spawn(forward(roots, events.clone(), Seen::Root));
        Self { api, events, tasks, has_mirrors: false }
    }

    /// Watches mirrors from now on.
    pub(super) fn follow_mirrors(&mut self) {
        if !std::mem::replace(&mut self.has_mirrors, true) {
            let mirrors = self.api.follow(paths::ALL_BINDINGS, MIRROR_LABEL);
            self.tasks.spawn(forward(mirrors, self.events.clone(), Seen::Mirror));
        }
    }
}

/// Whether a namespace has the name of a root namespace. No namespace of a client has such a name.
fn is_root(namespace: &str) -> bool {
    HostNamespace::new(namespace).is_ok_and(|namespace| namespace.is_root())
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
