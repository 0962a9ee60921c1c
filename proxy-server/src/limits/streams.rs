//! Streams: requests whose response has not ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ops::used::Used;
use protocol::ClusterName;

use super::counts::Counts;
use super::{Limit, Network, User};

/// Unproven clients may have one in this many of a cluster's streams.
const UNPROVEN_PART: usize = 10;

/// The streams of all clients.
#[derive(Debug)]
pub struct Streams {
    per_user: usize,
    per_address: usize,
    per_cluster: usize,
    state: Mutex<State>,
}

/// The client to which a stream is charged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// A proven user.
    User(User),
    /// An unproven client.
    Unproven(Network),
    /// A connection to a physical cluster, whose API server authenticates its own clients.
    Passthrough,
}

/// Counts a stream until it is dropped.
#[derive(Debug)]
pub struct StreamPermit {
    streams: Arc<Streams>,
    cluster: ClusterName,
    client: Client,
}

#[derive(Debug, Default)]
struct State {
    clusters: HashMap<ClusterName, ClusterState>,
    /// The streams of unproven clients.
    addresses: Counts<Network>,
}

/// The streams to one cluster.
#[derive(Debug, Default)]
struct ClusterState {
    all: usize,
    unproven: usize,
    users: Counts<User>,
}

// === impl Streams ===

impl Streams {
    /// With limits for each user of a cluster, for each address of unproven clients, and for each cluster.
    pub fn new(per_user: usize, per_address: usize, per_cluster: usize) -> Arc<Self> {
        Arc::new(Self { per_user, per_address, per_cluster, state: Mutex::default() })
    }

    /// Counts a new stream, unless it would exceed a limit.
    pub fn enter(self: &Arc<Self>, cluster: &ClusterName, client: Client) -> Result<StreamPermit, Limit> {
        let mut state = self.state();
        let State { clusters, addresses } = &mut *state;
        if !clusters.contains_key(cluster) {
            clusters.insert(cluster.clone(), ClusterState::default());
        }
        let of_cluster = clusters.get_mut(cluster).expect("it was put in");
        if of_cluster.all >= self.per_cluster {
            return Err(Limit::Cluster);
        }
        match &client {
            Client::User(user) if of_cluster.users.get(user) >= self.per_user => return Err(Limit::User),
            Client::Unproven(_) if of_cluster.unproven >= self.per_cluster.div_ceil(UNPROVEN_PART) => {
                return Err(Limit::Unproven);
            }
            Client::Unproven(network) if addresses.get(network) >= self.per_address => return Err(Limit::Address),
            Client::User(_) | Client::Unproven(_) | Client::Passthrough => {}
        }
        of_cluster.all += 1;
        of_cluster.add(&client, addresses);
        drop(state);
        Ok(StreamPermit { streams: Arc::clone(self), cluster: cluster.clone(), client })
    }

    /// The streams of a cluster.
    pub fn used(&self, cluster: &ClusterName) -> Used {
        let streams = self.state().clusters.get(cluster).map_or(0, |of_cluster| of_cluster.all);
        Used::new(streams, self.per_cluster)
    }

