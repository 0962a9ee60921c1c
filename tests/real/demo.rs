//! `atoll demo`.

mod dev_apiserver;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, eventually, kubectl, paths};
use libtest_mimic::Trial;

use crate::trial::trial;

/// The first test uses a separate host, because it removes labels of nodes.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("demo::two_virtual_clusters", two_virtual_clusters),
        trial("demo::works_without_a_host", dev_apiserver::works_without_a_host),
        trial("demo::errors_name_the_remedy", errors_name_the_remedy),
    ]
}

const CLUSTERS: [(&str, &str); 2] = [("ke-beijing", "beijing"), ("ke-hangzhou", "hangzhou")];

const MANIFEST: &str = r#"{"apiVersion":"v1","kind":"List","items":[
    {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}},
    {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2,
     "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
     "spec":{"containers":[{"name":"web","image":"nginx"}]}}}}]}"#;

fn two_virtual_clusters() -> anyhow::Result<()> {
    let host = HostCluster::up(1)?;
    let folder = tempfile::Builder::new().prefix("atoll-demo-").tempdir()?;
    let dir = folder.path().join("demo");

    let mut demo = start(Some(&host), &dir, "first")?;
    ready(&mut demo)?;
    for (cluster, location) in CLUSTERS {
        for form in ["kubeconfig", "direct.kubeconfig"] {
            let kubectl = Kubectl::new(dir.join(format!("{cluster}.{form}")));
            let nodes = kubectl.ok(&["get", "nodes", "-o", "name"])?;
            ensure!(nodes == format!("node/{location}-1\nnode/{location}-2\n"), "{cluster}, {form}: {nodes}");
            let context = kubectl.ok(&["config", "view", "-o", "jsonpath={..name} {.current-context}"])?;
            ensure!(context.split(' ').all(|name| name == cluster), "{cluster}, {form}: {context}");
            let text = std::fs::read_to_string(dir.join(format!("{cluster}.{form}")))?;
            ensure!(text.contains("proxy-url") == (form == "kubeconfig"), "{cluster}, {form}: proxy-url");
            ensure!(form == "kubeconfig" || text.contains(&format!("/clusters/{cluster}")), "{text}");
        }
        let kubectl = Kubectl::new(dir.join(format!("{cluster}.kubeconfig")));
        kubectl.ok_with(&["apply", "-f", "-"], MANIFEST)?;
        kubectl.ok(&["rollout", "status", "-n", "shop", "deployment/web", "--timeout=30s"])?;
        let nodes = kubectl.ok(&["get", "pods", "-n", "shop", "-o", "jsonpath={.items[*].spec.nodeName}"])?;
        ensure!(nodes.split(' ').count() == 2 && nodes.split(' ').all(|node| node.starts_with(location)), "{nodes}");
    }
    // An open watch does not prevent the demo from ending.
    let watch = Kubectl::new(dir.join("ke-beijing.kubeconfig")).start(&["get", "ns", "--watch"])?;
    ended(&mut demo)?;
    kubectl::end(watch)?;

    for node in ["hangzhou-1", "hangzhou-2"] {
        host.kubectl().ok(&["label", "node", node, "location-"])?;
    }
    let mut demo = start(Some(&host), &dir, "second")?;
    ready(&mut demo)?;
    demo.printed("kubectl --kubeconfig")?;
    let log = demo.log();
    ensure!(log.contains("No node of the host has the label location=hangzhou"), "{log}");
    ensure!(!log.contains("has the label location=beijing"), "{log}");
    let kubectl = Kubectl::new(dir.join("ke-beijing.direct.kubeconfig"));
    let found = kubectl.ok(&["get", "deployments", "-A", "-o", "name"])?;
    ensure!(found == "deployment.apps/web\n", "{found}");
    ended(&mut demo)
}

fn errors_name_the_remedy() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |args: &[&str]| {
        let output = Command::new(paths::binary("atoll")).arg("demo").args(args).output()?;
        anyhow::Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let (code, text) = run(&["--kubeconfig", path(&folder.path().join("nowhere"))?, "--port-base", "0"])?;
    ensure!(code == Some(1) && text.contains("nowhere"), "{code:?} {text}");

    // The error names all ports in use, and the command writes no files.
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    let base = port.min(u16::MAX - 6).to_string();
    let dir = folder.path().join("demo");
    let (code, text) = run(&["--dir", path(&dir)?, "--port-base", &base])?;
    ensure!(code == Some(1) && text.contains(&port.to_string()) && text.contains("--port-base 0"), "{code:?} {text}");
    ensure!(!dir.exists(), "it wrote files although it failed");
    Ok(())
}

pub(crate) fn start(host: Option<&HostCluster>, dir: &Path, name: &str) -> anyhow::Result<Process> {
    let kubeconfig: Option<PathBuf> = host.map(|host| host.dir().join("host.kubeconfig"));
    let mut args = vec!["demo", "--dir", path(dir)?, "--port-base", "0"];
    if let Some(kubeconfig) = &kubeconfig {
        args.extend(["--kubeconfig", path(kubeconfig)?]);
    }
    let log = dir.parent().context("the directory has no parent")?.join(format!("{name}.log"));
    Process::start("atoll demo", &paths::binary("atoll"), &args, log)
}

pub(crate) fn ready(demo: &mut Process) -> anyhow::Result<()> {
    eventually(kubectl::CONDITION_TIMEOUT, || {
        if demo.log().lines().any(|line| line == "ready") {
            return Ok(());
        }
        bail!("the demo is not ready; its output:\n{}", demo.log())
    })
}

fn ended(demo: &mut Process) -> anyhow::Result<()> {
    let status = demo.interrupt()?;
    ensure!(status.success(), "{status}:\n{}", demo.log());
    Ok(())
}

fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
