//! Two proxy-servers with the same configuration. They do not change each other's objects, one is sufficient, and a
//! proxy-server removes members that left the configuration while no proxy-server ran.

use std::time::Duration;

use anyhow::ensure;
use atoll_tests::site::Replica;
use atoll_tests::{Curl, VirtualSite, eventually};
use serde_json::Value;

use super::{ALL, FOLLOWED, MARKER, NORTH, RESYNCED, SOUTH, Section, World};

/// The proxy-server waits 150 s before it removes a Cluster that is not in its configuration, because a replica may
/// have a newer configuration.
const ORPHANS: Duration = Duration::from_secs(360);

pub(in crate::karmada) fn one_of_two_proxy_servers_is_enough(shared: &VirtualSite) -> anyhow::Result<()> {
    let mut world = World::without_agent(shared.host())?;
    let section = Section { endpoint: Some(world.site.ports.endpoint), ..ALL };
    world.say(&section)?;
    let mut replica = world.site.replica()?;
    world.start_agent()?;
    let kubectl = world.karmada.kubectl().clone();
    for name in [NORTH, SOUTH] {
        let cluster = world.karmada.ready(name)?;
        let spec = &cluster["spec"];
        let url = format!("https://127.0.0.1:{}/clusters/{name}", world.site.ports.endpoint);
        ensure!(spec["apiEndpoint"] == url && spec["proxyURL"].is_null(), "{spec}");
    }
    kubectl.ok(&["create", "namespace", "auto"])?;
    kubectl.ok_with(&["apply", "-f", "-"], MARKER)?;
    world.marked(&[NORTH, SOUTH], "first")?;

    // Both get the change. The second one finds it already applied.
    say(&world, &replica, &Section { label: "two", ..section })?;
    let versions = || -> anyhow::Result<String> {
        let all: Value = serde_json::from_str(&kubectl.ok(&["get", "clusters", NORTH, SOUTH, "-o=json"])?)?;
        let items = all["items"].as_array().into_iter().flatten();
        // Karmada writes the status repeatedly.
        let told = items.map(|cluster| {
            let writers = cluster["metadata"]["managedFields"].as_array().into_iter().flatten();
            let writers: Vec<_> = writers.filter(|writer| writer["subresource"].is_null()).collect();
            format!("{} {} {writers:?}", cluster["metadata"]["labels"], cluster["metadata"]["generation"])
        });
        Ok(told.collect::<Vec<_>>().join("\n"))
    };
    eventually(FOLLOWED, || {
        ensure!(versions()?.contains(r#""ours":"two""#), "{}", versions()?);
        Ok(())
    })?;
    let settled = versions()?;
    let looks = [passes(world.site.ports.admin)?, passes(replica.ports.admin)?];
    eventually(RESYNCED, || {
        let now = [passes(world.site.ports.admin)?, passes(replica.ports.admin)?];
        ensure!(
            now.iter().zip(&looks).all(|(now, before)| now >= &(before + 2)),
            "{looks:?} reconciliations, then {now:?}"
        );
        Ok(())
    })?;
    ensure!(versions()? == settled, "the object was written again: {settled}\nthen {}", versions()?);

    // Only the other proxy-server runs.
    world.site.server.kill()?;
    let other = Section { endpoint: Some(replica.ports.endpoint), label: "two", ..ALL };
    say(&world, &replica, &other)?;
    eventually(FOLLOWED, || {
        let url = kubectl.ok(&["get", "cluster", NORTH, "-o=jsonpath={.spec.apiEndpoint}"])?;
        ensure!(url.contains(&replica.ports.endpoint.to_string()), "the URL is still {url}");
        Ok(())
    })?;
    world.mark("moved")?;
    world.marked_on_host(&[NORTH, SOUTH], "moved")?;
    kubectl.ok(&["delete", "namespace", "auto"])?;

    // The members leave the configuration while no proxy-server runs.
    replica.server.kill()?;
    say(&world, &replica, &Section { clusters: "none-*", ..other })?;
    ensure!(
        kubectl.ok(&["get", "clusters", NORTH, SOUTH, "-o=name"])?.lines().count() == 2,
        "the members are already gone"
    );
    replica.restart()?;
    world.is_left_within(SOUTH, ORPHANS)?;
    world.is_left(NORTH)?;
    world.host_is_cleared()
}

fn say(world: &World<'_>, replica: &Replica, section: &Section<'_>) -> anyhow::Result<()> {
    world.say(section)?;
    replica.write(&format!("{}{}", world.plain, section.yaml(world)))
}

/// The number of reconciliations of a proxy-server.
fn passes(admin: u16) -> anyhow::Result<u64> {
    let metrics = Curl::plain(&format!("127.0.0.1:{admin}")).get("/metrics")?.body;
    let counts = metrics.lines().filter(|line| line.starts_with("atoll_karmada_passes_total{"));
    Ok(counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}
