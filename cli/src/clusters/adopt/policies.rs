//! The admission policies of the agent on the host.
//!
//! They bind the pods of a virtual cluster to its nodes. Without them, the pods of restored workloads could start anywhere.

use anyhow::Context as _;
use host_client::api::Api;
use kube_wire::status::Reason;
use rewrite::name::{CLUSTER_LABEL, ROOT_LABEL};
use serde_json::{Value, json};
use virtual_cluster::admission_policies::is_served;
use virtual_cluster::namespaces;

const GROUP: &str = "/apis/admissionregistration.k8s.io";
/// The versions of the group, newest first.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// Those that bind pods. The agent writes the last one after all others.
const NAMES: [&str; 4] = ["namespaces.atoll.dev", "nodes.atoll.dev", "pods.atoll.dev", "probe.atoll.dev"];

/// Whether the host restricts the pods of virtual clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policies {
    InForce,
    /// No agent has created them yet.
    Missing,
    /// The host does not have this kind of policies.
    Unserved,
}

// === impl Policies ===

impl Policies {
    pub(super) async fn read(api: &Api) -> anyhow::Result<Self> {
        if !is_served(api).await.context("cannot read which admission policies the host serves")? {
            return Ok(Self::Unserved);
        }
        for version in VERSIONS {
            if are_written(api, version).await.context("cannot read the admission policies of the host")? {
                let is_in_force = are_in_force(api).await;
                return Ok(if is_in_force { Self::InForce } else { Self::Missing });
            }
        }
        Ok(Self::Missing)
    }
}

async fn are_written(api: &Api, version: &str) -> anyhow::Result<bool> {
    for name in NAMES {
        let at = |plural: &str| format!("{GROUP}/{version}/{plural}/{name}");
        let policy = read(api, &at("validatingadmissionpolicies")).await?;
        let binding = read(api, &at("validatingadmissionpolicybindings")).await?;
        if !(policy["spec"]["failurePolicy"] == "Fail" && denies(&binding, name)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `Null` if there is none.
async fn read(api: &Api, path: &str) -> anyhow::Result<Value> {
    match api.get(path).await {
        Err(error) if error.is_not_found() => Ok(Value::Null),
        found => Ok(found?),
    }
}

fn denies(binding: &Value, policy: &str) -> bool {
    let spec = &binding["spec"];
    let mut actions = spec["validationActions"].as_array().into_iter().flatten();
    spec["policyName"] == policy && actions.any(|action| action == "Deny")
}

/// An API server enforces a new policy after about a second. The last policy refuses this dry run, as does a host with other rules.
async fn are_in_force(api: &Api) -> bool {
    let labels = json!({CLUSTER_LABEL: "none", ROOT_LABEL: "none"});
    let metadata = json!({"name": "atoll-probe", "labels": labels});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    match api.create(&format!("{}?dryRun=All", namespaces::PATH), &namespace).await {
        Ok(_) => false,
        // The name is taken. Storage comes after admission, so no policy has refused it.
        Err(error) => error.status().is_some_and(|status| status.reason != Reason::AlreadyExists),
    }
}
