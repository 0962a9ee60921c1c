//! The use case of the edge-cluster proposal: one manifest, two virtual clusters, one API server.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, site};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![case("proposal::two_virtual_clusters", host, two_virtual_clusters)]
}

const MANIFEST: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: edge}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: edge}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: 'nginx:1.25'}]}
---
apiVersion: v1
kind: Service
metadata: {name: nginx-service, namespace: edge}
spec: {selector: {app: nginx}, ports: [{port: 80}]}
";

/// Two virtual clusters, and all processes that serve them.
struct Slices {
    site: Site,
    _agent: Process,
}

impl Slices {
    fn start(host: &HostCluster) -> anyhow::Result<Self> {
        let entry = |name: &str| {
            format!(
                "{{name: {name}, agents: [site-p], clientCA: {{certificate: clusters/{name}/client-ca.crt, \
                 key: clusters/{name}/client-ca.key}}}}"
            )
        };
        let names = ["ke-beijing", "ke-hangzhou", "ke-beijing-cluster"];
        let entries = names.map(entry);
        let site = Site::start(&entries.each_ref().map(String::as_str), &names)?;
        let body = format!(
            "host: {{kubeconfig: {}}}\nvirtualClusters: [{}, {}, {}]",
            host.agent_kubeconfig().display(),
            Nodes::Location("beijing").entry("ke-beijing"),
            Nodes::Location("hangzhou").entry("ke-hangzhou"),
            Nodes::Location("beijing").entry("ke-beijing-cluster"),
        );
        let mut agent = site.agent("site-p", &body)?;
        for name in names {
            agent.printed(&format!("the virtual cluster is provisioned cluster={name}\n"))?;
        }
        Ok(Self { site, _agent: agent })
    }

    fn kubectl(&self, cluster: &str, more: &[&str]) -> anyhow::Result<Kubectl> {
        let file: PathBuf = self.site.file(&format!("{cluster}{}.kubeconfig", more.join("")));
        let config = self.site.file("server.yaml");
        let mut args = vec!["kubeconfig", cluster, "--server-config", config.to_str().context("path")?];
        args.extend(more);
        args.extend(["-o", file.to_str().context("path")?]);
        site::atoll(&args)?;
        Ok(Kubectl::new(file))
    }
}

fn two_virtual_clusters(host: &HostCluster) -> anyhow::Result<()> {
    let slices = Slices::start(host)?;
    let beijing = slices.kubectl("ke-beijing", &["--admin"])?;
    let hangzhou = slices.kubectl("ke-hangzhou", &["--admin"])?;
    let named = slices.kubectl("ke-beijing-cluster", &["--admin"])?;
    for cluster in [&beijing, &hangzhou, &named] {
        cluster.ok_with(&["apply", "-f", "-"], MANIFEST)?;
    }
    for cluster in [&beijing, &hangzhou, &named] {
        cluster.ok(&["rollout", "status", "-n", "edge", "deployment/nginx", "--timeout=40s"])?;
    }

    let direct = slices.kubectl("ke-hangzhou", &["--admin", "--direct"])?;
    for (cluster, name, location) in [
        (&beijing, "ke-beijing", "beijing"),
        (&hangzhou, "ke-hangzhou", "hangzhou"),
        (&named, "ke-beijing-cluster", "beijing"),
        (&direct, "ke-hangzhou", "hangzhou"),
    ] {
        shows_its_own(cluster, name)?;
        stays_on(host, name, location)?;
    }
    guard_holds(host, &beijing)?;
    strangers_stay_out(&slices)?;
    for cluster in [&beijing, &hangzhou, &named] {
        cluster.ok(&["delete", "ns", "edge", "--timeout=40s"])?;
    }
    ensure!(!host.kubectl().ok(&["get", "ns"])?.contains("edge-ke"));
    Ok(())
}

/// The cluster shows no suffix, no node selector and no objects of the other cluster.
fn shows_its_own(cluster: &Kubectl, name: &str) -> anyhow::Result<()> {
    let other = if name.contains("beijing") { "hangzhou" } else { "beijing" };
    for args in [
        &["get", "all", "-A", "-o", "yaml", "--show-managed-fields"][..],
        &["get", "all", "-A", "-o", "wide"],
        &["get", "events", "-A", "-o", "json"],
        &["get", "ns", "-o", "yaml", "--show-managed-fields"],
        &["get", "secrets,configmaps,serviceaccounts,rolebindings,endpointslices", "-A", "-o", "yaml"],
        &["describe", "all", "-A"],
    ] {
        let shown = cluster.ok(args)?;
        for word in [format!("-{name}"), other.to_owned(), "atoll".to_owned(), "nodeSelector:".to_owned()] {
            let line = shown.lines().find(|line| line.contains(&word));
            ensure!(line.is_none(), "{name}: {args:?} shows {word:?}: {line:?}");
        }
    }
    let namespaces = cluster.ok(&["get", "ns", "-o", "name"])?;
    let expect = ["default", "edge", "kube-node-lease", "kube-public", "kube-system"];
    ensure!(namespaces.lines().map(|line| line.trim_start_matches("namespace/")).eq(expect), "{namespaces}");
    ensure!(cluster.ok(&["get", "deployment", "nginx", "-n", "edge"])?.contains("2/2"));
    Ok(())
}

