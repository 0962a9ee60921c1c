//! All kinds of workloads, their dependencies, and quotas: propagated to two members, and removed.

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, VirtualSite, eventually};
use serde_json::Value;

use super::pair::Pair;
use super::{CLUSTERS, SETTLED};

/// Karmada also propagates some objects that the policy does not name: mounted objects, namespaces and quotas.
const MANIFEST: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: kinds}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: kinds, namespace: kinds}
spec:
  propagateDeps: true
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: web}
  - {apiVersion: apps/v1, kind: StatefulSet, name: store}
  - {apiVersion: apps/v1, kind: DaemonSet, name: each}
  - {apiVersion: batch/v1, kind: Job, name: once}
  - {apiVersion: batch/v1, kind: CronJob, name: often}
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: kinds}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: kinds}
stringData: {key: "0000"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: kinds}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, env: [{name: KEY, valueFrom: {secretKeyRef: {name: key, key: key}}}]}]
      volumes: [{name: settings, configMap: {name: settings}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: kinds}
spec:
  replicas: 2
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: store, image: store}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each, namespace: kinds}
spec:
  selector: {matchLabels: {app: each}}
  template:
    metadata: {labels: {app: each}}
    spec: {containers: [{name: each, image: each}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: kinds}
spec:
  template:
    metadata: {labels: {app: once}}
    spec: {restartPolicy: Never, containers: [{name: once, image: once}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: often, namespace: kinds}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: often, image: often}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: limits, namespace: kinds}
spec:
  overall: {configmaps: "100"}
  staticAssignments:
  - {clusterName: ke-beijing, hard: {configmaps: "60"}}
  - {clusterName: ke-hangzhou, hard: {configmaps: "40"}}
"#;

/// The numbers of ready or finished pods in the status of each workload.
const COUNTS: [(&str, &str, &str); 5] = [
    ("deployment/web", "{.status.readyReplicas}", "1"),
    ("statefulset/store", "{.status.readyReplicas}", "2"),
    ("daemonset/each", "{.status.desiredNumberScheduled} {.status.numberReady}", "2 2"),
    ("job/once", "{.status.succeeded}", "1"),
    ("cronjob/often", "{.spec.schedule}", "0 0 1 1 *"),
];

pub(super) fn every_kind_of_work_arrives(site: &VirtualSite) -> anyhow::Result<()> {
    let pair = Pair::join(site)?;
    let karmada = pair.karmada.kubectl();
    karmada.ok_with(&["apply", "-f", "-"], MANIFEST)?;
    eventually(SETTLED, || pair.members.iter().try_for_each(|(name, member)| works(member).context(*name)))?;
    for (name, member) in &pair.members {
        is_counted_again(member).context(*name)?;
    }
    eventually(SETTLED, || quotas_are_counted(karmada))?;
    eventually(SETTLED, || bindings_are_healthy(karmada))?;
    pods_stay_at_home(&pair.host)?;

    // Karmada also updates a dependency.
    let green = r#"{"data": {"colour": "green"}}"#;
    karmada.ok(&["patch", "configmap", "settings", "-n=kinds", "--type=merge", "-p", green])?;
    eventually(SETTLED, || pair.members.iter().try_for_each(|(_, member)| has_colour(member, "green")))?;

    karmada.ok(&["delete", "deployment,statefulset,daemonset,job,cronjob", "--all", "-n=kinds"])?;
    eventually(SETTLED, || {
        let kinds = ["get", "deployments,statefulsets,daemonsets,jobs,cronjobs,pods", "-A", "-o=name"];
        let left = pair.host.ok(&kinds)?;
        ensure!(left.is_empty(), "left on the host: {left}");
        Ok(())
    })?;
    karmada.ok(&["delete", "namespace", "kinds", "--wait=false"])?;
    pair.nothing_is_left_of(&["kinds"])?;
    pair.leave(0)?;
    pair.leave(1)?;
    pair.nothing_is_left_of(&["karmada"])
}

