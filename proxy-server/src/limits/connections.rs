//! Connections of one kind of peer: clients, or agents.
//!
//! A connection costs memory and a file descriptor before its client is known. So if the limit is reached, a new
//! connection replaces an unproven one: the oldest of the address that has most of them. A proven connection is never
//! replaced.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ops::used::Used;
use protocol::ClusterName;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::counts::Counts;
use super::{Limit, Network, User};
use crate::config;

/// The minimum age of a connection that may be replaced. The client of a younger one may be about to authenticate:
/// without this time, a thousand legitimate peers that connect at once would end each other's handshakes for ever.
const MIN_AGE: Duration = Duration::from_secs(2);

/// ClientIdentity connections leave one in this many of all connections to unproven ones.
const UNPROVEN_PART: usize = 10;

/// The connections of all listeners for one kind of peer.
#[derive(Debug)]
pub struct Connections {
    limits: config::Connections,
    state: Mutex<State>,
}

/// Counts a connection until its last clone is dropped.
#[derive(Clone, Debug)]
pub struct ConnectionPermit(Arc<Permit>);

#[derive(Debug)]
struct Permit {
    connections: Arc<Connections>,
    network: Network,
    /// For audit logs. `None` for a connection in memory.
    address: Option<IpAddr>,
    number: u64,
    evicted: CancellationToken,
    peer: Mutex<Peer>,
}

/// What is known about the peer of a connection.
#[derive(Clone, Debug)]
enum Peer {
    Unproven,
    User(Owner),
    /// A client of a physical cluster.
    Passthrough,
}

/// The proven user of a connection. Agents belong to no cluster.
type Owner = (Option<ClusterName>, User);

#[derive(Debug, Default)]
struct State {
    all: usize,
    proven: usize,
    passthrough: usize,
    users: Counts<Owner>,
    clusters: Counts<ClusterName>,
    passthrough_by_network: Counts<Network>,
    /// By network and number. The oldest connection of a network is the first.
    unproven: HashMap<Network, BTreeMap<u64, Unproven>>,
    /// The networks in `unproven`, by their number of connections.
    unproven_counts: BTreeSet<(usize, Network)>,
    next_number: u64,
}

#[derive(Debug)]
struct Unproven {
    since: Instant,
    evict: CancellationToken,
}

// === impl Connections ===

impl Connections {
    /// No connections yet.
    pub fn new(limits: config::Connections) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    /// Counts a new connection. `None` if a limit is reached, and no other connection can be replaced.
    pub fn admit(self: &Arc<Self>, network: Network) -> Option<ConnectionPermit> {
        self.count_new(network, None)
    }

    /// The same for a connection from this address.
    pub fn admit_from(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        self.count_new(address.into(), Some(address))
    }

    fn count_new(self: &Arc<Self>, network: Network, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        let mut state = self.state();
        if state.unproven.get(&network).is_some_and(|own| own.len() >= self.limits.per_address) {
            state.evict(network)?;
        } else if state.all >= self.limits.all {
            let (_, largest) = *state.unproven_counts.last()?;
            state.evict(largest)?;
        }
        let (number, evicted) = (state.next_number, CancellationToken::new());
        state.next_number += 1;
        state.all += 1;
        state.insert_unproven(network, number, Unproven { since: Instant::now(), evict: evicted.clone() });
        drop(state);
        let peer = Mutex::new(Peer::Unproven);
        let connections = Arc::clone(self);
        Some(ConnectionPermit(Arc::new(Permit { connections, network, address, number, evicted, peer })))
    }

    /// The proven connections of a cluster. Those to physical clusters are never proven.
    pub fn used(&self, cluster: &ClusterName) -> Used {
        Used::new(self.state().clusters.get(cluster), self.limits.per_cluster)
    }