fn stays_on(host: &HostCluster, name: &str, location: &'static str) -> anyhow::Result<()> {
    let namespace = format!("edge-{name}");
    let get = |what: &str, path: &str| host.kubectl().ok(&["get", what, "-n", &namespace, "-o", path]);
    let selector = get("deployment/nginx", "jsonpath={.spec.template.spec.nodeSelector}")?;
    let expected = Nodes::Location(location).selector();
    ensure!(serde_json::from_str::<Value>(&selector)? == serde_json::to_value(expected)?, "{selector}");
    let nodes = get("pods", r#"jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}"#)?;
    ensure!(nodes.lines().count() >= 2 && nodes.lines().all(|node| node.starts_with(location)), "{nodes}");
    Ok(())
}

/// All requests that could remove or change the node selector.
fn guard_holds(host: &HostCluster, cluster: &Kubectl) -> anyhow::Result<()> {
    let patch = |kind: &str, patch: &str| {
        cluster.run(&["patch", "deployment", "nginx", "-n", "edge", &format!("--type={kind}"), "-p", patch])
    };
    let elsewhere = r#"{"spec":{"template":{"spec":{"nodeSelector":{"location":"hangzhou"}}}}}"#;
    for kind in ["merge", "strategic"] {
        let refused = patch(kind, elsewhere)?;
        ensure!(refused.code != 0, "{refused:?}");
        ensure!(refused.stderr.contains("spec.template.spec.nodeSelector"), "{}", refused.stderr);
    }
    let accepted = [
        ("merge", r#"{"spec":{"template":{"spec":{"nodeSelector":{"disk":"any"}}}}}"#),
        ("json", r#"[{"op":"test","path":"/spec/template/spec/nodeSelector","value":{"disk":"any"}}]"#),
        ("strategic", r#"{"spec":{"template":{"spec":{"nodeSelector":{"$patch":"replace","a":"b"}}}}}"#),
        ("json", r#"[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]"#),
        ("merge", r#"{"spec":{"template":{"spec":{"nodeSelector":null}}}}"#),
        ("strategic", r#"{"spec":{"template":{"spec":{"nodeSelector":null}}}}"#),
    ];
    for (kind, text) in accepted {
        let done = patch(kind, text)?;
        ensure!(done.code == 0, "{kind} {text}: {}", done.stderr);
        let kept = host.kubectl().ok(&[
            "get",
            "deployment/nginx",
            "-n",
            "edge-ke-beijing",
            "-o",
            "jsonpath={.spec.template.spec.nodeSelector.location}",
        ])?;
        ensure!(kept == "beijing", "{kind} {text}: {kept:?}");
    }
    let path = "/apis/apps/v1/namespaces/edge/deployments/nginx";
    let before = atoll_tests::eventually(atoll_tests::kubectl::CONDITION_TIMEOUT, || {
        let (one, two) = (cluster.ok(&["get", "--raw", path])?, cluster.ok(&["get", "--raw", path])?);
        ensure!(one == two, "it still changes");
        let after = cluster.ok_with(&["replace", "--raw", path, "-f", "-"], &two)?;
        ensure!(after == two, "a PUT of what was read changed it");
        Ok(two)
    })?;
    ensure!(!before.contains("nodeSelector"), "{before}");
    Ok(())
}

/// A certificate of another cluster is refused, and a user without rights gets 403.
fn strangers_stay_out(slices: &Slices) -> anyhow::Result<()> {
    let direct = slices.kubectl("ke-beijing", &["--admin", "--direct"])?;
    let text = std::fs::read_to_string(direct.kubeconfig())?;
    let crossed = slices.site.file("crossed.kubeconfig");
    std::fs::write(&crossed, text.replace("/clusters/ke-beijing", "/clusters/ke-hangzhou"))?;
    let refused = Kubectl::new(crossed).fails(&["get", "--raw", "/api/v1/namespaces"])?;
    ensure!(refused.contains("You must be logged in"), "{refused}");
    let jane = slices.kubectl("ke-beijing", &["--user", "jane"])?;
    for (args, why) in [
        (
            &["get", "secrets", "-A"][..],
            r#"User "jane" cannot list resource "secrets" in API group "" at the cluster scope"#,
        ),
        (&["get", "pods", "-n", "edge"], r#"cannot list resource "pods" in API group "" in the namespace "edge""#),
        (&["get", "nodes"], r#"cannot list resource "nodes""#),
    ] {
        let refused = jane.fails(args)?;
        ensure!(refused.contains(why), "{args:?}: {refused}");
    }
    Ok(())
}