/// All objects are in this member, and work.
fn works(member: &Kubectl) -> anyhow::Result<()> {
    for (name, shown, wanted) in COUNTS {
        let seen = member.ok(&["get", name, "-n=kinds", &format!("-o=jsonpath={shown}")])?;
        ensure!(seen == wanted, "{name} is at {seen:?}, not {wanted:?}");
    }
    has_colour(member, "blue")?;
    let key = member.ok(&["get", "secret", "key", "-n=kinds", "-o=jsonpath={.data.key}"])?;
    ensure!(key == "MDAwMA==", "the key is {key}");
    Ok(())
}

fn has_colour(member: &Kubectl, wanted: &str) -> anyhow::Result<()> {
    let seen = member.ok(&["get", "configmap", "settings", "-n=kinds", "-o=jsonpath={.data.colour}"])?;
    ensure!(seen == wanted, "the colour is {seen:?}, not {wanted:?}");
    Ok(())
}

/// Lets the host count the ConfigMaps of a member again. It may have missed one that was created at the same time as the
/// quota: a creation counts only if the API server knows the quota already, and kube-controller-manager counts again only
/// after deletions (`resource_quota_monitor.go` in Kubernetes' `pkg/controller/resourcequota`), or every five minutes.
fn is_counted_again(member: &Kubectl) -> anyhow::Result<()> {
    member.ok(&["create", "configmap", "counted", "-n=kinds"])?;
    member.ok(&["delete", "configmap", "counted", "-n=kinds"])?;
    Ok(())
}

/// Each member has its part of the quota, and reports the usage: the ConfigMap of the manifest, and the one that every
/// namespace has.
fn quotas_are_counted(karmada: &Kubectl) -> anyhow::Result<()> {
    let quota = karmada.ok(&["get", "federatedresourcequota", "limits", "-n=kinds", "-o=json"])?;
    let status = &serde_json::from_str::<Value>(&quota)?["status"];
    ensure!(status["overallUsed"]["configmaps"] == "4", "used: {status}");
    let parts = status["aggregatedStatus"].as_array().context("no parts")?;
    for (member, hard) in CLUSTERS.iter().map(|(member, _)| *member).zip(["60", "40"]) {
        let part = parts.iter().find(|part| part["clusterName"] == *member).context("no part of a member")?;
        ensure!(part["hard"]["configmaps"] == hard && part["used"]["configmaps"] == "2", "quota of {member}: {part}");
    }
    Ok(())
}

/// Karmada reports all workloads as applied and healthy in both members.
fn bindings_are_healthy(karmada: &Kubectl) -> anyhow::Result<()> {
    let bindings: Value = serde_json::from_str(&karmada.ok(&["get", "resourcebindings", "-n=kinds", "-o=json"])?)?;
    let bindings = bindings["items"].as_array().context("no list")?;
    // Five workloads and two dependencies.
    ensure!(bindings.len() == 7, "{} bindings", bindings.len());
    for binding in bindings {
        let parts = binding["status"]["aggregatedStatus"].as_array().map_or(&[][..], Vec::as_slice);
        let is_well = |part: &Value| part["applied"] == true && part["health"] != "Unhealthy";
        ensure!(parts.len() == 2 && parts.iter().all(is_well), "{}: {parts:?}", binding["metadata"]["name"]);
    }
    Ok(())
}

fn pods_stay_at_home(host: &Kubectl) -> anyhow::Result<()> {
    for (member, location) in CLUSTERS {
        let namespace = format!("-n=kinds-{member}");
        let shown = "-o=jsonpath={range .items[*]}{.spec.nodeName} {.spec.nodeSelector.location}{\"\\n\"}{end}";
        let pods = host.ok(&["get", "pods", &namespace, shown])?;
        let at_home = |line: &str| line.starts_with(location) && line.ends_with(&format!(" {location}"));
        // One pod of the Deployment, two of the StatefulSet, two of the DaemonSet, and one of the Job.
        ensure!(pods.lines().count() == 6 && pods.lines().all(at_home), "pods of {member}: {pods}");
    }
    Ok(())
}
