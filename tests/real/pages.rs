//! The pages of the documentation that show commands of `atoll demo`, and what they print.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use atoll_tests::page::{Step, steps};
use atoll_tests::process::Process;
use atoll_tests::{Kubectl, eventually, paths};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::examples::PORTS;
use crate::trial::trial;

/// The pages, and the minimum number of commands in each.
const PAGES: [(&str, &str, usize); 3] =
    [("readme", "README.md", 3), ("quickstart", "docs/quickstart.md", 10), ("kubectl", "docs/kubectl.md", 10)];
/// How long a change may take until a command shows it, on a machine that is busy with other trials.
const CHANGE: Duration = Duration::from_secs(120);
/// The time limit of a command, in seconds: longer than `kubectl wait` waits.
const COMMAND_SECONDS: &str = "330";

pub(crate) fn trials() -> Vec<Trial> {
    let pages = PAGES.map(|(name, page, least)| trial(format!("pages::{name}"), move || follow(page, least)));
    pages.into_iter().chain([trial("pages::argo_cd", argo_cd)]).collect()
}

/// Runs the commands of a page, in an empty folder, while a demo runs there.
fn follow(page: &str, least: usize) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(paths::workspace().join(page)).with_context(|| format!("no {page}"))?;
    let (mut starts, steps): (Vec<Step>, Vec<Step>) = steps(&text)
        .into_iter()
        .partition(|step| step.command.ends_with("atoll demo") || step.command.ends_with("-- demo"));
    ensure!(steps.len() >= least, "{page} has {} commands", steps.len());

    let _ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::Builder::new().prefix("atoll-page-").tempdir()?;
    let mut demo = start(folder.path())?;
    if let Some(start) = starts.pop() {
        ensure!(start.shows(&demo.log()), "{page}:{}: the demo prints\n{}", start.line, demo.log());
    }
    for step in &steps {
        check(step, folder.path()).with_context(|| format!("{page}:{}", step.line))?;
    }
    let status = demo.interrupt()?;
    ensure!(status.success(), "{status}:\n{}", demo.log());
    Ok(())
}

/// Runs the shell commands of the page about Argo CD, with the host as the cluster of Argo CD. What they write to the cluster
/// Secret must be what a client needs.
fn argo_cd() -> anyhow::Result<()> {
    let page = std::fs::read_to_string(paths::workspace().join("docs/argo-cd.md"))?;
    let blocks = page.split("\n```sh\n").skip(1).filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block));
    let commands = blocks.collect::<Vec<_>>().join("\n");
    let address = "https://proxy.example.com:8443/";
    ensure!(commands.contains(address), "the page does not name {address}:\n{commands}");

    let _ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::Builder::new().prefix("atoll-page-").tempdir()?;
    let mut demo = start(folder.path())?;
    for (from, to) in [("ke-beijing", "ke-beijing"), ("host", "argo-cd")] {
        let kubeconfig = |folder: &Path, name: &str| folder.join(name).with_extension("kubeconfig");
        std::fs::copy(kubeconfig(&folder.path().join(".atoll"), from), kubeconfig(folder.path(), to))?;
    }
    let host = Kubectl::new(folder.path().join("argo-cd.kubeconfig"));
    host.ok(&["create", "namespace", "argocd"])?;
    let commands = commands.replace(address, "https://127.0.0.1:8443/");
    let printed = run(&format!("set -euo pipefail\n{commands}"), folder.path())?;
    ensure!(printed.contains("secret/ke-beijing created"), "{printed}");

    let field = |name: &str| -> anyhow::Result<String> {
        let template = format!("{{{{.data.{name} | base64decode}}}}");
        host.ok(&["get", "secret", "ke-beijing", "-n", "argocd", "-o", &format!("go-template={template}")])
    };
    let config: Value = serde_json::from_str(&field("config")?)?;
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).context(pointer.to_owned());
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "argo",
        "clusters": [{"name": "argo", "cluster": {
            "server": field("server")?, "certificate-authority-data": text("/tlsClientConfig/caData")?}}],
        "users": [{"name": "argo", "user": {"token": text("/bearerToken")?}}],
        "contexts": [{"name": "argo", "context": {"cluster": "argo", "user": "argo"}}],
    });
    let file = folder.path().join("argo.kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    let argo = Kubectl::new(file);
    let user = argo.ok(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"])?;
    ensure!(user == "system:serviceaccount:kube-system:argocd-manager", "{user}");
    let nodes = argo.ok(&["get", "nodes", "-o", "name"])?;
    ensure!(nodes == "node/beijing-1\nnode/beijing-2\n", "{nodes}");
    let status = demo.interrupt()?;
    ensure!(status.success(), "{status}:\n{}", demo.log());
    Ok(())
}

/// Starts the demo with the ports that pages show, and waits until it is ready.
fn start(folder: &Path) -> anyhow::Result<Process> {
    let atoll = paths::binary("atoll");
    let folder = folder.to_str().context("temporary directories have UTF-8 names")?;
    let atoll = atoll.to_str().context("the path of the binary is UTF-8")?;
    let args = ["-c", "cd \"$1\" && exec \"$2\" demo", "demo", folder, atoll];
    let log = Path::new(folder).join("demo.log");
    let mut demo = Process::start_with("atoll demo", Path::new("bash"), &args, log, &[("RUST_LOG", "error")])?;
    eventually(CHANGE, || {
        ensure!(demo.log().lines().any(|line| line == "ready"), "the demo is not ready:\n{}", demo.log());
        Ok(())
    })?;
    demo.printed("Ctrl-C stops the demo")?;
    Ok(demo)
}

/// Runs a command, and compares what it prints. A command that only reads runs again until a change has arrived.
pub(crate) fn check(step: &Step, folder: &Path) -> anyhow::Result<()> {
    let reads = [" get ", " auth ", "atoll status"].iter().any(|word| step.command.contains(word));
    let compare = || {
        let printed = run(&step.command, folder)?;
        if step.shows(&printed) {
            return Ok(());
        }
        bail!("{}\nprints\n{printed}\nand the page shows\n{}", step.command, step.output.join("\n"))
    };
    if reads { eventually(CHANGE, compare) } else { compare() }
}

/// Runs a shell, and returns what it prints.
fn run(command: &str, folder: &Path) -> anyhow::Result<String> {
    let folders = [paths::binary("atoll"), paths::component("kubectl")].map(|program| program.parent().map(Into::into));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = folders.into_iter().flatten().chain(std::env::split_paths(&path));
    let output = Command::new("timeout")
        .args([COMMAND_SECONDS, "bash", "-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path)?)
        .env("HOME", folder)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .context("cannot run bash")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
