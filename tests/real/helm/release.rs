//! Releases of both programs, from their installation until everything is deleted.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, eventually, paths, site};

use super::agent::Agent;
use super::left::{self, Snapshot};
use super::{AGENT, Admin, NAMESPACE, SERVER, chart, karmada, objects, previous, text, values_of};
use crate::manifests::{self, Manifests};

/// The objects of the operator.
const SECRETS: [&str; 2] =
    ["Secret atoll-system/proxy-agent-identity", "Secret atoll-system/proxy-server-certificates"];

/// The virtual clusters of the release: one, and both.
const ONE: &str =
    r#"proxyAgent.config.virtualClusters=[{"name": "ke-beijing", "nodeSelector": {"location": "beijing"}}]"#;
const BOTH: &str = r#"proxyAgent.config.virtualClusters=[{"name": "ke-beijing", "nodeSelector": {"location": "beijing"}},
    {"name": "ke-hangzhou", "nodeSelector": {"location": "hangzhou"}}]"#;
const CLUSTERS: [&str; 2] = ["ke-beijing", "ke-hangzhou"];

pub(super) fn leaves_only_what_the_readme_says() -> anyhow::Result<()> {
    let host = HostCluster::up(1)?;
    let admin = Admin::of(&host);
    prepare(&admin)?;
    karmada::rights(&admin)?;

    let before = Snapshot::take(&admin.kubectl)?;
    // The host would create no pods that the strictest of the Pod Security Standards refuses.
    admin.kubectl.ok(&["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"])?;
    let certificates = manifests::certificates()?;
    let [of_agent, of_server] = &manifests::ALL;
    of_server.create_secret(&admin.kubectl, certificates.path())?;
    missing_secrets_are_named(&admin)?;
    of_agent.create_secret(&admin.kubectl, certificates.path())?;
    objects::equal_the_manifests(&admin)?;
    objects::of_other_values_are_valid(&admin)?;

    let folder = tempfile::Builder::new().prefix("atoll-helm-").tempdir()?;
    let previous = previous::write(folder.path())?;
    let agent = std::thread::scope(|scope| {
        let cloud = scope.spawn(|| cloud(&admin, &previous, of_server));
        let agent = edge(&admin, &previous, &host, of_agent);
        cloud.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        agent
    })?;

    for release in ["edge", "cloud"] {
        admin.helm(&["uninstall", release, "--wait"])?;
    }
    agent.end()?;
    left::operators_and_agents(&admin.kubectl, &before, &SECRETS, &CLUSTERS)?;
    follow_the_readme(&admin)?;
    left::exactly(&admin.kubectl, &before, &SECRETS)
}

/// Removes Atoll from the host, and adds ServiceMonitors.
fn prepare(admin: &Admin) -> anyhow::Result<()> {
    let kubectl = &admin.kubectl;
    // The namespace of the releases stays, because its deletion takes five seconds.
    let both = "atoll-proxy-agent,atoll-proxy-agent-custom-resources";
    for (kind, names) in [("clusterrole", both), ("clusterrolebinding", both), ("serviceaccount", "proxy-agent")] {
        admin.kubectl(&[&["delete", kind][..], &names.split(',').collect::<Vec<_>>()].concat())?;
    }
    kubectl.ok(&["create", "-f", text(&paths::workspace().join("target/kube/servicemonitors.yaml"))?])?;
    let established = ["wait", "--for=condition=Established", "crd/servicemonitors.monitoring.coreos.com"];
    // The command fails as long as the definition has no conditions.
    eventually(CONDITION_TIMEOUT, || kubectl.ok(&established))?;
    if everywhere_kubeedge() {
        // The Deployments do not tolerate the taint of edge nodes.
        kubectl.ok(&["taint", "nodes", "--all", "node-role.kubernetes.io/edge-"])?;
    }
    Ok(())
}

fn missing_secrets_are_named(admin: &Admin) -> anyhow::Result<()> {
    for (set, secret, is_missing) in
        [(AGENT, "proxy-agent-identity", true), (SERVER, "proxy-server-certificates", false)]
    {
        let values = values_of(&chart(), set)?;
        let printed = admin.helm(&["install", "notes", text(&chart())?, "-f", &values, "--dry-run=server"])?;
        let is_named = printed.contains(&format!("The pods wait for the Secret {secret}"));
        ensure!(is_named == is_missing, "{set}: {printed}");
    }
    Ok(())
}

