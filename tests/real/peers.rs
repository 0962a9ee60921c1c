//! Proxy-servers that forward requests to each other.

use std::process::Child;
use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::site::Ports;
use atoll_tests::{Balancer, Curl, HostCluster, Kubectl, Nodes, Reads, Site, eventually, kubectl, site};
use libtest_mimic::Trial;
use tokio::time::Instant;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("peers::any_proxy_server_serves_any_cluster", host, any_proxy_server_serves_any_cluster),
        case("peers::a_physical_cluster_is_reached_through_both", host, a_physical_cluster_is_reached_through_both),
        case("peers::a_rolling_restart_fails_no_read", host, a_rolling_restart),
        case("peers::clients_are_served_after_a_proxy_server_is_killed", host, after_one_is_killed),
    ]
}

fn agent(site: &Site, host: &HostCluster, cluster: &str, file: &str, servers: &[String]) -> anyhow::Result<Process> {
    let body = format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        Nodes::Location("beijing").entry(cluster)
    );
    let mut agent = site.agent_of(servers, "site-p", file, &body)?;
    agent.printed("tunnel established")?;
    agent.printed("the virtual cluster is provisioned")?;
    Ok(agent)
}

/// A client-go program runs its checks against a proxy-server to which no agent is connected: reads, writes, watches,
/// exec and port-forward by WebSocket and SPDY. All results are the same as with a connected agent.
fn any_proxy_server_serves_any_cluster(host: &HostCluster) -> anyhow::Result<()> {
    const CLUSTER: &str = "peers";
    let mut site = Site::start_pair(&[&site::entry(CLUSTER, "site-p")], &[CLUSTER], "")?;
    let servers = [format!("127.0.0.1:{}", site.ports.agents)];
    let mut agent = agent(&site, host, CLUSTER, "site-p", &servers)?;
    let kubectl = site.administrator(CLUSTER)?;
    served(&kubectl)?;
    kubectl::conformance("atoll-clients", &kubectl, 25)?;

    // While the agent is away, the client gets the same message.
    agent.kill()?;
    eventually(CONDITION_TIMEOUT, || {
        let refused = kubectl.run(&["get", "--raw", "/api/v1/nodes", "--request-timeout=2s"])?;
        ensure!(refused.code != 0 && refused.stderr.contains("has no agent connected"), "{}", refused.stderr);
        Ok(())
    })?;
    let _agent = self::agent(&site, host, CLUSTER, "site-p", &servers)?;
    served(&kubectl)?;

    // When the other proxy-server starts again, the tunnels between the two and the agent come back.
    site.other()?.server.kill()?;
    site.other()?.restart()?;
    served(&kubectl)
}

fn a_physical_cluster_is_reached_through_both(host: &HostCluster) -> anyhow::Result<()> {
    let address = &host.api_servers()?[0];
    let entry = format!("{{name: branch-p, agents: [site-p], mode: physical, apiServer: \"{address}\"}}");
    let site = Site::start_pair(&[&entry], &[], "")?;
    let body = format!("physicalClusters: [{{name: branch-p, apiServer: \"{address}\"}}]");
    let mut agent = site.agent("site-p", &body)?;
    agent.printed("tunnel established")?;
    let kubectl = site.physical(host.kubectl().kubeconfig())?;
    served(&kubectl)?;
    let watch = kubectl.start(&["get", "ns", "-w", "-o", "name"])?;
    kubectl.ok(&["create", "ns", "physical-peer"])?;
    let anywhere = r#"--overrides={"spec": {"tolerations": [{"operator": "Exists"}]}}"#;
    kubectl.ok(&["run", "shell", "--image=busybox", "-n", "physical-peer", anywhere])?;
    kubectl.ok(&["wait", "pod/shell", "--for=condition=Ready", "-n", "physical-peer", "--timeout=30s"])?;
    let cat = kubectl.ok_with(&["exec", "-i", "shell", "-n", "physical-peer", "--", "cat"], "typed\n")?;
    ensure!(cat == "typed\n", "{cat:?}");
    ensure!(kubectl::end(watch)?.is_empty(), "the watch has failed");
    kubectl.ok(&["delete", "ns", "physical-peer", "--wait=false"]).map(drop)
}

/// Load balancers in front of two proxy-servers. They check the probes of the proxy-servers.
struct Balanced {
    agents: Balancer,
    clients: Balancer,
}

impl Balanced {
    fn start(site: &mut Site) -> anyhow::Result<Self> {
        let pair = [site.other()?.first, site.other()?.ports];
        let balancer = |port: fn(&Ports) -> u16| {
            let address = |port: u16| format!("127.0.0.1:{port}");
            Balancer::start_checked(pair.iter().map(|ports| (address(port(ports)), address(ports.probes))).collect())
        };
        Ok(Self { agents: balancer(|ports| ports.agents)?, clients: balancer(|ports| ports.endpoint)? })
    }

