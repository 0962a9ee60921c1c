//! A host with edge nodes and node groups, as KubeEdge has them.
//!
//! With `ATOLL_TEST_HOST=kubeedge`, all suites run on such a host, which then also has the Kubernetes version of KubeEdge. This
//! module tests the differences.

use anyhow::ensure;
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::{HostCluster, Kubectl, Nodes, Route, VirtualSite};
use libtest_mimic::Trial;

use crate::trial::trial;

const BEIJING: &str = "ke-beijing";
const HANGZHOU: &str = "ke-hangzhou";

const WORKLOADS: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: edge}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: edge}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: 'nginx:1.25'}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each, namespace: edge}
spec:
  selector: {matchLabels: {app: each}}
  template:
    metadata: {labels: {app: each}}
    spec: {containers: [{name: each, image: each}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: edge}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: once}]}
";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("kubeedge::node_groups_are_clusters", node_groups_are_clusters)]
}

fn node_groups_are_clusters() -> anyhow::Result<()> {
    let clusters = [(BEIJING, Nodes::Group("beijing")), (HANGZHOU, Nodes::Group("hangzhou"))];
    let site = VirtualSite::of(HostCluster::up_with_edge_nodes()?, &clusters)?;
    for (cluster, location) in [(BEIJING, "beijing"), (HANGZHOU, "hangzhou")] {
        let kubectl = site.administrator(cluster, Route::Proxy)?;
        if everywhere_kubeedge() {
            let version = kubectl.ok(&["get", "--raw", "/version"])?;
            ensure!(version.contains(r#""minor": "32""#), "{version}");
        }
        let nodes = kubectl.ok(&["get", "nodes", "-o", "name"])?;
        ensure!(nodes == format!("node/{location}-1\nnode/{location}-2\n"), "{cluster}: {nodes}");
        // The nodes have the roles of KubeEdge.
        ensure!(kubectl.ok(&["get", "nodes"])?.contains("agent,edge"));
        for server_side in [false, true] {
            let apply = ["apply", "-f", "-", &format!("--server-side={server_side}"), "--force-conflicts"];
            kubectl.ok_with(&apply[..4 + usize::from(server_side)], WORKLOADS)?;
        }
        for wait in [
            &["rollout", "status", "-n", "edge", "deployment/nginx", "--timeout=60s"][..],
            &["rollout", "status", "-n", "edge", "daemonset/each", "--timeout=60s"],
            &["wait", "-n", "edge", "--for=condition=complete", "job/once", "--timeout=60s"],
        ] {
            kubectl.ok(wait)?;
        }
        stays_in_its_group(&site, &kubectl, cluster, location)?;
    }
    Ok(())
}

/// On the host, every template and pod has the label of the group and the toleration. The virtual cluster shows
/// neither.
fn stays_in_its_group(site: &VirtualSite, kubectl: &Kubectl, cluster: &str, location: &str) -> anyhow::Result<()> {
    let shown = kubectl.ok(&["get", "deploy,ds,job", "-n", "edge", "-o", "yaml", "--show-managed-fields"])?;
    for hidden in ["nodeSelector", "apps.kubeedge.io", "node-role.kubernetes.io/edge"] {
        ensure!(!shown.contains(hidden), "{cluster} shows {hidden}:\n{shown}");
    }
    let namespace = format!("edge-{cluster}");
    let host = site.host().kubectl();
    let columns = "custom-columns=NODE:.spec.nodeName,GROUP:.spec.nodeSelector.apps\\.kubeedge\\.io/belonging-to,\
                   TOLERATES:.spec.tolerations[?(@.effect==\"NoSchedule\")].key";
    let pods = host.ok(&["get", "pods", "-n", &namespace, "--no-headers", "-o", columns])?;
    ensure!(pods.lines().count() >= 5, "{pods}");
    for pod in pods.lines() {
        let mut cells = pod.split_whitespace();
        ensure!(cells.next().is_some_and(|node| node.starts_with(location)), "{pod}");
        ensure!(cells.next() == Some(location), "{pod}");
        ensure!(cells.next().is_some_and(|keys| keys.contains("node-role.kubernetes.io/edge")), "{pod}");
    }
    Ok(())
}
