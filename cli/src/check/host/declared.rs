//! The virtual clusters that VirtualCluster objects of the host declare. All other checks cover them, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use proxy_agent::ProxyAgentConfiguration;
use serde::Deserialize as _;
use serde_json::Value;
use virtual_cluster::config::VirtualCluster;
use virtual_cluster::declared::{Declared, InForce, Objects, Others, Verdict, accept};

/// What the agent makes of the objects.
pub(super) struct Found {
    /// The virtual clusters that it serves, or will serve.
    pub(super) clusters: Vec<VirtualCluster>,
    /// Why it does not serve the others.
    pub(super) problems: Vec<String>,
}

/// Decides about all objects, as the agent does.
pub(super) fn find(items: &[Value], config: &ProxyAgentConfiguration) -> Found {
    let named = |object: Declared| (object.metadata.name.clone(), Arc::new(object));
    let objects: Objects = items.iter().filter_map(|item| Declared::deserialize(item).ok()).map(named).collect();
    let others = Others {
        virtuals: config.virtual_clusters.iter().map(|cluster| cluster.name.to_string()).collect(),
        physicals: config.physical_clusters.iter().map(|cluster| cluster.name.to_string()).collect(),
    };
    let verdicts: BTreeMap<String, Verdict> = accept(&others, &InForce::new(), &objects).verdicts;
    let mut found = Found { clusters: Vec::new(), problems: Vec::new() };
    for (name, verdict) in verdicts {
        match verdict {
            Verdict::Served | Verdict::Unclaimed => {
                found.clusters.extend(objects[&name].spec().ok().map(|spec| spec.cluster));
            }
            Verdict::Invalid { reason, .. } | Verdict::Conflict(reason) => {
                found.problems.push(format!("VirtualCluster {name}: {reason}"));
            }
            Verdict::Ending(_) | Verdict::Yielding => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_judged_as_by_the_agent() {
        let text = "apiVersion: atoll.dev/v1alpha1\nkind: ProxyAgentConfiguration\nservers: [a:1]\nwatchVirtualClusters: true\n\
                    identity: {certificate: a.crt, key: a.key, serverCA: ca.crt}\nhost: {kubeconfig: k}\n\
                    virtualClusters: [{name: in-file, nodeSelector: {a: b}}]\n";
        let config: ProxyAgentConfiguration = ops::config::parse(text, Path::new("agent.yaml")).unwrap();
        let object = |name: &str, spec: Value| json!({"metadata": {"name": name, "uid": name}, "spec": spec});
        let good = json!({"nodeSelector": {"location": "beijing"}});
        let mut ending = object("ending", good.clone());
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let items = [object("good", good.clone()), object("in-file", good), object("bad", json!({})), ending];
        let found = find(&items, &config);
        let names: Vec<_> = found.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        assert_eq!(names, ["good"]);
        assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
        assert!(found.problems[0].starts_with("VirtualCluster bad: spec: virtual cluster bad has no nodeSelector"));
        assert!(found.problems[1].contains("the agent's configuration file has a virtual cluster in-file"));
    }
}
