//! Connections of one kind of peer: clients, or agents.
//!
//! A connection costs memory and a file descriptor before its client is known. So if the limit is reached, a new
//! connection replaces an unproven one: the oldest of the address that has most of them. A proven connection keeps its
//! place until it ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{Limit, Network, User};
use crate::config;

/// A younger connection is not closed in favour of a newer one, because its client may be about to authenticate.
/// Otherwise, a thousand legitimate peers that connect at once would end each other's handshakes for ever.
const GRACE: Duration = Duration::from_secs(2);

/// One in this many places is always available to unproven connections.
const UNPROVEN_PART: usize = 10;

/// The connections of all listeners for one kind of peer.
#[derive(Debug)]
pub struct Connections {
    most: config::Connections,
    state: Mutex<State>,
}

/// The place of a connection. Clones are the same place, which is free when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Place(Arc<Held>);

#[derive(Debug)]
struct Held {
    connections: Arc<Connections>,
    network: Network,
    number: u64,
    evicted: CancellationToken,
    standing: Mutex<Standing>,
}

/// The state of a connection's client.
#[derive(Clone, Debug)]
enum Standing {
    Unproven,
    User(Owner),
    Passage,
}

/// The proven user of a connection. Agents belong to no cluster.
type Owner = (Option<ClusterName>, User);

#[derive(Debug, Default)]
struct State {
    all: usize,
    proven: usize,
    passages: usize,
    users: HashMap<Owner, usize>,
    clusters: HashMap<ClusterName, usize>,
    passages_of: HashMap<Network, usize>,
    /// The oldest of an address is the first.
    unproven: HashMap<Network, BTreeMap<u64, Unproven>>,
    /// The number of connections of each address in `unproven`.
    crowds: BTreeSet<(usize, Network)>,
    next: u64,
}

#[derive(Debug)]
struct Unproven {
    since: Instant,
    evict: CancellationToken,
}

// === impl Connections ===

impl Connections {
    /// With these limits.
    pub fn new(most: config::Connections) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// A place for a new connection. `None` if all are taken, and none can be replaced.
    pub fn admit(self: &Arc<Self>, network: Network) -> Option<Place> {
        let mut state = self.state();
        if state.unproven.get(&network).is_some_and(|own| own.len() >= self.most.per_address) {
            state.evict(network)?;
        } else if state.all >= self.most.all {
            let (_, crowd) = *state.crowds.last()?;
            state.evict(crowd)?;
        }
        let (number, evicted) = (state.next, CancellationToken::new());
        state.next += 1;
        state.all += 1;
        state.arrive(network, number, Unproven { since: Instant::now(), evict: evicted.clone() });
        drop(state);
        let standing = Mutex::new(Standing::Unproven);
        Some(Place(Arc::new(Held { connections: Arc::clone(self), network, number, evicted, standing })))
    }

    /// The current number of connections.
    pub fn count(&self) -> usize {
        self.state().all
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Place ===

impl Place {
    /// Where the connection comes from.
    pub fn network(&self) -> Network {
        self.0.network
    }

    /// Whether the client is proven.
    pub fn is_proven(&self) -> bool {
        matches!(*self.0.standing(), Standing::User(_))
    }

    /// Marks the client as proven. From now on, the place counts for that user, unless the user or the cluster has
    /// reached its limit. A proven connection stays proven.
    pub fn prove(&self, cluster: Option<&ClusterName>, user: &User) -> Result<(), Limit> {
        let mut standing = self.0.standing();
        if !matches!(*standing, Standing::Unproven) {
            return Ok(());
        }
        let connections = &self.0.connections;
        let owner = (cluster.cloned(), User::clone(user));
        let mut state = connections.state();
        let most = &connections.most;
        if state.proven >= most.all - most.all.div_ceil(UNPROVEN_PART)
            || state.users.get(&owner).is_some_and(|own| *own >= most.per_user)
            || cluster.is_some_and(|cluster| state.clusters.get(cluster).is_some_and(|own| *own >= most.per_cluster))
        {
            return Err(Limit::Connections);
        }
        if !state.leave(self.0.network, self.0.number) {
            // It is being ended for a newer one.
            return Err(Limit::Connections);
        }
        state.proven += 1;
        *state.users.entry(owner.clone()).or_default() += 1;
        if let Some(cluster) = cluster {
            *state.clusters.entry(cluster.clone()).or_default() += 1;
        }
        *standing = Standing::User(owner);
        Ok(())
    }

    /// Marks the connection as one to a physical cluster, whose clients are not known here. At most half of all places
    /// are for such connections.
    pub fn pass(&self) -> Result<(), Limit> {
        let mut standing = self.0.standing();
        let (connections, network) = (&self.0.connections, self.0.network);
        let mut state = connections.state();
        if !matches!(*standing, Standing::Unproven)
            || state.passages >= connections.most.all / 2
            || state.passages_of.get(&network).is_some_and(|own| *own >= connections.most.per_address)
            || !state.leave(network, self.0.number)
        {
            return Err(Limit::Connections);
        }
        state.passages += 1;
        *state.passages_of.entry(network).or_default() += 1;
        *standing = Standing::Passage;
        Ok(())
    }

    /// Closes the connection unless its client is proven before.
    pub fn evict(&self) {
        let mut state = self.0.connections.state();
        if state.leave(self.0.network, self.0.number) {
            state.all -= 1;
            self.0.evicted.cancel();
        }
    }

    /// Completes when the connection must end.
    pub fn evicted(&self) -> WaitForCancellationFutureOwned {
        self.0.evicted.clone().cancelled_owned()
    }
}

// === impl Held ===

impl Held {
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let standing = self.standing().clone();
        let mut state = self.connections.state();
        match standing {
            // Else it was evicted, and is not counted any more.
            Standing::Unproven if !state.leave(self.network, self.number) => return,
            Standing::Unproven => {}
            Standing::User(owner) => {
                state.proven -= 1;
                take_one(&mut state.users, &owner);
                if let (Some(cluster), _) = &owner {
                    take_one(&mut state.clusters, cluster);
                }
            }
            Standing::Passage => {
                state.passages -= 1;
                take_one(&mut state.passages_of, &self.network);
            }
        }
        state.all -= 1;
    }
}

// === impl State ===

impl State {
    fn arrive(&mut self, network: Network, number: u64, connection: Unproven) {
        let own = self.unproven.entry(network).or_default();
        self.crowds.remove(&(own.len(), network));
        own.insert(number, connection);
        self.crowds.insert((own.len(), network));
    }

