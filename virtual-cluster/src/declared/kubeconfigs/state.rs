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

/// The state of the kubeconfig of one object, when the object had one generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenKubeconfig {
    /// The uid of the object.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// The state.
    pub state: KubeconfigState,
}

/// The states of all virtual clusters, by name. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigStates(Arc<Mutex<HashMap<String, SeenKubeconfig>>>);

// === impl KubeconfigStates ===

impl KubeconfigStates {
    /// The state of one. `None` if it asks for no kubeconfig, or if it is not known yet.
    pub fn get(&self, cluster: &str) -> Option<SeenKubeconfig> {
        self.lock().get(cluster).cloned()
    }

    /// Sets the state of one. Returns whether it has changed.
    pub(super) fn set(&self, cluster: &str, state: Option<&SeenKubeconfig>) -> bool {
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SeenKubeconfig>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
