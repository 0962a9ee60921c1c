//! A host is lost. The virtual cluster continues on another one, from an export.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context, ensure};
use atoll_tests::{HostCluster, Kubectl, eventually};

use super::world::{AGENT, IN_FORCE, agent, clusters, gear, gears, server, stop, text};

const CLUSTER: &str = "cl-moving";
const GROUP: &str = "restore.example.com";
const ID: [&str; 4] = ["get", "namespace", "kube-system", "-o=jsonpath={.metadata.uid}"];

/// What users have in the virtual cluster.
const CONTENT: &str = r"
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: shop}
stringData: {password: secret-value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {text: 'on', lines: 'a

  ---

  b'}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: x, envFrom: [{secretRef: {name: password}}]}]
";

pub(super) fn keeps_the_identity(host: &HostCluster) -> anyhow::Result<()> {
    let site = server(&[CLUSTER])?;
    let running = agent(&site, AGENT, host, &[(CLUSTER, "beijing")])?;
    let client = site.administrator(CLUSTER)?;
    let identity = fill(&client)?;
    let before = content(&client)?;

    // Without the flag, there are no Secrets. With it, the file is readable only for its owner.
    let (open, file) = (site.file("without.yaml"), site.file("export.yaml"));
    let counted = clusters(host, &["export", CLUSTER, "-o", text(&open)?], 0)?;
    ensure!(counted.contains("1 Deployment") && counted.contains("Secrets are not exported"), "{counted}");
    ensure!(!std::fs::read_to_string(&open)?.contains("password:"), "there is a Secret");
    clusters(host, &["export", CLUSTER, "--include-secrets", "-o", text(&file)?], 0)?;
    ensure!(std::fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600, "others can read the file");
    let exported = std::fs::read_to_string(&file)?;
    for never in ["managedFields", "resourceVersion:", "creationTimestamp", "kind: \"ReplicaSet\"", "kind: \"Pod\""] {
        ensure!(!exported.contains(never), "the export has {never}");
    }

    // The host is lost: nothing of it is used any more.
    stop(running)?;
    let other = HostCluster::up(1)?;
    let plan = clusters(&other, &["adopt", CLUSTER, "-f", text(&file)?, "--dry-run"], 0)?;
    ensure!(plan.contains("when the agent runs, create Deployment shop-cl-moving/web"), "{plan}");
    ensure!(clusters(&other, &["list"], 0)?.contains("has nothing"), "a dry run has changed something");
    let adopt = ["adopt", CLUSTER, "-f", text(&file)?];
    // No agent has created the admission policies yet, so no pod may start.
    for created in [false, true] {
        let restored = clusters(&other, &adopt, 1)?;
        ensure!(restored.contains(", 0 failed") && restored.contains("start the agent"), "{restored}");
        ensure!(restored.starts_with("0 objects created, 0 changed") == created, "{restored}");
    }
    let workloads = other.kubectl().ok(&["get", "deployments,pods", "-n", "shop-cl-moving", "-o", "name"])?;
    ensure!(workloads.is_empty(), "{workloads}");

    // The same kubeconfig works.
    let _running = agent(&site, "other", &other, &[(CLUSTER, "beijing")])?;
    let now = eventually(IN_FORCE, || client.ok(&ID))?;
    ensure!(now == identity, "another identity: {now}");
    let restored = eventually(IN_FORCE, || clusters(&other, &adopt, 0))?;
    ensure!(restored.contains(", 0 failed") && restored.contains(&identity), "{restored}");
    let again = clusters(&other, &adopt, 0)?;
    ensure!(again.starts_with("0 objects created, 0 changed"), "{again}");
    eventually(IN_FORCE, || {
        ensure!(client.ok(&ID)? == identity, "another identity: {}", client.ok(&ID)?);
        ensure!(content(&client)? == before, "the content differs:\n{}\n{before}", content(&client)?);
        Ok(())
    })?;
    eventually(IN_FORCE, || {
        client.ok(&["wait", "deployment/web", "-n", "shop", "--for=condition=Available", "--timeout=5s"])
    })?;
    identity_holds(&client, &identity)?;

    // The former host has everything already.
    let present = clusters(host, &["adopt", CLUSTER, "-f", text(&file)?], 0)?;
    ensure!(present.contains(" created, ") && present.contains(", 0 failed"), "{present}");
    Ok(())
}

/// Returns the identity.
fn fill(client: &Kubectl) -> anyhow::Result<String> {
    client.ok(&["create", "namespace", "shop"])?;
    client.ok_with(&["apply", "-f", "-"], CONTENT)?;
    client.ok(&["create", "clusterrole", "readers", "--verb=get", "--resource=configmaps"])?;
    client.ok(&["create", "clusterrolebinding", "readers", "--clusterrole=readers", "--user=jane"])?;
    client.ok(&["create", "rolebinding", "jane", "-n", "shop", "--clusterrole=view", "--user=jane"])?;
    client.ok_with(&["apply", "-f", "-"], &gears(GROUP, CLUSTER))?;
    client.ok(&["annotate", &format!("crd/gears.{GROUP}"), &format!("large={}", "x".repeat(1000))])?;
    eventually(IN_FORCE, || client.ok_with(&["apply", "-f", "-"], &gear(GROUP, "main")))?;
    client.ok(&ID)
}

/// What must be the same afterwards.
fn content(client: &Kubectl) -> anyhow::Result<String> {
    let mut all = String::new();
    for args in [
        ["get", "secret", "password", "-n=shop", "-o=jsonpath={.data.password}"],
        ["get", "configmap", "settings", "-n=shop", "-o=jsonpath={.data}"],
        [
            "get",
            "deployment",
            "web",
            "-n=shop",
            "-o=jsonpath={.spec.template.spec.containers[0].envFrom} {.metadata.labels}",
        ],
        ["get", "clusterrole", "readers", "-A=false", "-o=jsonpath={.rules}"],
        ["get", "clusterrolebinding", "readers", "-A=false", "-o=jsonpath={.subjects} {.roleRef}"],
        ["get", "rolebinding", "jane", "-n=shop", "-o=jsonpath={.subjects} {.roleRef}"],
        [
            "get",
            &format!("crd/gears.{GROUP}"),
            "--ignore-not-found",
            "-A=false",
            "-o=jsonpath={.metadata.labels} {.metadata.annotations.large}",
        ],
        ["get", &format!("gears.{GROUP}"), "main", "-A=false", "-o=jsonpath={.metadata.name} {.spec}"],
    ] {
        all.push_str(&client.ok(&args)?);
        all.push('\n');
    }
    all.push_str(&client.ok(&["auth", "can-i", "get", "configmaps", "-A", "--as=jane"])?);
    Ok(all)
}

/// In each form, and when a client sends it back.
fn identity_holds(client: &Kubectl, identity: &str) -> anyhow::Result<()> {
    let list = client.ok(&[
        "get",
        "namespaces",
        "--field-selector=metadata.name=kube-system",
        "-o=jsonpath={.items[*].metadata.uid}",
    ])?;
    ensure!(list == identity, "{list}");
    let object = client.ok(&["get", "namespace", "kube-system", "-o", "json"])?;
    ensure!(!object.contains("atoll.dev"), "{object}");
    client.ok_with(&["replace", "-f", "-"], &object)?;
    client.ok(&["label", "namespace", "kube-system", "restored=yes"])?;
    let uid = client.ok(&ID)?;
    ensure!(uid == identity, "{uid}");
    let path = "/api/v1/namespaces?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dkube-system";
    let watched = client.ok(&["get", "--raw", path])?;
    ensure!(watched.contains(identity), "{watched}");
    let first = watched.lines().next().context("no event")?;
    ensure!(first.contains("\"ADDED\""), "{first}");
    // A cache from the former host must list again, instead of waiting until the new one has the same version.
    let future = "/api/v1/namespaces/shop/configmaps?watch=true&timeoutSeconds=1&resourceVersion=999999999";
    let expired = client.fails(&["get", "--raw", future])?;
    ensure!(expired.contains("from before the cluster was restored"), "{expired}");
    let version = client.ok(&["get", "configmaps", "-n=shop", "-o=jsonpath={.metadata.resourceVersion}"])?;
    client.ok(&["get", "--raw", &future.replace("999999999", &version)])?;
    Ok(())
}
