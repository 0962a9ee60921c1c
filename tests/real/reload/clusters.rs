//! Changes of `clusters` and `virtualClusters` while requests run.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, site};

use super::watch::Watch;

const AGENT: &str = "site-r";
const STAYS: &str = "reload-stays";
const COMES: &str = "reload-comes";

/// The time limit until both processes use a change.
pub(super) const IN_FORCE: Duration = Duration::from_secs(10);

/// The proxy-server and the agent, and their configurations.
struct World {
    site: Site,
    agent: Process,
    server_file: PathBuf,
    agent_file: PathBuf,
}

pub(super) fn a_cluster_is_added_and_removed(host: &HostCluster) -> anyhow::Result<()> {
    let mut world = World::start(host)?;
    let stays = world.kubectl(STAYS)?;
    let mut watch = Watch::start(&stays)?;

    // Change the file of the agent first. The proxy-server refuses its registration until its own file has the cluster.
    world.edit_agent(&[(STAYS, "hangzhou"), (COMES, "beijing")])?;
    world.site.server.printed("new offers refused")?;
    world.agent.printed("the proxy-server has refused the list of clusters, and keeps the previous one")?;
    stays.ok(&["get", "nodes"])?;

    // A file with a mistake has no effect. The log reports it with its line.
    let good = std::fs::read_to_string(&world.server_file)?;
    std::fs::write(&world.server_file, format!("{good}mistake: 1\n"))?;
    world.site.server.printed(&format!("server.yaml:{}:", good.lines().count() + 1))?;
    watch.goes_on()?;

    site::atoll(&["certs", "cluster", COMES, "--dir", text(world.site.dir())?])?;
    std::fs::write(&world.server_file, format!("{good}- {}\n", entry(COMES)))?;
    let comes = world.kubectl(COMES)?;
    eventually(IN_FORCE, || comes.ok(&["get", "namespace", "kube-system"]).map(drop))?;
    ensure!(comes.ok(&["get", "nodes", "-o", "name"])? == "node/beijing-1\nnode/beijing-2\n");
    comes.ok(&["create", "namespace", "shop"])?;
    comes.ok(&["create", "configmap", "one", "-n", "shop"])?;
    watch.goes_on()?;

    // Remove it from the file of the agent: running requests end, and new requests get the reason.
    let running = comes.start(&["get", "configmaps", "-n", "shop", "--watch"])?;
    world.edit_agent(&[(STAYS, "hangzhou")])?;
    // kubectl exits with 0 at the end of a watch. timeout(1) would exit with 124.
    ensure!(running.wait_with_output()?.status.code() != Some(124), "the watch has not ended with its cluster");
    let refused = comes.fails(&["get", "nodes"])?;
    ensure!(refused.contains(COMES) && refused.contains("agent"), "{refused}");
    watch.goes_on()?;
    // Then remove it from the file of the proxy-server.
    std::fs::write(&world.server_file, &good)?;
    eventually(IN_FORCE, || {
        let refused = comes.fails(&["get", "nodes"])?;
        ensure!(refused.contains("is not a cluster of this proxy-server"), "{refused}");
        Ok(())
    })?;
    watch.end()?;

    // The agent no longer manages its namespaces on the host, and has logged that they still exist.
    world.agent.printed("has left the configuration")?;
    let label = format!("atoll.dev/virtual-cluster={COMES}");
    let left = host.kubectl().ok(&["get", "namespaces", "-l", &label, "-o", "name"])?;
    ensure!(left.lines().count() == 5, "{left}");
    host.kubectl().ok(&["delete", "namespaces", "-l", &label, "--timeout=40s"])?;
    host.kubectl().ok(&["delete", "namespace", &format!("atoll-root-{COMES}"), "--timeout=40s"])?;
    stays.ok(&["get", "nodes"])?;
    Ok(())
}

// === impl World ===

impl World {
    fn start(host: &HostCluster) -> anyhow::Result<Self> {
        let site = Site::start(&[&entry(STAYS)], &[STAYS])?;
        let host = format!("host: {{kubeconfig: {}}}", host.agent_kubeconfig().display());
        let mut agent = site.agent(AGENT, &format!("{host}\n{}", slices(&[(STAYS, "hangzhou")])))?;
        agent.printed("the virtual cluster is provisioned")?;
        agent.printed("tunnel established")?;
        let (server_file, agent_file) = (site.file("server.yaml"), site.file(&format!("{AGENT}.yaml")));
        Ok(Self { site, agent, server_file, agent_file })
    }

    fn kubectl(&self, cluster: &str) -> anyhow::Result<Kubectl> {
        let kubeconfig = self.site.file(&format!("{cluster}.kubeconfig"));
        // The configuration may not contain the cluster yet, so add it to a copy. Only the client CA matters.
        let config = self.site.file("minting.yaml");
        let server = std::fs::read_to_string(&self.server_file)?;
        let server = if server.contains(cluster) { server } else { format!("{server}- {}\n", entry(cluster)) };
        std::fs::write(&config, server)?;
        let (config, output) = (text(&config)?, text(&kubeconfig)?);
        site::atoll(&["kubeconfig", cluster, "--server-config", config, "-o", output])?;
        Ok(Kubectl::new(kubeconfig))
    }

    fn edit_agent(&self, clusters: &[(&str, &'static str)]) -> anyhow::Result<()> {
        let file = std::fs::read_to_string(&self.agent_file)?;
        let list = slices(clusters);
        let rest = file.lines().filter(|line| !line.starts_with("virtualClusters"));
        let lines: Vec<_> = rest.chain([list.as_str(), ""]).collect();
        Ok(std::fs::write(&self.agent_file, lines.join("\n"))?)
    }
}

fn entry(name: &str) -> String {
    let files = format!("clusters/{name}/client-ca");
    format!("{{name: {name}, agents: [{AGENT}], clientCA: {{certificate: {files}.crt, key: {files}.key}}}}")
}

fn slices(clusters: &[(&str, &'static str)]) -> String {
    let slice = |(name, location): &(&str, &'static str)| Nodes::Location(location).entry(name);
    format!("virtualClusters: [{}]", clusters.iter().map(slice).collect::<Vec<_>>().join(", "))
}

fn text(path: &std::path::Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
