//! Reconciles the Pod Security labels of each namespace with the configuration and the client's labels.

use rewrite::pod_security::Level;
use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};
use tracing::info;

use super::{Provisioner, ReconcileError, paths};
use crate::namespaces::Phase;
use crate::pod_security::correction;
use host_client::api::HostApi;

/// The maximum number of attempts if others change the object at the same time.
const ATTEMPTS: u32 = 5;

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// The level that is enforced in a virtual cluster.
    pub(super) fn level(&self, cluster: &ClusterName) -> Option<Level> {
        self.shared.levels.load().get(cluster).copied()
    }

    /// Sets the labels of one namespace.
    pub(super) async fn secure(&self, host: &HostNamespace) -> Result<(), ReconcileError> {
        let Some(member) = self.shared.namespaces.member(host) else { return Ok(()) };
        let level = self.level(&member.cluster);
        if member.phase == Phase::Terminating || member.posture.is_right(level) {
            return Ok(());
        }
        let path = paths::namespace(host);
        for _ in 0..ATTEMPTS {
            let mut found = match self.shared.api.get(&path).await {
                Ok(found) => found,
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let Some(correction) = correction(&found["metadata"]["labels"], level) else {
                // The watch has not delivered this version yet.
                let _ = self.shared.namespaces.learn(&found);
                return Ok(());
            };
            correct(&mut found["metadata"]["labels"], correction);
            match self.shared.api.update(&path, &found).await {
                Ok(updated) => {
                    info!(namespace = %host, level = level.map(Level::as_str), "set the Pod Security labels");
                    let _ = self.shared.namespaces.learn(&updated);
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
