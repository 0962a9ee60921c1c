//! What is in the host, and what an uninstalled release leaves there.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use atoll_tests::{Kubectl, eventually};

use super::NAMESPACE;

/// All objects of a host, as `KIND NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot(BTreeSet<String>);

/// Kinds that change without anybody's request.
const IGNORED: [&str; 5] = ["Event ", "Lease ", "ComponentStatus ", "APIService ", "PodMetrics "];

/// The time for the garbage collector and the controllers.
const LIMIT: Duration = Duration::from_secs(30);

// === impl Snapshot ===

impl Snapshot {
    pub(super) fn take(kubectl: &Kubectl) -> anyhow::Result<Self> {
        let resources = kubectl.ok(&["api-resources", "--verbs=list", "-o", "name"])?;
        let resources = resources.lines().collect::<Vec<_>>().join(",");
        let template = "go-template={{range .items}}{{.kind}} {{with .metadata.namespace}}{{.}}/{{end}}{{.metadata.name}}\n{{end}}";
        let printed = kubectl.ok(&["get", &resources, "-A", "-o", template])?;
        let is_kept = |line: &&str| !IGNORED.iter().any(|kind| line.starts_with(kind));
        Ok(Self(printed.lines().filter(is_kept).map(str::to_owned).collect()))
    }

    /// The objects that were not there before.
    fn since(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }
}

/// Waits until exactly these objects are left.
pub(super) fn exactly(kubectl: &Kubectl, before: &Snapshot, expected: &[&str]) -> anyhow::Result<()> {
    eventually(LIMIT, || {
        let left = Snapshot::take(kubectl)?.since(before);
        ensure!(left == expected, "{left:#?} are left instead of {expected:#?}");
        Ok(())
    })
}

/// Waits until only objects of the operator and of the agent are left, and checks that those of the agent are there.
pub(super) fn operators_and_agents(
    kubectl: &Kubectl,
    before: &Snapshot,
    operators: &[&str],
    clusters: &[&str],
) -> anyhow::Result<()> {
    eventually(LIMIT, || {
        let left = Snapshot::take(kubectl)?.since(before);
        let foreign: Vec<_> = left
            .iter()
            .filter(|object| !operators.contains(&object.as_str()) && !is_of_agent(object, clusters))
            .collect();
        ensure!(foreign.is_empty(), "{foreign:#?} are left, but not in the README of the chart");
        for kind in ["Namespace ", "FlowSchema ", "PriorityLevelConfiguration ", "ValidatingAdmissionPolicy "] {
            let is_there = left.iter().any(|object| object.starts_with(kind) && is_of_agent(object, clusters));
            ensure!(is_there, "no {kind}is left of the agent: {left:#?}");
        }
        Ok(())
    })
}

/// Whether the agent has created this object, or the host for a namespace of the agent.
fn is_of_agent(object: &str, clusters: &[&str]) -> bool {
    let Some((kind, name)) = object.split_once(' ') else { return false };
    let is_namespace = |name: &str| {
        clusters.iter().any(|cluster| name == format!("atoll-root-{cluster}") || name.ends_with(&format!("-{cluster}")))
    };
    match (kind, name.split_once('/')) {
        (_, Some((namespace, _))) => namespace != NAMESPACE && is_namespace(namespace),
        ("Namespace", None) => is_namespace(name),
        ("ClusterRole", None) => {
            let is_of = |cluster: &&str| name.starts_with(&format!("vc:{cluster}:"));
            name == format!("atoll:custom:{}", super::agent::DEFINITION) || clusters.iter().any(is_of)
        }
        ("CustomResourceDefinition", None) => name == super::agent::DEFINITION,
        ("Buoy", None) => name == "north.ke-beijing",
        ("FlowSchema", None) => clusters.iter().any(|cluster| name == format!("atoll-{cluster}")),
        ("PriorityLevelConfiguration", None) => name == "atoll-virtual-clusters",
        (
            "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding"
            | "MutatingAdmissionPolicy"
            | "MutatingAdmissionPolicyBinding",
            None,
        ) => name.ends_with(".atoll.dev"),
        _ => false,
    }
}
