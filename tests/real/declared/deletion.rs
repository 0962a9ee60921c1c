//! What a deleted object leaves on the host.

use anyhow::{bail, ensure};
use atoll_tests::eventually;

use super::world::{IN_FORCE, World};

const KEPT: &str = "kept";
const GONE: &str = "gone";
const LATE: &str = "late";
const IN_FILE: &str = "filed";

pub(super) fn policies_are_carried_out() -> anyhow::Result<()> {
    let mut world = World::start(&[KEPT, GONE, LATE, IN_FILE], "virtualClusters: []")?;
    let host = world.kubectl();
    for (name, policy) in [(KEPT, "Orphan"), (GONE, "Delete"), (LATE, "Delete"), (IN_FILE, "Delete")] {
        world.apply(name, &format!("{{nodeSelector: {{location: beijing}}, deletionPolicy: {policy}}}"))?;
    }
    let mut clients = Vec::new();
    for name in [KEPT, GONE, LATE, IN_FILE] {
        world.until_ready_is(name, "Serving")?;
        let kubectl = world.site.administrator(name)?;
        eventually(IN_FORCE, || kubectl.ok(&["create", "namespace", "shop"]).map(drop))?;
        kubectl.ok(&["create", "configmap", "one", "-n", "shop"])?;
        kubectl.ok(&["create", "clusterrole", "readers", "--verb=get", "--resource=pods"])?;
        ensure!(world.namespaces(name)?.len() == 5);
        clients.push(kubectl);
    }
    let [kept, gone, _, filed] = &clients[..] else { bail!("four clients") };

    // Orphan: the namespaces stay, and a new object with the name has them.
    host.ok(&["delete", "vc", KEPT, "--timeout=30s"])?;
    eventually(IN_FORCE, || kept.fails(&["get", "nodes"]).map(drop))?;
    ensure!(world.namespaces(KEPT)?.len() == 5);
    world.apply(KEPT, "{nodeSelector: {location: hangzhou}}")?;
    world.until_ready_is(KEPT, "Serving")?;
    eventually(IN_FORCE, || kept.ok(&["get", "configmap", "one", "-n", "shop"]).map(drop))?;

    // Delete: everything is gone when the deletion ends, and a new object with the name begins anew.
    host.ok(&["delete", "vc", GONE, "--timeout=60s"])?;
    ensure!(world.namespaces(GONE)?.is_empty());
    ensure!(host.fails(&["get", "namespace", &format!("atoll-root-{GONE}")])?.contains("NotFound"));
    let roles = host.ok(&["get", "clusterroles", "-o", "name"])?;
    ensure!(!roles.contains(&format!("vc:{GONE}:")) && roles.contains(&format!("vc:{KEPT}:readers")), "{roles}");
    let events = host.ok(&["get", "events", "-n", "default"])?;
    for reason in ["Orphaned", "Deleted"] {
        ensure!(events.contains(reason), "{events}");
    }
    world.apply(GONE, "{nodeSelector: {location: beijing}, deletionPolicy: Delete}")?;
    world.until_ready_is(GONE, "Serving")?;
    eventually(IN_FORCE, || gone.ok(&["get", "namespace", "default"]).map(drop))?;
    ensure!(gone.fails(&["get", "namespace", "shop"])?.contains("NotFound"));

    // Deleted while no agent runs, and at once after the agent has created the namespaces.
    world.without_agent(|world| world.kubectl().ok(&["delete", "vc", LATE, GONE, "--wait=false"]).map(drop))?;
    eventually(IN_FORCE * 2, || {
        let left = host.ok(&["get", "vc", "-o", "name"])?;
        ensure!(!left.contains(LATE) && !left.contains(GONE), "{left}\n{}", world.agent.log());
        Ok(())
    })?;
    ensure!(world.namespaces(LATE)?.is_empty() && world.namespaces(GONE)?.is_empty());

    // The cluster moves to the configuration file, so the object must not delete it.
    let file = world.site.file("site-d.yaml");
    let entry = format!("virtualClusters: [{{name: {IN_FILE}, nodeSelector: {{location: beijing}}}}]");
    std::fs::write(&file, std::fs::read_to_string(&file)?.replace("virtualClusters: []", &entry))?;
    world.until_ready_is(IN_FILE, "NameConflict")?;
    host.ok(&["delete", "vc", IN_FILE, "--timeout=30s"])?;
    ensure!(world.namespaces(IN_FILE)?.len() == 5);
    eventually(IN_FORCE, || filed.ok(&["get", "configmap", "one", "-n", "shop"]).map(drop))?;
    Ok(())
}
