//! `atoll check --host`: its report about a host without weaknesses, and about one with all kinds of weaknesses.
//!
//! It uses its own host, because the weaknesses affect everything that runs there.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Kubectl, Site, eventually, paths, site};
use libtest_mimic::Trial;
use serde_json::{Value, json};

const AGENT: &str = "site-i";
const CLUSTER: &str = "tidy";
/// A label that kubelets may not set on their nodes.
const SITE: &str = "node-restriction.kubernetes.io/site";
const WEAK: &str = include_str!("isolation/weak.yaml");

/// A ClusterRole that a virtual cluster can create, and that is no weakness of the host.
const TENANTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: edge, labels: {team: ops, weak.example.com/skip: \"true\"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: mine, labels: {rbac.authorization.k8s.io/aggregate-to-view: \"true\"}}
aggregationRule: {clusterRoleSelectors: [{}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: mine}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"system:authenticated\"}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"system:serviceaccounts\"}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: mine, namespace: edge}
spec: {podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: ops}}}]}]}
";

pub(crate) fn trial() -> Trial {
    crate::trial::trial("isolation::weaknesses_are_reported", weaknesses_are_reported)
}

fn weaknesses_are_reported() -> anyhow::Result<()> {
    let host = HostCluster::up(1)?;
    let operator = host.kubectl();
    operator.ok(&["label", "nodes", "-l", "location=beijing", &format!("{SITE}=beijing")])?;
    let entry = format!(
        "{{name: {CLUSTER}, agents: [{AGENT}], clientCA: {{certificate: clusters/{CLUSTER}/client-ca.crt, \
         key: clusters/{CLUSTER}/client-ca.key}}}}"
    );
    let site = Site::start(&[&entry], &[CLUSTER])?;
    let of_host = format!("host: {{kubeconfig: {}}}", text(&host.agent_kubeconfig())?);
    let good = format!("{{name: {CLUSTER}, nodeSelector: {{location: beijing, {SITE}: beijing}}}}");
    let mut agent = site.agent(AGENT, &format!("{of_host}\nvirtualClusters: [{good}]"))?;
    agent.printed("the virtual cluster is provisioned")?;
    let kubeconfig = site.file("tidy.kubeconfig");
    let server = site.file("server.yaml");
    site::atoll(&["kubeconfig", CLUSTER, "--admin", "--server-config", text(&server)?, "-o", text(&kubeconfig)?])?;
    let tenant = Kubectl::new(kubeconfig);
    eventually(CONDITION_TIMEOUT, || tenant.ok(&["get", "namespaces"]).map(drop))?;
    tenant.ok_with(&["apply", "-f", "-"], TENANTS)?;

    // Without weaknesses, with the credential of the agent and with that of an administrator.
    let file = site.file(&format!("{AGENT}.yaml"));
    let clean = check(&["--host", text(&file)?])?;
    let expected = format!("{}: no mistakes, no warnings, no weaknesses\n", file.display());
    ensure!(clean.status.code() == Some(0) && String::from_utf8_lossy(&clean.stdout) == expected, "{clean:?}");
    let config = std::fs::read_to_string(&file)?;
    let elsewhere = site.file("elsewhere.yaml");
    std::fs::write(&elsewhere, config.replace(&of_host, "host: {inCluster: true}"))?;
    let asked = check(&["--host-kubeconfig", text(&host.dir().join("host.kubeconfig"))?, text(&elsewhere)?])?;
    ensure!(asked.status.code() == Some(0), "{asked:?}");

    // With all kinds of weaknesses, also in the configuration.
    operator.ok_with(&["create", "-f", "-"], WEAK)?;
    operator.ok(&["delete", "namespace", "weak-gone", "--wait=false"])?;
    eventually(CONDITION_TIMEOUT, || finalize(&operator, "weak-gone"))?;
    let phase = ["get", "persistentvolume", "weak-volume", "-o", "jsonpath={.status.phase}"];
    eventually(CONDITION_TIMEOUT, || {
        ensure!(operator.ok(&phase)? == "Available");
        Ok(())
    })?;
    let (careless, list) = (site.file("careless.yaml"), format!("virtualClusters: [{good}"));
    let second = "{name: careless, nodeSelector: {location: beijing}}";
    let config = config.replace(&list, &format!("{list}, {second}"));
    std::fs::write(&careless, config.replace(&of_host, &of_host.replace('}', ", unsafeDirectAccess: true}")))?;
    let found = check(&["--host", "-o", "json", text(&careless)?])?;
    let report: Value = serde_json::from_slice(&found.stdout).with_context(|| format!("{found:?}"))?;
    ensure!(found.status.code() == Some(1) && report["mistakes"] == 0, "{report:#}");
    for (check, message) in [
        ("direct-access", "with unsafeDirectAccess, the agent serves virtual clusters"),
        ("authorizer", "it allows every service account of every virtual cluster to read all Secrets"),
        ("open-binding", "ClusterRoleBinding weak-open grants weak-reader to system:authenticated"),
        ("open-binding", "RoleBinding default/weak-anonymous grants view to system:anonymous"),
        ("node-role", "ClusterRoleBinding weak-nodes lets every node read all Secrets"),
        ("node-label", "virtual cluster careless: a kubelet may choose the labels that select its nodes (location)"),
        ("shared-nodes", "virtual cluster careless shares nodes with tidy, such as beijing-1"),
        ("aggregation", "ClusterRole weak-everything aggregates rules that administrators of virtual clusters write"),
        ("admission", "weak-scanner, webhook scan.weak.example.com selects namespaces by weak.example.com/skip"),
        (
            "admission",
            "weak-injector, webhook inject.weak.example.com selects objects by the label weak.example.com/inject",
        ),
        ("admission", "ValidatingAdmissionPolicyBinding weak-policy selects namespaces by weak.example.com/enforce"),
        ("network-policy", "NetworkPolicy default/weak-ingress admits namespaces by team"),
        ("namespace-name", "other namespaces with names that this cluster would use: shop-tidy"),
        ("namespace-name", "not the host name that these labels imply: weak-stranger"),
        ("namespace-name", "virtual cluster tidy: the host has namespaces of virtual cluster un-tidy"),
        ("left-binding", "take effect when somebody creates the namespace: weak-gone/weak-left"),
        (
            "free-volume",
            "a claim of any virtual cluster can bind these PersistentVolumes, by name or by class: weak-volume",
        ),
        ("storage-secret", "choose a Secret: csi.storage.k8s.io/provisioner-secret-name in namespace storage"),
    ] {
        let is_it = |item: &&Value| item["check"] == check && text_of(item, "message").contains(message);
        let item = items(&report).find(is_it).with_context(|| format!("{check}: {message}\n{report:#}"))?;
        ensure!(!text_of(item, "advice").is_empty(), "{item}");
    }
    // There are no other items, in particular none about objects of Atoll.
    ensure!(items(&report).count() == 18 && report["weaknesses"] == 18, "{report:#}");

    // The text has the same findings, with the lines of the file. Accepted weaknesses are only counted.
    let output = check(&["--host", text(&careless)?])?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = config.lines().position(|line| line.contains(second)).context("the line is missing")? + 1;
    ensure!(lines.lines().any(|it| it.starts_with(&format!("{}:{line}:", careless.display()))), "{lines}");
    ensure!(lines.ends_with("no mistakes, no warnings, 18 weaknesses\n"), "{lines}");
    let kinds: BTreeSet<_> = items(&report).map(|item| text_of(item, "check").to_owned()).collect();
    let accepted: Vec<_> = kinds.iter().flat_map(|kind| ["--accept", kind]).collect();
    let output = check(&[&["--host", text(&careless)?], &accepted[..]].concat())?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.code() == Some(0) && lines.ends_with("no weaknesses, 18 accepted\n"), "{lines}");
    Ok(())
}

/// Removes the finalizers of a namespace that is being deleted, although it has objects.
fn finalize(operator: &Kubectl, name: &str) -> anyhow::Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
    let path = format!("/api/v1/namespaces/{name}/finalize");
    operator.ok_with(&["replace", "--raw", &path, "-f", "-"], &namespace.to_string())?;
    ensure!(operator.fails(&["get", "namespace", name])?.contains("NotFound"));
    Ok(())
}

fn items(report: &Value) -> impl Iterator<Item = &Value> {
    report["items"].as_array().into_iter().flatten()
}

fn text_of<'v>(item: &'v Value, key: &str) -> &'v str {
    item[key].as_str().unwrap_or_default()
}

/// Runs `atoll check`.
fn check(args: &[&str]) -> anyhow::Result<Output> {
    Command::new(paths::binary("atoll")).arg("check").args(args).output().context("cannot run atoll")
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
