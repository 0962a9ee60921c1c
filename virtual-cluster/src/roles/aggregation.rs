//! Aggregated ClusterRoles: their rules are those of all roles that they select, within the virtual cluster.
//!
//! The host does not aggregate them, because their selectors and labels have other keys there. So this module does what
//! kube-controller-manager does (`pkg/controller/clusterroleaggregation`), for the roles that the virtual cluster sees:
//! its own and the shared ones. The author of the selectors held all rights.
//!
//! Clients determine the amount of work. The agent aggregates a virtual cluster when one of its roles has changed, on a
//! separate thread, and then pauses for longer than that took. So no cluster delays others, or a request.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use host_client::api::{ApiError, HostApi};
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use ops::backoff::Backoff;
use rewrite::ClusterName;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use super::cache::Roles;
use super::role::{Rule, weight};
use super::sum::{Excess, Stale};
use super::version::Version;

/// The pauses after failures to write a role.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// The pause of a virtual cluster, as a multiple of the time of its last work.
const PAUSE_FACTOR: u32 = 4;

/// The maximum number of roles that are written for one virtual cluster before the next virtual cluster is processed.
const MAX_WRITES: usize = 32;

/// The pending work, and when to do it.
#[derive(Default)]
struct Work {
    clusters: HashMap<ClusterName, State>,
}

/// The state of a virtual cluster.
#[derive(Default)]
struct State {
    /// The version of the roles that are fully processed.
    done: Option<Version>,
    /// The end of the cluster's pause.
    rests: Option<Instant>,
    /// Roles that could not be written, by name.
    failed: HashMap<String, Failure>,
    /// Roles that cannot be aggregated, which has already been logged.
    excessive: HashSet<String>,
}

struct Failure {
    backoff: Backoff,
    until: Instant,
}

/// Keeps the rules of aggregated roles up to date forever, in the virtual clusters that `names` returns.
pub async fn keep(api: impl HostApi, roles: Arc<Roles>, names: impl Fn() -> Vec<ClusterName>) {
    roles.synced().await;
    let mut changed = roles.changes();
    let mut work = Work::default();
    loop {
        changed.mark_unchanged();
        let wake = work.round(&api, &roles, &names()).await;
        tokio::select! {
            changed = changed.changed() => if changed.is_err() {
                return;
            },
            () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
        }
    }
}

// === impl Work ===

impl Work {
    /// Processes each cluster once. Returns when to run again even if nothing changes.
    async fn round(&mut self, api: &impl HostApi, roles: &Roles, clusters: &[ClusterName]) -> Option<Instant> {
        self.clusters.retain(|cluster, _| clusters.contains(cluster));
        let mut wake = None;
        for cluster in clusters {
            let state = self.clusters.entry(cluster.clone()).or_default();
            let next = state.look_at(api, roles, cluster).await;
            wake = wake.into_iter().chain(next).min();
        }
        wake
    }
}

// === impl State ===

impl State {
    /// Updates the roles of the cluster. Returns when to run again even if nothing changes.
    async fn look_at(&mut self, api: &impl HostApi, roles: &Roles, cluster: &ClusterName) -> Option<Instant> {
        let now = Instant::now();
        let is_due = self.failed.values().any(|failure| failure.until <= now);
        if self.done.is_some_and(|done| Some(done) == roles.version(cluster)) && !is_due {
            return self.next_failure();
        }
        if let Some(rests) = self.rests.filter(|rests| now < *rests) {
            return Some(rests);
        }
        let snapshot = roles.snapshot(cluster)?;
        let (version, of) = (snapshot.version, cluster.clone());
        let Ok(stale) = spawn_blocking(move || snapshot.stale(&of)).await else { return None };
        self.rests = Some(Instant::now() + now.elapsed() * PAUSE_FACTOR);
        self.forget_all_but(&stale);
        let mut written = 0;
        for stale in stale {
            if self.failed.get(&stale.name).is_some_and(|failure| now < failure.until) {
                continue;
            }
            if written == MAX_WRITES {
                self.done = None;
                return self.rests;
            }
            written += usize::from(stale.sum.is_ok());
            self.settle(api, roles, &stale).await;
        }
        self.done = Some(version);
        self.next_failure()
    }

    /// Forgets the state of roles that are no longer stale.
    fn forget_all_but(&mut self, stale: &[Stale]) {
        let names: HashSet<_> = stale.iter().map(|stale| &*stale.name).collect();
        self.failed.retain(|name, _| names.contains(&**name));
        self.excessive.retain(|name| names.contains(&**name));
    }

