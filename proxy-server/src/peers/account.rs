//! What the memory of forwarded streams is charged to.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ::tunnel::{FairBudget, Owner, Share};
use protocol::ClusterName;

/// The bytes that may wait for the tunnels of peers to send them. A cluster may have half.
const SEND_QUEUE: usize = 32 * 1024 * 1024;

/// The accounts of all clusters.
#[derive(Debug)]
pub(super) struct Accounts {
    send_queue: FairBudget,
    by_cluster: Mutex<HashMap<ClusterName, Account>>,
}

/// What the memory of the streams of one cluster is charged to.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// For the bytes that the agent has not read.
    pub(super) owner: Owner,
    /// For the bytes that wait for a tunnel.
    pub(super) queue: Share,
}

// === impl Accounts ===

impl Default for Accounts {
    fn default() -> Self {
        Self { send_queue: FairBudget::new(SEND_QUEUE, SEND_QUEUE / 2), by_cluster: Mutex::default() }
    }
}

impl Accounts {
    /// The account of a cluster. It is kept only if the cluster is `known`, so that a peer cannot fill the memory with names.
    pub(super) fn of(&self, cluster: &ClusterName, known: bool) -> Account {
        let mut accounts = self.by_cluster.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get(cluster) {
            return account.clone();
        }
        let account = Account { owner: Owner::new(), queue: self.send_queue.share() };
        if known {
            accounts.insert(cluster.clone(), account.clone());
        }
        account
    }
}
