//! Events in namespaces that the index does not know yet.
//!
//! A namespace is created before its objects, but their events come from different watches, and the agent's own watch
//! of namespaces may be the later one. If an event were left out because its namespace has no virtual name yet, the
//! client's cache would lack the object for ever. So an event that names an unknown namespace waits a moment for the
//! index, and so does everything after it. If a namespace becomes known only after that, the watch ends with 410: the client
//! lists again, and gets what the watch has left out.
//!
//! Objects that belong to a node come into view when the node does: when the operator labels it, which is no event of these
//! objects. So a watch of such objects ends with 410 when the cluster gets a node. The same goes for the objects of an existing
//! namespace that the operator moves into the cluster or out of it.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rewrite::view::Arrived;
use rewrite::{Mapping, VirtualNamespace};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::ReusableBoxFuture;

use virtual_cluster::clusters::VirtualCluster;

/// The maximum wait of a chunk, however many of its events wait. A name of a namespace that never exists, such as in a
/// reference, costs this time once.
const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum number of namespaces for which a watch ends later. One is rare: the agent's watch of namespaces is late.
const MAX_MISSED: usize = 256;

/// The names of the namespaces in one watch, which change while it runs.
pub(crate) struct Arrivals {
    cluster: Arc<VirtualCluster>,
    /// The namespace that the request names, which need not exist.
    requested: Option<VirtualNamespace>,
    /// The unknown namespaces of events that were left out.
    missed: HashSet<Box<[u8]>>,
    /// Completes when the cluster has one of them.
    late: Option<ReusableBoxFuture<'static, ()>>,
    /// Completes when the cluster has a node that it did not have at first, if the watch is of objects of nodes.
    joined: Option<ReusableBoxFuture<'static, ()>>,
    /// Completes when an existing namespace has joined or left the cluster, if the watch is of objects in namespaces.
    moved: Option<ReusableBoxFuture<'static, ()>>,
}

/// Why a watch has left out events.
#[derive(Clone, Copy, Debug)]
pub(super) enum LeftOut {
    /// Their namespace was not known in time.
    Namespace,
    /// Their node was not in the cluster.
    Node,
    /// The operator has moved their namespace.
    Move,
}

/// The wait of one event for names.
pub(super) struct Wait {
    /// Whether all names are known, when they are or when the maximum wait is over.
    are_known: Pin<Box<dyn Future<Output = bool> + Send>>,
    /// The namespace without which the event is left out.
    hiding: Option<Box<[u8]>>,
}

// === impl Arrivals ===

impl Arrivals {
    pub(crate) fn new(cluster: Arc<VirtualCluster>, requested: Option<VirtualNamespace>) -> Self {
        Self { cluster, requested, missed: HashSet::new(), late: None, joined: None, moved: None }
    }

    /// The watch ends when the cluster gets a node.
    pub(crate) fn of_nodes(mut self) -> Self {
        let (cluster, before) = (Arc::clone(&self.cluster), self.cluster.nodes.names());
        self.joined = Some(ReusableBoxFuture::new(async move { cluster.nodes.joined(&before).await }));
        self
    }

    /// The watch ends when an existing namespace joins or leaves the cluster.
    pub(crate) fn in_namespaces(mut self) -> Self {
        self.moved = Some(ReusableBoxFuture::new(self.cluster.membership_moved()));
        self
    }

    /// The current names.
    pub(super) fn mapping(&self) -> Mapping {
        let mapping = self.cluster.mapping();
        match &self.requested {
            Some(requested) => mapping.with_requested_namespace(requested.clone()),
            None => mapping,
        }
    }

    /// The cluster whose names are looked up.
    pub(super) fn cluster(&self) -> &VirtualCluster {
        &self.cluster
    }

    /// A wait for the names of an event.
    pub(super) fn wait(&self, arrived: Arrived, until: Instant) -> Wait {
        let Arrived { unknown, hiding, .. } = arrived;
        let cluster = Arc::clone(&self.cluster);
        let are_known = async move {
            let known = cluster.mapping_until(|mapping| unknown.iter().all(|name| mapping.knows(name)));
            timeout_at(until, known).await.is_ok()
        };
        Wait { are_known: Box::pin(are_known), hiding }
    }

    /// An event is left out, because it has waited in vain.
    pub(super) fn miss(&mut self, hiding: Option<Box<[u8]>>) {
        let Some(name) = hiding.filter(|_| self.missed.len() < MAX_MISSED) else { return };
        if self.missed.insert(name) {
            let (cluster, missed) = (Arc::clone(&self.cluster), self.missed.clone());
            self.late = Some(ReusableBoxFuture::new(async move {
                cluster.mapping_until(|mapping| missed.iter().any(|name| mapping.member(name).is_some())).await;
            }));
        }
    }

    /// Completes when the client has to list again, because it would see objects now that were left out.
    pub(super) fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<LeftOut> {
        let ends =
            [(&mut self.late, LeftOut::Namespace), (&mut self.joined, LeftOut::Node), (&mut self.moved, LeftOut::Move)];
        for (late, why) in ends {
            if let Some(late) = late
                && late.poll(cx).is_ready()
            {
                return Poll::Ready(why);
            }
        }
        Poll::Pending
    }
}

// === impl LeftOut ===

impl LeftOut {
    /// The message for the client.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Namespace => "the namespace of some events became known too late: list again",
            Self::Node => "the cluster has a new node, whose objects were left out: list again",
            Self::Move => "a namespace with its objects has joined or left the cluster: list again",
        }
    }
}

// === impl Wait ===

impl Wait {
    /// The time until which events of a chunk wait, if the first of them begins to wait now.
    pub(super) fn deadline() -> Instant {
        Instant::now() + ARRIVAL_TIMEOUT
    }

    /// Returns whether all names are known, when they are or when the maximum wait is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.are_known.as_mut().poll(cx)
    }

    /// The namespace without which the event is left out.
    pub(super) fn into_hiding(self) -> Option<Box<[u8]>> {
        self.hiding
    }
}
