//! Waits until earlier RBAC writes are in force.
//!
//! RBAC reads from one cache per kind, and each cache receives changes in order. So the agent writes a *canary* last: a
//! ClusterRole and a binding to it, with a mark that is new each time. When the host allows what the canary grants, all
//! earlier writes are in force in that API server, too. Other API servers may lag by some milliseconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use host_client::api::HostApi;
use ops::backoff::Backoff;
use rewrite::{ClusterName, HostNamespace};
use serde_json::json;
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::binding::RBAC;
use super::names::INTERNAL_LABEL;
use super::paths;
use super::reconcile_error::ReconcileError;

/// The name of the canary's RoleBinding, and the end of the name of its ClusterRole.
pub const CANARY: &str = "atoll:canary";

/// The time to wait for a canary. An API server that is busy needs more than a second, and a client that gets its response too
/// early is refused at first.
const IN_FORCE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pauses between reviews.
const REVIEW_BACKOFF: Backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(250));

/// One canary at a time for each virtual cluster: another one would replace its mark, and the host would never allow it.
#[derive(Debug, Default)]
pub(super) struct Canaries(Mutex<HashMap<ClusterName, Arc<tokio::sync::Mutex<()>>>>);

// === impl Canaries ===

impl Canaries {
    /// Waits for at most five seconds until all earlier writes to the host are in force.
    pub(super) async fn in_force(&self, api: &impl HostApi, cluster: &ClusterName) {
        let turns =
            Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(cluster.clone()).or_default());
        let canary = async {
            let _turn = turns.lock().await;
            canary(api, cluster).await
        };
        report(timeout(IN_FORCE_TIMEOUT, canary).await, cluster);
    }
}

fn report(outcome: Result<Result<(), ReconcileError>, Elapsed>, cluster: &ClusterName) {
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error: &dyn std::error::Error = &error;
            warn!(error, %cluster, "cannot check whether new rights are in force");
        }
        Err(_) => debug!(%cluster, "new rights were not in force in time"),
    }
}

async fn canary(api: &impl HostApi, cluster: &ClusterName) -> Result<(), ReconcileError> {
    let mark = format!("{:016x}", fastrand::u64(..));
    let (name, user) = (format!("vc:{cluster}:{CANARY}"), format!("vc:{cluster}:{CANARY}:{mark}"));
    let root = HostNamespace::root(cluster);
    let labels = json!({INTERNAL_LABEL: "true"});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": [{"verbs": ["get"], "apiGroups": ["atoll.dev"], "resources": ["canaries"], "resourceNames": [mark]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": CANARY, "namespace": root.as_str(), "labels": labels},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    });
    let Some(binding_path) = paths::binding(&root, CANARY) else { return Ok(()) };
    // An update without a resource version overwrites an object, or creates it.
    api.update(&paths::cluster_role(&name), &role).await?;
    api.update(&binding_path, &binding).await?;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": {
            "namespace": root.as_str(), "verb": "get", "group": "atoll.dev", "resource": "canaries", "name": mark,
        }},
    });
    let mut backoff = REVIEW_BACKOFF;
    loop {
        if api.create(paths::REVIEWS, &review).await?["status"]["allowed"] == true {
            return Ok(());
        }
        sleep(backoff.fail()).await;
    }
}
