//! Watches of many virtual clusters that share one watch of the host, while connections break and processes die.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Nodes, Site, eventually, site};
use libtest_mimic::Trial;

use super::Informer;
use crate::case;

/// The number of virtual clusters, unless this environment variable says otherwise.
const CLUSTERS: (&str, usize) = ("ATOLL_TEST_CLUSTERS", 8);

pub(super) fn trial(host: Option<&Arc<HostCluster>>) -> Trial {
    case("faults::informers_of_many_clusters_miss_no_event", host, informers_of_many_clusters_miss_no_event)
}

fn informers_of_many_clusters_miss_no_event(host: &HostCluster) -> anyhow::Result<()> {
    let count = std::env::var(CLUSTERS.0).ok().and_then(|count| count.parse().ok()).unwrap_or(CLUSTERS.1);
    let names: Vec<String> = (0..count).map(|number| format!("shared-{number}")).collect();
    let entries: Vec<String> = names.iter().map(|name| site::entry(name, "site-s")).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let site = Site::start(&entries, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let clusters: Vec<String> = names.iter().map(|name| Nodes::Location("hangzhou").entry(name)).collect();
    let body = format!(
        "host: {{kubeconfig: {}}}\nhub: {{memoryMiB: 32}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        clusters.join(", ")
    );
    let mut agent = site.agent("site-s", &body)?;
    let mut informers = Vec::new();
    for name in &names {
        let kubectl = site.administrator(name)?;
        eventually(Duration::from_secs(60), || kubectl.ok(&["create", "namespace", "informer"]))?;
        informers.push(Informer::start_with(&kubectl, "20s", "250ms")?);
    }
    // Watches that began before the feed existed are at the host. When they end, the hub serves the next ones.
    let served = watches_of_config_maps(&site)?;
    ensure!(served + 2 >= count, "{served} of {count} watches are shared");
    // Clients resume, or list again. The agent lists once.
    agent.kill()?;
    agent = site.agent("site-s", &body)?;
    for informer in informers {
        informer.missed_nothing()?;
    }
    check(&mut agent)
}

/// The number of watches of ConfigMaps that the agent serves from its hub.
fn watches_of_config_maps(site: &Site) -> anyhow::Result<usize> {
    let status = site::atoll(&["status", "--admin", &site.admin("site-s")?])?;
    let line = status.lines().find(|line| line.starts_with("/api/v1/configmaps ")).context(status.clone())?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
}

fn check(agent: &mut Process) -> anyhow::Result<()> {
    ensure!(!agent.log().contains("panicked"), "{}", agent.log());
    Ok(())
}
