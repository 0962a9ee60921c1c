//! Whether the host enforces a virtual cluster's policies yet.
//!
//! A policy that is written is not in force: an API server compiles what is new about once a second (`refreshInterval` of
//! the policy source in apiserver/pkg/admission/plugin/policy/generic), and one that was started with
//! `--disable-admission-plugins` never does. So the last policy that is written refuses one thing to everybody, and that
//! is tried, as a dry run: to make a member of the virtual cluster out of its root namespace. Policies are taken up in
//! the order in which they were written, so when that one refuses, all do. (In the API server that was asked; another one
//! may lag by that second.)

use std::time::Duration;

use rewrite::name::CLUSTER_LABEL;
use rewrite::{ClusterName, HostNamespace};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::policies;
use crate::clusters::host_api::HostApi;
use crate::host::api::ApiError;
use crate::namespaces;

/// How long to ask. New policies are taken up after two passes at most, of a second each.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause between questions; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(16);
/// No pause is longer.
const LAST_PAUSE: Duration = Duration::from_millis(256);

/// What the probe has found out.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The host enforces the policies.
    Enforced,
    /// The host does not enforce them.
    Idle,
    /// Something else refuses the dry run, for example a webhook that cannot be reached. So nobody knows.
    Unknown(ApiError),
}

/// What the host said.
enum Answer {
    /// The policy has refused.
    Refused,
    /// Nothing has.
    Allowed,
    /// Something else has, so that the policy was perhaps not asked.
    Elsewhere(ApiError),
}

/// Whether the host enforces the policies of this cluster, which were written just now. Waits for that, but not for long.
pub(super) async fn probe(api: &impl HostApi, cluster: &ClusterName) -> Verdict {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        let answer = ask(api, cluster).await;
        if let Answer::Refused = answer {
            return Verdict::Enforced;
        }
        if Instant::now() >= deadline {
            return match answer {
                Answer::Elsewhere(error) => Verdict::Unknown(error),
                Answer::Refused | Answer::Allowed => Verdict::Idle,
            };
        }
        sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

async fn ask(api: &impl HostApi, cluster: &ClusterName) -> Answer {
    match api.create(&format!("{}?dryRun=All", namespaces::PATH), &question(cluster)).await {
        Ok(_) => Answer::Allowed,
        // The API server names the policy that refuses.
        Err(error) if error.status().is_some_and(|status| status.message.contains(&policies::name(cluster))) => {
            Answer::Refused
        }
        // It exists, so nothing has refused: storage comes after admission.
        Err(error) if error.is_conflict() => Answer::Allowed,
        Err(error) => Answer::Elsewhere(error),
    }
}

fn question(cluster: &ClusterName) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": HostNamespace::root(cluster).as_str(), "labels": {CLUSTER_LABEL: cluster.as_str()}},
    })
}
