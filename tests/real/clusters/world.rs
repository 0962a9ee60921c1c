//! A proxy-server, and the command.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Site, paths, site};

pub(super) const AGENT: &str = "site-c";
/// The time limit until a change is in force.
pub(super) const IN_FORCE: Duration = Duration::from_secs(30);

/// A custom kind without namespaces, for virtual clusters.
pub(super) const GEARS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.GROUP, labels: {from: CLUSTER}}
spec:
  group: GROUP
  scope: Cluster
  names: {kind: Gear, plural: gears, singular: gear}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
";

/// A definition of a virtual cluster.
pub(super) fn gears(group: &str, cluster: &str) -> String {
    GEARS.replace("GROUP", group).replace("CLUSTER", cluster)
}

pub(super) fn gear(group: &str, name: &str) -> String {
    format!("apiVersion: {group}/v1\nkind: Gear\nmetadata: {{name: {name}}}\nspec: {{teeth: 12}}\n")
}

/// A proxy-server for these virtual clusters.
pub(super) fn server(clusters: &[&str]) -> anyhow::Result<Site> {
    let entries: Vec<_> = clusters.iter().map(|name| site::entry(name, AGENT)).collect();
    Site::start(&entries.iter().map(String::as_str).collect::<Vec<_>>(), clusters)
}

/// An agent on this host, when its virtual clusters are provisioned. Each is a name and the value of the label `location`.
pub(super) fn agent(site: &Site, file: &str, host: &HostCluster, clusters: &[(&str, &str)]) -> anyhow::Result<Process> {
    let entries: Vec<_> = clusters
        .iter()
        .map(|(name, location)| format!("{{name: {name}, nodeSelector: {{location: {location}}}}}"))
        .collect();
    let kubeconfig = host.agent_kubeconfig();
    let body = format!("host: {{kubeconfig: {}}}\nvirtualClusters: [{}]", kubeconfig.display(), entries.join(", "));
    let mut agent = site.agent_as(AGENT, file, &body)?;
    agent.printed("tunnel established")?;
    for (name, _) in clusters {
        agent.printed(&format!("the virtual cluster is provisioned cluster={name}\n"))?;
    }
    Ok(agent)
}

/// Ends an agent in an orderly way.
pub(super) fn stop(mut agent: Process) -> anyhow::Result<()> {
    let status = agent.interrupt()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Runs `atoll clusters` on a host. Returns its output, and both streams together if the exit code is not `code`.
pub(super) fn clusters(host: &HostCluster, args: &[&str], code: i32) -> anyhow::Result<String> {
    let kubeconfig = host.dir().join("host.kubeconfig");
    let output = Command::new(paths::binary("atoll"))
        .arg("clusters")
        .args(args)
        .arg("--host-kubeconfig")
        .arg(kubeconfig)
        .output()
        .context("cannot run atoll")?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code() == Some(code), "atoll clusters {args:?} ended with {:?}:\n{text}", output.status);
    Ok(text)
}

pub(super) fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
