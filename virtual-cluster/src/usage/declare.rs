//! Tells the admission policies which virtual clusters have reached a limit.
//!
//! The agent writes an annotation of the root Namespace. The agents of the host put what they read there into a policy.
//! A restart writes nothing, unless something has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use host_client::api::{ApiError, HostApi};
use rewrite::{ClusterName, HostNamespace};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::stored::Usage;
use crate::namespaces::{Full, PATH};

/// The interval of comparisons.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time for which a virtual cluster must have been below a limit. Otherwise, one that creates and deletes an object at
/// its limit would change the policy each time.
const SETTLED: Duration = Duration::from_secs(10);
/// The same for the limit for recent versions. Each agent of the host counts minutes of its own, so another one may reach the limit
/// for up to a minute longer.
const VERSIONS_SETTLED: Duration = Duration::from_secs(70);

/// The maximum of these times, which double if another agent does not agree.
const MAX_SETTLED: Duration = Duration::from_secs(600);

/// What an agent writes.
struct Declaration<A> {
    api: A,
    usage: Arc<Usage>,
    /// Since when virtual clusters are below limits that they had reached.
    below: HashMap<ClusterName, Instant>,
    /// How often another agent has declared again what this one has withdrawn. It knows more: this agent has started later, and no
    /// longer sees all that the host stores.
    restored: HashMap<ClusterName, u32>,
}

/// Keeps the annotations up to date forever.
pub async fn declare<A: HostApi>(usage: Arc<Usage>, api: A) {
    usage.namespaces_known().await;
    let mut declaration = Declaration { api, usage, below: HashMap::new(), restored: HashMap::new() };
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        declaration.compare(Instant::now()).await;
    }
}

// === impl Declaration ===

impl<A: HostApi> Declaration<A> {
    async fn compare(&mut self, now: Instant) {
        let mut declared = self.usage.declared();
        self.below.retain(|cluster, _| declared.contains_key(cluster));
        for cluster in self.usage.clusters() {
            let declared = declared.remove(&cluster).unwrap_or_default();
            let mut reached = self.usage.reached(&cluster);
            // An agent that has just started knows nothing of what was written before. Another agent may.
            if let Some(limit) = declared.limit(Full::WRITTEN)
                && !self.usage.knows_recent_versions(now)
            {
                reached.add(Full::WRITTEN, limit);
            }
            if reached == declared {
                self.below.remove(&cluster);
                continue;
            }
            let withdraws = reached.is_within(&declared);
            if withdraws {
                let since = *self.below.entry(cluster.clone()).or_insert_with(|| {
                    self.restored.entry(cluster.clone()).and_modify(|times| *times += 1);
                    now
                });
                let is_written = declared.limit(Full::WRITTEN).is_some() && reached.limit(Full::WRITTEN).is_none();
                let settled = if is_written { VERSIONS_SETTLED } else { SETTLED };
                let doublings = self.restored.get(&cluster).map_or(0, |times| *times);
                let settled = settled.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(MAX_SETTLED);
                if now < since + settled || !self.usage.is_complete() {
                    continue;
                }
            }
            // What another agent has declared is withdrawn only after the wait.
            let full = if withdraws { reached } else { reached.with(&declared) };
            if self.write(&cluster, &full).await {
                self.below.remove(&cluster);
                if withdraws {
                    self.restored.entry(cluster).or_default();
                } else {
                    // This agent knows more than the others.
                    self.restored.remove(&cluster);
                }
            }
        }
    }

    /// Returns whether this succeeded.
    async fn write(&mut self, cluster: &ClusterName, full: &Full) -> bool {
        let written = self.try_write(cluster, full).await;
        let is_written = written.is_ok();
        match written {
            Ok(()) if full.is_empty() => info!(%cluster, "the virtual cluster is below its limits for stored objects"),
            Ok(()) => info!(%cluster, %full, "the virtual cluster has reached limits for stored objects"),
            // The first start is still creating it.
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                warn!(error, %cluster, "cannot write the reached limits to the annotation atoll.dev/full; trying again");
            }
        }
        is_written
    }

    async fn try_write(&self, cluster: &ClusterName, full: &Full) -> Result<(), ApiError> {
        let path = format!("{PATH}/{}", HostNamespace::root(cluster));
        let found = self.api.get(&path).await?;
        let stored = self.api.update(&path, &full.written_to(found)).await?;
        self.usage.learn(&stored);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