    /// kubectl that knows only the address of the load balancer.
    fn administrator(&self, site: &Site, cluster: &str) -> anyhow::Result<Kubectl> {
        let (config, file) = (site.file("server.yaml"), site.file("balanced.kubeconfig"));
        let (config, file) = (config.to_str().context("not UTF-8")?, file.to_str().context("not UTF-8")?);
        site::atoll(&["kubeconfig", cluster, "--admin", "--direct", "--server-config", config, "-o", file])?;
        let kubectl = Kubectl::new(file.into());
        let server = format!("--server=https://{}/clusters/{cluster}", self.clients.address());
        kubectl.ok(&["config", "set-cluster", cluster, &server])?;
        Ok(kubectl)
    }
}

/// Agents and clients know only the address of a load balancer. When one of two proxy-servers is killed, clients that try again are
/// soon served, wherever the agent was connected. Prints how soon.
#[expect(clippy::print_stdout, reason = "the time is for whoever reads the log of the suite")]
fn after_one_is_killed(host: &HostCluster) -> anyhow::Result<()> {
    const CLUSTER: &str = "balanced";
    let mut site = Site::start_pair(&[&site::entry(CLUSTER, "site-p")], &[CLUSTER], "")?;
    let balanced = Balanced::start(&mut site)?;
    let _agent = agent(&site, host, CLUSTER, "site-p", &[balanced.agents.address()])?;
    let kubectl = balanced.administrator(&site, CLUSTER)?;
    served(&kubectl)?;
    // More rounds would measure the back-off of the agent, which grows until a tunnel has lasted for ten seconds.
    for round in 0..2 {
        let watches: Vec<Child> = (0..3).map(|_| kubectl.start(&["get", "ns", "-w"])).collect::<anyhow::Result<_>>()?;
        if round == 0 {
            site.server.kill()?;
        } else {
            site.other()?.server.kill()?;
        }
        let killed = Instant::now();
        eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", "ns", "--request-timeout=1s"]).map(drop))?;
        println!("served {:?} after a proxy-server was killed", killed.elapsed());
        for watch in watches {
            kubectl::end(watch)?;
        }
        if round == 0 {
            site.restart_server()?;
        } else {
            site.other()?.restart()?;
        }
        served(&kubectl)?;
    }
    Ok(())
}

/// Two proxy-servers and two agents are restarted one after the other, with a load balancer in front. Every read
/// succeeds, and watches end without an error.
fn a_rolling_restart(host: &HostCluster) -> anyhow::Result<()> {
    const CLUSTER: &str = "rolling";
    // Half of it is for the agents, which move within a second.
    let mut site = Site::start_pair(&[&site::entry(CLUSTER, "site-p")], &[CLUSTER], "drain: 8s")?;
    let balanced = Balanced::start(&mut site)?;
    let servers = [balanced.agents.address()];
    let start = |site: &Site, file| agent(site, host, CLUSTER, file, &servers);
    let mut agents = [start(&site, "site-p-1")?, start(&site, "site-p-2")?];
    let kubectl = balanced.administrator(&site, CLUSTER)?;
    served(&kubectl)?;
    let reads = Reads::start(&kubectl, &balanced.clients.address(), CLUSTER)?;
    let watches: Vec<Child> = (0..4).map(|_| kubectl.start(&["get", "ns", "-w"])).collect::<anyhow::Result<_>>()?;

    site.server.terminate()?;
    site.restart_server()?;
    // As a Deployment does, restart the next one when this one is ready.
    ready(site.ports.probes)?;
    site.other()?.server.terminate()?;
    site.other()?.restart()?;
    ready(site.other()?.ports.probes)?;
    // With other names, because the logs of the first ones say that they are provisioned.
    for (agent, file) in agents.iter_mut().zip(["site-p-3", "site-p-4"]) {
        agent.terminate()?;
        *agent = start(&site, file)?;
    }
    reads.all_succeeded()?;
    for watch in watches {
        let shown = kubectl::end(watch)?;
        ensure!(shown.is_empty(), "{shown}");
    }
    Ok(())
}

fn ready(probes: u16) -> anyhow::Result<()> {
    eventually(CONDITION_TIMEOUT, || {
        let response = Curl::plain(&format!("127.0.0.1:{probes}")).get("/readyz")?;
        ensure!(response.code == 200, "{response:?}");
        Ok(())
    })
}

fn served(kubectl: &Kubectl) -> anyhow::Result<()> {
    eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", "ns", "--request-timeout=2s"]).map(drop))
}
