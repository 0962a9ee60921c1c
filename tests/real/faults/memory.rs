//! Objects that do not fit into the memory of the hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::virtual_site::Sharing;
use atoll_tests::{HostCluster, Kubectl, eventually, site};

use super::pair::{MAPS, Pair, Watch};

/// The objects of one cluster, which together are larger than the memory.
const OBJECTS: usize = 12;
const SIZE: usize = 150 << 10;

/// The watches of the cluster with the most bytes go to the host, without a lost or repeated event.
pub(super) fn too_small_sends_watches_to_the_host(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::with(host, "full", Sharing { memory_mib: 1, ..Sharing::default() })?;
    let [name, _] = &pair.names;
    let [ours, theirs] = pair.kubectls()?;
    let [mut here, mut there] = pair.watches(MAPS, "0")?;
    let (from, mut seen) = (pair.version()?, BTreeMap::new());
    here.initial()?;
    there.initial()?;
    for number in 0..OBJECTS {
        let text = "x".repeat(SIZE);
        let map = format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"large-{number}"}},"data":{{"text":"{text}"}}}}"#
        );
        ours.ok_with(&["create", "-n", "default", "-f", "-"], &map)?;
    }
    eventually(CONDITION_TIMEOUT, || {
        let feed = pair.feed(MAPS)?;
        ensure!(feed["closed"] == serde_json::json!([name]), "{feed}");
        ensure!(feed["bytes"].as_u64() < Some(1 << 20), "{feed}");
        Ok(())
    })?;
    let status = site::atoll(&["status", "--admin", &pair.site.site().admin("site-a")?])?;
    let line = status.lines().find(|line| line.starts_with("/api/v1/configmaps ")).context(status.clone())?;
    ensure!(line.ends_with(&format!("not for {name}")), "{status}");

    // The watch ends without an error, and the client resumes, until it has all events.
    let mut last = from;
    while let Some(event) = here.next()? {
        ensure!(event.kind != "ERROR", "{event}");
        note(&mut seen, &mut last, &event);
    }
    let closed = pair.site.metric("atoll_hub_answers_total{answer=\"closed\"}")?;
    let mut here = resume(&ours, &last)?;
    eventually(CONDITION_TIMEOUT, || {
        let now = pair.site.metric("atoll_hub_answers_total{answer=\"closed\"}")?;
        ensure!(now == closed + 1, "the host does not serve the watch");
        Ok(())
    })?;
    while seen.len() < OBJECTS {
        let event = here.next()?.context("the watch at the host ended")?;
        note(&mut seen, &mut last, &event);
    }
    ensure!(seen.values().all(|count| *count == 1), "{seen:?}");
    ours.ok(&["delete", "configmap", "-n", "default", "large-0"])?;
    let change = here.change()?;
    ensure!(change == "DELETED large-0", "{change}");
    // The hub still serves the other cluster.
    theirs.ok(&["create", "configmap", "small", "-n", "default"])?;
    let change = there.change()?;
    ensure!(change == "ADDED small", "{change}");
    [here, there].into_iter().try_for_each(Watch::end)
}

fn resume(kubectl: &Kubectl, version: &str) -> anyhow::Result<Watch> {
    Watch::start(kubectl, MAPS, &format!("watch=1&resourceVersion={version}"))
}

/// Counts the large objects.
fn note(seen: &mut BTreeMap<String, usize>, last: &mut String, event: &super::pair::Event) {
    event.version().clone_into(last);
    if event.name().starts_with("large-") {
        *seen.entry(event.to_string()).or_default() += 1;
    }
}
