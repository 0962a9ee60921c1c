//! Puts mirrors into a new namespace before the client gets the response.
//!
//! RBAC reads from caches, so a new binding is not in force at once. A client that writes into its new namespace
//! immediately must not get a 403. So the agent repeats a review until the host allows it.

use std::sync::Arc;
use std::time::Duration;

use host_client::api::HostApi;
use ops::backoff::Backoff;
use rewrite::{ClusterName, HostNamespace};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tracing::{error, warn};

use super::administrators;
use super::binding::Wanted;
use super::bindings::Bindings;
use super::catalog::SharedCatalog;
use crate::namespaces::Namespaces;

/// The time to write the mirrors. After it, the client gets the response anyway.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time to wait until they are in force. An API server that is busy needs more than a second.
const IN_FORCE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pauses between attempts to write one mirror.
const WRITE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(2), Duration::from_secs(1));

/// How ready a new namespace is. It exists in all cases, so the client gets the response 201.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceReadiness {
    /// The cluster's bindings are in force in it.
    InForce,
    /// They are not in force yet. The reconciler continues. The first requests may be refused.
    Late,
    /// It belongs to none of our virtual clusters, so the request was not mapped. This is a bug.
    Foreign,
}

/// Namespaces that clients create.
pub(super) struct NewNamespaces<A> {
    namespaces: Arc<Namespaces>,
    catalog: SharedCatalog,
    bindings: Bindings<A>,
}

// === impl NewNamespaces ===

impl<A: HostApi> NewNamespaces<A> {
    pub(super) fn new(namespaces: Arc<Namespaces>, catalog: SharedCatalog, bindings: Bindings<A>) -> Self {
        Self { namespaces, catalog, bindings }
    }

    /// Adds a new namespace to the index, writes its mirrors, and waits for at most five seconds until they are in force.
    /// Call it with the host's response to the creation, before the client gets the response. If this future is
    /// dropped, the reconciler finishes the namespace.
    pub(super) async fn complete(&self, created: &Value) -> NamespaceReadiness {
        let Ok(Some(member)) = self.namespaces.learn(created) else {
            error!(namespace = %created["metadata"]["name"], "the new namespace does not belong to any virtual cluster");
            return NamespaceReadiness::Foreign;
        };
        let writing = self.write_all(&member.cluster, &member.host);
        let is_written = timeout(WRITE_TIMEOUT, writing).await.is_ok();
        let reviewed = administrators::in_force(self.bindings.api(), &member.cluster, &member.host);
        if is_written && timeout(IN_FORCE_TIMEOUT, reviewed).await.is_ok() {
            return NamespaceReadiness::InForce;
        }
        warn!(namespace = %member.host, is_written, "the mirrors of a new namespace were not in force in time");
        NamespaceReadiness::Late
    }

    /// Writes all mirrors in order: when the last one is in force, all are.
    async fn write_all(&self, cluster: &ClusterName, host: &HostNamespace) {
        let creations = self.catalog.lock().creations(cluster);
        let _creation = match &creations {
            Some(creations) => creations.acquire().await.ok(),
            None => None,
        };
        let mirrors = self.catalog.lock().mirrors(cluster);
        for mirror in &mirrors {
            let mut backoff = WRITE_BACKOFF;
            while let Some(mirror) = self.current(cluster, mirror)
                && let Err(error) = self.bindings.create(host, &mirror).await
            {
                warn!(error = &error as &dyn std::error::Error, namespace = %host, binding = mirror.name, "a mirror could not be written");
                sleep(backoff.fail()).await;
            }
        }
    }

    /// The current version of a mirror. A function, so that the lock is not held while the host answers.
    fn current(&self, cluster: &ClusterName, mirror: &Arc<Wanted>) -> Option<Arc<Wanted>> {
        self.catalog.lock().current(cluster, mirror)
    }
}
