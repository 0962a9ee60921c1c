//! The commands of `atoll` for operators: status, check and explain.

use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, paths, site};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("operator::status_follows_the_agent", host, status_follows_the_agent),
        case("operator::check_reports_mistakes", host, check_reports_mistakes),
        case("operator::check_tests_the_host", host, check_tests_the_host),
        case("operator::explain_equals_the_audit_log", host, explain_equals_the_audit_log),
    ]
}

const AGENT: &str = "site-o";
const CLUSTER: &str = "operated";
const NODES: Nodes = Nodes::Location("beijing");
/// The time limit until proxy-server and agent know each other.
const CONDITION_TIMEOUT: Duration = Duration::from_secs(20);

fn status_follows_the_agent(host: &HostCluster) -> anyhow::Result<()> {
    let site = start()?;
    let server = format!("http://127.0.0.1:{}", site.ports.admin);

    let before = atoll(&["status", "--admin", &server])?;
    ensure!(before.status.code() == Some(1), "{before:?}");
    let text = String::from_utf8_lossy(&before.stdout);
    ensure!(
        text.contains("0 of 1 clusters have an agent connected") && text.contains("has no agent connected (none since"),
        "{text}"
    );

    let mut agent = start_agent(&site, host)?;
    let admin = site.admin(AGENT)?;
    let shown = eventually(CONDITION_TIMEOUT, || site::atoll(&["status", "--admin", &server, "-o", "json"]))?;
    let document: Value = serde_json::from_str(&shown)?;
    ensure!(document["kind"] == "ServerStatus" && document["ready"] == true, "{shown}");
    ensure!(document["clusters"][0]["agent"] == AGENT && document["tunnels"][0]["clusters"][0] == CLUSTER, "{shown}");
    ensure!(document["certificates"][2]["name"] == "clientCA of operated", "{shown}");
    ensure!(!shown.contains("PRIVATE KEY"), "{shown}");

    // The status of the agent: the cluster is provisioned, with four namespaces and two nodes. Each namespace has a ConfigMap and
    // a ServiceAccount, which together have less than one MiB.
    eventually(CONDITION_TIMEOUT, || {
        let text = site::atoll(&["status", "--admin", &admin, "-o", "wide"])?;
        ensure!(text.contains("1 of 1 tunnels up, 1 of 1 virtual clusters ready"), "{text}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let selector: Vec<_> = NODES.selector().iter().map(|(key, value)| format!("{key}={value}")).collect();
        let line = format!("operated yes 2 4 15 1 {} ", selector.join(","));
        ensure!(text.lines().any(|text| words(text).starts_with(&line)), "{line} is not in:\n{text}");
        Ok(())
    })?;

    // The agent ends: there is no response from it, and the proxy-server reports that no agent is connected.
    agent.terminate()?;
    let gone = atoll(&["status", "--admin", &admin])?;
    let why = String::from_utf8_lossy(&gone.stderr);
    ensure!(gone.status.code() == Some(2) && why.contains("no response from"), "{gone:?}");
    eventually(CONDITION_TIMEOUT, || {
        let away = atoll(&["status", "--admin", &server])?;
        let text = String::from_utf8_lossy(&away.stdout);
        ensure!(
            away.status.code() == Some(1) && text.contains("cluster operated has no agent connected (since 20"),
            "{text}"
        );
        Ok(())
    })?;

    let _back = start_agent(&site, host)?;
    let admin = site.admin(AGENT)?;
    eventually(CONDITION_TIMEOUT, || site::atoll(&["status", "--admin", &server]).map(drop))?;
    eventually(CONDITION_TIMEOUT, || site::atoll(&["status", "--admin", &admin]).map(drop))?;
    let mut server = site.server;
    server.kill()?;
    eventually(CONDITION_TIMEOUT, || {
        let lonely = atoll(&["status", "--admin", &admin])?;
        let text = String::from_utf8_lossy(&lonely.stdout);
        ensure!(lonely.status.code() == Some(1) && text.contains("0 of 1 tunnels up"), "{text}");
        ensure!(text.contains("cannot connect to"), "{text}");
        Ok(())
    })
}

fn check_reports_mistakes(host: &HostCluster) -> anyhow::Result<()> {
    let site = start()?;
    // Writes the configuration file.
    drop(start_agent(&site, host)?);
    for (name, warnings) in [("server.yaml", "no warnings"), ("site-o.yaml", "1 warning")] {
        let output = site::atoll(&["check", path(&site.file(name))?])?;
        ensure!(output.ends_with(&format!("{name}: no mistakes, {warnings}\n")), "{output}");
        // A kubelet may set the label that selects the nodes in these suites.
        ensure!(warnings == "no warnings" || output.contains("node-restriction.kubernetes.io/"), "{output}");
    }

    // The configurations in `configs`, with the files that they name.
    for name in ["proxy-server.yaml", "proxy-agent.yaml"] {
        std::fs::copy(paths::workspace().join("configs").join(name), site.file(name))?;
    }
    std::fs::copy(host.agent_kubeconfig(), site.file("host.kubeconfig"))?;
    for name in ["karmada.kubeconfig", "audit-webhook.kubeconfig"] {
        std::fs::copy(host.agent_kubeconfig(), site.file(name))?;
    }
    std::fs::copy(site.file("serving-ca.crt"), site.file("collector-ca.crt"))?;
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    std::fs::write(site.file("audit-policy.yaml"), policy)?;
    for args in [["cluster", "ke-beijing"], ["cluster", "ke-hangzhou"], ["agent", "site-a"], ["agent", "proxy-servers"]]
    {
        site::atoll(&["certs", args[0], args[1], "--dir", path(site.dir())?])?;
    }
    for name in ["proxy-server.yaml", "proxy-agent.yaml"] {
        site::atoll(&["check", path(&site.file(name))?])?;
    }

    // Each mistake has its line, and the binary refuses the file too.
    let good = std::fs::read_to_string(site.file("server.yaml"))?;
    let bad = good.replace("key: serving-ca.key", "key: agent-ca.key").replace("drain: 2s", "drain: soon");
    std::fs::write(site.file("bad.yaml"), bad.replace("drain: soon", "drain: 2s"))?;
    let output = atoll(&["check", path(&site.file("bad.yaml"))?])?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code() == Some(1) && text.contains("bad.yaml:4:") && text.contains("1 mistake"), "{text}");
    std::fs::write(site.file("bad.yaml"), &bad)?;
    let output = atoll(&["check", path(&site.file("bad.yaml"))?])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let refused =
        Command::new(paths::binary("proxy-server")).args(["--config", path(&site.file("bad.yaml"))?]).output()?;
    let refused = String::from_utf8_lossy(&refused.stderr);
    let mistake = refused.lines().next().context("the proxy-server printed nothing")?;
    ensure!(text.contains("bad.yaml:7:") && text.contains(mistake), "{text}\n{refused}");
    Ok(())
}

