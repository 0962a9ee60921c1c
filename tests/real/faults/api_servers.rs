//! A host cluster with two API servers, of which one dies.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, kubectl, site};
use libtest_mimic::Trial;

use super::{Informer, watch};

const ENTRY: &str = "{name: two-servers, agents: [site-t], clientCA: {certificate: clusters/two-servers/client-ca.crt, \
                     key: clusters/two-servers/client-ca.key}}";

pub(super) fn trial() -> Trial {
    crate::trial::trial("faults::the_next_api_server_takes_over", the_next_api_server_takes_over)
}

fn the_next_api_server_takes_over() -> anyhow::Result<()> {
    let host = HostCluster::up(2)?;
    let servers = host.api_servers()?;
    let site = Site::start(&[ENTRY], &["two-servers"])?;
    let mut agent = site.agent(
        "site-t",
        &format!(
            "host: {{kubeconfig: {}, servers: [\"https://{}\"]}}\n\
             virtualClusters: [{}]",
            host.agent_kubeconfig().display(),
            servers[1],
            Nodes::Location("hangzhou").entry("two-servers")
        ),
    )?;
    agent.printed("the virtual cluster is provisioned")?;
    agent.printed("tunnel established")?;
    let kubeconfig = site.file("two-servers.kubeconfig");
    let config = site.file("server.yaml");
    let (config, output) = (config.to_str().context("path")?, kubeconfig.to_str().context("path")?);
    site::atoll(&["kubeconfig", "two-servers", "--server-config", config, "-o", output])?;
    let kubectl = Kubectl::new(kubeconfig);
    kubectl.ok(&["create", "namespace", "informer"])?;
    let informer = Informer::start(&kubectl)?;
    let mut broken = watch(&kubectl)?;

    // The agent's requests go to the first of its list.
    host.kill("kube-apiserver-1")?;
    // The very next one, of a client that does not try again.
    kubectl.ok(&["create", "configmap", "after", "-n", "informer"])?;
    kubectl.ok(&["get", "nodes"])?;
    // A watch ends with its API server, as anywhere, so that clients go on from where they were.
    eventually(Duration::from_secs(10), || broken.try_wait()?.context("the watch hangs"))?;
    let mut again = watch(&kubectl)?;
    ensure!(again.try_wait()?.is_none());
    kubectl::end(again)?;
    informer.missed_nothing()?;
    drop(agent);
    Ok(())
}
