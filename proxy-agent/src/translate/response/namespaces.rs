//! Lists of objects in namespaces that the index does not know yet.
//!
//! The response of the host can be newer than the index: another agent has created a namespace, and objects in it, a moment
//! ago. A client that watches from the version of the list gets no event about an object that the list lacks. So such an
//! object waits for its namespace, and so does the rest of the list. A name can also be that of a namespace that does not
//! exist: a PersistentVolume can name the namespace of a deleted claim. So the agent asks the host which namespaces exist,
//! and waits only for those. If one of them does not become known, the list ends early, and the client lists again.

use std::sync::Arc;
use std::time::Duration;

use rewrite::Mapping;
use rewrite::name::CLUSTER_LABEL;
use rewrite::view::ExistingNamespaces;
use tokio::time::{Instant, timeout};

use host_client::Host;
use host_client::api::{Api, ApiError, HostApi as _};
use virtual_cluster::clusters::VirtualCluster;
use virtual_cluster::namespaces;
use virtual_cluster::share::large_objects::LargeObjectLimits;

/// The maximum time that all objects of a list together wait for the index.
const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum time for the host to say which namespaces exist.
const HOST_TIMEOUT: Duration = Duration::from_secs(5);

/// The names of the namespaces in one list.
pub(crate) struct ListNamespaces {
    cluster: Arc<VirtualCluster>,
    /// The host, if objects wait.
    host: Option<Host>,
    /// The namespaces of the cluster on the host, once the agent has asked. The index has the same names, so they need
    /// about as much memory.
    existing: Option<Arc<ExistingNamespaces>>,
    /// The time that is left to wait for the index.
    left: Duration,
}

/// A namespace in a list did not become known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NamespaceError {
    /// The host does not say which namespaces exist.
    #[error("the host does not return the namespaces of the cluster")]
    Host(#[source] Option<ApiError>),
    /// The namespace exists, and the index does not have it.
    #[error("a namespace of the list is not known yet: list again")]
    Late,
}

// === impl ListNamespaces ===

impl ListNamespaces {
    /// Objects wait for their namespaces.
    pub(crate) fn new(cluster: Arc<VirtualCluster>, host: Host) -> Self {
        Self { host: Some(host), ..Self::without_waiting(cluster) }
    }

    /// Objects in unknown namespaces are left out. For the response to a write, which must not end early.
    pub(crate) fn without_waiting(cluster: Arc<VirtualCluster>) -> Self {
        Self { cluster, host: None, existing: None, left: ARRIVAL_TIMEOUT }
    }

    /// Whether objects wait.
    pub(super) fn are_awaited(&self) -> bool {
        self.host.is_some()
    }

    /// The current names.
    pub(super) fn mapping(&self) -> Mapping {
        self.cluster.mapping()
    }

    /// The limits for large objects of the cluster.
    pub(super) fn large_objects(&self) -> Arc<LargeObjectLimits> {
        Arc::clone(&self.cluster.lasting.large_objects)
    }

    /// Waits until the index has a namespace, unless it does not exist. Returns the existing namespaces.
    pub(super) async fn find(&mut self, name: &[u8]) -> Result<Arc<ExistingNamespaces>, NamespaceError> {
        let existing = match &self.existing {
            Some(existing) => Arc::clone(existing),
            None => Arc::clone(self.existing.insert(Arc::new(self.list().await?))),
        };
        if existing.contains(name) {
            let begun = Instant::now();
            let known = self.cluster.mapping_until(|mapping| mapping.knows(name));
            timeout(self.left, known).await.map_err(|_| NamespaceError::Late)?;
            self.left = self.left.saturating_sub(begun.elapsed());
        }
        Ok(existing)
    }

    /// Asks the host which namespaces the cluster has. Its answer is not older than the list.
    async fn list(&self) -> Result<ExistingNamespaces, NamespaceError> {
        let Some(host) = self.host.clone() else { return Ok(ExistingNamespaces::default()) };
        let (api, labels) = (Api::new(host), format!("{CLUSTER_LABEL}={}", self.cluster.name));
        let mut existing = ExistingNamespaces::default();
        let read = api.each(namespaces::PATH, &labels, |namespace| {
            existing.insert(namespace.metadata.name.into_bytes().into());
        });
        let read = timeout(HOST_TIMEOUT, read).await.map_err(|_| NamespaceError::Host(None))?;
        read.map_err(|error| NamespaceError::Host(Some(error)))?;
        Ok(existing)
    }
}
