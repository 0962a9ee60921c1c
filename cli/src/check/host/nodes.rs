//! Nodes of the host, and the virtual clusters that select them.

use kube_wire::selector::LabelSelector;
use ops::config::Located;
use serde_json::Value;
use virtual_cluster::config::VirtualCluster;

use crate::check::report::Report;
use crate::check::weakness::{Check, Weakness};

/// Virtual clusters without nodes, and nodes of two virtual clusters.
pub(super) fn look(nodes: &[Value], clusters: &[Located<VirtualCluster>], report: &mut Report) {
    let mut owned: Vec<(&str, &str)> = Vec::new();
    for cluster in clusters {
        let labels = cluster.labels();
        let labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        // `agent::check` has reported an invalid selector.
        let Ok(selector) = LabelSelector::from_labels(labels) else { continue };
        let matches = |node: &&Value| selector.matches(|key| node["metadata"]["labels"][key].as_str());
        let own: Vec<_> = nodes.iter().filter(matches).filter_map(|node| node["metadata"]["name"].as_str()).collect();
        let name = cluster.name.as_str();
        if own.is_empty() {
            report.warn(
                cluster,
                format_args!(
                    "virtual cluster {name}: no node of the host has {selector}, so its pods will stay Pending"
                ),
            );
        }
        if let Some((other, node)) = owned.iter().find(|(_, node)| own.contains(node)) {
            report.weak(Some(Weakness::at(
                Check::SharedNodes,
                cluster.location(),
                format_args!(
                    "virtual cluster {name} shares nodes with {other}, such as {node}: a pod that breaks out of its \
                     container on one of them can reach the pods and the Secrets of both"
                ),
                "give each virtual cluster nodes of its own",
            )));
        }
        owned.extend(own.into_iter().map(|node| (name, node)));
    }
}
