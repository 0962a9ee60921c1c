//! Nodes that expressions select.

use std::collections::BTreeSet;

use anyhow::ensure;
use atoll_tests::{Kubectl, eventually};

use super::world::{IN_FORCE, World};

/// Has the nodes of two locations that are not spare.
const PICKY: &str = "picky";
/// Shares nodes with it.
const PLAIN: &str = "plain";
const LABEL: &str = "atoll.node-restriction.kubernetes.io/picky";
const SPEC: &str = "{nodeExpressions: [{key: location, operator: In, values: [beijing, hangzhou]}, \
                    {key: tier, operator: NotIn, values: [spare]}], deletionPolicy: Delete}";

pub(super) fn expressions_select_nodes() -> anyhow::Result<()> {
    let world = World::start(&[PICKY, PLAIN], "virtualClusters: []")?;
    let host = world.kubectl();
    let all = names(&host, &["-l", "location in (beijing,hangzhou)"])?;
    let of_hangzhou = names(&host, &["-l", "location=hangzhou"])?;
    let spare = of_hangzhou.first().expect("a node").clone();
    host.ok(&["label", &spare, "tier=spare"])?;
    world.apply(PICKY, SPEC)?;
    world.apply(PLAIN, "{nodeSelector: {location: hangzhou}}")?;
    world.until_ready_is(PICKY, "Serving")?;
    world.until_ready_is(PLAIN, "Serving")?;
    let (picky, plain) = (world.site.administrator(PICKY)?, world.site.administrator(PLAIN)?);
    let without = |name: &String| all.iter().filter(|node| *node != name).cloned().collect::<BTreeSet<_>>();
    let has = |expected: &BTreeSet<String>| {
        eventually(IN_FORCE, || {
            let nodes = names(&picky, &[])?;
            ensure!(nodes == *expected, "{nodes:?} instead of {expected:?}\n{}", world.agent.log());
            Ok(())
        })
    };
    has(&without(&spare))?;
    ensure!(names(&host, &["-l", LABEL])? == without(&spare));
    ensure!(names(&plain, &[])? == of_hangzhou);

    // Pods run there. Nobody sees how.
    picky.ok(&["create", "deployment", "web", "--image=web:1", "--replicas=6"])?;
    picky.ok(&["rollout", "status", "deployment/web", "--timeout=60s"])?;
    let path = "jsonpath={range .items[*]}node/{.spec.nodeName} {end}";
    let of_pods: BTreeSet<_> = picky.ok(&["get", "pods", "-o", path])?.split_whitespace().map(str::to_owned).collect();
    ensure!(!of_pods.is_empty() && of_pods.is_subset(&without(&spare)), "{of_pods:?}");
    for client in [&picky, &plain] {
        for kind in ["nodes", "deployments", "pods"] {
            let seen = client.ok(&["get", kind, "-o", "json", "--show-managed-fields"])?;
            ensure!(!seen.contains("atoll.node-restriction"), "{seen}");
        }
        let refused = client.fails(&["get", "nodes", "-l", LABEL])?;
        ensure!(refused.contains("selectors cannot contain labels with the prefix"), "{refused}");
    }

    // Nodes leave and join.
    let moved = without(&spare).first().expect("a node").clone();
    host.ok(&["label", &spare, "tier-"])?;
    host.ok(&["label", &moved, "tier=spare"])?;
    has(&without(&moved))?;
    // Somebody else cannot give it a node.
    host.ok(&["label", &moved, &format!("{LABEL}=true")])?;
    eventually(IN_FORCE, || {
        ensure!(names(&host, &["-l", LABEL])? == without(&moved), "{}", world.agent.log());
        Ok(())
    })?;

    // A node cannot move itself, neither with this label nor with one that an expression tests.
    let name = moved.strip_prefix("node/").expect("the name of a node");
    let user = format!("--as=system:node:{name}");
    for label in ["tier=edge", &format!("{LABEL}=true"), "atoll.node-restriction.kubernetes.io/other=true"] {
        let refused = host.fails(&["label", "node", name, label, "--overwrite", &user, "--as-group=system:nodes"])?;
        ensure!(refused.contains("a node cannot change labels by which virtual clusters select"), "{refused}");
    }

    host.ok(&["delete", "vc", PICKY, "--timeout=60s"])?;
    ensure!(names(&host, &["-l", LABEL])?.is_empty());
    Ok(())
}

/// The names of nodes, as `node/NAME`.
fn names(kubectl: &Kubectl, args: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let names = kubectl.ok(&[&["get", "nodes", "-o", "name"], args].concat())?;
    Ok(names.lines().map(str::to_owned).collect())
}
