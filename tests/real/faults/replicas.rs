//! Two agents with the same identity.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::ensure;
use atoll_tests::{
    Credentials, Curl, HostCluster, Kubectl, Nodes, Site, eventually, kubectl, pause, process::Process, site,
};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::watch;
use crate::case;

/// What clients request.
const PATH: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";

const ENTRY: &str = "{name: shared, agents: [site-r], clientCA: {certificate: clusters/shared/client-ca.crt, \
                     key: clusters/shared/client-ca.key}}";

/// How often an agent is killed.
const KILLS: usize = 4;

pub(super) fn trials(host: Option<&Arc<HostCluster>>) -> [Trial; 3] {
    [
        case("faults::no_request_fails_twice_after_a_replica_is_killed", host, no_request_fails_twice),
        case("faults::replicas_share_their_state", host, replicas_share_their_state),
        case("faults::an_ending_replica_refuses_no_request", host, an_ending_replica_refuses_no_request),
    ]
}

/// Each agent knows the namespaces that the other one has just created.
fn replicas_share_their_state(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[ENTRY], &["shared"])?;
    let mut agents = replicas(&site, host)?;
    let kubectl = client(&site)?;

    // The agents get requests in turns, so different agents create a namespace and the object in it.
    fill(&kubectl, 0..40)?;
    agents[0].kill()?;
    eventually(Duration::from_secs(5), || kubectl.ok(&["get", "namespaces", "--request-timeout=2s"]).map(drop))?;
    fill(&kubectl, 40..50)
}

/// Watches keep the tunnel of an ending agent open, until they end at different times. All other requests use the tunnel of the other agent.
fn an_ending_replica_refuses_no_request(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[ENTRY], &["shared"])?;
    let mut agents = replicas(&site, host)?;
    let kubectl = client(&site)?;
    kubectl.ok(&["create", "namespace", "watched"])?;
    let watches: Vec<Child> = (0..4).map(|_| watch(&kubectl)).collect::<anyhow::Result<_>>()?;
    let sent = Command::new("kill").args(["-TERM", &agents[0].id().to_string()]).status()?;
    ensure!(sent.success());
    agents[0].printed("draining")?;
    for _ in 0..20 {
        // client-go repeats a request after 503, so the exit code does not show it.
        let output = kubectl.run(&["get", "--raw", "/api/v1/namespaces/default", "-v=6"])?;
        ensure!(output.code == 0 && output.stderr.contains("200 OK"), "{}", output.stderr);
        ensure!(!output.stderr.contains("status=\"503"), "{}", output.stderr);
    }
    // Some may have ended, as all watches of an ending agent do in the course of its drain. kubectl would show an error.
    for watch in watches {
        let shown = kubectl::end(watch)?;
        ensure!(shown.is_empty(), "{shown}");
    }
    Ok(())
}

/// Agents are killed under load. A client that sends a failed request again at once gets its response. Prints how many requests failed
/// once.
#[expect(clippy::print_stdout, reason = "the number is for whoever reads the log of the suite")]
fn no_request_fails_twice(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[ENTRY], &["shared"])?;
    let mut agents = replicas(&site, host)?;
    let kubectl = client(&site)?;
    let credentials = Credentials::of(&kubectl)?;
    let curl = Curl::directly(&format!("127.0.0.1:{}/clusters/shared", site.ports.endpoint), &credentials.authority)
        .with_certificate(&credentials.certificate, &credentials.key);
    let (stop, sent, failed) = (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::default());
    let clients: Vec<JoinHandle<anyhow::Result<()>>> = (0..4)
        .map(|_| {
            let (curl, stop) = (curl.clone(), Arc::clone(&stop));
            let (sent, failed): (Arc<AtomicUsize>, Arc<AtomicUsize>) = (Arc::clone(&sent), Arc::clone(&failed));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    sent.fetch_add(1, Ordering::Relaxed);
                    if curl.get(PATH).is_ok_and(|response| response.code == 200) {
                        continue;
                    }
                    failed.fetch_add(1, Ordering::Relaxed);
                    let second = curl.get(PATH)?;
                    ensure!(second.code == 200, "{second:?}");
                }
                Ok(())
            })
        })
        .collect();
    for kill in 0..KILLS {
        let ending = kill % agents.len();
        agents[ending].kill()?;
        pause(Duration::from_millis(500));
        agents[ending] = replica(&site, host, &format!("site-r-{}", kill + 3))?;
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().map_err(|_| anyhow::anyhow!("a client has panicked"))??;
    }
    let (sent, failed) = (sent.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
    println!("{failed} of {sent} requests failed once while agents were killed {KILLS} times");
    ensure!(sent > 100, "only {sent} requests");
    Ok(())
}

/// Two agents that serve the cluster.
fn replicas(site: &Site, host: &HostCluster) -> anyhow::Result<Vec<Process>> {
    ["site-r-1", "site-r-2"].map(|file| replica(site, host, file)).into_iter().collect()
}

/// An agent that serves the cluster. `file` is the name of its files.
fn replica(site: &Site, host: &HostCluster, file: &str) -> anyhow::Result<Process> {
    let body = format!(
        "drain: 30s\nhost: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        Nodes::Location("beijing").entry("shared")
    );
    let mut agent = site.agent_as("site-r", file, &body)?;
    agent.printed("tunnel established")?;
    agent.printed("the virtual cluster is provisioned")?;
    Ok(agent)
}

/// A client of the cluster.
fn client(site: &Site) -> anyhow::Result<Kubectl> {
    let kubeconfig = site.file("shared.kubeconfig");
    let (config, output) = (site.file("server.yaml").display().to_string(), kubeconfig.display().to_string());
    site::atoll(&["kubeconfig", "shared", "--admin", "--server-config", &config, "-o", &output])?;
    let kubectl = Kubectl::new(kubeconfig);
    eventually(Duration::from_secs(5), || kubectl.ok(&["get", "secrets", "-n", "default"]).map(drop))?;
    Ok(kubectl)
}

/// Creates namespaces, each immediately followed by an object in it.
fn fill(kubectl: &Kubectl, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    let items: Vec<Value> = numbers
        .clone()
        .flat_map(|number| {
            let name = format!("replicas-{number}");
            [
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": name}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second", "namespace": name}}),
            ]
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let created = kubectl.ok_with(&["create", "-f", "-", "-o", "name"], &list)?;
    ensure!(created.lines().count() == 3 * numbers.len(), "{created}");
    Ok(())
}
