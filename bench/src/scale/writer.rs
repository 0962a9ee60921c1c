//! Writes the events to the host: updates of ConfigMaps in the namespaces of the virtual clusters.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::json;

use super::informer::Board;
use crate::load::pace::{self, Exchange, Failure, FailureKind, Outcome};
use crate::load::{Limits, Pace};
use crate::site::{MERGE_PATCH, Member, excerpt};
use crate::watch::stamp::Stamp;

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
    collection: String,
    name: String,
}

/// Changes its ConfigMaps in turn.
struct Writer {
    host: Arc<Member>,
    board: Arc<Board>,
    next: Arc<AtomicU32>,
    config_maps: Vec<ConfigMap>,
    turn: usize,
}

/// The label selector of all ConfigMaps, as a parameter of a query.
pub(super) const SELECTOR: &str = "&labelSelector=bench%3Dscale";
/// The number of writers. Each has its own objects, because concurrent writes of one object would wait.
const WRITERS: usize = 32;
/// The maximum number of events.
pub(super) const MAX_EVENTS: u64 = 1_000_000;
/// The size of a ConfigMap without its metadata, in bytes.
const TEXT: usize = 500;

// === impl ConfigMaps ===

impl ConfigMaps {
    /// Each cluster has at least one, in the namespace with its index.
    pub(super) fn new(namespaces: &[String]) -> Self {
        let config_map = |(cluster, number): (usize, usize)| {
            let collection = format!("/api/v1/namespaces/{}/configmaps", namespaces[cluster]);
            ConfigMap { cluster, collection, name: format!("bench-scale-{number}") }
        };
        let writers = distribute(namespaces.len(), WRITERS);
        let writers = writers.into_iter().map(|all| all.into_iter().map(config_map).collect()).collect();
        Self { writers, next: Arc::default() }
    }

    /// Creates them on the host.
    pub(super) async fn create(&self, host: &Member) -> anyhow::Result<()> {
        for ConfigMap { collection, name, .. } in self.writers.iter().flatten() {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"bench": "scale"}},
                "data": {"text": "x".repeat(TEXT)},
            });
            host.create(collection, &object).await?;
        }
        Ok(())
    }

    /// Changes them at this rate.
    pub(super) async fn change(
        &self,
        host: &Arc<Member>,
        board: &Arc<Board>,
        rate: NonZeroU32,
        duration: Duration,
    ) -> Outcome {
        let writer = |config_maps: &Vec<ConfigMap>| Writer {
            host: Arc::clone(host),
            board: Arc::clone(board),
            next: Arc::clone(&self.next),
            config_maps: config_maps.clone(),
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

// === impl Writer ===

impl Exchange for Writer {
    async fn exchange(&mut self) -> Result<u64, Failure> {
        let ConfigMap { cluster, collection, name } = &self.config_maps[self.turn % self.config_maps.len()];
        self.turn += 1;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.board.ledger.send(*cluster, number);
        let patch = Stamp { number, sent: self.board.epoch.elapsed() }.patch();
        match self.host.call(Method::PATCH, &format!("{collection}/{name}"), MERGE_PATCH, patch).await {
            Ok((status, body)) if status.is_success() => {
                self.board.ledger.confirm(*cluster, number);
                Ok(body.len() as u64)
            }
            Ok((status, body)) => Err(Failure { kind: FailureKind::Status(status.as_u16()), example: excerpt(&body) }),
            Err(error) => Err(Failure { kind: FailureKind::Broken, example: format!("{error:#}") }),
        }
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
