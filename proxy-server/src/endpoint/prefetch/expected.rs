//! Predicts which documents a client requests after a health check, from its earlier requests.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, header};
use protocol::prefetch::MAX_DOCUMENTS;
use protocol::{ClusterName, detached};

use super::super::documents::Key;

/// The maximum number of clients of a cluster. Few clients check its health: one for each control plane.
const MAX_CLIENTS: usize = 4;
/// The maximum size of the head of a response, in bytes.
const MAX_HEAD: usize = 1024;
/// A document is no longer expected if the client has not requested it after this many health checks.
const MAX_UNUSED: u8 = 3;

/// What the clients of all clusters request after a health check: at most 24 KiB for each cluster.
#[derive(Debug, Default)]
pub(crate) struct Expectations {
    clients: Mutex<HashMap<ClusterName, VecDeque<Expected>>>,
    hasher: RandomState,
}

/// A client, as the agent sees it: by the digest of its headers. If two clients have the same digest, no client gets a wrong
/// response: the agent compares the response of the actual client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client(u64);

/// A response that a client has got after a health check.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub(super) key: Key,
    /// The head, as the agent has sent it.
    pub(super) head: HeaderMap,
}

#[derive(Debug)]
struct Expected {
    client: Client,
    /// The responses, the newest last. The number counts the health checks since the client last requested the document.
    followed: Vec<(Followed, u8)>,
}

// === impl Expectations ===

impl Expectations {
    /// The client of a request with these headers.
    pub(super) fn client(&self, headers: &HeaderMap) -> Client {
        let fields = headers.iter().filter(|(name, _)| **name != header::ACCEPT);
        // The order of headers with different names has no meaning (RFC 9110, section 5.3).
        Client(fields.map(|field| self.hasher.hash_one(field)).fold(0, u64::wrapping_add))
    }

    /// Returns what the client has requested after its last health checks, and counts this health check.
    pub(super) fn of(&self, cluster: &ClusterName, client: Client) -> Vec<Followed> {
        let mut clients = self.lock();
        let Some(clients) = clients.get_mut(cluster) else { return Vec::new() };
        let Some(mut expected) = take(clients, client) else { return Vec::new() };
        expected.followed.retain(|(_, unused)| *unused < MAX_UNUSED);
        for (_, unused) in &mut expected.followed {
            *unused += 1;
        }
        let followed = expected.followed.iter().map(|(followed, _)| followed.clone()).collect();
        clients.push_back(expected);
        followed
    }

    /// The client has requested a document that was expected.
    pub(super) fn used(&self, cluster: &ClusterName, client: Client, key: &Key) {
        let mut clients = self.lock();
        let expected = clients.get_mut(cluster).into_iter().flatten().find(|expected| expected.client == client);
        let followed = expected.into_iter().flat_map(|expected| &mut expected.followed);
        followed.filter(|(followed, _)| followed.key == *key).for_each(|(_, unused)| *unused = 0);
    }

    /// The client has requested this document after a health check, and the agent has sent this head.
    pub(super) fn learn(
        &self,
        cluster: &ClusterName,
        client: Client,
        (key, head): (Key, &HeaderMap),
        is_served: impl Fn(&ClusterName) -> bool,
    ) {
        let size: usize = head.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if size > MAX_HEAD {
            return;
        }
        let mut clients = self.lock();
        if !clients.contains_key(cluster) {
            // Removes the entries of removed clusters. This is cheap here, because a new cluster is rare.
            clients.retain(|cluster, _| is_served(cluster));
        }
        let clients = clients.entry(cluster.clone()).or_default();
        let mut expected = take(clients, client).unwrap_or_else(|| Expected { client, followed: Vec::new() });
        expected.followed.retain(|(followed, _)| followed.key != key);
        if expected.followed.len() >= MAX_DOCUMENTS {
            expected.followed.remove(0);
        }
        expected.followed.push((Followed { key, head: detached::head(head) }, 0));
        if clients.len() >= MAX_CLIENTS {
            clients.pop_front();
        }
        clients.push_back(expected);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClusterName, VecDeque<Expected>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the entry of a client.
fn take(clients: &mut VecDeque<Expected>, client: Client) -> Option<Expected> {
    clients.iter().position(|expected| expected.client == client).and_then(|at| clients.remove(at))
}
