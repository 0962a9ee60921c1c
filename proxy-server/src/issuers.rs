//! The OIDC issuer of each virtual cluster that has one.
//!
//! Clusters with the same issuer share its keys. The keys are fetched in the background ([`oidc::Issuer`]), so an issuer
//! that does not respond delays only requests with its own tokens.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use oidc::https::Client;
use oidc::{Authenticator, HttpsUrl, Issuer, Refused};
use ops::drain::Tasks;
use ops::files::{Reloader, Watched};
use ops::metrics::{Counter, Family, Registry};
use ops::tls::ServerCa;
use protocol::ClusterName;

use crate::config::ProxyServerConfiguration;

/// The issuers of the current configuration.
#[derive(Debug)]
pub(crate) struct Issuers {
    by_cluster: Arc<ArcSwap<ByCluster>>,
    tasks: Tasks,
    refused: Family<OfCluster, Counter>,
}

/// The issuers of one configuration.
pub(crate) type ByCluster = HashMap<ClusterName, Configured>;

/// The issuer of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Configured {
    key: IssuerKey,
    authenticator: Arc<Authenticator>,
}

/// What the keys of an issuer depend on.
type IssuerKey = (HttpsUrl, Option<PathBuf>);

ops::label_set! {
    /// A refused token.
    struct OfCluster {
        cluster: Arc<str>,
        reason: &'static str,
    }
}

ops::label_set! {
    /// An issuer of the configuration.
    struct OfIssuer {
        issuer: Arc<str>,
    }
}

ops::label_set! {
    /// The fetches of an issuer's keys.
    struct FetchesOfIssuer {
        issuer: Arc<str>,
        result: &'static str,
    }
}

// === impl Issuers ===

impl Issuers {
    /// No issuers yet. They fetch their keys as `tasks`.
    pub(crate) fn new(tasks: Tasks, metrics: &Registry) -> Self {
        let by_cluster: Arc<ArcSwap<ByCluster>> = Arc::default();
        let observed = Arc::clone(&by_cluster);
        let help = "Attempts to fetch the keys of an OIDC issuer, by result.";
        metrics.observe_counts("atoll_oidc_key_fetches_total", help, move || {
            let counts = distinct(&observed.load()).into_iter().flat_map(|(issuer, keys)| {
                let (succeeded, failed) = keys.fetches();
                let labels = |result| FetchesOfIssuer { issuer: issuer.clone(), result };
                [(labels("success"), succeeded), (labels("failure"), failed)]
            });
            counts.collect()
        });
        let observed = Arc::clone(&by_cluster);
        let help = "Keys of an OIDC issuer that can verify tokens. 0 if they were never fetched.";
        metrics.observe_each("atoll_oidc_keys", help, move || {
            let keys = distinct(&observed.load()).into_iter().map(|(issuer, keys)| {
                let count = keys.keys().map_or(0, |keys| keys.len());
                (OfIssuer { issuer }, i64::try_from(count).unwrap_or(i64::MAX))
            });
            keys.collect()
        });
        let help = "Tokens of the OIDC issuer of a cluster that were refused, by reason.";
        Self { by_cluster, tasks, refused: metrics.counters("atoll_oidc_refused_tokens_total", help) }
    }

    /// What verifies the tokens for a cluster. `None` if the cluster has no issuer.
    pub(crate) fn get(&self, cluster: &ClusterName) -> Option<Arc<Authenticator>> {
        self.by_cluster.load().get(cluster).map(|configured| Arc::clone(&configured.authenticator))
    }

    /// Counts a refused token.
    pub(crate) fn count_refused(&self, cluster: &ClusterName, refused: &Refused) {
        self.refused.with(&OfCluster { cluster: cluster.as_str().into(), reason: refused.reason() }).inc();
    }

    /// Reads the authorities of issuers, and begins to fetch the keys of new ones. They take effect with
    /// [`exchange`](Self::exchange).
    pub(crate) fn read(&self, config: &ProxyServerConfiguration, reloader: &Reloader) -> anyhow::Result<ByCluster> {
        let current = self.by_cluster.load();
        let started = current.values().map(|one| (one.key.clone(), Arc::clone(one.authenticator.issuer())));
        let mut issuers: HashMap<IssuerKey, Arc<Issuer>> = started.collect();
        let mut read = HashMap::new();
        for cluster in &config.clusters {
            let Some(oidc) = &cluster.oidc else { continue };
            let authority = oidc.issuer.certificate_authority.as_ref().map(|path| path.to_path_buf());
            let key = (oidc.issuer.url.url().clone(), authority);
            let issuer = if let Some(issuer) = issuers.get(&key) {
                Arc::clone(issuer)
            } else {
                let issuer = self.start(&key, reloader);
                let issuer = issuer.with_context(|| format!("oidc of cluster {}", cluster.name))?;
                issuers.insert(key.clone(), Arc::clone(&issuer));
                issuer
            };
            let rules = oidc.rules();
            let is_same = |one: &&Configured| one.key == key && *one.authenticator.rules() == rules;
            let configured = match current.get(&cluster.name).filter(is_same) {
                Some(same) => same.clone(),
                None => Configured { key, authenticator: Arc::new(Authenticator::new(rules, issuer)) },
            };
            read.insert(cluster.name.clone(), configured);
        }
        Ok(read)
    }

    pub(crate) fn exchange(&self, read: ByCluster) {
        self.by_cluster.store(read.into());
    }

    fn start(&self, (url, authority): &IssuerKey, reloader: &Reloader) -> anyhow::Result<Arc<Issuer>> {
        let authorities = if let Some(path) = authority {
            reloader.watch([path.clone()], |[pem]| ServerCa::from_pem(pem))?
        } else {
            let system = ServerCa::of_system();
            Watched::fixed(system.context("this system has no CA certificates; set issuer.certificateAuthority")?)
        };
        Ok(Arc::new(Issuer::start(url.clone(), Client::new(authorities), &self.tasks)))
    }
}

/// Each issuer once. If clusters trust different authorities for one issuer, one of them is chosen.
fn distinct(by_cluster: &ByCluster) -> HashMap<Arc<str>, Arc<Issuer>> {
    let issuers = by_cluster.values().map(|one| (one.key.0.as_str().into(), Arc::clone(one.authenticator.issuer())));
    issuers.collect()
}
