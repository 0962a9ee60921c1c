//! Names of virtual clusters that could cause the same host names.

use std::process::Command;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, paths, site};

use super::clusters::IN_FORCE;

const AGENT: &str = "site-n";
/// Namespace `shop-long` of this cluster and namespace `shop` of the next one have the same host name.
const SHORT: &str = "meets";
const LONG: &str = "long-meets";
const OTHER: &str = "met";

/// `atoll check`, a reload and a start refuse both names together. After a refused reload, the previous configuration
/// applies.
pub(super) fn that_meet_are_refused(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[&entry(OTHER)], &[OTHER])?;
    let mut agent = start(&site, host, &[OTHER])?;
    agent.printed("tunnel established")?;
    let kubectl = kubectl(&site, OTHER)?;
    eventually(IN_FORCE, || kubectl.ok(&["get", "nodes"]).map(drop))?;

    let file = site.file(&format!("{AGENT}.yaml"));
    edit(&site, &[OTHER, SHORT, LONG])?;
    let line = format!("{AGENT}.yaml:{}:", line_of(&site)?);
    let mistake = format!("the name of virtual cluster {LONG} ends with `-{SHORT}`");
    let checked = Command::new(paths::binary("atoll")).args(["check", text(&file)?]).output()?;
    let output = String::from_utf8_lossy(&checked.stdout);
    ensure!(checked.status.code() == Some(1) && output.contains(&line) && output.contains(&mistake), "{output}");
    agent.printed(&mistake)?;
    kubectl.ok(&["get", "nodes"])?;
    ensure!(host.kubectl().fails(&["get", "namespace", &format!("atoll-root-{SHORT}")])?.contains("NotFound"));

    let refused = Command::new(paths::binary("proxy-agent")).args(["--config", text(&file)?]).output()?;
    let output = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && output.contains(&line) && output.contains(&mistake), "{output}");
    Ok(())
}

/// A cluster has left the configuration, and its namespaces are still on the host. A new cluster whose namespaces could have the
/// same names is not created.
pub(super) fn of_clusters_that_left_stay_theirs(host: &HostCluster) -> anyhow::Result<()> {
    let (later, left) = ("heir", "late-heir");
    let site = Site::start(&[&entry(later), &entry(left)], &[later, left])?;
    let mut agent = start(&site, host, &[left])?;
    agent.printed("the virtual cluster is provisioned")?;
    let theirs = kubectl(&site, left)?;
    eventually(IN_FORCE, || theirs.ok(&["create", "namespace", "shop"]).map(drop))?;
    theirs.ok(&["create", "configmap", "kept", "-n", "shop"])?;

    edit(&site, &[later])?;
    agent.printed("the host has the virtual cluster late-heir")?;
    let ours = kubectl(&site, later)?;
    for args in [&["get", "namespace", "shop-late"][..], &["get", "configmaps", "-n", "shop-late"]] {
        let shown = ours.fails(args)?;
        ensure!(!shown.contains("kept"), "{shown}");
    }
    let roots = host.kubectl().ok(&["get", "namespaces", "-o", "name"])?;
    ensure!(!roots.lines().any(|name| name == "namespace/atoll-root-heir"), "{roots}");

    // The cluster is added again, and has its objects.
    edit(&site, &[left])?;
    eventually(IN_FORCE, || theirs.ok(&["get", "configmap", "kept", "-n", "shop"]).map(drop))
}

/// Earlier versions shortened long names with fewer digits. Existing namespaces keep such names, and new ones do not
/// get them.
pub(super) fn that_were_shortened_otherwise_are_kept(host: &HostCluster) -> anyhow::Result<()> {
    let cluster = "formerly";
    let (old, new) = ("n".repeat(63), "m".repeat(63));
    // printf '%s\0formerly' nnn...n | sha256sum; printf '%s\0formerly' mmm...m | sha256sum | xxd -r -p | base32
    let (old_host, new_host) =
        (format!("{}-bc622d9fd8", "n".repeat(52)), format!("{}-e6bmcjyhwigvnqyzq4kx", "m".repeat(42)));
    let of_the_host = host.kubectl();
    let labels = format!("{{atoll.dev/virtual-cluster: {cluster}, atoll.dev/namespace: {old}}}");
    let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {old_host}, labels: {labels}}}}}");
    of_the_host.ok_with(&["create", "-f", "-"], &namespace)?;
    of_the_host.ok(&["create", "configmap", "kept", "-n", &old_host])?;

    let site = Site::start(&[&entry(cluster)], &[cluster])?;
    let _agent = start(&site, host, &[cluster])?;
    let kubectl = kubectl(&site, cluster)?;
    eventually(IN_FORCE, || kubectl.ok(&["get", "configmap", "kept", "-n", &old]).map(drop))?;
    kubectl.ok(&["create", "configmap", "more", "-n", &old])?;
    let there = kubectl.fails(&["create", "namespace", &old])?;
    ensure!(there.contains("(AlreadyExists)"), "{there}");
    kubectl.ok(&["create", "namespace", &new])?;
    let label = format!("atoll.dev/namespace={new}");
    let found = of_the_host.ok(&["get", "namespaces", "-l", &label, "-o", "name"])?;
    ensure!(found == format!("namespace/{new_host}\n"), "{found}");

    // After its deletion, a new namespace gets a new name.
    kubectl.ok(&["delete", "namespace", &old])?;
    kubectl.ok(&["create", "namespace", &old])?;
    let gone = of_the_host.fails(&["get", "namespace", &old_host])?;
    ensure!(gone.contains("NotFound"), "{gone}");
    Ok(())
}

fn start(site: &Site, host: &HostCluster, clusters: &[&str]) -> anyhow::Result<Process> {
    let host = format!("host: {{kubeconfig: {}}}", host.agent_kubeconfig().display());
    site.agent(AGENT, &format!("{host}\n{}", slices(clusters)))
}

fn edit(site: &Site, clusters: &[&str]) -> anyhow::Result<()> {
    let file = site.file(&format!("{AGENT}.yaml"));
    let text = std::fs::read_to_string(&file)?;
    let before = text.find("virtualClusters:").context("the list is last in the file")?;
    Ok(std::fs::write(&file, format!("{}{}\n", &text[..before], slices(clusters)))?)
}

/// The line of the last cluster in the configuration.
fn line_of(site: &Site) -> anyhow::Result<usize> {
    Ok(std::fs::read_to_string(site.file(&format!("{AGENT}.yaml")))?.trim_end().lines().count())
}

fn slices(clusters: &[&str]) -> String {
    let slices = clusters.iter().map(|name| format!("\n- {}", Nodes::Location("beijing").entry(name)));
    format!("virtualClusters:{}", slices.collect::<String>())
}

fn entry(name: &str) -> String {
    site::entry(name, AGENT)
}

fn kubectl(site: &Site, cluster: &str) -> anyhow::Result<Kubectl> {
    let (config, kubeconfig) = (site.file("server.yaml"), site.file(&format!("{cluster}.kubeconfig")));
    site::atoll(&["kubeconfig", cluster, "--admin", "--server-config", text(&config)?, "-o", text(&kubeconfig)?])?;
    Ok(Kubectl::new(kubeconfig))
}

fn text(path: &std::path::Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