fn check_tests_the_host(host: &HostCluster) -> anyhow::Result<()> {
    let site = start()?;
    drop(start_agent(&site, host)?);
    let file = site.file("site-o.yaml");
    // Other tests on this host can cause weaknesses. `isolation` tests a host without weaknesses.
    let ran = || anyhow::Ok(String::from_utf8(atoll(&["check", "--host", path(&file)?])?.stdout)?);
    let output = ran()?;
    ensure!(output.contains(": no mistakes, no warnings, "), "{output}");

    // A virtual cluster without nodes, one that shares nodes, and a binding for all users.
    let text = std::fs::read_to_string(&file)?;
    let more = "{name: empty, nodeSelector: {location: nowhere}}, {name: twice, nodeSelector: {location: beijing}}]";
    let list = text.trim_end().strip_suffix(']').context("the list is last in the file")?;
    std::fs::write(&file, format!("{list}, {more}\n"))?;
    let binding = ["operated-open", "--clusterrole=view", "--group=system:authenticated"];
    let kubectl = host.kubectl();
    kubectl.ok(&[&["create", "clusterrolebinding"], &binding[..]].concat())?;
    let output = ran();
    kubectl.ok(&["delete", "clusterrolebinding", "operated-open"])?;
    let output = output?;
    for warning in [
        "virtual cluster empty: no node of the host matches location=nowhere",
        "virtual cluster twice shares nodes with operated",
        "ClusterRoleBinding operated-open grants view to system:authenticated",
    ] {
        ensure!(output.contains(warning), "{warning}\n{output}");
    }

    // A user with fewer rights than the agent needs.
    kubectl.ok(&["create", "serviceaccount", "operated-weak", "-n", "default"])?;
    let token = kubectl.ok(&["create", "token", "operated-weak", "-n", "default"])?;
    let weak = site.file("weak.kubeconfig");
    std::fs::copy(host.agent_kubeconfig(), &weak)?;
    let weak_kubectl = Kubectl::new(weak.clone());
    let user = weak_kubectl.ok(&["config", "view", "-o", "jsonpath={.contexts[0].context.user}"])?;
    weak_kubectl.ok(&["config", "unset", &format!("users.{user}")])?;
    weak_kubectl.ok(&["config", "set-credentials", &user, &format!("--token={}", token.trim())])?;
    let text = std::fs::read_to_string(&file)?.replace(path(&host.agent_kubeconfig())?, path(&weak)?);
    std::fs::write(&file, text)?;
    let output = atoll(&["check", "--host", path(&file)?])?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code() == Some(1) && text.contains("the agent lacks"), "{text}");
    ensure!(text.contains("impersonate users"), "{text}");
    Ok(())
}

