//! The configuration while the process runs: its list of clusters follows the file, everything else waits for a restart.
//!
//! A file that cannot be read, or is refused, changes nothing: the reloader says why, with the lines. A file that names a
//! client CA which is not there yet counts once it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ops::config::Located;
use ops::files::{Changes, Reloader, Watched};
use tokio::time::sleep;
use tracing::{error, info, warn};

use crate::client_cas::{ByCluster, ClientCas};
use crate::config::{Cluster, ProxyServerConfiguration};
use crate::registry::{Clusters, Registry};

/// Between two looks for a file that was not there.
const RETRY: Duration = Duration::from_secs(2);

/// What follows the file.
pub(super) struct Reload {
    file: Watched<ProxyServerConfiguration>,
    path: PathBuf,
    /// What was in it when it was looked at last.
    seen: Arc<ProxyServerConfiguration>,
    /// What is in force.
    running: ProxyServerConfiguration,
    reloader: Reloader,
    registry: Arc<Registry>,
    client_cas: Arc<ClientCas>,
}

// === impl Reload ===

impl Reload {
    /// From now on, what is in the file counts; `config` is what is in force.
    pub(super) fn new(
        config: &ProxyServerConfiguration,
        path: &Path,
        reloader: Reloader,
        registry: Arc<Registry>,
        client_cas: Arc<ClientCas>,
    ) -> anyhow::Result<Self> {
        let origin = path.to_owned();
        let parse = move |[text]: [&[u8]; 1]| ops::config::parse(&String::from_utf8_lossy(text), &origin);
        let file = reloader.watch([path.to_owned()], parse).context("the configuration")?;
        let (seen, running) = (Arc::new(config.clone()), config.clone());
        Ok(Self { file, path: path.to_owned(), seen, running, reloader, registry, client_cas })
    }

    /// Reads files again, for ever.
    pub(super) async fn run(self) {
        let reloader = self.reloader.clone();
        tokio::join!(reloader.run(), self.follow());
    }

    async fn follow(mut self) {
        let mut changes = self.file.changes();
        loop {
            self.take(&mut changes).await;
            if !changes.changed().await {
                return;
            }
        }
    }

    /// Makes what is in the file be in force, as soon as all that it names is there.
    async fn take(&mut self, changes: &mut Changes) {
        let mut told = String::new();
        loop {
            let config = self.file.borrow();
            // Comments and the order of keys may differ.
            if *config == *self.seen {
                return;
            }
            match self.client_cas.read(&config, &self.reloader) {
                Ok(client_cas) => {
                    self.put_in_force(&config, client_cas);
                    self.seen = config;
                    return;
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    if error != told {
                        error!(file = %self.path.display(), error, "the new list of clusters is not in force");
                        told = error;
                    }
                }
            }
            tokio::select! {
                () = sleep(RETRY) => {}
                _ = changes.changed() => {}
            }
        }
    }

    fn put_in_force(&mut self, config: &ProxyServerConfiguration, client_cas: ByCluster) {
        if config.clusters != self.running.clusters {
            // First: a cluster that can be found has its authority.
            self.client_cas.exchange(client_cas);
            for tunnel in self.registry.reload(Clusters::of(config)) {
                warn!(agent = %tunnel.agent, "no cluster is left to this agent; its tunnel is ended");
                tunnel.end.cancel();
            }
            let before = std::mem::replace(&mut self.running.clusters, config.clusters.clone());
            let (before, now) = (names(&before), names(&config.clusters));
            info!(?before, ?now, "a new list of clusters is in force");
        }
        let clusters = self.running.clusters.clone();
        if (ProxyServerConfiguration { clusters, ..config.clone() }) != self.running {
            warn!(file = %self.path.display(), "what has changed besides `clusters` wants a restart");
        }
    }
}

fn names(clusters: &[Located<Cluster>]) -> Vec<&str> {
    clusters.iter().map(|cluster| cluster.name.as_str()).collect()
}
