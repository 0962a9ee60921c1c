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
const OWN_STREAMS: usize = 100;

/// Unproven clients may have one in this many of the streams of a tunnel.
const UNPROVEN_PART: usize = 10;

/// The maximum of unread request bytes of all clients of a tunnel, at the agent and on the way to it.
const MAX_UNREAD: usize = 128 * 1024 * 1024;

/// The same for all unproven clients. An agent refuses their requests before it reads more.
const MAX_UNREAD_OF_UNPROVEN: usize = 16 * 1024 * 1024;

/// The maximum of unread bytes of one request: the windows of its stream in the tunnel and of the client's stream.
pub(crate) const MAX_UNREAD_PER_REQUEST: usize = STREAM_WINDOW as usize + CLIENT_WINDOW as usize;

/// The bytes of a request body that may be unread at a time. `length` is that of the body, if it is known.
pub(crate) fn unread_body(length: Option<u64>) -> usize {
    length.map_or(MAX_UNREAD_PER_REQUEST, |length| {
        usize::try_from(length).unwrap_or(MAX_UNREAD_PER_REQUEST).min(MAX_UNREAD_PER_REQUEST)
    })
}

/// The resources that clients share on one tunnel.
#[derive(Debug)]
pub(super) struct Capacity {
    streams: FairBudget,
    unproven_streams: FairBudget,
    unread: FairBudget,
    unproven_unread: FairBudget,
    clusters: Mutex<HashMap<ClusterName, Shares>>,
}

/// The shares of one cluster.
#[derive(Clone, Debug)]
struct Shares {
    streams: Share,
    unproven_streams: Share,
    unread: Share,
    unproven_unread: Share,
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

/// The part of a stream in what clients share. Dropping it releases the part.
#[derive(Debug)]
pub(super) struct StreamResources {
    _stream: Reservation,
    _unread: Reservation,
    /// The additional reservations while the client is unproven.
    unproven: Option<(Reservation, Reservation)>,
    owner: Owner,
}

// === impl Capacity ===

impl Capacity {
    pub(super) fn new() -> Self {
        let streams = MAX_STREAMS as usize - OWN_STREAMS;
        let budget = |limit| FairBudget::new(limit, limit);
        Self {
            streams: budget(streams),
            unproven_streams: budget(streams / UNPROVEN_PART),
            unread: budget(MAX_UNREAD),
            unproven_unread: budget(MAX_UNREAD_OF_UNPROVEN),
            clusters: Mutex::default(),
        }
    }

    /// Reserves the demand of a stream; `None` if the cluster's share has no room for it.
    pub(super) fn reserve(&self, demand: Demand<'_>) -> Option<StreamResources> {
        let shares = self.shares(demand.cluster);
        let stream = shares.streams.reserve(1)?;
        let unread = shares.unread.reserve(demand.unread)?;
        let unproven = if demand.is_proven {
            None
        } else {
            Some((shares.unproven_streams.reserve(1)?, shares.unproven_unread.reserve(demand.unread)?))
        };
        Some(StreamResources { _stream: stream, _unread: unread, unproven, owner: shares.owner })
    }

    fn shares(&self, cluster: &ClusterName) -> Shares {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shares) = clusters.get(cluster) {
            return shares.clone();
        }
        let shares = Shares {
            streams: self.streams.share(),
            unproven_streams: self.unproven_streams.share(),
            unread: self.unread.share(),
            unproven_unread: self.unproven_unread.share(),
            owner: Owner::new(),
        };
        clusters.insert(cluster.clone(), shares.clone());
        shares
    }
}

// === impl StreamResources ===

impl StreamResources {
    /// Marks the client as proven.
    pub(super) fn prove(&mut self) {
        self.unproven = None;
    }

    /// The owner of the response's unread bytes: the cluster.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(capacity: &Capacity, cluster: &str, is_proven: bool, unread: usize) -> Vec<StreamResources> {
        let cluster = cluster.parse().unwrap();
        std::iter::from_fn(|| capacity.reserve(Demand { cluster: &cluster, is_proven, unread })).collect()
    }

    #[test]
    fn a_short_body_needs_little_room() {
        assert_eq!(
            [Some(1_000), Some(u64::MAX), None].map(unread_body),
            [1_000, MAX_UNREAD_PER_REQUEST, MAX_UNREAD_PER_REQUEST]
        );
    }

    #[test]
    fn one_cluster_cannot_take_all_streams() {
        let capacity = Capacity::new();
        let first = fill(&capacity, "a", true, 0);
        let second = fill(&capacity, "b", true, 0);
        assert_eq!((first.len(), second.len()), (4_950, 2_475));
        assert!(!fill(&capacity, "c", true, 0).is_empty());
    }

    #[test]
    fn unproven_clients_of_all_clusters_leave_most_streams_to_proven_ones() {
        let capacity = Capacity::new();
        let crowd: Vec<_> = (0..20).map(|number| fill(&capacity, &format!("c{number}"), false, 0)).collect();
        assert!(crowd.iter().map(Vec::len).sum::<usize>() <= 990);
        assert!(fill(&capacity, "a", true, 0).len() > 4_000);
        let mut crowd: Vec<_> = crowd.into_iter().flatten().collect();
        assert!(fill(&capacity, "c0", false, 0).is_empty());
        crowd.iter_mut().for_each(StreamResources::prove);
        assert!(fill(&capacity, "c20", false, 0).len() > 400);
    }

    #[test]
    fn unread_request_bytes_are_limited() {
        let capacity = Capacity::new();
        let unproven = fill(&capacity, "a", false, MAX_UNREAD_PER_REQUEST);
        assert!(unproven.len() * MAX_UNREAD_PER_REQUEST <= MAX_UNREAD_OF_UNPROVEN / 2);
        let proven = fill(&capacity, "a", true, MAX_UNREAD_PER_REQUEST);
        assert!((unproven.len() + proven.len()) * MAX_UNREAD_PER_REQUEST <= MAX_UNREAD / 2);
        assert!(proven.len() > 40);
    }
}
