//! Nodes move between virtual clusters (docs/move-nodes.md).

use anyhow::ensure;
use atoll_tests::{HostCluster, eventually};

use super::world::{AGENT, IN_FORCE, agent, server};

const NORTH: &str = "north";
const SOUTH: &str = "south";

const WORKLOADS: &str = r"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere, namespace: default}
spec:
  selector: {matchLabels: {app: everywhere}}
  template: {metadata: {labels: {app: everywhere}}, spec: {containers: [{name: a, image: x}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: x}]}}
";

pub(super) fn move_between_clusters() -> anyhow::Result<()> {
    let host = HostCluster::up(1)?;
    let site = server(&[NORTH, SOUTH])?;
    let _agent = agent(&site, AGENT, &host, &[(NORTH, "beijing"), (SOUTH, "hangzhou")])?;
    let (north, south, admin) = (site.administrator(NORTH)?, site.administrator(SOUTH)?, host.kubectl());
    north.ok_with(&["apply", "-f", "-"], WORKLOADS)?;
    let pods = |app: &str| {
        let of = format!("app={app}");
        north.ok(&[
            "get",
            "pods",
            "-l",
            &of,
            "--field-selector=status.phase=Running",
            "-o=jsonpath={.items[*].spec.nodeName}",
        ])
    };
    let on = |nodes: &str, node: &str| nodes.split_whitespace().filter(|found| *found == node).count();
    eventually(IN_FORCE, || {
        ensure!(on(&pods("everywhere")?, "beijing-2") == 1, "{}", pods("everywhere")?);
        let web = pods("web")?;
        ensure!(web.split_whitespace().count() == 4 && on(&web, "beijing-2") > 0, "{web}");
        Ok(())
    })?;
    let web = north.ok(&[
        "get",
        "pods",
        "-l",
        "app=web",
        "--field-selector=spec.nodeName=beijing-2",
        "-o=jsonpath={.items[0].metadata.name}",
    ])?;
    north.ok(&["logs", &web])?;

    admin.ok(&["label", "node", "beijing-2", "location=hangzhou", "--overwrite"])?;
    eventually(IN_FORCE, || {
        ensure!(north.ok(&["get", "nodes", "-o", "name"])? == "node/beijing-1\n");
        let nodes = south.ok(&["get", "nodes", "-o", "name"])?;
        ensure!(nodes.contains("beijing-2") && nodes.lines().count() == 3, "{nodes}");
        Ok(())
    })?;
    // The DaemonSet controller of the host deletes its pod, because the node no longer matches. Others stay.
    eventually(IN_FORCE, || {
        ensure!(on(&pods("everywhere")?, "beijing-2") == 0, "{}", pods("everywhere")?);
        Ok(())
    })?;
    ensure!(on(&pods("web")?, "beijing-2") > 0, "the pods of the Deployment have moved: {}", pods("web")?);
    // The pod belongs to the virtual cluster, wherever it runs.
    north.ok(&["logs", &web])?;
    north.ok(&["get", "pod", &web])?;
    ensure!(south.fails(&["get", "pod", &web])?.contains("NotFound"));

    // The administrator of the virtual cluster or of the host evicts it.
    let drained = admin.ok(&[
        "drain",
        "beijing-2",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
        "--disable-eviction",
        "--pod-selector=app=web",
        "--timeout=50s",
    ])?;
    ensure!(drained.contains(&web), "{drained}");
    admin.ok(&["uncordon", "beijing-2"])?;
    eventually(IN_FORCE, || {
        let web = pods("web")?;
        ensure!(on(&web, "beijing-1") == 4, "{web}");
        Ok(())
    })
}