    /// The current number of connections.
    pub fn count(&self) -> usize {
        self.state().all
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ConnectionPermit ===

impl ConnectionPermit {
    /// Where the connection comes from.
    pub fn network(&self) -> Network {
        self.0.network
    }

    /// The address of the client.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.address
    }

    /// Whether the client is proven.
    pub fn is_proven(&self) -> bool {
        matches!(*self.0.peer(), Peer::User(_))
    }

    /// Marks the client as proven. From now on, the connection counts for that user, unless the user or the cluster has
    /// reached its limit. A proven connection stays proven.
    pub fn prove(&self, cluster: Option<&ClusterName>, user: &User) -> Result<(), Limit> {
        let mut peer = self.0.peer();
        if !matches!(*peer, Peer::Unproven) {
            return Ok(());
        }
        let connections = &self.0.connections;
        let owner = (cluster.cloned(), User::clone(user));
        let mut state = connections.state();
        let limits = &connections.limits;
        if state.proven >= limits.all - limits.all.div_ceil(UNPROVEN_PART)
            || state.users.get(&owner) >= limits.per_user
            || cluster.is_some_and(|cluster| state.clusters.get(cluster) >= limits.per_cluster)
        {
            return Err(Limit::Connections);
        }
        if !state.remove_unproven(self.0.network, self.0.number) {
            // It is being replaced.
            return Err(Limit::Connections);
        }
        state.proven += 1;
        state.users.increment(owner.clone());
        if let Some(cluster) = cluster {
            state.clusters.increment(cluster.clone());
        }
        *peer = Peer::User(owner);
        Ok(())
    }

    /// Marks the connection as one to a physical cluster, whose clients are not known here. At most half of all
    /// connections may be such connections.
    pub fn mark_passthrough(&self) -> Result<(), Limit> {
        let mut peer = self.0.peer();
        let (connections, network) = (&self.0.connections, self.0.network);
        let mut state = connections.state();
        if !matches!(*peer, Peer::Unproven)
            || state.passthrough >= connections.limits.all / 2
            || state.passthrough_by_network.get(&network) >= connections.limits.per_address
            || !state.remove_unproven(network, self.0.number)
        {
            return Err(Limit::Connections);
        }
        state.passthrough += 1;
        state.passthrough_by_network.increment(network);
        *peer = Peer::Passthrough;
        Ok(())
    }

    /// Closes the connection, unless its client is proven.
    pub fn evict(&self) {
        let mut state = self.0.connections.state();
        if state.remove_unproven(self.0.network, self.0.number) {
            state.all -= 1;
            self.0.evicted.cancel();
        }
    }

    /// Completes when the connection must end.
    pub fn evicted(&self) -> WaitForCancellationFutureOwned {
        self.0.evicted.clone().cancelled_owned()
    }
}

// === impl Permit ===

impl Permit {
    fn peer(&self) -> MutexGuard<'_, Peer> {
        self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let peer = self.peer().clone();
        let mut state = self.connections.state();
        match peer {
            // If it is not there, it was evicted, and is no longer counted.
            Peer::Unproven if !state.remove_unproven(self.network, self.number) => return,
            Peer::Unproven => {}
            Peer::User(owner) => {
                state.proven -= 1;
                state.users.decrement(&owner);
                if let (Some(cluster), _) = &owner {
                    state.clusters.decrement(cluster);
                }
            }
            Peer::Passthrough => {
                state.passthrough -= 1;
                state.passthrough_by_network.decrement(&self.network);
            }
        }
        state.all -= 1;
    }
}

// === impl State ===

impl State {
    fn insert_unproven(&mut self, network: Network, number: u64, connection: Unproven) {
        let own = self.unproven.entry(network).or_default();
        self.unproven_counts.remove(&(own.len(), network));
        own.insert(number, connection);
        self.unproven_counts.insert((own.len(), network));
    }

    /// Removes a connection from the unproven ones. Returns `false` if it was not there.
    fn remove_unproven(&mut self, network: Network, number: u64) -> bool {
        let Some(own) = self.unproven.get_mut(&network) else { return false };
        let before = own.len();
        if own.remove(&number).is_none() {
            return false;
        }
        self.unproven_counts.remove(&(before, network));
        if own.is_empty() {
            self.unproven.remove(&network);
        } else {
            self.unproven_counts.insert((own.len(), network));
        }
        true
    }

