//! Members of a real Karmada control plane in push mode, joined by its own command.
//!
//! What is asked of a member is asked of a plain cluster first: that is the measure for the others.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{anyhow, ensure};
use atoll_tests::{HostCluster, Karmada, Kubectl, eventually};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::physical::site_with_branch;

/// A template, where it is to go, and what differs from member to member.
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
    spec: {containers: [{name: nginx, image: 'nginx:1.25'}]}
---
apiVersion: v1
kind: Service
metadata: {name: nginx, namespace: edge}
spec: {selector: {app: nginx}, ports: [{port: 80}]}
"#;

/// How long a change may take through Karmada's queues, which back off after a failure, on a busy machine.
const SETTLED: Duration = Duration::from_secs(60);

/// What the trials share. They take turns: Karmada brings every namespace to every member.
#[derive(Default)]
struct World {
    host: OnceLock<anyhow::Result<HostCluster>>,
    turn: Mutex<()>,
}

pub(crate) fn trials() -> Vec<Trial> {
    let world = Arc::new(World::default());
    let case = |name: &str, run: fn(&HostCluster) -> anyhow::Result<()>| {
        let world = Arc::clone(&world);
        Trial::test(format!("karmada::{name}"), move || world.run(run).map_err(|error| format!("{error:?}").into()))
    };
    vec![
        case("a_plain_cluster_is_a_member", a_plain_cluster_is_a_member),
        case("a_physical_cluster_is_a_member", a_physical_cluster_is_a_member),
    ]
}

// === impl World ===

impl World {
    fn run(&self, run: fn(&HostCluster) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let host = self.host.get_or_init(HostCluster::up_with_karmada);
        run(host.as_ref().map_err(|error| anyhow!("no Karmada: {error:?}"))?)
    }
}

/// A cluster on its way through a control plane.
struct Member {
    name: &'static str,
    nodes: u64,
    kubeconfig: PathBuf,
    /// Of its kubeconfig.
    context: &'static str,
    /// What Karmada reaches it by.
    proxy: Option<String>,
    /// Its administrator.
    kubectl: Kubectl,
}

fn a_plain_cluster_is_a_member(host: &HostCluster) -> anyhow::Result<()> {
    let member = Member {
        name: "plain",
        nodes: 4,
        kubeconfig: host.dir().join("host.kubeconfig"),
        context: "host",
        proxy: None,
        kubectl: host.kubectl(),
    };
    member.comes_and_goes(&Karmada::beside(host))
}

/// The same cluster at the far end of a tunnel, with a `proxy-url` that `join` takes over.
fn a_physical_cluster_is_a_member(host: &HostCluster) -> anyhow::Result<()> {
    let (site, _agent) = site_with_branch(host)?;
    let kubectl = site.physical(host.kubectl().kubeconfig())?;
    let member = Member {
        name: "branch-7",
        nodes: 4,
        kubeconfig: kubectl.kubeconfig().to_owned(),
        context: "host",
        proxy: Some(format!("http://127.0.0.1:{}", site.ports.proxy)),
        kubectl,
    };
    member.comes_and_goes(&Karmada::beside(host))
}

// === impl Member ===

impl Member {
    /// Everything from `join` to `unjoin`.
    fn comes_and_goes(&self, karmada: &Karmada) -> anyhow::Result<()> {
        karmada.join(self.name, &self.kubeconfig)?;
        self.is_described(&karmada.ready(self.name)?)?;
        let manifest = MANIFEST.replace("MEMBER", self.name);
        karmada.kubectl().ok_with(&["apply", "-f", "-"], &manifest)?;
        self.runs_the_template(karmada, 2)?;
        karmada.kubectl().ok(&["scale", "--replicas=3", "-n=edge", "deployment/nginx"])?;
        self.runs_the_template(karmada, 3)?;
        self.is_looked_into(karmada)?;
        karmada.kubectl().ok_with(&["delete", "-f", "-"], &manifest)?;
        self.is_empty_again(&["namespace/edge"])?;
        karmada.unjoin(self.name, &self.kubeconfig, self.context)?;
        let rights = format!("karmada-controller-manager:karmada-{}", self.name);
        self.is_empty_again(&[
            "namespace/karmada-cluster",
            &format!("clusterrole/{rights}"),
            &format!("clusterrolebinding/{rights}"),
            "clusterrole/karmada-impersonator",
            "clusterrolebinding/karmada-impersonator",
        ])
    }

    /// Karmada knows it by its own identity, version and nodes, and the way to it.
    fn is_described(&self, cluster: &Value) -> anyhow::Result<()> {
        let proxy = cluster["spec"]["proxyURL"].as_str();
        ensure!(proxy == self.proxy.as_deref(), "it is reached by {proxy:?}, not {:?}", self.proxy);
        let id = self.kubectl.ok(&["get", "namespace", "kube-system", "-o=jsonpath={.metadata.uid}"])?;
        ensure!(cluster["spec"]["id"] == *id, "the id is not {id}: {}", cluster["spec"]);
        let version: Value = serde_json::from_str(&self.kubectl.ok(&["version", "-o=json"])?)?;
        let status = &cluster["status"];
        ensure!(status["kubernetesVersion"] == version["serverVersion"]["gitVersion"], "another version: {status}");
        let nodes = &status["nodeSummary"];
        ensure!(nodes["totalNum"] == self.nodes && nodes["readyNum"] == self.nodes, "wrong nodes: {nodes}");
        Ok(())
    }

    /// The template arrived, as the policies want it, and its status came back.
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
            ensure!(seen == replicas.to_string(), "the template says {seen:?} of {replicas} are ready");
            let shown = "-o=jsonpath={range .items[*]}{.kind} {.status.aggregatedStatus[*].clusterName} \
                         {.status.aggregatedStatus[*].applied} {.status.aggregatedStatus[*].health}\n{end}";
            let seen = karmada.kubectl().ok(&["get", "resourcebindings", "-n=edge", shown])?;
            let wanted = format!("ResourceBinding {} true Healthy\n", self.name).repeat(2);
            ensure!(seen == wanted, "the bindings say {seen:?}");
            Ok(())
        })
    }

    /// Through Karmada's aggregated API, which impersonates its caller.
    fn is_looked_into(&self, karmada: &Karmada) -> anyhow::Result<()> {
        let there = format!("--cluster={}", self.name);
        let there = ["-n=edge", "--operation-scope=members", &there];
        let in_members = |words: &[&str]| karmada.karmadactl().ok(&[&words[..1], &there, &words[1..]].concat());
        let shown = karmada.karmadactl().ok(&["get", "deployment", "-n=edge", "--operation-scope=members"])?;
        ensure!(shown.contains(self.name) && shown.contains("3/3"), "deployments of members: {shown}");
        let described = in_members(&["describe", "deployment", "nginx"])?;
        ensure!(described.contains("nginx:1.27"), "described: {described}");
        let said = in_members(&["exec", "deployment/nginx", "--", "echo", "hello"])?;
        ensure!(said == "hello\n", "exec printed {said:?}");
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
