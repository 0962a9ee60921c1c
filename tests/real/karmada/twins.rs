//! The use case of the edge-cluster proposal with Karmada: one template, two members, one API server.

use anyhow::ensure;
use atoll_tests::{VirtualSite, eventually};

use super::pair::Pair;
use super::{BEIJING, CLUSTERS, HANGZHOU, SETTLED};

/// A template for both members, with a different image in one, and cluster-scoped rights.
const MANIFEST: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: twins}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: twins}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: web}
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: web, namespace: twins}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [ke-hangzhou]}
    overriders: {imageOverrider: [{component: Registry, operator: replace, value: hangzhou.example}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: twins}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'example.com/web:1'}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: pod-readers}
spec:
  resourceSelectors:
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: pod-reader}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, name: pod-readers}
  placement: {clusterAffinity: {clusterNames: [ke-beijing]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pod-reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pod-readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tom}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: members}
rules: [{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: members}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: members}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tom}]
"#;

/// Two of three replicas in Beijing.
const DIVIDED: &str = r#"{"spec": {"placement": {"replicaScheduling": {
    "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
    "weightPreference": {"staticWeightList": [
        {"targetCluster": {"clusterNames": ["ke-beijing"]}, "weight": 2},
        {"targetCluster": {"clusterNames": ["ke-hangzhou"]}, "weight": 1}]}}}}}"#;

const BEIJINGS: &str = "example.com/web";
const HANGZHOUS: &str = "hangzhou.example/web";

pub(super) fn two_members_out_of_one_host(site: &VirtualSite) -> anyhow::Result<()> {
    let twins = Pair::join(site)?;
    let karmada = twins.karmada.kubectl();
    karmada.ok_with(&["apply", "-f", "-"], MANIFEST)?;
    twins.run(&[(BEIJING, &format!("{BEIJINGS}:1"), 2), (HANGZHOU, &format!("{HANGZHOUS}:1"), 2)])?;
    twins.pods_stay_at_home()?;
    twins.rights_end_with_their_member()?;

    karmada.ok(&["set", "image", "deployment/web", "web=example.com/web:2", "-n=twins"])?;
    twins.run(&[(BEIJING, &format!("{BEIJINGS}:2"), 2), (HANGZHOU, &format!("{HANGZHOUS}:2"), 2)])?;

    karmada.ok(&["patch", "propagationpolicy", "web", "-n=twins", "--type=merge", "-p", DIVIDED])?;
    karmada.ok(&["scale", "deployment", "web", "-n=twins", "--replicas=6"])?;
    twins.run(&[(BEIJING, &format!("{BEIJINGS}:2"), 4), (HANGZHOU, &format!("{HANGZHOUS}:2"), 2)])?;
    twins.karmada.karmadactl().ok(&["taint", "clusters", BEIJING, "out=of-order:NoExecute"])?;
    twins.run(&[(HANGZHOU, &format!("{HANGZHOUS}:2"), 6)])?;
    twins.karmada.karmadactl().ok(&["taint", "clusters", BEIJING, "out-"])?;

    twins.leave(0)?;
    twins.nothing_is_left_of(&[
        "karmada-cluster-ke-beijing",
        "twins-ke-beijing",
        "vc:ke-beijing:karmada",
        "pod-reader",
    ])?;
    karmada.ok(&["set", "image", "deployment/web", "web=example.com/web:3", "-n=twins"])?;
    twins.run(&[(HANGZHOU, &format!("{HANGZHOUS}:3"), 6)])?;
    karmada.ok_with(&["delete", "-f", "-"], MANIFEST)?;
    twins.run(&[])?;
    twins.leave(1)?;
    twins.nothing_is_left_of(&["karmada", "twins", "pod-reader"])
}

// === impl Pair ===

impl Pair {
    /// The host has exactly these Deployments: member, image and ready replicas.
    fn run(&self, wanted: &[(&str, &str, u32)]) -> anyhow::Result<()> {
        let wanted: Vec<String> =
            wanted.iter().map(|(member, image, ready)| format!("twins-{member} {image} {ready}")).collect();
        let shown = "-o=jsonpath={range .items[?(@.metadata.name==\"web\")]}{.metadata.namespace} \
                     {.spec.template.spec.containers[0].image} {.status.readyReplicas}{\"\\n\"}{end}";
        eventually(SETTLED, || {
            let seen = self.host.ok(&["get", "deployments", "-A", shown])?;
            let seen: Vec<&str> = seen.lines().collect();
            ensure!(seen == wanted, "the host has {seen:?} instead of {wanted:?}");
            Ok(())
        })
    }

    fn pods_stay_at_home(&self) -> anyhow::Result<()> {
        for (member, location) in CLUSTERS {
            let namespace = format!("-n=twins-{member}");
            let nodes = self.host.ok(&["get", "pods", &namespace, "-o=jsonpath={.items[*].spec.nodeName}"])?;
            ensure!(!nodes.is_empty(), "no pods of {member}");
            ensure!(nodes.split(' ').all(|node| node.starts_with(location)), "pods of {member} are on {nodes}");
        }
        Ok(())
    }

    /// Tom may use the proxy to both members. A role that Karmada propagated to one member allows Tom to read there,
    /// and nowhere on the host.
    fn rights_end_with_their_member(&self) -> anyhow::Result<()> {
        let ask = |member: &str| {
            let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy/api/v1/pods");
            self.karmada.kubectl().run(&["get", "--as=tom", "--raw", &path])
        };
        eventually(SETTLED, || {
            let (own, foreign) = (ask(BEIJING)?, ask(HANGZHOU)?);
            ensure!(own.code == 0 && own.stdout.contains("\"namespace\":\"twins\""), "in {BEIJING}: {own:?}");
            ensure!(
                foreign.stderr.contains("User \"tom\" cannot list resource \"pods\""),
                "in {HANGZHOU}: {foreign:?}"
            );
            Ok(())
        })?;
        let bindings = self.host.ok(&["get", "clusterrolebindings", "-o=name"])?;
        ensure!(!bindings.contains("pod-readers"), "the binding exists on the whole host: {bindings}");
        Ok(())
    }
}
