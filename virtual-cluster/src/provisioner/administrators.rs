//! Where the administrators of virtual clusters can act.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use host_client::api::HostApi;
use ops::backoff::Backoff;
use rewrite::{ClusterName, HostNamespace};
use serde_json::json;
use tokio::time::{Duration, sleep};
use tracing::warn;

use super::binding::masters;
use super::paths;

/// The pauses between reviews. In the first one, most caches catch up.
const REVIEW_BACKOFF: Backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(64));

/// The namespaces in which the administrators' mirror is as wanted, as the watch of mirrors has shown.
#[derive(Debug, Default)]
pub(super) struct AdministratorMirrors(Mutex<HashSet<HostNamespace>>);

// === impl AdministratorMirrors ===

impl AdministratorMirrors {
    pub(super) fn set(&self, host: HostNamespace, is_right: bool) {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_right {
            hosts.insert(host);
        } else {
            hosts.remove(&host);
        }
    }

    pub(super) fn contains(&self, host: &HostNamespace) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(host)
    }
}

/// Waits until the administrators' mirror in a namespace is in force, and so all mirrors that were written before it.
pub(super) async fn in_force(api: &impl HostApi, cluster: &ClusterName, host: &HostNamespace) {
    // No rule names this resource, so only the administrators' rule for all resources allows it.
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("vc:{cluster}:atoll:canary"),
            "groups": [masters(cluster)],
            "resourceAttributes": {
                "namespace": host.as_str(), "verb": "get", "group": "atoll.dev", "resource": "canaries",
            },
        },
    });
    let mut backoff = REVIEW_BACKOFF;
    loop {
        match api.create(paths::REVIEWS, &review).await {
            Ok(answer) if answer["status"]["allowed"] == true => return,
            Ok(_) => {}
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                warn!(error, namespace = %host, "cannot check the copies of ClusterRoleBindings in a namespace; trying again");
            }
        }
        sleep(backoff.fail()).await;
    }
}
