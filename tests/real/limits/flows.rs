//! Each virtual cluster is one flow in API Priority and Fairness of the host.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Route, VirtualSite, eventually};

pub(super) fn a_cluster_is_one(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, a, b) = super::site(host, "flow", "")?;
    let admin = site.administrator(&a, Route::Path)?;
    let jane = site.user(&a, "jane")?;
    admin.ok(&["create", "rolebinding", "jane", "-n", "default", "--clusterrole=view", "--user=jane"])?;
    admin.ok(&[
        "create",
        "rolebinding",
        "pods",
        "-n",
        "default",
        "--clusterrole=view",
        "--serviceaccount=default:default",
    ])?;
    let token = admin.ok(&["create", "token", "default", "-n", "default"])?;
    let account = admin.with_token(token.trim(), site.site().file("flow.kubeconfig"))?;
    for caller in [&admin, &jane, &account] {
        // The API server uses a new FlowSchema some time after its creation.
        eventually(CONDITION_TIMEOUT, || {
            let before = [dispatched(&site, &a)?, dispatched(&site, &b)?];
            caller.ok(&["get", "configmaps", "-n", "default"])?;
            let after = [dispatched(&site, &a)?, dispatched(&site, &b)?];
            ensure!(after[0] > before[0] && after[1] == before[1], "{before:?} {after:?}");
            Ok(())
        })?;
    }
    // Clients do not see what the agent has created for them.
    let listed = admin.ok(&["get", "flowschemas,prioritylevelconfigurations", "-o", "name"])?;
    ensure!(!listed.contains("atoll"), "{listed}");
    Ok(())
}

/// The number of requests that the host has dispatched for the FlowSchema of this virtual cluster.
fn dispatched(site: &VirtualSite, cluster: &str) -> anyhow::Result<u64> {
    let schema = format!("flow_schema=\"atoll-{cluster}\",priority_level=\"atoll-virtual-clusters\"");
    let metrics = site.host().kubectl().ok(&["get", "--raw", "/metrics"])?;
    let lines = metrics.lines().filter(|line| line.starts_with("apiserver_flowcontrol_dispatched_requests_total"));
    let counts = lines.filter(|line| line.contains(&schema)).map(|line| {
        let (_, count) = line.rsplit_once(' ').context("no value")?;
        anyhow::Ok(count.parse::<u64>()?)
    });
    counts.sum()
}
