//! The client CAs: one authority for each virtual cluster, read from its file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use ops::files::{LoadError, Reloader, Watched};
use ops::tls::ClientCa;
use protocol::ClusterName;

use crate::config::ProxyServerConfiguration;
use crate::revocations::Revocations;

/// The authorities of the current configuration. Each is reloaded when its file changes.
#[derive(Debug, Default)]
pub struct ClientCas {
    by_cluster: ArcSwap<ByCluster>,
    /// What is refused although an authority has signed it.
    revocations: Revocations,
}

/// The authorities of one configuration.
pub(crate) type ByCluster = HashMap<ClusterName, (PathBuf, Watched<ClientCa>)>;

// === impl ClientCas ===

impl ClientCas {
    /// No authorities yet.
    pub(crate) fn new(revocations: Revocations) -> Self {
        Self { revocations, ..Self::default() }
    }

    /// The certificates that are refused.
    pub(crate) fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// The authority of a cluster. `None` if the configuration has none.
    pub(crate) fn get(&self, cluster: &ClusterName) -> Option<Watched<ClientCa>> {
        self.by_cluster.load().get(cluster).map(|(_, ca)| ca.clone())
    }

    /// All, in no order.
    pub(crate) fn all(&self) -> Vec<(ClusterName, Watched<ClientCa>)> {
        self.by_cluster.load().iter().map(|(cluster, (_, ca))| (cluster.clone(), ca.clone())).collect()
    }

    /// Reads the authorities of a configuration that are not read yet. They take effect with
    /// [`exchange`](Self::exchange).
    pub(crate) fn read(&self, config: &ProxyServerConfiguration, reloader: &Reloader) -> anyhow::Result<ByCluster> {
        let current = self.by_cluster.load();
        let mut read = HashMap::new();
        for cluster in &config.clusters {
            let Some(ca) = &cluster.client_ca else { continue };
            let path = ca.certificate.to_path_buf();
            let ca = match current.get(&cluster.name) {
                Some((current_path, ca)) if *current_path == path => ca.clone(),
                _ => client_ca(reloader, &path).with_context(|| format!("clientCA of cluster {}", cluster.name))?,
            };
            read.insert(cluster.name.clone(), (path, ca));
        }
        Ok(read)
    }

    pub(crate) fn exchange(&self, read: ByCluster) {
        self.by_cluster.store(read.into());
    }
}

/// Reads an authority, which is reloaded when its file changes.
pub(crate) fn client_ca(reloader: &Reloader, path: &Path) -> Result<Watched<ClientCa>, LoadError> {
    reloader.watch([path.to_path_buf()], |[pem]| ClientCa::from_pem(pem))
}
