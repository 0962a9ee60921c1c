//! The demo without a kubeconfig: the host is dev-apiserver in the same process.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, kubectl, paths};

use super::{CLUSTERS, ended, ready, start};

/// The manifest of the edge-cluster proposal.
const MANIFEST: &str = r#"{"apiVersion":"v1","kind":"List","items":[
    {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"edge"}},
    {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"nginx","namespace":"edge"},"spec":{"replicas":2,
     "selector":{"matchLabels":{"app":"nginx"}},"template":{"metadata":{"labels":{"app":"nginx"}},
     "spec":{"containers":[{"name":"nginx","image":"nginx:1.25"}]}}}},
    {"apiVersion":"v1","kind":"Service","metadata":{"name":"nginx-service","namespace":"edge"},
     "spec":{"selector":{"app":"nginx"},"ports":[{"port":80}]}}]}"#;

/// Runs the demo twice in the same directory.
pub(super) fn works_without_a_host() -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("atoll-demo-").tempdir()?;
    let dir = folder.path().join("demo");
    for time in ["first", "second"] {
        let mut demo = start(None, &dir, time)?;
        ready(&mut demo)?;
        demo.printed("Ctrl-C stops the demo")?;
        let log = demo.log();
        ensure!(log.starts_with("WARNING: this is not a real Kubernetes cluster."), "{log}");
        for (cluster, location) in CLUSTERS {
            for form in ["kubeconfig", "direct.kubeconfig"] {
                empty(&Kubectl::new(dir.join(format!("{cluster}.{form}"))), location)?;
            }
        }
        for (cluster, location) in CLUSTERS {
            proposal(&Kubectl::new(dir.join(format!("{cluster}.kubeconfig"))), cluster, location)?;
        }
        let host = Kubectl::new(dir.join("host.kubeconfig"));
        let found =
            host.ok(&["get", "deployments", "-A", "--no-headers", "-o", "custom-columns=:.metadata.namespace"])?;
        ensure!(found == "edge-ke-beijing\nedge-ke-hangzhou\n", "{found}");
        limits_of_the_agent(&dir)?;
        missing_policies_are_reported(&dir)?;

        // An open watch does not prevent the demo from ending.
        let watch = Kubectl::new(dir.join("ke-hangzhou.direct.kubeconfig")).start(&["get", "pods", "-A", "--watch"])?;
        let ports = ports(&dir)?;
        ended(&mut demo)?;
        kubectl::end(watch)?;
        for port in ports {
            ensure!(TcpStream::connect(("127.0.0.1", port)).is_err(), "a process still listens on {port}");
        }
    }
    Ok(())
}

/// `atoll check --host` reports that dev-apiserver has no admission policies, although its version would support them.
fn missing_policies_are_reported(dir: &Path) -> anyhow::Result<()> {
    let config = std::fs::read_to_string(dir.join("proxy-agent.yaml"))?;
    let strict = config.replace(", unsafeDirectAccess: true", "");
    ensure!(strict != config, "{config}");
    std::fs::write(dir.join("strict.yaml"), strict)?;
    let output =
        Command::new(paths::binary("atoll")).args(["check", "--host"]).arg(dir.join("strict.yaml")).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code() == Some(1) && text.contains("does not serve ValidatingAdmissionPolicy"), "{text}");
    Ok(())
}

/// A new virtual cluster has its own nodes and the initial namespaces, without suffixes.
fn empty(kubectl: &Kubectl, location: &str) -> anyhow::Result<()> {
    let nodes = kubectl.ok(&["get", "nodes", "-o", "name"])?;
    ensure!(nodes == format!("node/{location}-1\nnode/{location}-2\n"), "{nodes}");
    let namespaces = kubectl.ok(&["get", "ns", "-o", "name"])?;
    let names: Vec<_> = namespaces.lines().map(|line| line.trim_start_matches("namespace/")).collect();
    ensure!(names == ["default", "kube-node-lease", "kube-public", "kube-system"], "{namespaces}");
    Ok(())
}

/// Applies the manifest of the proposal, and checks what kubectl shows.
fn proposal(kubectl: &Kubectl, cluster: &str, location: &str) -> anyhow::Result<()> {
    kubectl.ok_with(&["apply", "-f", "-"], MANIFEST)?;
    kubectl.ok(&["rollout", "status", "-n", "edge", "deployment/nginx", "--timeout=30s"])?;
    let columns = "custom-columns=:.spec.nodeName,:.status.phase";
    let pods = kubectl.ok(&["get", "pods", "-n", "edge", "--no-headers", "-o", columns])?;
    let own = |line: &str| line.starts_with(location) && line.ends_with("Running");
    ensure!(pods.lines().count() == 2 && pods.lines().all(own), "{pods}");
    let logs = kubectl.ok(&["logs", "-n", "edge", "deployment/nginx", "--tail=1"])?;
    ensure!(logs.lines().count() == 1, "{logs}");
    let host_name = kubectl.ok(&["exec", "-n", "edge", "deployment/nginx", "--", "hostname"])?;
    ensure!(host_name.starts_with("nginx-"), "{host_name}");
    let slices = ["get", "endpointslices", "-n", "edge", "-o", "jsonpath={.items[*].endpoints[*].nodeName}"];
    let slices = kubectl.ok(&slices)?;
    ensure!(slices.split(' ').count() == 2 && slices.split(' ').all(|node| node.starts_with(location)), "{slices}");

    let other = if location == "beijing" { "hangzhou" } else { "beijing" };
    for args in [
        &["get", "all", "-A", "-o", "yaml", "--show-managed-fields"][..],
        &["get", "all", "-A", "-o", "wide"],
        &["get", "events", "-A", "-o", "json"],
        &["get", "ns", "-o", "yaml", "--show-managed-fields"],
        &["get", "secrets,configmaps,serviceaccounts,rolebindings,endpointslices", "-A", "-o", "yaml"],
        &["describe", "all", "-A"],
    ] {
        let shown = kubectl.ok(args)?;
        for word in [&format!("-{cluster}"), other, "atoll", "nodeSelector:"] {
            let line = shown.lines().find(|line| line.contains(word));
            ensure!(line.is_none(), "{cluster}: {args:?} shows {word:?}: {line:?}");
        }
    }
    Ok(())
}

/// The agent has only the rights of its ClusterRole.
fn limits_of_the_agent(dir: &Path) -> anyhow::Result<()> {
    let agent = Kubectl::new(dir.join("agents/demo.kubeconfig"));
    let whoami = agent.ok(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"])?;
    ensure!(whoami == "system:serviceaccount:atoll-system:proxy-agent", "{whoami}");
    let refused = agent.fails(&["create", "secret", "generic", "x", "-n", "edge-ke-beijing"])?;
    ensure!(refused.contains("cannot create resource \"secrets\""), "{refused}");
    Ok(())
}

/// The listen ports in the configurations.
fn ports(dir: &Path) -> anyhow::Result<Vec<u16>> {
    let mut text = std::fs::read_to_string(dir.join("proxy-server.yaml"))?;
    text += &std::fs::read_to_string(dir.join("proxy-agent.yaml"))?;
    text += &std::fs::read_to_string(dir.join("host.kubeconfig"))?;
    let after = text.split("127.0.0.1:").skip(1).map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u16>().with_context(|| format!("a port: {rest:.20}"))
    });
    let ports = after.collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(ports.len() >= 8, "{ports:?}");
    Ok(ports)
}
