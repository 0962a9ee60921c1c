//! The connection between the agent and the host breaks while the hub serves watches.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::virtual_site::Sharing;
use atoll_tests::{Balancer, HostCluster, eventually};

use super::pair::{MAPS, Pair, Watch};

/// The number of breaks.
const BREAKS: usize = 3;

/// The watches of clients go on, and have each event once.
pub(super) fn are_invisible(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let servers = host.api_servers()?;
    let first = servers.first().context("no API server")?.clone();
    let balancer = Balancer::start(servers)?;
    let kubeconfig = host.dir().join("breaks.kubeconfig");
    let text = std::fs::read_to_string(host.agent_kubeconfig())?;
    std::fs::write(&kubeconfig, text.replace(&first, &balancer.address()))?;
    let pair = Pair::with(host, "breaks", Sharing { kubeconfig: Some(kubeconfig), ..Sharing::default() })?;
    let (operator, namespaces) =
        (pair.site.host().kubectl(), pair.names.each_ref().map(|name| format!("default-{name}")));
    let mut watches = pair.watches(MAPS, "0")?;
    for watch in &mut watches {
        watch.initial()?;
    }
    let answers = pair.site.metric("atoll_hub_answers_total")?;
    for number in 0..BREAKS {
        let before = balancer.forwarded();
        ensure!(balancer.cut() > 0, "the agent has no connection");
        // Directly at the host, so that the agent learns of it only from its watch.
        for namespace in &namespaces {
            operator.ok(&["create", "configmap", &format!("break-{number}"), "-n", namespace])?;
        }
        for watch in &mut watches {
            let change = watch.change()?;
            ensure!(change == format!("ADDED break-{number}"), "{change}");
        }
        eventually(CONDITION_TIMEOUT, || {
            ensure!(balancer.forwarded() > before, "there is no new connection");
            Ok(())
        })?;
    }
    ensure!(pair.site.metric("atoll_hub_answers_total")? == answers, "a client had to watch again");
    watches.into_iter().try_for_each(Watch::end)
}