/// A proxy-server that was deployed with kustomize. It becomes a release, and gets the chart of today.
fn cloud(admin: &Admin, previous: &Path, half: &Manifests) -> anyhow::Result<()> {
    half.apply(&admin.kubectl)?;
    // Helm waits for the address of the load balancer. This host has no controller that sets it.
    let address = r#"{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.100"}]}}}"#;
    admin.kubectl(&["patch", "service", "proxy-server", "--subresource=status", "-p", address])?;
    admin.change(&["install", "--take-ownership", "--wait", "--timeout=45s"], "cloud", previous, SERVER, &[])?;
    admin.change(&["upgrade"], "cloud", &chart(), SERVER, &[])?;
    half.check(&admin.kubectl, Path::new("a proxy-server has none"))
}

/// A release with an agent: installed, upgraded, changed and rolled back. The agent runs with what the release provides.
fn edge(admin: &Admin, previous: &Path, host: &HostCluster, half: &Manifests) -> anyhow::Result<Agent> {
    let mut agent = Agent::prepare(&CLUSTERS)?;
    let values = agent.values()?;
    let with = |more: &[&'static str]| [&["-f", values.as_str()][..], more].concat();
    admin.change(&["install", "--wait", "--timeout=45s"], "edge", previous, AGENT, &with(&["--set-json", ONE]))?;
    admin.change(&["upgrade"], "edge", &chart(), AGENT, &with(&["--set-json", ONE]))?;
    let (config, pods) = (admin.agent_config()?, admin.revision(half)?);
    agent.start(admin, host)?;

    // A new virtual cluster needs no new pods. Another `drain` does.
    admin.change(&["upgrade"], "edge", &chart(), AGENT, &with(&["--set-json", BOTH]))?;
    ensure!(admin.revision(half)? == pods, "another list of virtual clusters has restarted the pods");
    agent.reload(admin)?;
    let slow = ["--set-json", BOTH, "--set", "proxyAgent.config.drain=3s"];
    admin.change(&["upgrade"], "edge", &chart(), AGENT, &with(&slow))?;
    ensure!(admin.revision(half)? == pods + 1, "another `drain` has not restarted the pods exactly once");
    half.check(&admin.kubectl, &admin.agent_kubeconfig(host)?)?;
    agent.use_cluster(CLUSTERS[0])?;

    // The first revision is that of the previous chart.
    admin.helm(&["rollback", "edge", "2", "--wait", "--timeout=45s"])?;
    admin.is_stored("edge")?;
    let now = admin.agent_config()?;
    ensure!(now == config, "after the rollback, the configuration is\n{now}\ninstead of\n{config}");
    ensure!(admin.revision(half)? == pods + 2, "the rollback has not restarted the pods exactly once");
    Ok(agent)
}

/// Runs the commands of the section "Uninstall" of the chart's README, after the agent has ended.
fn follow_the_readme(admin: &Admin) -> anyhow::Result<()> {
    let readme = std::fs::read_to_string(chart().join("README.md"))?;
    let (_, section) = readme.split_once("\n## Uninstall\n").context("no section \"Uninstall\"")?;
    ensure!(section.contains("`atoll clusters remove CLUSTER --host-kubeconfig KUBECONFIG`"), "{section}");
    let kubeconfig = text(admin.kubectl.kubeconfig())?;
    let remove = |cluster| site::atoll(&["clusters", "remove", cluster, "--host-kubeconfig", kubeconfig, "--yes"]);
    // At the same time, because each takes ten seconds.
    std::thread::scope(|scope| {
        for thread in CLUSTERS.map(|cluster| scope.spawn(move || remove(cluster))) {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        anyhow::Ok(())
    })?;
    ensure!(section.contains("`kubectl delete crd NAME`"), "{section}");
    // No virtual cluster is left that uses it.
    admin.kubectl.fails(&["get", "crd", super::agent::DEFINITION])?;

    let (_, commands) = section.split_once("\n```sh\n").context("no commands")?;
    let (commands, _) = commands.split_once("\n```").context("no end of the commands")?;
    let kubectl = paths::component("kubectl");
    let folder = kubectl.parent().context("kubectl has no folder")?;
    // Hosts before Kubernetes 1.36 do not serve the kinds of one of the commands.
    let options = if everywhere_kubeedge() { "-ux" } else { "-eux" };
    let path = format!("{}:{}", text(folder)?, std::env::var("PATH")?);
    let output = Command::new("timeout")
        .args(["60", "bash", options, "-c", commands])
        .env("KUBECONFIG", kubeconfig)
        .env("PATH", path)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
