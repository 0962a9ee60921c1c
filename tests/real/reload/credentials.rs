//! Certificates and tokens that are replaced during a watch.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, site};

use super::watch::Watch;

const AGENT: &str = "site-c";
const CLUSTER: &str = "reload-certs";
const ENTRY: &str = "{name: reload-certs, agents: [site-c], clientCA: {certificate: clusters/reload-certs/client-ca.crt, \
                     key: clusters/reload-certs/client-ca.key}}";

/// The identities of the agent on the host, one after the other.
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

    // Replace the files by those of another installation. Certificates of one are not trusted in the other.
    let other = site.dir().join("other");
    site::atoll(&["certs", "init", text(&other)?])?;
    for file in ["serving-ca.crt", "serving-ca.key"] {
        std::fs::copy(other.join(file), site.file(file))?;
    }
    let renewed = mint(&site, "after")?;
    eventually(CONDITION_TIMEOUT, || renewed.ok(&["get", "nodes"]).map(drop))?;
    let refused = kubectl.fails(&["get", "nodes"])?;
    ensure!(refused.contains("certificate signed by unknown authority"), "{refused}");
    let template = "jsonpath={.data.ca\\.crt}";
    let shown = || renewed.ok(&["get", "configmap", "kube-root-ca.crt", "-n", "default", "-o", template]);
    let authority = std::fs::read_to_string(site.file("serving-ca.crt"))?;
    eventually(CONDITION_TIMEOUT, || {
        let shown = shown()?;
        ensure!(shown.trim() == authority.trim(), "the ConfigMap of pods contains {shown}");
        Ok(())
    })?;
    watch.goes_on_by(&renewed)?;

    // Replace the certificate of the agent by one of another CA. The agent uses it for the next tunnel.
    for file in ["agent-ca.crt", "agent-ca.key"] {
        std::fs::copy(other.join(file), site.file(file))?;
    }
    site::atoll(&["certs", "agent", AGENT, "--dir", text(site.dir())?, "--force"])?;
    agent.printed(&format!("agents/{AGENT}.crt"))?;
    watch.goes_on_by(&renewed)?;

    // Replace the credential for the host: another kubeconfig with a token file, then another token in that file.
    let token_file = site.file("token");
    for account in ACCOUNTS {
        std::fs::write(&token_file, account_token(host, account)?)?;
        if account == ACCOUNTS[0] {
            std::fs::write(&host_kubeconfig, with_token_file(&first, &token_file))?;
        }
        eventually(CONDITION_TIMEOUT, || {
            renewed.ok(&["get", "configmaps", "-n", "default"])?;
            let audit = std::fs::read_to_string(host.dir().join("audit.log"))?;
            ensure!(
                audit.contains(&format!("system:serviceaccount:atoll-system:{account}\"")),
                "{account} is not in the audit log"
            );
            Ok(())
        })?;
        watch.goes_on_by(&renewed)?;
    }
    watch.end_by(&renewed)?;

    // A new tunnel requires the new certificates.
    site.server.kill()?;
    site.restart_server()?;
    eventually(CONDITION_TIMEOUT, || renewed.ok(&["get", "nodes"]).map(drop))
}

/// A token of the service account, which has the rights of the agent.
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
    site::atoll(&["kubeconfig", CLUSTER, "--admin", "--server-config", text(&config)?, "-o", text(&kubeconfig)?])?;
    Ok(Kubectl::new(kubeconfig))
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
