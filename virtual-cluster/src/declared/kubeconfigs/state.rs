//! What the status of a VirtualCluster tells about its kubeconfig.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ops::date::Moment;

use super::failure::IssueError;

/// The state of a kubeconfig that a VirtualCluster asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeconfigState {
    /// The Secret exists.
    Issued {
        /// The namespace of the Secret.
        namespace: Arc<str>,
        /// Its name.
        name: String,
        /// When its certificate expires. The agent renews it before.
        expiry: Moment,
    },
    /// There is none, or it is out of date.
    Failed(IssueError),
}

/// The states of all virtual clusters, by name. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigStates(Arc<Mutex<HashMap<String, KubeconfigState>>>);

// === impl KubeconfigStates ===

impl KubeconfigStates {
    /// The state of one. `None` if it asks for no kubeconfig, or if it is not known yet.
    pub fn get(&self, cluster: &str) -> Option<KubeconfigState> {
        self.lock().get(cluster).cloned()
    }

    /// Sets the state of one. Returns whether it has changed.
    pub(super) fn set(&self, cluster: &str, state: Option<&KubeconfigState>) -> bool {
        let mut states = self.lock();
        let before = match state {
            Some(state) => states.insert(cluster.to_owned(), state.clone()),
            None => states.remove(cluster),
        };
        before.as_ref() != state
    }

    /// Forgets all others.
    pub(super) fn retain(&self, is_known: impl Fn(&str) -> bool) {
        self.lock().retain(|cluster, _| is_known(cluster));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, KubeconfigState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
