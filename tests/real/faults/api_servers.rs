//! A host cluster with two API servers, one of which fails.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, kubectl, site};
use libtest_mimic::Trial;

use super::{Informer, watch};

const ENTRY: &str = "{name: two-servers, agents: [site-t], clientCA: {certificate: clusters/two-servers/client-ca.crt, \
                     key: clusters/two-servers/client-ca.key}}";

pub(super) fn trial() -> Trial {
    crate::trial::trial("faults::another_api_server_is_used", another_api_server_is_used)
}

fn another_api_server_is_used() -> anyhow::Result<()> {
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
    site::atoll(&["kubeconfig", "two-servers", "--admin", "--server-config", config, "-o", output])?;
    let kubectl = Kubectl::new(kubeconfig);
    kubectl.ok(&["create", "namespace", "informer"])?;
    let informer = Informer::start(&kubectl)?;
    let mut broken = watch(&kubectl)?;

    // The agent sends requests to the first API server in its list.
    host.kill("kube-apiserver-1")?;
    // The next request succeeds, although this client does not retry.
    kubectl.ok(&["create", "configmap", "after", "-n", "informer"])?;
    kubectl.ok(&["get", "nodes"])?;
    // A watch ends with its API server, so that clients continue from their last resource version.
    eventually(Duration::from_secs(10), || broken.try_wait()?.context("the watch does not end"))?;
    let mut again = watch(&kubectl)?;
    ensure!(again.try_wait()?.is_none());
    kubectl::end(again)?;
    informer.missed_nothing()?;
    drop(agent);
    Ok(())
}