    /// Removes a connection from the unproven ones; `false` if it was not there.
    fn leave(&mut self, network: Network, number: u64) -> bool {
        let Some(own) = self.unproven.get_mut(&network) else { return false };
        let before = own.len();
        if own.remove(&number).is_none() {
            return false;
        }
        self.crowds.remove(&(before, network));
        if own.is_empty() {
            self.unproven.remove(&network);
        } else {
            self.crowds.insert((own.len(), network));
        }
        true
    }

    /// Closes the oldest connection of an address, if it is old enough.
    fn evict(&mut self, network: Network) -> Option<()> {
        let (number, oldest) = self.unproven.get(&network)?.first_key_value()?;
        if oldest.since.elapsed() < GRACE {
            return None;
        }
        let (number, evict) = (*number, oldest.evict.clone());
        self.leave(network, number);
        self.all -= 1;
        evict.cancel();
        Some(())
    }
}

/// Removes the entry with the last one, so that the maps are no larger than needed.
fn take_one<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
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

    fn is_evicted(place: &Place) -> bool {
        place.0.evicted.is_cancelled()
    }

    fn counts(connections: &Connections) -> [usize; 4] {
        let state = connections.state();
        [state.unproven.len(), state.users.len(), state.clusters.len(), state.passages_of.len()]
    }

    fn most(all: usize, per_address: usize, per_user: usize) -> config::Connections {
        config::Connections { all, per_address, per_cluster: all, per_user }
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_the_largest_crowd_makes_room() {
        let connections = Connections::new(most(10, 6, 5));
        let cluster = "ke-beijing".parse().unwrap();
        let jane = connections.admit(network(1)).unwrap();
        jane.prove(Some(&cluster), &"jane".into()).unwrap();
        let alone = connections.admit(network(2)).unwrap();
        let crowd: Vec<_> = (0..6).map(|_| connections.admit(network(3)).unwrap()).collect();
        // All are so young that they may be about to prove something.
        assert!(connections.admit(network(3)).is_none());
        tokio::time::advance(GRACE).await;
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
    async fn who_has_proven_itself_leaves_places_to_those_who_may() {
        let connections = Connections::new(most(10, 10, 6));
        let cluster = "ke-beijing".parse().unwrap();
        let prove = |user: &str| {
            let place = connections.admit(network(1)).unwrap();
            (place.prove(Some(&cluster), &user.into()), place)
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
        tokio::time::advance(GRACE).await;
        assert!(connections.admit(network(2)).is_some());
        assert!(is_evicted(&tenth));
        drop((jane, joe, tenth));
        assert_eq!((connections.count(), counts(&connections)), (0, [0; 4]));
    }

    #[tokio::test]
    async fn a_cluster_with_many_users_leaves_places_to_others() {
        let connections = Connections::new(config::Connections { per_cluster: 4, ..most(10, 10, 2) });
        let prove = |cluster: &str, user: &str| {
            let place = connections.admit(network(1)).unwrap();
            (place.prove(Some(&cluster.parse().unwrap()), &user.into()), place)
        };
        let crowd = ["a", "b", "c", "d"].map(|user| prove("ke-beijing", user));
        assert!(crowd.iter().all(|(proven, _)| proven.is_ok()));
        let (fifth, other) = (prove("ke-beijing", "e"), prove("ke-hangzhou", "a"));
        assert_eq!((fifth.0, other.0), (Err(Limit::Connections), Ok(())));
        drop((crowd, fifth.1, other.1));
        assert_eq!((connections.count(), counts(&connections)), (0, [0; 4]));
    }

    #[tokio::test]
    async fn passages_have_half_of_the_places() {
        let connections = Connections::new(most(10, 3, 5));
        let passages: Vec<_> =
            (0..10).filter_map(|last| connections.admit(network(last)).filter(|place| place.pass().is_ok())).collect();
        assert_eq!(passages.len(), 5);
        drop(passages);
        let passages: Vec<_> =
            (0..5).filter_map(|_| connections.admit(network(1)).filter(|place| place.pass().is_ok())).collect();
        assert_eq!(passages.len(), 3);
        assert!(passages[0].pass().is_err());
        drop(passages);
        assert_eq!((connections.count(), counts(&connections)), (0, [0; 4]));
    }

    #[tokio::test]
    async fn an_unproven_connection_can_be_ended_by_itself() {
        let connections = Connections::new(most(10, 10, 5));
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
