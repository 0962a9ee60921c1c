//! The capacity of one tunnel, in fair shares of its clusters.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ::tunnel::{FairBudget, Owner, Reservation, Share};
use protocol::ClusterName;
use protocol::settings::{MAX_STREAMS, STREAM_WINDOW};

/// The window of a request: bytes that `h2` accepts from a client before they are read. The same as in kube-apiserver
/// (`resourceBody99Percentile` in apiserver's `server/secure_serving.go`).
pub(crate) const CLIENT_WINDOW: u32 = 256 * 1024;

/// Streams that are reserved for the proxy-server itself.
const OWN: usize = 100;

/// Unproven clients may have one in this many of the streams of a tunnel.
const UNPROVEN_PART: usize = 10;

/// The maximum of unread request bytes of all clients of a tunnel, at the agent and on the way to it.
const UPLOADS: usize = 128 * 1024 * 1024;

/// The same for all unproven clients. Agents refuse them before they read more.
const UNPROVEN_UPLOADS: usize = 16 * 1024 * 1024;

/// The maximum of unread bytes of one request: the windows of its stream in the tunnel and of the client's stream.
pub(crate) const UNREAD: usize = STREAM_WINDOW as usize + CLIENT_WINDOW as usize;

/// The resources that clients share on one tunnel.
#[derive(Debug)]
pub(super) struct Capacity {
    streams: FairBudget,
    unproven: FairBudget,
    uploads: FairBudget,
    unproven_uploads: FairBudget,
    clusters: Mutex<HashMap<ClusterName, Shares>>,
}

/// The shares of one cluster.
#[derive(Clone, Debug)]
struct Shares {
    streams: Share,
    unproven: Share,
    uploads: Share,
    unproven_uploads: Share,
    owner: Owner,
}

/// The demand of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'c> {
    /// The cluster.
    pub cluster: &'c ClusterName,
    /// Whether the client is proven.
    pub is_proven: bool,
    /// The bytes of the request that may be unread at a time.
    pub unread: usize,
}

/// The resources of a stream, until this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    _stream: Reservation,
    _unread: Reservation,
    /// The additional reservations while the client is unproven.
    unproven: Option<(Reservation, Reservation)>,
    owner: Owner,
}

// === impl Capacity ===

impl Capacity {
    pub(super) fn new() -> Self {
        let streams = MAX_STREAMS as usize - OWN;
        let budget = |limit| FairBudget::new(limit, limit);
        Self {
            streams: budget(streams),
            unproven: budget(streams / UNPROVEN_PART),
            uploads: budget(UPLOADS),
            unproven_uploads: budget(UNPROVEN_UPLOADS),
            clusters: Mutex::default(),
        }
    }

    /// Reserves the demand of a stream; `None` if the cluster's share has no room for it.
    pub(super) fn take(&self, demand: Demand<'_>) -> Option<Taken> {
        let shares = self.shares(demand.cluster);
        let stream = shares.streams.reserve(1)?;
        let unread = shares.uploads.reserve(demand.unread)?;
        let unproven = if demand.is_proven {
            None
        } else {
            Some((shares.unproven.reserve(1)?, shares.unproven_uploads.reserve(demand.unread)?))
        };
        Some(Taken { _stream: stream, _unread: unread, unproven, owner: shares.owner })
    }

    fn shares(&self, cluster: &ClusterName) -> Shares {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shares) = clusters.get(cluster) {
            return shares.clone();
        }
        let shares = Shares {
            streams: self.streams.share(),
            unproven: self.unproven.share(),
            uploads: self.uploads.share(),
            unproven_uploads: self.unproven_uploads.share(),
            owner: Owner::new(),
        };
        clusters.insert(cluster.clone(), shares.clone());
        shares
    }
}

// === impl Taken ===

impl Taken {
    /// Marks the client as proven.
    pub(super) fn prove(&mut self) {
        self.unproven = None;
    }

    /// The cluster, as the owner of unread bytes.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(capacity: &Capacity, cluster: &str, is_proven: bool, unread: usize) -> Vec<Taken> {
        let cluster = cluster.parse().unwrap();
        std::iter::from_fn(|| capacity.take(Demand { cluster: &cluster, is_proven, unread })).collect()
    }

    #[test]
    fn clusters_leave_places_to_each_other() {
        let capacity = Capacity::new();
        let first = fill(&capacity, "a", true, 0);
        let second = fill(&capacity, "b", true, 0);
        assert_eq!((first.len(), second.len()), (4_950, 2_475));
        assert!(!fill(&capacity, "c", true, 0).is_empty());
    }

    #[test]
    fn unproven_clients_of_all_clusters_leave_most_places_to_others() {
        let capacity = Capacity::new();
        let crowd: Vec<_> = (0..20).map(|number| fill(&capacity, &format!("c{number}"), false, 0)).collect();
        assert!(crowd.iter().map(Vec::len).sum::<usize>() <= 990);
        assert!(fill(&capacity, "a", true, 0).len() > 4_000);
        let mut crowd: Vec<_> = crowd.into_iter().flatten().collect();
        assert!(fill(&capacity, "c0", false, 0).is_empty());
        crowd.iter_mut().for_each(Taken::prove);
        assert!(fill(&capacity, "c20", false, 0).len() > 400);
    }

    #[test]
    fn what_requests_may_have_unread_is_bounded() {
        let capacity = Capacity::new();
        let unproven = fill(&capacity, "a", false, UNREAD);
        assert!(unproven.len() * UNREAD <= UNPROVEN_UPLOADS / 2);
        let proven = fill(&capacity, "a", true, UNREAD);
        assert!((unproven.len() + proven.len()) * UNREAD <= UPLOADS / 2);
        assert!(proven.len() > 40);
    }
}
