//! Requests that clients abandon before they are answered.
//!
//! A reset costs a client nothing and frees the place of its stream, but the agent and the host have begun to work
//! (CVE-2023-44487). So what limits concurrent requests does not limit these. Each client may abandon some at once, and
//! then as many per second as a program that gives up because of its own time limits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;

use super::Client;

/// The time until an abandoned request is forgiven: ten per second on average.
const EACH: Duration = Duration::from_millis(100);

/// A client that has abandoned requests worth this time gets no more: a hundred at once.
const ALL: Duration = Duration::from_secs(10);

/// As many clients are remembered at least before those that are forgiven are removed.
const SWEEP: usize = 1024;

/// The abandoned requests of all clients.
#[derive(Debug, Default)]
pub struct Abandoned {
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    /// When all that a client has abandoned is forgiven.
    forgiven: HashMap<(ClusterName, Client), Instant>,
    /// The number of clients at which those that are forgiven are removed. It doubles, so that this costs little.
    sweep: usize,
}

/// A request that is abandoned if this is dropped.
#[derive(Debug)]
pub struct Unanswered {
    abandoned: Arc<Abandoned>,
    client: Option<(ClusterName, Client)>,
}

// === impl Abandoned ===

impl Abandoned {
    /// Whether the client has abandoned too many requests.
    pub fn is_exceeded(&self, cluster: &ClusterName, client: &Client) -> bool {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.forgiven.is_empty() {
            return false;
        }
        let key = (cluster.clone(), client.clone());
        clients.forgiven.get(&key).is_some_and(|forgiven| *forgiven > Instant::now() + ALL)
    }

    /// A request of the client.
    pub fn watch(self: &Arc<Self>, cluster: &ClusterName, client: &Client) -> Unanswered {
        Unanswered { abandoned: Arc::clone(self), client: Some((cluster.clone(), client.clone())) }
    }

    fn note(&self, client: (ClusterName, Client)) {
        let now = Instant::now();
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let Clients { forgiven, sweep } = &mut *clients;
        if forgiven.len() >= (*sweep).max(SWEEP) {
            forgiven.retain(|_, forgiven| *forgiven > now);
            *sweep = 2 * forgiven.len();
        }
        match forgiven.entry(client) {
            Entry::Occupied(mut entry) => {
                let after = (*entry.get()).max(now) + EACH;
                entry.insert(after.min(now + ALL + EACH));
            }
            Entry::Vacant(entry) => {
                entry.insert(now + EACH);
            }
        }
    }
}

// === impl Unanswered ===

impl Unanswered {
    /// The request has been answered, or refused.
    pub fn answered(mut self) {
        self.client = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.abandoned.note(client);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_abandons_too_many_waits() {
        let abandoned = Arc::new(Abandoned::default());
        let cluster: ClusterName = "ke-beijing".parse().unwrap();
        let [jane, joe] = ["jane", "joe"].map(|user| Client::User(user.into()));
        for _ in 0..200 {
            abandoned.watch(&cluster, &joe).answered();
        }
        let mut count = 0;
        while !abandoned.is_exceeded(&cluster, &jane) {
            drop(abandoned.watch(&cluster, &jane));
            count += 1;
        }
        assert_eq!(count, 101);
        assert!(!abandoned.is_exceeded(&cluster, &joe));
        // However many more there were, a moment is enough for the next one.
        for _ in 0..200 {
            drop(abandoned.watch(&cluster, &jane));
        }
        advance(EACH).await;
        assert!(!abandoned.is_exceeded(&cluster, &jane));
        drop(abandoned.watch(&cluster, &jane));
        assert!(abandoned.is_exceeded(&cluster, &jane));
        advance(2 * ALL).await;
        for user in 0..2 * SWEEP {
            drop(abandoned.watch(&cluster, &Client::User(user.to_string().into())));
        }
        assert!(!abandoned.clients.lock().unwrap().forgiven.contains_key(&(cluster, jane)));
    }
}
