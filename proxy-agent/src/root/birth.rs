//! A namespace that a client has just made gets its mirrors before the client hears of it.
//!
//! RBAC works from caches, so a binding that is written is not yet in force. A client that is told "created" and writes
//! into the namespace at once must never meet a 403, so the host is asked until it says yes.

use std::sync::Arc;
use std::time::Duration;

use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tracing::{error, warn};

use super::binding::{Wanted, masters};
use super::{Root, paths};
use crate::clusters::host_api::HostApi;

/// How long writing the mirrors may take before the client is answered anyway.
const WRITING: Duration = Duration::from_secs(5);
/// How long to wait for them to be in force.
const IN_FORCE: Duration = Duration::from_secs(1);
/// The first pause between questions, in which most caches catch up; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// No pause is longer.
const LAST_PAUSE: Duration = Duration::from_millis(64);

/// How ready a new namespace is. It exists either way, so the client is told that it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Birth {
    /// The cluster's bindings are in force in it.
    InForce,
    /// They are not, or not yet; they are being seen to. A first request may be refused.
    Late,
    /// It is no namespace of a virtual cluster of ours: the request was not mapped. A bug.
    Foreign,
}

// === impl Root ===

impl<A: HostApi> Root<A> {
    /// To be called with the host's answer to the creation of a namespace, before it is passed on. Takes the namespace
    /// into the index, writes its mirrors, and waits for at most a second until they are in force. If this future is
    /// dropped, the namespace is finished all the same.
    pub async fn birth(&self, created: &Value) -> Birth {
        let Ok(Some(member)) = self.shared.namespaces.learn(created) else {
            error!(namespace = %created["metadata"]["name"], "a namespace was created that belongs to nobody");
            return Birth::Foreign;
        };
        let mirrors = self.catalog().mirrors(&member.cluster);
        let is_written = timeout(WRITING, self.write_all(&member.host, &mirrors)).await == Ok(true);
        let asked = self.await_in_force(&member.cluster, &member.host);
        if is_written && timeout(IN_FORCE, asked).await.is_ok() {
            return Birth::InForce;
        }
        warn!(namespace = %member.host, is_written, "a new namespace is not ready in time");
        Birth::Late
    }

    /// In order: when the last one is in force, all are.
    async fn write_all(&self, host: &HostNamespace, mirrors: &[Arc<Wanted>]) -> bool {
        for mirror in mirrors {
            let mut pause = FIRST_PAUSE;
            while let Err(trouble) = self.ensure_binding(host, mirror).await {
                warn!(error = &trouble as &dyn std::error::Error, namespace = %host, binding = mirror.name, "a mirror could not be written");
                sleep(pause).await;
                pause = (pause * 2).min(IN_FORCE);
            }
        }
        true
    }

    async fn await_in_force(&self, cluster: &ClusterName, host: &HostNamespace) {
        // A resource that nobody has a rule for, so that only the rule for everything answers yes.
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
        let mut pause = FIRST_PAUSE;
        loop {
            match self.shared.api.create(paths::REVIEWS, &review).await {
                Ok(answer) if answer["status"]["allowed"] == true => return,
                Ok(_) => {}
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    warn!(error, namespace = %host, "the host did not say whether a binding is in force");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}
