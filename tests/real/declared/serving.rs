//! An object is served like an entry of the configuration file.

use anyhow::ensure;
use atoll_tests::eventually;

use super::world::{IN_FORCE, World};

const KE: &str = "ke";
const SHARES: &str = "shares-nodes";
const IN_FILE: &str = "in-file";
/// The proxy-server does not have it.
const UNKNOWN: &str = "unknown";

pub(super) fn objects_are_served() -> anyhow::Result<()> {
    let file = format!("virtualClusters: [{{name: {IN_FILE}, nodeSelector: {{location: hangzhou}}}}]");
    let world = World::start(&[KE, SHARES, IN_FILE], &file)?;
    let host = world.kubectl();

    // The clusters of the file are not affected.
    let in_file = world.site.administrator(IN_FILE)?;
    eventually(IN_FORCE, || in_file.ok(&["get", "nodes"]).map(drop))?;

    world.apply(KE, "{nodeSelector: {location: beijing}}")?;
    host.ok(&["wait", "--for=condition=Ready", &format!("virtualcluster/{KE}"), "--timeout=30s"])?;
    let ke = world.site.administrator(KE)?;
    ensure!(ke.ok(&["get", "nodes", "-o", "name"])? == "node/beijing-1\nnode/beijing-2\n");
    ke.ok(&["create", "namespace", "shop"])?;
    eventually(IN_FORCE, || {
        let row = host.ok(&["get", "vc", KE, "--no-headers"])?;
        let row: Vec<_> = row.split_whitespace().collect();
        ensure!(row[..5] == [KE, "True", "Serving", "2", "5"], "{row:?}");
        Ok(())
    })?;
    let events =
        host.ok(&["get", "events", "-n", "default", "--field-selector", "involvedObject.kind=VirtualCluster"])?;
    ensure!(events.contains("Serving") && events.contains("clients can use it"), "{events}");

    // The selector changes. The file and another object have the same nodes.
    world.apply(KE, "{nodeSelector: {location: hangzhou}, deletionPolicy: Delete}")?;
    world.apply(SHARES, "{nodeSelector: {location: hangzhou, kubernetes.io/hostname: hangzhou-1}}")?;
    eventually(IN_FORCE, || {
        let nodes = ke.ok(&["get", "nodes", "-o", "name"])?;
        ensure!(nodes == "node/hangzhou-1\nnode/hangzhou-2\n", "{nodes}");
        Ok(())
    })?;
    world.until_ready_is(SHARES, "Serving")?;
    eventually(IN_FORCE, || {
        let path = "jsonpath={.status.conditions[?(@.type==\"Overlapping\")].message}";
        let message = host.ok(&["get", "virtualcluster", SHARES, "-o", path])?;
        for expect in [format!("{IN_FILE} (such as hangzhou-1)"), format!("{KE} (such as hangzhou-1)")] {
            ensure!(message.contains(&expect), "{message}");
        }
        Ok(())
    })?;

    // Objects that cannot be served say why, and the others are not affected.
    world.apply(IN_FILE, "{nodeSelector: {location: beijing}}")?;
    let message = world.until_ready_is(IN_FILE, "NameConflict")?;
    ensure!(message.contains("configuration file has a virtual cluster in-file"), "{message}");
    ensure!(in_file.ok(&["get", "nodes", "-o", "name"])? == "node/hangzhou-1\nnode/hangzhou-2\n");
    world.apply(UNKNOWN, "{nodeSelector: {location: beijing}}")?;
    let message = world.until_ready_is(UNKNOWN, "RefusedByProxyServer")?;
    ensure!(message.contains("the proxy-server refuses it"), "{message}");
    world.apply(&format!("b-{KE}"), "{nodeSelector: {location: beijing}}")?;
    world.until_ready_is(&format!("b-{KE}"), "NameConflict")?;
    ke.ok(&["get", "nodes"])?;

    // Nobody sees or writes the objects through an endpoint.
    let path = "/apis/atoll.dev/v1alpha1/virtualclusters";
    let list = ke.ok(&["get", "--raw", path])?;
    ensure!(list.contains("\"items\":[]"), "{list}");
    let kinds = ke.ok(&["api-resources", "-o", "name"])?;
    ensure!(!kinds.contains("atoll.dev"), "{kinds}");
    let text = super::world::object("stolen", "{nodeSelector: {location: beijing}}");
    let refused = ke.run_with(&["create", "--raw", path, "-f", "-"], &text)?;
    ensure!(refused.code != 0 && refused.stderr.contains("Forbidden"), "{refused:?}");
    ke.fails(&["delete", "--raw", &format!("{path}/{KE}")])?;
    ensure!(host.ok(&["get", "vc", "-o", "name"])?.lines().count() == 5);
    Ok(())
}
