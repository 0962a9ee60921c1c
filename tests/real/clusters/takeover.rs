//! A namespace that exists on the host becomes one of a virtual cluster.

use anyhow::ensure;
use atoll_tests::{HostCluster, eventually};

use super::world::{AGENT, IN_FORCE, agent, clusters, server};

const CLUSTER: &str = "cl-taker";

pub(super) fn of_namespaces(host: &HostCluster) -> anyhow::Result<()> {
    let admin = host.kubectl();
    for namespace in ["edge-cl-taker", "cl-untaken"] {
        admin.ok(&["create", "namespace", namespace])?;
        admin.ok(&["create", "configmap", "before", "-n", namespace, "--from-literal=a=b"])?;
    }
    let site = server(&[CLUSTER])?;
    let _agent = agent(&site, AGENT, host, &[(CLUSTER, "beijing")])?;
    let client = site.administrator(CLUSTER)?;
    ensure!(client.fails(&["get", "namespace", "edge"])?.contains("NotFound"));

    let refused = clusters(host, &["adopt", CLUSTER, "--namespace", "edge-cl-taker"], 1)?;
    ensure!(refused.contains("add --yes"), "{refused}");
    let both = ["adopt", CLUSTER, "--namespace", "edge-cl-taker", "--namespace", "cl-untaken", "--yes"];
    let refused = clusters(host, &both, 1)?;
    ensure!(refused.contains("namespace cl-untaken: its name does not end with `-cl-taker`"), "{refused}");
    ensure!(client.fails(&["get", "namespace", "edge"])?.contains("NotFound"), "nothing has changed");

    let taken = clusters(host, &["adopt", CLUSTER, "--namespace", "edge-cl-taker", "--yes"], 0)?;
    ensure!(taken.contains("namespace edge-cl-taker is now edge of cl-taker"), "{taken}");
    eventually(IN_FORCE, || {
        let found = client.ok(&["get", "configmap", "before", "-n", "edge", "-o=jsonpath={.data.a}"])?;
        ensure!(found == "b", "{found}");
        Ok(())
    })?;
    // The rights of its administrators and the annotations for the admission policies follow, so pods can be created.
    eventually(IN_FORCE, || client.ok(&["run", "after", "-n", "edge", "--image=x"]))?;
    eventually(IN_FORCE, || {
        let node = client.ok(&["get", "pod", "after", "-n", "edge", "-o=jsonpath={.spec.nodeName}"])?;
        ensure!(node.starts_with("beijing-"), "{node:?}");
        Ok(())
    })?;
    ensure!(clusters(host, &["adopt", CLUSTER, "--namespace", "edge-cl-taker"], 0)?.contains("already"));
    client.ok(&["delete", "namespace", "edge"])?;
    admin.ok(&["delete", "namespace", "cl-untaken"]).map(drop)
}
