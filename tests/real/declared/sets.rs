//! A set creates, changes and deletes virtual clusters.

use anyhow::ensure;
use atoll_tests::eventually;

use super::world::{IN_FORCE, World};

const SITES: [&str; 2] = ["set-beijing", "set-hangzhou"];

pub(super) fn sets_own_what_they_create() -> anyhow::Result<()> {
    let world = World::start(&SITES, "virtualClusters: []")?;
    let host = world.kubectl();
    let apply = |spec: &str| {
        let set = format!(
            "apiVersion: atoll.dev/v1alpha1\nkind: VirtualClusterSet\nmetadata: {{name: sites}}\nspec: {spec}\n"
        );
        host.run_with(&["apply", "-f", "-"], &set)
    };
    for (spec, message) in [
        ("{}", "set one of nodeLabel and nodeGroups"),
        ("{nodeLabel: location, template: {spec: {nodeSelector: {location: a}}}}", "because the set adds it"),
        ("{nodeLabel: location, template: {spec: {podSecurity: {enforce: none}}}}", "Unsupported value"),
        ("{nodeLabel: location, namePrefix: -a}", "begin with a letter or digit"),
    ] {
        let refused = apply(spec)?;
        ensure!(refused.code != 0 && refused.stderr.contains(message), "{spec}: {refused:?}");
    }

    let spec = "nodeLabel: location, namePrefix: set-, deletionPolicy: Delete";
    let applied = apply(&format!("{{{spec}, template: {{metadata: {{labels: {{tier: edge}}}}}}}}"))?;
    ensure!(applied.code == 0, "{applied:?}");
    host.ok(&["wait", "vcset/sites", "--for=jsonpath={.status.ready}=2", "--timeout=60s"])?;
    let listed = host.ok(&["get", "vc", "-l", "atoll.dev/virtual-cluster-set=sites", "-o", "name"])?;
    ensure!(listed == SITES.map(|name| format!("virtualcluster.atoll.dev/{name}\n")).concat(), "{listed}");
    let events =
        host.ok(&["get", "events", "-n", "default", "--field-selector", "involvedObject.kind=VirtualClusterSet"])?;
    ensure!(events.contains("created VirtualCluster set-beijing"), "{events}");

    // Changes by others are reverted.
    host.ok(&[
        "patch",
        "vc",
        SITES[0],
        "--type=merge",
        "-p",
        r#"{"spec": {"nodeSelector": {"location": "elsewhere"}}}"#,
    ])?;
    eventually(IN_FORCE, || {
        let location = host.ok(&["get", "vc", SITES[0], "-o=jsonpath={.spec.nodeSelector.location}"])?;
        ensure!(location == "beijing", "{location}");
        Ok(())
    })?;

    // What is no longer in the template is removed.
    let edge = ["get", "vc", "-l", "tier=edge", "-o", "name"];
    ensure!(host.ok(&edge)? == listed);
    let applied = apply(&format!("{{{spec}}}"))?;
    ensure!(applied.code == 0, "{applied:?}");
    eventually(IN_FORCE, || {
        let left = host.ok(&edge)?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })?;

    host.ok(&["delete", "vcset", "sites", "--timeout=30s"])?;
    eventually(IN_FORCE, || {
        let left = host.ok(&["get", "vc", "-o", "name"])?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })
}
