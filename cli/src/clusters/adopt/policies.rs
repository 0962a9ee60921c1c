//! The admission policies of the agent on the host.
//!
//! They bind the pods of a virtual cluster to its nodes. Without them, the pods of restored workloads could start anywhere.

use anyhow::Context as _;
use host_client::api::Api;
use serde_json::Value;
use virtual_cluster::admission_policies::{is_enforced, is_served};

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
                let is_in_force =
                    is_enforced(api).await.context("cannot find out whether the host enforces the policies")?;
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
