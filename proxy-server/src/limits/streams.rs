//! Streams: requests whose response has not ended.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::ClusterName;

use super::{Limit, Network, User};

/// Unproven clients may have one in this many of a cluster's streams.
const UNPROVEN_PART: usize = 10;

/// The streams of all clients.
#[derive(Debug)]
pub struct Streams {
    per_user: usize,
    per_address: usize,
    per_cluster: usize,
    counts: Mutex<Counts>,
}

/// The client to which a stream is charged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// A proven user.
    User(User),
    /// An unproven client.
    Unproven(Network),
    /// Bytes to a physical cluster, whose API server authenticates its own clients.
    Passage,
}

/// The place of a stream; dropping it frees the place.
#[derive(Debug)]
pub struct StreamPlace {
    streams: Arc<Streams>,
    cluster: ClusterName,
    client: Client,
}

#[derive(Debug, Default)]
struct Counts {
    clusters: HashMap<ClusterName, OfCluster>,
    addresses: HashMap<Network, usize>,
}

#[derive(Debug, Default)]
struct OfCluster {
    all: usize,
    unproven: usize,
    users: HashMap<User, usize>,
}

// === impl Streams ===

impl Streams {
    /// With limits for each user of a cluster, for each address of unproven clients, and for each cluster.
    pub fn new(per_user: usize, per_address: usize, per_cluster: usize) -> Arc<Self> {
        Arc::new(Self { per_user, per_address, per_cluster, counts: Mutex::default() })
    }

    /// Takes a place, or returns the limit that is reached.
    pub fn enter(self: &Arc<Self>, cluster: &ClusterName, client: Client) -> Result<StreamPlace, Limit> {
        let mut counts = self.counts();
        let Counts { clusters, addresses } = &mut *counts;
        if !clusters.contains_key(cluster) {
            clusters.insert(cluster.clone(), OfCluster::default());
        }
        let of_cluster = clusters.get_mut(cluster).expect("it was put in");
        if of_cluster.all >= self.per_cluster {
            return Err(Limit::Cluster);
        }
        match &client {
            Client::User(user) if count(&of_cluster.users, user) >= self.per_user => return Err(Limit::User),
            Client::Unproven(_) if of_cluster.unproven >= self.per_cluster.div_ceil(UNPROVEN_PART) => {
                return Err(Limit::Unproven);
            }
            Client::Unproven(network) if count(addresses, network) >= self.per_address => return Err(Limit::Address),
            Client::User(_) | Client::Unproven(_) | Client::Passage => {}
        }
        of_cluster.all += 1;
        add(&client, of_cluster, addresses);
        drop(counts);
        Ok(StreamPlace { streams: Arc::clone(self), cluster: cluster.clone(), client })
    }

    /// The current number of streams.
    pub fn count(&self) -> usize {
        self.counts().clusters.values().map(|of_cluster| of_cluster.all).sum()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StreamPlace ===

impl StreamPlace {
    /// Whether the client is proven.
    pub fn is_proven(&self) -> bool {
        matches!(self.client, Client::User(_))
    }

    /// Marks the client as proven. From now on, the stream counts for that user, even above the limit, because the
    /// request may have had effects already.
    pub fn prove(&mut self, user: User) {
        let mut counts = self.streams.counts();
        let Counts { clusters, addresses } = &mut *counts;
        let Some(of_cluster) = clusters.get_mut(&self.cluster) else { return };
        remove(&self.client, of_cluster, addresses);
        self.client = Client::User(user);
        add(&self.client, of_cluster, addresses);
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut counts = self.streams.counts();
        let Counts { clusters, addresses } = &mut *counts;
        let Some(of_cluster) = clusters.get_mut(&self.cluster) else { return };
        remove(&self.client, of_cluster, addresses);
        of_cluster.all -= 1;
        if of_cluster.all == 0 {
            clusters.remove(&self.cluster);
        }
    }
}

fn add(client: &Client, of_cluster: &mut OfCluster, addresses: &mut HashMap<Network, usize>) {
    match client {
        Client::User(user) => *of_cluster.users.entry(User::clone(user)).or_default() += 1,
        Client::Unproven(network) => {
            of_cluster.unproven += 1;
            *addresses.entry(*network).or_default() += 1;
        }
        Client::Passage => {}
    }
}

fn remove(client: &Client, of_cluster: &mut OfCluster, addresses: &mut HashMap<Network, usize>) {
    match client {
        Client::User(user) => take_one(of_cluster.users.entry(User::clone(user))),
        Client::Unproven(network) => {
            of_cluster.unproven -= 1;
            take_one(addresses.entry(*network));
        }
        Client::Passage => {}
    }
}

fn count<K: Eq + Hash>(counts: &HashMap<K, usize>, key: &K) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

/// Removes the entry with the last one, so that the maps are no larger than needed.
fn take_one<K>(entry: Entry<'_, K, usize>) {
    if let Entry::Occupied(mut entry) = entry {
        *entry.get_mut() -= 1;
        if *entry.get() == 0 {
            entry.remove();
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

    fn fill(streams: &Arc<Streams>, cluster: &ClusterName, client: &Client) -> (Vec<StreamPlace>, Limit) {
        let mut places = Vec::new();
        loop {
            match streams.enter(cluster, client.clone()) {
                Ok(place) => places.push(place),
                Err(limit) => return (places, limit),
            }
        }
    }

    #[test]
    fn who_proves_nothing_cannot_take_the_places_of_who_does() {
        let streams = Streams::new(50, 3, 100);
        let (beijing, hangzhou): (ClusterName, ClusterName) =
            ("ke-beijing".parse().unwrap(), "ke-hangzhou".parse().unwrap());
        let (first, limit) = fill(&streams, &beijing, &Client::Unproven(network(1)));
        assert_eq!((first.len(), limit), (3, Limit::Address));
        assert_eq!(streams.enter(&hangzhou, Client::Unproven(network(1))).unwrap_err(), Limit::Address);
        let more: Vec<_> = (2..9).map(|last| fill(&streams, &beijing, &Client::Unproven(network(last)))).collect();
        assert_eq!(more.iter().map(|(places, _)| places.len()).sum::<usize>(), 7);
        assert_eq!(more.last().unwrap().1, Limit::Unproven);
        let (jane, limit) = fill(&streams, &beijing, &Client::User("jane".into()));
        assert_eq!((jane.len(), limit), (50, Limit::User));
        let (joe, limit) = fill(&streams, &beijing, &Client::User("joe".into()));
        assert_eq!((joe.len(), limit), (40, Limit::Cluster));
        assert_eq!(streams.enter(&beijing, Client::Passage).unwrap_err(), Limit::Cluster);
        assert!(streams.enter(&hangzhou, Client::User("jane".into())).is_ok());
        drop((first, more, jane, joe));
        let counts = streams.counts();
        assert!(counts.clusters.is_empty() && counts.addresses.is_empty());
    }

    #[test]
    fn who_proves_itself_later_changes_the_account() {
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
