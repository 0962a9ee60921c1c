//! The operator revokes certificates with `atoll revoke`.

use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, kubectl, pause, site};
use tokio::time::Instant;

use super::watch::Watch;

const AGENT: &str = "site-r";
const CLUSTER: &str = "reload-revoke";
const ENTRY: &str = "{name: reload-revoke, agents: [site-r], clientCA: {certificate: clusters/reload-revoke/client-ca.crt, \
                     key: clusters/reload-revoke/client-ca.key}}";

/// The promise: a revocation is in force within this time.
const IN_FORCE: Duration = Duration::from_secs(10);

pub(super) fn stop_stolen_credentials(host: &HostCluster) -> anyhow::Result<()> {
    let mut site = Site::start(&[ENTRY], &[CLUSTER])?;
    let kubeconfig = host.agent_kubeconfig();
    let nodes = Nodes::Location("beijing").entry(CLUSTER);
    let body = format!("host: {{kubeconfig: {}}}\nvirtualClusters: [{nodes}]", kubeconfig.display());
    let mut agent = site.agent(AGENT, &body)?;
    agent.printed("the virtual cluster is provisioned")?;
    agent.printed("tunnel established")?;
    let admin = mint(&site, "admin", &["--admin"])?;
    let mut watch = Watch::start(&admin)?;

    // Somebody has a copy of jane's kubeconfig, with open streams.
    let jane = mint(&site, "jane", &["--admin", "--user", "jane"])?;
    let container = "apiVersion: v1\nkind: Pod\nmetadata: {name: shell}\nspec: {containers: [{name: c, image: i}]}";
    admin.ok_with(&["apply", "-n", "default", "-f", "-"], container)?;
    admin.ok(&["wait", "-n", "default", "--for=condition=Ready", "pod/shell", "--timeout=60s"])?;
    let mut stolen = [
        jane.start(&["get", "configmaps", "-n", "default", "--watch-only"])?,
        jane.start(&["exec", "-i", "shell", "-n", "default", "--", "sleep", "60"])?,
        jane.start(&["logs", "-f", "shell", "-n", "default"])?,
    ];
    pause(Duration::from_secs(1));
    for process in &mut stolen {
        ensure!(process.try_wait()?.is_none(), "a stream ended before the revocation");
    }
    let revoked = Instant::now();
    revoke(&site, &["user", "jane", "--cluster", CLUSTER, "--reason", "stolen laptop"])?;
    let mut ended = || all_ended(&mut stolen);
    while !ended()? {
        ensure!(revoked.elapsed() < IN_FORCE, "streams are still open");
        pause(Duration::from_millis(100));
    }
    let refused = jane.fails(&["get", "nodes"])?;
    ensure!(refused.contains("You must be logged in") || refused.contains("Unauthorized"), "{refused}");
    ensure!(revoked.elapsed() < IN_FORCE, "too late");
    site.server.printed("the client certificate is revoked")?;
    // Others are not affected, and a new kubeconfig works at once.
    watch.goes_on()?;
    mint(&site, "jane-again", &["--admin", "--user", "jane"])?.ok(&["get", "nodes"])?;

    // A single certificate, as audit logs name it.
    let john = mint(&site, "john", &["--admin", "--user", "john"])?;
    john.ok(&["get", "nodes"])?;
    revoke(&site, &["certificate", text(john.kubeconfig())?])?;
    eventually(IN_FORCE, || john.fails(&["get", "nodes"]).map(drop))?;
    mint(&site, "john-again", &["--admin", "--user", "john"])?.ok(&["get", "nodes"])?;

    // The key of the agent was stolen.
    let revoked = Instant::now();
    revoke(&site, &["agent", AGENT])?;
    agent.printed("the proxy-server refused the registration (Revoked)")?;
    ensure!(revoked.elapsed() < IN_FORCE, "the agent was connected for {:?}", revoked.elapsed());
    watch.has_ended()?;
    let away = admin.fails(&["get", "nodes"])?;
    ensure!(away.contains("no agent connected"), "{away}");
    // A new key ends the outage.
    site::atoll(&["certs", "agent", AGENT, "--dir", text(site.dir())?, "--force"])?;
    eventually(kubectl::CONDITION_TIMEOUT, || admin.ok(&["get", "nodes"]).map(drop))
}

fn all_ended(processes: &mut [Child]) -> anyhow::Result<bool> {
    for process in processes {
        if process.try_wait()?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn revoke(site: &Site, words: &[&str]) -> anyhow::Result<String> {
    let config = site.file("server.yaml");
    site::atoll(&[&["revoke"], words, &["--server-config", text(&config)?]].concat())
}

fn mint(site: &Site, name: &str, more: &[&str]) -> anyhow::Result<Kubectl> {
    let (config, kubeconfig) = (site.file("server.yaml"), site.file(&format!("{name}.kubeconfig")));
    let words = ["kubeconfig", CLUSTER, "--server-config", text(&config)?, "-o", text(&kubeconfig)?];
    site::atoll(&[&words, more].concat())?;
    Ok(Kubectl::new(kubeconfig))
}

fn text(path: &std::path::Path) -> anyhow::Result<&str> {
    path.to_str().context("no path")
}
