//! Reconciles the Pod Security labels of each namespace with the configuration and the client's labels.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use host_client::api::HostApi;
use rewrite::pod_security::Level;
use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};
use tracing::info;

use super::paths;
use super::reconcile_error::ReconcileError;
use crate::namespaces::{Member, Namespaces, Phase};
use crate::pod_security::correction;

/// The maximum number of attempts if others change the object at the same time.
const MAX_ATTEMPTS: u32 = 5;

/// The level of Pod Security that is enforced in each virtual cluster, if any.
pub type Levels = HashMap<ClusterName, Level>;

/// Sets the Pod Security labels of namespaces.
pub(super) struct PodSecurity<A> {
    api: A,
    namespaces: Arc<Namespaces>,
    levels: ArcSwap<Levels>,
}

// === impl PodSecurity ===

impl<A: HostApi> PodSecurity<A> {
    /// Enforces no level yet.
    pub(super) fn new(api: A, namespaces: Arc<Namespaces>) -> Self {
        Self { api, namespaces, levels: ArcSwap::default() }
    }

    /// From now on, enforces these levels.
    pub(super) fn enforce(&self, levels: Levels) {
        self.levels.store(Arc::new(levels));
    }

    /// The level that is enforced in a virtual cluster.
    pub(super) fn level(&self, cluster: &ClusterName) -> Option<Level> {
        self.levels.load().get(cluster).copied()
    }

    /// Whether the labels of a namespace need no change.
    pub(super) fn is_right(&self, member: &Member) -> bool {
        member.phase == Phase::Terminating || member.posture.is_right(self.level(&member.cluster))
    }

    /// Sets the labels of one namespace.
    pub(super) async fn reconcile(&self, host: &HostNamespace) -> Result<(), ReconcileError> {
        let Some(member) = self.namespaces.member(host) else { return Ok(()) };
        if self.is_right(&member) {
            return Ok(());
        }
        let level = self.level(&member.cluster);
        let path = paths::namespace(host);
        for _ in 0..MAX_ATTEMPTS {
            let mut found = match self.api.get(&path).await {
                Ok(found) => found,
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let Some(correction) = correction(&found["metadata"]["labels"], level) else {
                // The watch has not delivered this version yet.
                let _ = self.namespaces.learn(&found);
                return Ok(());
            };
            correct(&mut found["metadata"]["labels"], correction);
            match self.api.update(&path, &found).await {
                Ok(updated) => {
                    info!(namespace = %host, level = level.map(Level::as_str), "set the Pod Security labels");
                    let _ = self.namespaces.learn(&updated);
                    return Ok(());
                }
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ReconcileError::Contended(format!("namespace {host}")))
    }
}

fn correct(labels: &mut Value, correction: serde_json::Map<String, Value>) {
    if labels.is_null() {
        *labels = json!({});
    }
    let Some(labels) = labels.as_object_mut() else { return };
    for (key, value) in correction {
        if value.is_null() {
            labels.remove(&key);
        } else {
            labels.insert(key, value);
        }
    }
}
