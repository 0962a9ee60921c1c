//! The nodes of each virtual cluster.

use ops::config::Located;
use serde_json::Value;
use virtual_cluster::config::VirtualCluster;

use crate::check::report::Report;
use crate::check::weakness::{Check, Weakness};

/// Reports virtual clusters without nodes, and virtual clusters that share nodes.
pub(super) fn check(nodes: &[Value], clusters: &[Located<VirtualCluster>], report: &mut Report) {
    let mut owned: Vec<(&str, &str)> = Vec::new();
    for cluster in clusters {
        // `agent::check` has reported an invalid selector.
        let Ok(selector) = cluster.configured_selector() else { continue };
        let matches = |node: &&Value| selector.matches(|key| node["metadata"]["labels"][key].as_str());
        let own: Vec<_> = nodes.iter().filter(matches).filter_map(|node| node["metadata"]["name"].as_str()).collect();
        let name = cluster.name.as_str();
        if own.is_empty() {
            report.warn(
                cluster,
                format_args!(
                    "virtual cluster {name}: no node of the host matches {selector}, so its pods stay Pending"
                ),
            );
        }
        if let Some((other, node)) = owned.iter().find(|(_, node)| own.contains(node)) {
            report.add_weaknesses(Some(Weakness::at(
                Check::SharedNodes,
                cluster.location(),
                format_args!(
                    "virtual cluster {name} shares nodes with {other}, such as {node}: a process that escapes its container \
                     on one of them can access the pods and the Secrets of both"
                ),
                "use separate nodes for each virtual cluster",
            )));
        }
        owned.extend(own.into_iter().map(|node| (name, node)));
    }
}
