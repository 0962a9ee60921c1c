//! Certificates and tokens, replaced on disk during a watch.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use atoll_tests::kubectl::SOON;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, site};

use super::watch::Watch;

const AGENT: &str = "site-c";
const CLUSTER: &str = "reload-certs";
const ENTRY: &str = "{name: reload-certs, agents: [site-c], clientCA: {certificate: clusters/reload-certs/client-ca.crt, \
                     key: clusters/reload-certs/client-ca.key}}";

/// Whom the host takes the agent for, one after the other.
const ACCOUNTS: [&str; 2] = ["proxy-agent-second", "proxy-agent-third"];

pub(super) fn are_replaced_under_a_watch(host: &HostCluster) -> anyhow::Result<()> {
    let mut site = Site::start(&[ENTRY], &[CLUSTER])?;
    let host_kubeconfig = site.file("host.kubeconfig");
    let first = std::fs::read_to_string(host.agent_kubeconfig())?;
    std::fs::write(&host_kubeconfig, &first)?;
    let body = format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host_kubeconfig.display(),
        Nodes::Location("beijing").entry(CLUSTER)
    );
    let mut agent = site.agent(AGENT, &body)?;
    agent.printed("the virtual cluster is provisioned")?;
    agent.printed("tunnel established")?;
    let kubectl = mint(&site, "before")?;
    let mut watch = Watch::start(&kubectl)?;

    // Another set-up's files take the place of ours: nothing that they sign is trusted by what the old ones signed.
    let other = site.dir().join("other");
    site::atoll(&["certs", "init", text(&other)?])?;
    for file in ["serving-ca.crt", "serving-ca.key"] {
        std::fs::copy(other.join(file), site.file(file))?;
    }
    let renewed = mint(&site, "after")?;
    eventually(SOON, || renewed.ok(&["get", "nodes"]).map(drop))?;
    let refused = kubectl.fails(&["get", "nodes"])?;
    ensure!(refused.contains("certificate signed by unknown authority"), "{refused}");
    let template = "jsonpath={.data.ca\\.crt}";
    let shown = || renewed.ok(&["get", "configmap", "kube-root-ca.crt", "-n", "default", "-o", template]);
    let authority = std::fs::read_to_string(site.file("serving-ca.crt"))?;
    eventually(SOON, || {
        let shown = shown()?;
        ensure!(shown.trim() == authority.trim(), "pods would trust {shown}");
        Ok(())
    })?;
    watch.goes_on_by(&renewed)?;

    // The agent's own, of another authority: it counts from the next tunnel on.
    for file in ["agent-ca.crt", "agent-ca.key"] {
        std::fs::copy(other.join(file), site.file(file))?;
    }
    site::atoll(&["certs", "agent", AGENT, "--dir", text(site.dir())?, "--force"])?;
    agent.printed(&format!("agents/{AGENT}.crt"))?;
    watch.goes_on_by(&renewed)?;

    // What the host knows the agent by: another kubeconfig, whose token is in a file; then another token in that file.
    let token_file = site.file("token");
    for account in ACCOUNTS {
        std::fs::write(&token_file, account_token(host, account)?)?;
        if account == ACCOUNTS[0] {
            std::fs::write(&host_kubeconfig, with_token_file(&first, &token_file))?;
        }
        eventually(SOON, || {
            renewed.ok(&["get", "configmaps", "-n", "default"])?;
            let audit = std::fs::read_to_string(host.dir().join("audit.log"))?;
            ensure!(audit.contains(&format!("system:serviceaccount:atoll-system:{account}\"")), "{account} unseen");
            Ok(())
        })?;
        watch.goes_on_by(&renewed)?;
    }
    watch.end_by(&renewed)?;

    // Now a new tunnel is needed, and it comes about with the new certificates only.
    site.server.kill()?;
    site.restart_server()?;
    eventually(SOON, || renewed.ok(&["get", "nodes"]).map(drop))
}

/// The account's token; it has the rights of the agent's own.
fn account_token(host: &HostCluster, account: &str) -> anyhow::Result<String> {
    let kubectl = host.kubectl();
    kubectl.ok(&["create", "serviceaccount", account, "-n", "atoll-system"])?;
    let subject = format!("--serviceaccount=atoll-system:{account}");
    kubectl.ok(&["create", "clusterrolebinding", account, "--clusterrole=atoll-proxy-agent", &subject])?;
    kubectl.ok(&["create", "token", account, "-n", "atoll-system"])
}

fn with_token_file(kubeconfig: &str, token: &Path) -> String {
    let lines = kubeconfig.lines().map(|line| match line.split_once("token: ") {
        Some((indent, _)) => format!("{indent}tokenFile: {}", token.display()),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn mint(site: &Site, name: &str) -> anyhow::Result<Kubectl> {
    let kubeconfig: PathBuf = site.file(&format!("{name}.kubeconfig"));
    let config = site.file("server.yaml");
    site::atoll(&["kubeconfig", CLUSTER, "--server-config", text(&config)?, "-o", text(&kubeconfig)?])?;
    Ok(Kubectl::new(kubeconfig))
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary folders have plain names")
}
