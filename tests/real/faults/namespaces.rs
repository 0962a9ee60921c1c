//! Namespaces with objects that join and leave a virtual cluster while the hub serves its watches.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, eventually, pause};
use serde_json::{Value, json};

use super::pair::{MAPS, Pair, Watch};

/// Watches that begin soon after a move end, because the list before them may be older. Later ones go on.
const SETTLING: Duration = Duration::from_secs(6);

/// Clients of the cluster list again, and those of the other cluster notice nothing.
pub(super) fn that_move_end_watches(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::start(host, "moves")?;
    let [cluster, _] = &pair.names;
    let ([ours, theirs], operator) = (pair.kubectls()?, pair.site.host().kubectl());
    let moved = format!("moved-{cluster}");
    // It is there before it joins, as if it came from a backup.
    operator.ok(&["create", "namespace", &moved])?;
    operator.ok(&["create", "configmap", "old", "-n", &moved])?;
    let [mut here, mut there] = pair.watches(MAPS, "0")?;
    for watch in [&mut here, &mut there] {
        let shown = watch.initial()?;
        ensure!(!shown.contains(&"ADDED old".to_owned()), "{shown:?}");
    }
    // The hub does not support this selector.
    let at_host = format!("watch=1&resourceVersion={}&fieldSelector=spec.nodeName!%3Dnone", pair.version()?);
    let at_host = |path: &str| Watch::start(&ours, path, &at_host);
    let mut joins = at_host("/api/v1/pods")?;

    let label = format!("atoll.dev/virtual-cluster={cluster}");
    operator.ok(&["label", "namespace", &moved, &label, "atoll.dev/namespace=moved"])?;
    for watch in [&mut here, &mut joins] {
        ensure!(watch.change()? == "ERROR 410" && watch.change()? == "END", "a watch goes on without the namespace");
    }
    let old = eventually(CONDITION_TIMEOUT, || ours.ok(&["get", "configmap", "old", "-n", "moved", "-o", "json"]))?;
    pause(SETTLING);
    let old: Value = serde_json::from_str(&old)?;
    let version = old["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let [mut here, other] = pair.watches(MAPS, version)?;
    other.end()?;
    let shown = here.initial()?;
    ensure!(shown.contains(&"ADDED old".to_owned()), "{shown:?}");
    ours.ok(&["create", "configmap", "new", "-n", "moved"])?;
    let change = here.change()?;
    ensure!(change == "ADDED new", "{change}");

    let mut leaves = at_host("/api/v1/namespaces/moved/pods")?;
    let none = json!({"metadata": {"labels": {"atoll.dev/virtual-cluster": null, "atoll.dev/namespace": null}}});
    operator.ok(&["patch", "namespace", &moved, "--type=merge", "-p", &none.to_string()])?;
    for watch in [&mut here, &mut leaves] {
        ensure!(watch.change()? == "ERROR 410" && watch.change()? == "END", "a watch goes on with the namespace");
    }
    eventually(CONDITION_TIMEOUT, || ours.fails(&["get", "configmap", "old", "-n", "moved"]))?;
    pause(SETTLING);
    operator.ok(&["create", "configmap", "later", "-n", &moved])?;
    let [mut here, other] = pair.watches(MAPS, "0")?;
    other.end()?;
    let shown = here.initial()?;
    let foreign = ["ADDED old", "ADDED new", "ADDED later"];
    ensure!(!shown.iter().any(|event| foreign.contains(&event.as_str())), "{shown:?}");
    ours.ok(&["create", "configmap", "last", "-n", "default"])?;
    let change = here.change()?;
    ensure!(change == "ADDED last", "{change}");

    theirs.ok(&["create", "configmap", "theirs", "-n", "default"])?;
    let change = there.change()?;
    ensure!(change == "ADDED theirs", "{change}");
    operator.ok(&["delete", "namespace", &moved, "--wait=false"])?;
    [here, there].into_iter().try_for_each(Watch::end)
}
