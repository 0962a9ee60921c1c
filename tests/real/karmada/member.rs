//! What every member must support, from `karmadactl join` to `karmadactl unjoin`.

use anyhow::ensure;
use atoll_tests::{Karmada, Kubectl, eventually};
use serde_json::Value;

use super::SETTLED;

/// A template, and the policies for its members and their differences.
const MANIFEST: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: edge}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx, namespace: edge}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: nginx}
  - {apiVersion: v1, kind: Service, name: nginx}
  placement: {clusterAffinity: {clusterNames: [MEMBER]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: nginx, namespace: edge}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  overrideRules:
  - targetCluster: {clusterNames: [MEMBER]}
    overriders: {imageOverrider: [{component: Tag, operator: replace, value: "1.27"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: edge}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    # Nodes of the edge have a taint, and only a virtual cluster's guard tolerates it.
    spec: {tolerations: [{operator: Exists}], containers: [{name: nginx, image: 'nginx:1.25'}]}
---
apiVersion: v1
kind: Service
metadata: {name: nginx, namespace: edge}
spec: {selector: {app: nginx}, ports: [{port: 80}]}
"#;

/// A cluster that becomes a member of a control plane.
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) nodes: u64,
    /// The context of the kubeconfig.
    pub(super) context: &'static str,
    /// kubectl as its administrator. Karmada joins the cluster with the same kubeconfig.
    pub(super) kubectl: Kubectl,
}

// === impl Member ===

impl Member {
    /// Tests the member from `join` to `unjoin`.
    pub(super) fn comes_and_goes(&self, karmada: &Karmada) -> anyhow::Result<()> {
        karmada.join(self.name, self.kubectl.kubeconfig())?;
        self.is_described(&karmada.ready(self.name)?)?;
        let manifest = MANIFEST.replace("MEMBER", self.name);
        karmada.kubectl().ok_with(&["apply", "-f", "-"], &manifest)?;
        self.runs_the_template(karmada, 2)?;
        karmada.kubectl().ok(&["scale", "--replicas=3", "-n=edge", "deployment/nginx"])?;
        self.runs_the_template(karmada, 3)?;
        self.is_looked_into(karmada)?;
        karmada.kubectl().ok_with(&["delete", "-f", "-"], &manifest)?;
        self.is_empty_again(&["namespace/edge"])?;
        karmada.unjoin(self.name, self.kubectl.kubeconfig(), self.context)?;
        let rights = format!("karmada-controller-manager:karmada-{}", self.name);
        self.is_empty_again(&[
            "namespace/karmada-cluster",
            &format!("clusterrole/{rights}"),
            &format!("clusterrolebinding/{rights}"),
            "clusterrole/karmada-impersonator",
            "clusterrolebinding/karmada-impersonator",
        ])
    }

    /// Karmada has the ID, the version, the nodes and the address of the member.
    fn is_described(&self, cluster: &Value) -> anyhow::Result<()> {
        let shown = "-o=jsonpath={.clusters[0].cluster.server} {.clusters[0].cluster.proxy-url}";
        let way = self.kubectl.ok(&["config", "view", shown])?;
        let spec = &cluster["spec"];
        let known = [&spec["apiEndpoint"], &spec["proxyURL"]].map(|url| url.as_str().unwrap_or_default()).join(" ");
        ensure!(known == way, "Karmada has the address {known:?} instead of {way:?}");
        let id = self.kubectl.ok(&["get", "namespace", "kube-system", "-o=jsonpath={.metadata.uid}"])?;
        ensure!(cluster["spec"]["id"] == *id, "the ID is not {id}: {}", cluster["spec"]);
        let version: Value = serde_json::from_str(&self.kubectl.ok(&["version", "-o=json"])?)?;
        let status = &cluster["status"];
        ensure!(status["kubernetesVersion"] == version["serverVersion"]["gitVersion"], "wrong version: {status}");
        let nodes = &status["nodeSummary"];
        ensure!(nodes["totalNum"] == self.nodes && nodes["readyNum"] == self.nodes, "wrong nodes: {nodes}");
        Ok(())
    }

    /// The member has the template with the changes of the policies, and Karmada has its status.
    fn runs_the_template(&self, karmada: &Karmada, replicas: u32) -> anyhow::Result<()> {
        eventually(SETTLED, || {
            let wanted = format!("nginx:1.27 {replicas} {replicas}");
            let shown =
                "-o=jsonpath={.spec.template.spec.containers[0].image} {.spec.replicas} {.status.readyReplicas}";
            let seen = self.kubectl.ok(&["get", "deployment", "nginx", "-n=edge", shown])?;
            ensure!(seen == wanted, "{} runs {seen}, not {wanted}", self.name);
            self.kubectl.ok(&["get", "service", "nginx", "-n=edge"])?;
            let shown = "-o=jsonpath={.status.readyReplicas}";
            let seen = karmada.kubectl().ok(&["get", "deployment", "nginx", "-n=edge", shown])?;
            ensure!(
                seen == replicas.to_string(),
                "the status of the template has {seen:?} ready replicas instead of {replicas}"
            );
            let shown = "-o=jsonpath={range .items[*]}{.kind} {.status.aggregatedStatus[*].clusterName} \
                         {.status.aggregatedStatus[*].applied} {.status.aggregatedStatus[*].health}\n{end}";
            let seen = karmada.kubectl().ok(&["get", "resourcebindings", "-n=edge", shown])?;
            let wanted = format!("ResourceBinding {} true Healthy\n", self.name).repeat(2);
            ensure!(seen == wanted, "the bindings have {seen:?}");
            Ok(())
        })
    }

    /// Requests through Karmada's aggregated API, which impersonates its caller.
    fn is_looked_into(&self, karmada: &Karmada) -> anyhow::Result<()> {
        let there = format!("--cluster={}", self.name);
        let there = ["-n=edge", "--operation-scope=members", &there];
        let in_members = |words: &[&str]| karmada.karmadactl().ok(&[&words[..1], &there, &words[1..]].concat());
        let shown = karmada.karmadactl().ok(&["get", "deployment", "-n=edge", "--operation-scope=members"])?;
        ensure!(shown.contains(self.name) && shown.contains("3/3"), "deployments of members: {shown}");
        let described = in_members(&["describe", "deployment", "nginx"])?;
        ensure!(described.contains("nginx:1.27"), "describe: {described}");
        let output = in_members(&["exec", "deployment/nginx", "--", "echo", "hello"])?;
        ensure!(output == "hello\n", "exec printed {output:?}");
        let log = karmada.karmadactl().ok(&["logs", "deployment/nginx", "-n=edge", "-C", self.name, "--tail=1"])?;
        ensure!(log == "line 3 of container nginx\n", "the log is {log:?}");
        Ok(())
    }

    fn is_empty_again(&self, things: &[&str]) -> anyhow::Result<()> {
        eventually(SETTLED, || {
            let left = self.kubectl.ok(&[&["get", "--ignore-not-found", "-o=name"], things].concat())?;
            ensure!(left.is_empty(), "left in {}: {left}", self.name);
            Ok(())
        })
    }
}
