//! Writes the events to the host: updates of ConfigMaps in the namespaces of the virtual clusters.
//!
//! kube-apiserver needs more CPU time to admit and store an update than to deliver it. So, for high rates, the updates can also
//! go directly to etcd. Then kube-apiserver only sends them to the clients that watch.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use http::Method;
use serde::Serialize;
use serde_json::json;

use super::informer::Board;
use crate::load::pace::{self, Exchange, Failure, FailureKind, Outcome, Rate};
use crate::load::{Limits, Pace};
use crate::site::{Etcd, MERGE_PATCH, Member, excerpt};
use crate::watch::stamp::{self, Stamp};

/// The ConfigMaps of all writers.
pub(super) struct ConfigMaps {
    writers: Vec<Vec<ConfigMap>>,
    /// The number of the next event.
    next: Arc<AtomicU32>,
}

/// A ConfigMap in the host namespace of a cluster.
#[derive(Clone, Debug)]
struct ConfigMap {
    cluster: usize,
    namespace: String,
    name: String,
}

/// Where events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Through {
    /// To kube-apiserver, as patches.
    KubeApiserver,
    /// To etcd directly.
    Etcd,
}

/// The server to which events are written.
#[derive(Clone)]
pub(super) enum Store {
    /// Patches to kube-apiserver.
    KubeApiserver(Arc<Member>),
    /// The values of stored objects, directly to etcd.
    Etcd(Arc<Etcd>),
}

/// A ConfigMap as etcd stores it, and where its stamp is.
struct Stored {
    value: Vec<u8>,
    stamp: Range<usize>,
}

/// Changes its ConfigMaps in turn.
struct Writer {
    store: Store,
    board: Arc<Board>,
    next: Arc<AtomicU32>,
    config_maps: Vec<ConfigMap>,
    /// Those that it has read from etcd, by their position in `config_maps`. Nobody else changes them.
    stored: BTreeMap<usize, Stored>,
    turn: usize,
}

/// The label selector of all ConfigMaps, as a parameter of a query.
pub(super) const SELECTOR: &str = "&labelSelector=bench%3Dscale";
/// The number of writers. Each has its own objects, because concurrent writes of one object would wait.
pub(super) const WRITERS: usize = 32;
/// The maximum number of events.
pub(super) const MAX_EVENTS: u64 = 1_000_000;
/// The size of a ConfigMap without its metadata, in bytes.
const TEXT: usize = 500;

// === impl ConfigMaps ===

impl ConfigMaps {
    /// Each cluster has at least one, in the namespace with its index.
    pub(super) fn new(namespaces: &[String]) -> Self {
        let config_map = |(cluster, number): (usize, usize)| ConfigMap {
            cluster,
            namespace: namespaces[cluster].clone(),
            name: format!("bench-scale-{number}"),
        };
        let writers = distribute(namespaces.len(), WRITERS);
        let writers = writers.into_iter().map(|all| all.into_iter().map(config_map).collect()).collect();
        Self { writers, next: Arc::default() }
    }

    /// Creates them on the host, with a placeholder for the stamp: a write to etcd replaces only the bytes of the stamp.
    pub(super) async fn create(&self, host: &Member) -> anyhow::Result<()> {
        let (key, value) = stamp::placeholder();
        for config_map in self.writers.iter().flatten() {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": config_map.name, "labels": {"bench": "scale"}, "annotations": {key: value}},
                "data": {"text": "x".repeat(TEXT)},
            });
            host.create(&config_map.collection(), &object).await?;
        }
        Ok(())
    }

    /// Changes them at this rate.
    pub(super) async fn change(&self, store: &Store, board: &Arc<Board>, rate: Rate, duration: Duration) -> Outcome {
        let writer = |config_maps: &Vec<ConfigMap>| Writer {
            store: store.clone(),
            board: Arc::clone(board),
            next: Arc::clone(&self.next),
            config_maps: config_maps.clone(),
            stored: BTreeMap::new(),
            turn: 0,
        };
        let limits = Limits { duration, requests: MAX_EVENTS, timeout: Duration::from_secs(20) };
        pace::run(self.writers.iter().map(writer).collect(), Pace::Open(rate), limits).await.0
    }
}

/// The objects of each writer, as cluster and number. No two writers have the same object, every writer has at least
/// one, and every cluster too.
fn distribute(clusters: usize, writers: usize) -> Vec<Vec<(usize, usize)>> {
    let mut all = vec![Vec::new(); writers];
    for object in 0..clusters.max(writers) {
        all[object % writers].push((object % clusters, object / clusters));
    }
    all
}

// === impl ConfigMap ===

impl ConfigMap {
    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    /// Its key in etcd, with the default of kube-apiserver's `--etcd-prefix`.
    fn key(&self) -> String {
        format!("/registry/configmaps/{}/{}", self.namespace, self.name)
    }
}

// === impl Writer ===

impl Writer {
    async fn write(&mut self, index: usize, number: u32) -> Result<u64, Failure> {
        let config_map = &self.config_maps[index];
        let sent_now = || Stamp { number, sent: self.board.epoch.elapsed() };
        match &self.store {
            Store::KubeApiserver(host) => {
                match host.call(Method::PATCH, &config_map.path(), MERGE_PATCH, sent_now().patch()).await {
                    Ok((status, body)) if status.is_success() => Ok(body.len() as u64),
                    Ok((status, body)) => {
                        Err(Failure { kind: FailureKind::Status(status.as_u16()), example: excerpt(&body) })
                    }
                    Err(error) => Err(broken(&error)),
                }
            }
            Store::Etcd(etcd) => {
                let stored = match self.stored.entry(index) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        entry.insert(Stored::read(etcd, &config_map.key()).await.map_err(|error| broken(&error))?)
                    }
                };
                stored.value[stored.stamp.clone()].copy_from_slice(sent_now().text().as_bytes());
                etcd.put(&config_map.key(), &stored.value).await.map_err(|error| broken(&error))?;
                Ok(0)
            }
        }
    }
}

impl Exchange for Writer {
    async fn exchange(&mut self) -> Result<u64, Failure> {
        let index = self.turn % self.config_maps.len();
        self.turn += 1;
        let cluster = self.config_maps[index].cluster;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.board.ledger.send(cluster, number);
        let received = self.write(index, number).await?;
        self.board.ledger.confirm(cluster, number);
        Ok(received)
    }
}

fn broken(error: &anyhow::Error) -> Failure {
    Failure { kind: FailureKind::Broken, example: format!("{error:#}") }
}

// === impl Stored ===

impl Stored {
    async fn read(etcd: &Etcd, key: &str) -> anyhow::Result<Self> {
        let value = etcd.get(key).await?.with_context(|| format!("etcd has no {key}"))?;
        let stamp = stamp::value_in(&value).with_context(|| format!("{key} has no stamp"))?;
        Ok(Self { value, stamp })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn writers_share_no_object_and_leave_no_cluster_out() {
        for clusters in [1, 2, 31, 32, 33, 100, 1_000] {
            let writers = distribute(clusters, WRITERS);
            let all: Vec<_> = writers.iter().flatten().collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{clusters}");
            assert_eq!(all.iter().map(|(cluster, _)| cluster).collect::<BTreeSet<_>>().len(), clusters);
            assert!(writers.iter().all(|objects| !objects.is_empty()), "{clusters}");
        }
    }
}