    /// Closes the oldest connection of an address, if it is old enough.
    fn evict(&mut self, network: Network) -> Option<()> {
        let (number, oldest) = self.unproven.get(&network)?.first_key_value()?;
        if oldest.since.elapsed() < MIN_AGE {
            return None;
        }
        let (number, evict) = (*number, oldest.evict.clone());
        self.remove_unproven(network, number);
        self.all -= 1;
        evict.cancel();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn network(last: u8) -> Network {
        IpAddr::from([192, 0, 2, last]).into()
    }

    fn is_evicted(permit: &ConnectionPermit) -> bool {
        permit.0.evicted.is_cancelled()
    }

    fn counts(connections: &Connections) -> [usize; 4] {
        let state = connections.state();
        [state.unproven.len(), state.users.len(), state.clusters.len(), state.passthrough_by_network.len()]
    }

    fn limits(all: usize, per_address: usize, per_user: usize) -> config::Connections {
        config::Connections { all, per_address, per_cluster: all, per_user }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_replaces_the_oldest_of_the_largest_network() {
        let connections = Connections::new(limits(10, 6, 5));
        let cluster = "ke-beijing".parse().unwrap();
        let jane = connections.admit(network(1)).unwrap();
        jane.prove(Some(&cluster), &"jane".into()).unwrap();
        let alone = connections.admit(network(2)).unwrap();
        let crowd: Vec<_> = (0..6).map(|_| connections.admit(network(3)).unwrap()).collect();
        // All are younger than the minimum age.
        assert!(connections.admit(network(3)).is_none());
        tokio::time::advance(MIN_AGE).await;
        let seventh = connections.admit(network(3)).unwrap();
        assert!(is_evicted(&crowd[0]) && !is_evicted(&crowd[1]));
        let others: Vec<_> = (4..6).map(|last| connections.admit(network(last)).unwrap()).collect();
        assert_eq!(connections.count(), 10);
        let newest = connections.admit(network(6)).unwrap();
        assert!(is_evicted(&crowd[1]) && !is_evicted(&alone) && !is_evicted(&jane));
        assert_eq!(crowd[1].prove(Some(&cluster), &"joe".into()), Err(Limit::Connections));
        drop((jane, alone, crowd, seventh, others, newest));
        assert_eq!((connections.count(), counts(&connections)), (0, [0; 4]));
    }

    #[tokio::test(start_paused = true)]
    async fn proven_connections_leave_room_for_unproven_ones() {
        let connections = Connections::new(limits(10, 10, 6));
        let cluster = "ke-beijing".parse().unwrap();
        let prove = |user: &str| {
            let permit = connections.admit(network(1)).unwrap();
            (permit.prove(Some(&cluster), &user.into()), permit)
        };
        let jane: Vec<_> = (0..6).map(|_| prove("jane")).collect();
        assert!(jane.iter().all(|(proven, _)| proven.is_ok()));
        assert_eq!(prove("jane").0, Err(Limit::Connections));
        let joe: Vec<_> = (0..4).map(|_| prove("joe").0).collect();
        assert!(joe.iter().all(Result::is_ok), "each is gone when the next one comes");
        let joe: Vec<_> = (0..3).map(|_| prove("joe")).collect();
        assert!(joe.iter().all(|(proven, _)| proven.is_ok()));
        let (proven, tenth) = prove("joe");
        assert_eq!(proven, Err(Limit::Connections));
        assert!(!tenth.is_proven());
        tokio::time::advance(MIN_AGE).await;
        assert!(connections.admit(network(2)).is_some());
        assert!(is_evicted(&tenth));
        drop((jane, joe, tenth));
        assert_eq!((connections.count(), counts(&connections)), (0, [0; 4]));
    }

    #[tokio::test]
    async fn a_cluster_with_many_users_leaves_room_for_others() {
        let connections = Connections::new(config::Connections { per_cluster: 4, ..limits(10, 10, 2) });
        let prove = |cluster: &str, user: &str| {
            let permit = connections.admit(network(1)).unwrap();
            (permit.prove(Some(&cluster.parse().unwrap()), &user.into()), permit)
        };
        let crowd = ["a", "b", "c", "d"].map(|user| prove("ke-beijing", user));
        assert!(crowd.iter().all(|(proven, _)| proven.is_ok()));
        let (fifth, other) = (prove("ke-beijing", "e"), prove("ke-hangzhou", "a"));
        assert_eq!((fifth.0, other.0), (Err(Limit::Connections), Ok(())));
        let used = |cluster: &str| connections.used(&cluster.parse().unwrap()).to_string();
        assert_eq!([used("ke-beijing"), used("ke-hangzhou"), used("unknown")], ["4/4", "1/4", "0/4"]);
        drop((crowd, fifth.1, other.1));
        assert_eq!((connections.count(), counts(&connections)), (0, [0; 4]));
    }

    #[tokio::test]
    async fn passthrough_connections_are_at_most_half() {
        let connections = Connections::new(limits(10, 3, 5));
        let passthrough: Vec<_> = (0..10)
            .filter_map(|last| connections.admit(network(last)).filter(|permit| permit.mark_passthrough().is_ok()))
            .collect();
        assert_eq!(passthrough.len(), 5);
        drop(passthrough);
        let passthrough: Vec<_> = (0..5)
            .filter_map(|_| connections.admit(network(1)).filter(|permit| permit.mark_passthrough().is_ok()))
            .collect();
        assert_eq!(passthrough.len(), 3);
        assert!(passthrough[0].mark_passthrough().is_err());
        drop(passthrough);
        assert_eq!((connections.count(), counts(&connections)), (0, [0; 4]));
    }

    #[tokio::test]
    async fn an_unproven_connection_can_be_ended_by_itself() {
        let connections = Connections::new(limits(10, 10, 5));
        let (first, second) = (connections.admit(network(1)).unwrap(), connections.admit(network(1)).unwrap());
        second.prove(None, &"site-a".into()).unwrap();
        first.evict();
        second.evict();
        assert!(is_evicted(&first) && !is_evicted(&second));
        assert_eq!(connections.count(), 1);
        drop((first, second));
        assert_eq!(connections.count(), 0);
    }
}
