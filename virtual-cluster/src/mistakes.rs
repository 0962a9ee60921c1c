//! Mistakes in a virtual cluster that its type cannot exclude. The configuration file and `VirtualCluster` objects have the
//! same ones.

use kube_wire::selector::LabelSelector;
use rewrite::name::{NODE_PREFIX, endings};

use crate::config::VirtualCluster;

/// The maximum number of expressions for nodes. The definition of the kind has the same limit.
const MAX_EXPRESSIONS: usize = 16;

/// The mistakes, one sentence each.
pub fn of(cluster: &VirtualCluster) -> Vec<String> {
    in_nodes(cluster).into_iter().chain(in_shares(cluster)).chain(in_karmada(cluster)).collect()
}

fn in_nodes(cluster: &VirtualCluster) -> Option<String> {
    let (name, key) = (&cluster.name, VirtualCluster::BELONGING_TO);
    let keys = cluster.selecting_keys();
    // If an expression tested a label that the agent sets, each change by the agent could cause the next one.
    if let Some(own) = keys.iter().find(|key| key.starts_with(NODE_PREFIX)) {
        return Some(format!("virtual cluster {name}: the label {own} is reserved for the agent"));
    }
    if cluster.node_expressions.len() > MAX_EXPRESSIONS {
        return Some(format!("virtual cluster {name} has more than {MAX_EXPRESSIONS} nodeExpressions"));
    }
    match (&cluster.node_group, cluster.node_selector.get(key)) {
        _ if cluster.selects_all_nodes() => Some(format!(
            "virtual cluster {name} has no nodeSelector, nodeExpressions or nodeGroup: it would own every node"
        )),
        (Some(group), _) if group.is_empty() => Some(format!("virtual cluster {name} has an empty nodeGroup")),
        (Some(group), Some(other)) if group != other => {
            Some(format!("virtual cluster {name} has nodeGroup {group} and `{key}: {other}`, and no node has both"))
        }
        _ => None,
    }
}

/// A mistake in a name would leave the resource with the limit of all others.
fn in_shares(cluster: &VirtualCluster) -> impl Iterator<Item = String> {
    let is_name = |name: &str| {
        let mut labels = name.split('.');
        !name.is_empty() && labels.all(|label| rewrite::ClusterName::new(label).is_ok())
    };
    cluster.shares.exceptions.keys().filter(move |name| !is_name(name)).map(|name| {
        format!("shares.objectsOf: `{name}` is not a resource; examples are `secrets` and `deployments.apps`")
    })
}

fn in_karmada(cluster: &VirtualCluster) -> Option<String> {
    let is_label = |key: &str, value: &str| LabelSelector::from_labels([(key, value)]).is_ok();
    cluster.karmada.as_ref()?.mistake(is_label).map(|mistake| format!("karmada: {mistake}"))
}

/// The name of another virtual cluster that a name ends with: namespaces of both could have the same host names, see [`endings`].
pub fn ending(name: &str, is_other: impl Fn(&str) -> bool) -> Option<&str> {
    endings(name).find(|ending| is_other(ending))
}
