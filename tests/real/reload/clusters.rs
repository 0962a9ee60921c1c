//! Changes of `clusters` and `virtualClusters` while requests run.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, site};
use serde_json::Value;

use super::watch::Watch;

const AGENT: &str = "site-r";
const STAYS: &str = "reload-stays";
const COMES: &str = "reload-comes";
/// A physical cluster that only the agent has.
const REFUSED: &str = "reload-refused";

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

    // The proxy-server has refused one cluster at the registration, and serves the other.
    world.are_refused(&[REFUSED])?;
    // Change the file of the agent first. The proxy-server refuses the new cluster until its own file has it.
    world.edit_agent(&[(STAYS, "hangzhou"), (COMES, "beijing")])?;
    world.site.server.printed(&format!("clusters=[\"{COMES}\", \"{REFUSED}\"]"))?;
    world.agent.printed("the proxy-server refuses these clusters; the others are not affected")?;
    world.are_refused(&[COMES, REFUSED])?;
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
    world.are_refused(&[REFUSED])?;
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
    // The root namespace owned the FlowSchema.
    let flow_schema = format!("atoll-{COMES}");
    eventually(IN_FORCE, || host.kubectl().fails(&["get", "flowschema", &flow_schema]).map(drop))?;
    stays.ok(&["get", "nodes"])?;
    Ok(())
}

// === impl World ===

impl World {
    fn start(host: &HostCluster) -> anyhow::Result<Self> {
        let site = Site::start(&[&entry(STAYS)], &[STAYS])?;
        let host = format!("host: {{kubeconfig: {}}}", host.agent_kubeconfig().display());
        let refused = format!("physicalClusters: [{{name: {REFUSED}, apiServer: \"127.0.0.1:1\"}}]");
        let mut agent = site.agent(AGENT, &format!("{host}\n{refused}\n{}", slices(&[(STAYS, "hangzhou")])))?;
        agent.printed("the virtual cluster is provisioned")?;
        agent.printed("tunnel established")?;
        let (server_file, agent_file) = (site.file("server.yaml"), site.file(&format!("{AGENT}.yaml")));
        Ok(Self { site, agent, server_file, agent_file })
    }

    /// Waits until the proxy-server refuses exactly these clusters, in the status and the metrics of both halves.
    fn are_refused(&self, clusters: &[&str]) -> anyhow::Result<()> {
        let file = std::fs::read_to_string(&self.agent_file)?;
        let (_, admin) = file.split_once("admin: 127.0.0.1:").context("no admin listener")?;
        let agent: u16 = admin.split_once('}').context("no admin listener")?.0.parse()?;
        let server = self.site.ports.admin;
        eventually(IN_FORCE, || {
            for (port, key) in [(agent, "refusedClusters"), (server, "refusedOffers")] {
                let status: Value = serde_json::from_str(&page(port, "status")?)?;
                let named: Vec<_> = status[key].as_array().into_iter().flatten().map(|one| &one["cluster"]).collect();
                ensure!(named == clusters, "{status}");
            }
            let metrics = page(agent, "metrics")?;
            for cluster in clusters {
                let series = format!("atoll_refused_clusters{{cluster=\"{cluster}\",reason=\"NotGranted\"}} ");
                ensure!(metrics.contains(&series), "{series} is not in:\n{metrics}");
            }
            let count = format!("atoll_refused_offers{{agent=\"{AGENT}\",reason=\"NotGranted\"}} {}\n", clusters.len());
            let metrics = page(server, "metrics")?;
            ensure!(metrics.contains(&count), "{count} is not in:\n{metrics}");
            Ok(())
        })
    }

    fn kubectl(&self, cluster: &str) -> anyhow::Result<Kubectl> {
        let kubeconfig = self.site.file(&format!("{cluster}.kubeconfig"));
        // The configuration may not contain the cluster yet, so add it to a copy. Only the client CA matters.
        let config = self.site.file("minting.yaml");
        let server = std::fs::read_to_string(&self.server_file)?;
        let server = if server.contains(cluster) { server } else { format!("{server}- {}\n", entry(cluster)) };
        std::fs::write(&config, server)?;
        let (config, output) = (text(&config)?, text(&kubeconfig)?);
        site::atoll(&["kubeconfig", cluster, "--admin", "--server-config", config, "-o", output])?;
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

/// A page of an admin listener.
fn page(port: u16, path: &str) -> anyhow::Result<String> {
    let url = format!("http://127.0.0.1:{port}/{path}");
    let output = Command::new("curl").args(["-sS", "--fail", "--max-time", "10", &url]).output()?;
    ensure!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn entry(name: &str) -> String {
    site::entry(name, AGENT)
}

fn slices(clusters: &[(&str, &'static str)]) -> String {
    let slice = |(name, location): &(&str, &'static str)| Nodes::Location(location).entry(name);
    format!("virtualClusters: [{}]", clusters.iter().map(slice).collect::<Vec<_>>().join(", "))
}

fn text(path: &std::path::Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