/// The audit log of the host must contain the request that `atoll explain` prints.
fn explain_equals_the_audit_log(host: &HostCluster) -> anyhow::Result<()> {
    let site = start()?;
    let mut agent = start_agent(&site, host)?;
    agent.printed("the virtual cluster is provisioned")?;
    let kubeconfig = site.file("operated.kubeconfig");
    let (config, text) = (site.file("server.yaml"), path(&kubeconfig)?);
    site::atoll(&["kubeconfig", CLUSTER, "--admin", "--server-config", path(&config)?, "-o", text])?;
    let kubectl = Kubectl::new(kubeconfig);
    eventually(CONDITION_TIMEOUT, || kubectl.ok(&["create", "namespace", "edge"]).map(drop))?;

    let file = site.file("site-o.yaml");
    let explain = |more: &[&str]| {
        let fixed = ["explain", "--config", path(&file)?, "--cluster", CLUSTER];
        site::atoll(&[&fixed[..], more].concat())
    };
    let sends = |output: &str| {
        let line = output.lines().find_map(|line| line.trim_start().strip_prefix("sends:"));
        let (method, target) = line.map(str::trim).and_then(|line| line.split_once(' ')).context(output.to_owned())?;
        anyhow::Ok((method.to_lowercase(), target.to_owned()))
    };
    for target in [
        "/api/v1/namespaces/edge/pods?limit=7",
        "/api/v1/nodes?limit=7",
        "/api/v1/pods?fieldSelector=metadata.namespace%3Dedge&limit=7",
        "/api/v1/namespaces/edge",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/view",
        "/version?operated=1",
    ] {
        let (_, expected) = sends(&explain(&["GET", target])?)?;
        kubectl.ok(&["get", "--raw", target])?;
        in_audit(host, &expected, "proxy-agent", false)?;
    }

    // An object, and the fields that the host has stored.
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: explained, namespace: edge}\n\
               spec: {containers: [{name: c, image: nginx}]}\n";
    std::fs::write(site.file("pod.yaml"), pod)?;
    let output = explain(&["-f", path(&site.file("pod.yaml"))?])?;
    let (method, expected) = sends(&output)?;
    ensure!((&*method, &*expected) == ("post", "/api/v1/namespaces/edge-operated/pods"), "{output}");
    kubectl.ok_with(&["create", "-f", "-"], pod)?;
    in_audit(host, &format!("{expected}?"), "vc:operated:admin", true)?;
    let stored = ["get", "pod", "explained", "-n", "edge-operated", "-o", "jsonpath={.spec.nodeSelector}"];
    let stored: Value = serde_json::from_str(&host.kubectl().ok(&stored)?)?;
    ensure!(stored == serde_json::to_value(NODES.selector())?, "{stored}");
    ensure!(output.contains("metadata.namespace: edge -> edge-operated"), "{output}");
    ensure!(output.contains("spec.nodeSelector.location: + beijing"), "{output}");

    // The refusal is the same as that of the agent.
    let refused =
        atoll(&["explain", "--config", path(&file)?, "--cluster", CLUSTER, "DELETE", "/api/v1/nodes/beijing-1"])?;
    let output = String::from_utf8_lossy(&refused.stdout);
    let shown = kubectl.fails(&["delete", "node", "beijing-1"])?;
    let why = "nodes belong to the operator of the host cluster";
    ensure!(refused.status.code() == Some(1) && output.contains(why) && shown.contains(why), "{output}\n{shown}");
    kubectl.ok(&["delete", "namespace", "edge", "--wait=false"])?;
    Ok(())
}

/// Waits for this request of the agent in the audit log of the host. `user` is the impersonated user or the user agent.
fn in_audit(host: &HostCluster, target: &str, user: &str, is_prefix: bool) -> anyhow::Result<()> {
    let log = host.dir().join("audit.log");
    eventually(CONDITION_TIMEOUT, || {
        let text = std::fs::read_to_string(&log)?;
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found = events.into_iter().any(|event| {
            let uri = event["requestURI"].as_str().unwrap_or_default();
            let is_target = if is_prefix { uri.starts_with(target.trim_end_matches('?')) } else { uri == target };
            let agent = event["user"]["username"].as_str().unwrap_or_default().contains("proxy-agent");
            is_target && agent && event.to_string().contains(user)
        });
        ensure!(found, "no request {target} of {user} in {}", log.display());
        Ok(())
    })
}

fn start() -> anyhow::Result<Site> {
    let entry = format!(
        "{{name: {CLUSTER}, agents: [{AGENT}], clientCA: {{certificate: clusters/{CLUSTER}/client-ca.crt, \
         key: clusters/{CLUSTER}/client-ca.key}}}}"
    );
    Site::start(&[&entry], &[CLUSTER])
}

fn start_agent(site: &Site, host: &HostCluster) -> anyhow::Result<Process> {
    let body = format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        NODES.entry(CLUSTER)
    );
    site.agent(AGENT, &body)
}

/// Runs `atoll`.
fn atoll(args: &[&str]) -> anyhow::Result<Output> {
    Command::new(paths::binary("atoll")).args(args).output().context("cannot run atoll")
}

fn path(path: &std::path::Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
