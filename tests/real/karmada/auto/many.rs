//! Many members out of one host: `ATOLL_TEST_MEMBERS` of them. Not part of the suite, because it takes a quarter of an hour.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use atoll_tests::{HostCluster, Karmada, Kubectl, Nodes, Site, eventually, pause};
use serde_json::Value;

use super::super::idle::{Tail, no_write};
use super::{AGENT, account, entry};

/// The variable with the number of members.
const MEMBERS: &str = "ATOLL_TEST_MEMBERS";

/// The time limit for a change in all members. Karmada works on a few members at a time.
const EVERYWHERE: Duration = Duration::from_secs(300);
/// The time in which Karmada's queues become empty, and in which clients end the watches that they have begun at the host.
const SETTLING: Duration = Duration::from_secs(240);
/// The time in which Karmada may not write.
const IDLE: Duration = Duration::from_secs(180);

/// The maximum number of watches of a resource, however many members there are. The agent has most of RoleBindings: for all
/// members, mirrors, root namespaces, rights, and what is stored. A watch of a client that began before the hub had its version
/// may be at the host, too.
const OF_A_RESOURCE: i64 = 6;

const WORK: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: many}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: many}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: many}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'nginx:1.25'}]}
";

/// The number of members, if this trial shall run.
pub(in crate::karmada) fn members() -> Option<usize> {
    std::env::var(MEMBERS).ok()?.parse().ok()
}

/// They join by themselves, all get a Deployment, its change and its deletion. Then nothing is written. The number of
/// watches of the host does not depend on the number of members.
pub(in crate::karmada) fn many_members_out_of_one_host(members: usize) -> anyhow::Result<()> {
    let host = HostCluster::up_with_karmada()?;
    let (kubectl, karmada) = (host.kubectl(), Karmada::beside(&host));
    let names: Vec<String> = (1..=members).map(|number| format!("member{number}")).collect();
    // A node for each member.
    let nodes: Vec<_> = names.iter().map(|name| (name.clone(), [("location", name.clone())].into())).collect();
    host.create_nodes(&nodes)?;
    let before = watches(&kubectl)?;

    let entries: Vec<_> = names.iter().map(|name| entry(name)).collect();
    let (entries, all): (Vec<_>, Vec<_>) = entries.iter().zip(&names).map(|(e, n)| (e.as_str(), n.as_str())).unzip();
    let site = Site::start(&entries, &all)?;
    let mut body = format!("host: {{kubeconfig: {}}}\nhub: {{memoryMiB: 96}}\n", host.agent_kubeconfig().display());
    body.push_str("virtualClusters:\n");
    for name in &all {
        writeln!(body, "- {}", Nodes::Location(name.to_string().leak()).entry(name))?;
    }
    let mut agent = site.agent(AGENT, &body)?;
    agent.printed("tunnel established")?;
    let server = site.file("server.yaml");
    let plain = std::fs::read_to_string(&server)?;
    let (file, port) = (account(&karmada, &site)?, site.ports.proxy);
    let section = format!("  keptBy: trials\n  clusters: ['member*']\n  url: http://127.0.0.1:{port}\n");
    std::fs::write(&server, format!("{plain}karmada:\n  kubeconfig: {}\n{section}", file.display()))?;
    for name in &all {
        karmada.ready(name)?;
    }

    karmada.kubectl().ok_with(&["apply", "-f", "-"], WORK)?;
    eventually(EVERYWHERE, || has_deployments(&kubectl, members, "nginx:1.25"))?;
    karmada.kubectl().ok(&["set", "image", "deployment/web", "web=nginx:1.26", "-n=many"])?;
    eventually(EVERYWHERE, || has_deployments(&kubectl, members, "nginx:1.26"))?;

    pause(SETTLING);
    let audit = Tail::from_now(host.dir().join("audit.log"))?;
    pause(IDLE);
    no_write(&audit.read()?)?;
    compare(&before, &watches(&kubectl)?, members)?;
    for name in &all {
        karmada.ready(name)?;
    }

    karmada.kubectl().ok(&["delete", "deployment/web", "-n=many"])?;
    eventually(EVERYWHERE, || has_deployments(&kubectl, 0, ""))
}

/// The host has this many Deployments of members, with this image, and all their pods are ready.
fn has_deployments(host: &Kubectl, count: usize, image: &str) -> anyhow::Result<()> {
    let all: Value = serde_json::from_str(&host.ok(&["get", "deployments", "-A", "-o=json"])?)?;
    let all: Vec<_> =
        all["items"].as_array().into_iter().flatten().filter(|it| it["metadata"]["name"] == "web").collect();
    ensure!(all.len() == count, "{} Deployments, not {count}", all.len());
    for it in all {
        let (spec, status) = (&it["spec"]["template"]["spec"]["containers"][0]["image"], &it["status"]);
        let is_current = spec == image && status["updatedReplicas"] == 2 && status["availableReplicas"] == 2;
        ensure!(is_current, "{}: {spec}, {status}", it["metadata"]["namespace"]);
    }
    Ok(())
}

/// The number of watches of each resource, as the host's API server counts them.
fn watches(host: &Kubectl) -> anyhow::Result<BTreeMap<String, i64>> {
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    for line in host.ok(&["get", "--raw", "/metrics"])?.lines() {
        let Some(rest) = line.strip_prefix("apiserver_longrunning_requests{") else { continue };
        let (labels, count) = rest.rsplit_once(' ').context("a metric without a value")?;
        if labels.contains(r#"verb="WATCH""#) {
            let label = |name: &str| labels.split(&format!("{name}=\"")).nth(1)?.split('"').next();
            let resource = format!("{}.{}", label("resource").unwrap_or_default(), label("group").unwrap_or_default());
            *found.entry(resource).or_default() += count.parse::<i64>()?;
        }
    }
    Ok(found)
}

/// Checks that the host's watches do not depend on the number of members.
#[expect(clippy::print_stdout, reason = "the result of a measurement")]
fn compare(before: &BTreeMap<String, i64>, after: &BTreeMap<String, i64>, members: usize) -> anyhow::Result<()> {
    let added: BTreeMap<_, _> = after
        .iter()
        .map(|(resource, count)| (resource, count - before.get(resource).copied().unwrap_or_default()))
        .filter(|(_, added)| *added != 0)
        .collect();
    let total: i64 = added.values().sum();
    println!("watches of the host for {members} members: {total} of {} resources: {added:?}", added.len());
    let many: Vec<_> = added.iter().filter(|(_, added)| **added > OF_A_RESOURCE).collect();
    ensure!(many.is_empty(), "more watches than the agent needs: {many:?}");
    Ok(())
}