    async fn settle(&mut self, api: &impl HostApi, roles: &Roles, stale: &Stale) {
        let (cluster, role) = (&stale.cluster, &stale.name);
        let sum = match &stale.sum {
            Ok(rules) => roles.has_room(cluster, role, weight(rules)).map(|()| rules).map_err(Excess::from),
            Err(excess) => Err(*excess),
        };
        let rules = match sum {
            Ok(rules) => rules,
            Err(excess) => {
                self.failed.remove(role);
                let error: &dyn std::error::Error = &excess;
                if self.excessive.insert(role.clone()) {
                    warn!(error, %cluster, role, "a ClusterRole cannot be aggregated");
                }
                return;
            }
        };
        self.excessive.remove(role);
        match write(api, stale, rules).await {
            Ok(()) => {
                self.failed.remove(role);
                debug!(%cluster, role, "wrote the aggregated rules of a ClusterRole");
            }
            Err(error) => {
                let mut backoff = self.failed.get(role).map_or(RETRY_BACKOFF, |failure| failure.backoff);
                let pause = backoff.fail();
                let error: &dyn std::error::Error = &error;
                warn!(error, %cluster, role, ?pause, "cannot write the aggregated rules of a role yet");
                self.failed.insert(role.clone(), Failure { backoff, until: Instant::now() + pause });
            }
        }
    }

    fn next_failure(&self) -> Option<Instant> {
        self.failed.values().map(|failure| failure.until).min()
    }
}

/// Writes the rules of a role, if it is still the one that was read: a user who may not grant these rules may have
/// replaced it by another role that aggregates nothing. That change triggers another run.
async fn write(api: &impl HostApi, stale: &Stale, rules: &[Rule]) -> Result<(), ApiError> {
    let Ok(name) = SegmentName::new(format!("vc:{}:{}", stale.cluster, stale.name)) else { return Ok(()) };
    let path =
        ResourcePath { name: Some(name), ..ResourcePath::new("rbac.authorization.k8s.io", "v1", "clusterroles") };
    let path = path.build();
    let mut role = match api.get(&path).await {
        Ok(role) => role,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    role["metadata"]["uid"] = stale.uid.as_str().into();
    role["metadata"]["resourceVersion"] = stale.resource_version.as_str().into();
    role["rules"] = rules.iter().map(Rule::value).collect::<Value>();
    match api.update(&path, &role).await {
        Err(error) if !error.is_conflict() && !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::advance;

    use super::*;
    use crate::provisioner::testing::FakeHost;

    const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/vc:ke:sum";

    fn ke() -> ClusterName {
        "ke".parse().unwrap()
    }

    /// An aggregated role, and a role that it selects.
    fn roles(permissions: usize) -> [Value; 2] {
        let labels = json!({"atoll.dev/virtual-cluster": "ke"});
        let annotations = json!({"atoll.dev/aggregation-rule": r#"{"clusterRoleSelectors":[{}]}"#});
        let verbs = vec!["get"; permissions];
        [
            json!({"metadata": {"name": "vc:ke:sum", "labels": labels, "annotations": annotations}, "rules": []}),
            json!({
                "metadata": {"name": "vc:ke:part", "labels": labels},
                "rules": [{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}],
            }),
        ]
    }

    /// The current role on the host.
    fn stored(host: &FakeHost, role: Value) -> Value {
        host.put(PATH, role);
        host.lock().objects[PATH].clone()
    }

    /// Processes the cluster as often as requested, and returns the pauses in between, in seconds.
    async fn settled(host: &FakeHost, roles: &Roles) -> Vec<u64> {
        let (mut state, mut pauses) = (State::default(), Vec::new());
        while let Some(wake) = state.look_at(host, roles, &ke()).await {
            let pause = wake - Instant::now();
            pauses.push(pause.as_secs());
            advance(pause).await;
        }
        pauses
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_retried_with_back_off() {
        let host = FakeHost::new();
        let [sum, part] = roles(1);
        let sum = stored(&host, sum);
        host.lock().failing = 8;
        let roles = Roles::with([sum, part.clone()]);
        assert_eq!(settled(&host, &roles).await, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(host.lock().objects[PATH]["rules"], part["rules"]);
    }

    #[tokio::test(start_paused = true)]
    async fn another_role_of_the_name_is_unchanged() {
        let host = FakeHost::new();
        let [sum, part] = roles(1);
        let roles = Roles::with([stored(&host, sum), part.clone()]);
        // The watch has not delivered the change yet.
        host.edit(PATH, |role| role["metadata"]["annotations"] = json!({}));
        assert!(settled(&host, &roles).await.is_empty());
        assert_eq!(host.lock().objects[PATH]["rules"], json!([]));
    }

    #[tokio::test(start_paused = true)]
    async fn rules_that_exceed_the_limits_are_not_written() {
        let host = FakeHost::new();
        let [sum, part] = roles(10_001);
        host.put(PATH, sum.clone());
        let roles = Roles::with([sum, part]);
        assert!(settled(&host, &roles).await.is_empty());
        assert_eq!(host.lock().objects[PATH]["rules"], json!([]));
    }
}