    /// The current number of streams.
    pub fn count(&self) -> usize {
        self.state().clusters.values().map(|of_cluster| of_cluster.all).sum()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StreamPermit ===

impl StreamPermit {
    /// Whether the client is proven.
    pub fn is_proven(&self) -> bool {
        matches!(self.client, Client::User(_))
    }

    /// Marks the client as proven. From now on, the stream counts for that user, even above the limit, because the
    /// request may have had effects already.
    pub fn prove(&mut self, user: User) {
        let mut state = self.streams.state();
        let State { clusters, addresses } = &mut *state;
        let Some(of_cluster) = clusters.get_mut(&self.cluster) else { return };
        of_cluster.remove(&self.client, addresses);
        self.client = Client::User(user);
        of_cluster.add(&self.client, addresses);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        let State { clusters, addresses } = &mut *state;
        let Some(of_cluster) = clusters.get_mut(&self.cluster) else { return };
        of_cluster.remove(&self.client, addresses);
        of_cluster.all -= 1;
        if of_cluster.all == 0 {
            clusters.remove(&self.cluster);
        }
    }
}

// === impl ClusterState ===

impl ClusterState {
    /// Counts a stream for its client.
    fn add(&mut self, client: &Client, addresses: &mut Counts<Network>) {
        match client {
            Client::User(user) => self.users.increment(User::clone(user)),
            Client::Unproven(network) => {
                self.unproven += 1;
                addresses.increment(*network);
            }
            Client::Passthrough => {}
        }
    }

    fn remove(&mut self, client: &Client, addresses: &mut Counts<Network>) {
        match client {
            Client::User(user) => self.users.decrement(user),
            Client::Unproven(network) => {
                self.unproven -= 1;
                addresses.decrement(network);
            }
            Client::Passthrough => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn network(last: u8) -> Network {
        IpAddr::from([192, 0, 2, last]).into()
    }

    fn fill(streams: &Arc<Streams>, cluster: &ClusterName, client: &Client) -> (Vec<StreamPermit>, Limit) {
        let mut permits = Vec::new();
        loop {
            match streams.enter(cluster, client.clone()) {
                Ok(permit) => permits.push(permit),
                Err(limit) => return (permits, limit),
            }
        }
    }

    #[test]
    fn unproven_clients_leave_room_for_proven_ones() {
        let streams = Streams::new(50, 3, 100);
        let (beijing, hangzhou): (ClusterName, ClusterName) =
            ("ke-beijing".parse().unwrap(), "ke-hangzhou".parse().unwrap());
        let (first, limit) = fill(&streams, &beijing, &Client::Unproven(network(1)));
        assert_eq!((first.len(), limit), (3, Limit::Address));
        assert_eq!(streams.enter(&hangzhou, Client::Unproven(network(1))).unwrap_err(), Limit::Address);
        let more: Vec<_> = (2..9).map(|last| fill(&streams, &beijing, &Client::Unproven(network(last)))).collect();
        assert_eq!(more.iter().map(|(permits, _)| permits.len()).sum::<usize>(), 7);
        assert_eq!(more.last().unwrap().1, Limit::Unproven);
        let (jane, limit) = fill(&streams, &beijing, &Client::User("jane".into()));
        assert_eq!((jane.len(), limit), (50, Limit::User));
        let (joe, limit) = fill(&streams, &beijing, &Client::User("joe".into()));
        assert_eq!((joe.len(), limit), (40, Limit::Cluster));
        assert_eq!(streams.enter(&beijing, Client::Passthrough).unwrap_err(), Limit::Cluster);
        assert_eq!([&beijing, &hangzhou].map(|cluster| streams.used(cluster).to_string()), ["100/100", "0/100"]);
        assert!(streams.enter(&hangzhou, Client::User("jane".into())).is_ok());
        drop((first, more, jane, joe));
        let state = streams.state();
        assert_eq!((state.clusters.len(), state.addresses.len()), (0, 0));
    }

    #[test]
    fn a_stream_counts_for_the_user_once_it_is_proven() {
        let streams = Streams::new(1, 1, 100);
        let cluster: ClusterName = "ke-beijing".parse().unwrap();
        let mut first = streams.enter(&cluster, Client::Unproven(network(1))).unwrap();
        first.prove("jane".into());
        let mut second = streams.enter(&cluster, Client::Unproven(network(1))).unwrap();
        assert_eq!(streams.enter(&cluster, Client::User("jane".into())).unwrap_err(), Limit::User);
        // It may have been executed, so it stays.
        second.prove("jane".into());
        drop(first);
        assert_eq!(streams.enter(&cluster, Client::User("jane".into())).unwrap_err(), Limit::User);
        drop(second);
        assert!(streams.enter(&cluster, Client::User("jane".into())).is_ok());
        assert_eq!(streams.count(), 0);
    }
}
