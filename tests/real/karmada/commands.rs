//! karmadactl commands for members, and their authorization. They use Karmada's aggregated API, which impersonates the
//! caller.

use std::path::Path;

use anyhow::{Context, ensure};
use atoll_tests::{VirtualSite, eventually};
use serde_json::{Value, json};

use super::metrics::Metrics;
use super::pair::Pair;
use super::{BEIJING, CLUSTERS, HANGZHOU, SETTLED, token};

const MANIFEST: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: looked}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: looked}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: looked}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'example.com/web:1'}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: tom, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tom-in-members}
rules: [{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tom-in-members}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tom-in-members}
subjects:
- {kind: ServiceAccount, name: tom, namespace: default}
# Karmada's impersonator names them as well, and may only act for whom Karmada has let in.
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:serviceaccounts'}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:serviceaccounts:default'}
"#;

pub(super) fn commands_work_on_members(site: &VirtualSite) -> anyhow::Result<()> {
    let before = token::of_the_host(site)?;
    let pair = Pair::join(site)?;
    let metrics = Metrics::start(site.host())?;
    let karmada = pair.karmada.kubectl();
    karmada.ok_with(&["apply", "-f", "-"], MANIFEST)?;
    eventually(SETTLED, || {
        let ready = karmada.ok(&["get", "deployment", "web", "-n=looked", "-o=jsonpath={.status.readyReplicas}"])?;
        ensure!(ready == "4", "{ready:?} of 4 are ready");
        Ok(())
    })?;
    for (member, location) in CLUSTERS {
        pair.is_looked_into(member, location).context(member)?;
        pair.is_measured(member, location).context(member)?;
    }
    pair.takes_over_what_was_there()?;
    pair.tom_may_where_he_was_allowed(&site.host().dir().join("tom.kubeconfig"))?;
    token::ends_at_its_cluster(site, &pair, "looked")?;

    karmada.ok_with(&["delete", "-f", "-"], MANIFEST)?;
    token::nothing_has_changed(site, &pair, &before)?;
    drop(metrics);
    pair.leave(0)?;
    pair.leave(1)?;
    pair.nothing_is_left_of(&["karmada", "looked"])
}

// === impl Pair ===

impl Pair {
    fn is_looked_into(&self, member: &str, location: &str) -> anyhow::Result<()> {
        let there = format!("--cluster={member}");
        let there = [&there, "--operation-scope=members", "-n=looked"];
        let karmadactl = |words: &[&str], input: &str| {
            let (command, rest) = words.split_first().context("no command")?;
            self.karmada.karmadactl().ok_with(&[&[*command], &there[..], rest].concat(), input)
        };
        let only = format!("--clusters={member}");
        let listed = |words: &[&str]| {
            let words = [&["get"], words, &[&only, "--operation-scope=members", "--no-headers"]].concat();
            self.karmada.karmadactl().ok(&words)
        };
        let pods = listed(&["pods", "-n=looked"])?;
        let pod = pods.split_whitespace().next().context("no pods")?.to_owned();
        ensure!(pods.lines().count() == 2 && pods.lines().all(|line| line.contains(member)), "pods: {pods}");
        let nodes = listed(&["nodes"])?;
        let is_own = |line: &str| line.starts_with(location) && line.contains(member);
        ensure!(nodes.lines().count() == 2 && nodes.lines().all(is_own), "nodes: {nodes}");

        let described = karmadactl(&["describe", "pod", &pod], "")?;
        ensure!(described.contains("example.com/web:1") && described.contains("Scheduled"), "describe: {described}");
        ensure!(
            described.contains(&format!("{location}-")) && !described.contains(&format!("-{member}")),
            "{described}"
        );
        let log = self.karmada.karmadactl().ok(&["logs", &pod, "-n=looked", "-C", member])?;
        ensure!(log.lines().count() == 3 && log.contains("line 1 of container web"), "the log is {log:?}");
        let output = karmadactl(&["exec", "-i", &pod, "--", "cat"], "to exec\n")?;
        ensure!(output == "to exec\n", "exec printed {output:?}");
        let output = karmadactl(&["attach", "-i", &pod], "to attach\n")?;
        ensure!(output.contains("to attach"), "attach printed {output:?}");
        Ok(())
    }

    /// `karmadactl top`, with a metrics server of the host that serves all nodes and pods.
    fn is_measured(&self, member: &str, location: &str) -> anyhow::Result<()> {
        let nodes = [format!("{location}-1"), format!("{location}-2")];
        let top = |words: &[&str]| self.karmada.karmadactl().ok(&[&["top"], words].concat());
        let shown = eventually(SETTLED, || top(&["node", &format!("--clusters={member}"), "--no-headers"]))?;
        let mut shown: Vec<&str> = shown.lines().filter_map(|line| line.split_whitespace().next()).collect();
        shown.sort_unstable();
        ensure!(shown == nodes, "top of nodes: {shown:?}");
        let shown = top(&["pod", "-A", &format!("--clusters={member}"), "--no-headers"])?;
        let shown: Vec<&str> = shown.lines().filter_map(|line| line.split_whitespace().next()).collect();
        ensure!(shown == ["looked"; 2], "top of pods, by namespaces: {shown:?}");

        // Requests that the commands do not send.
        let ask = |path: &str| {
            let path =
                format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy/apis/metrics.k8s.io/v1beta1/{path}");
            self.karmada.kubectl().run(&["get", "--raw", &path])
        };
        let foreign = CLUSTERS
            .iter()
            .map(|(_, other)| *other)
            .find(|other| *other != location)
            .context("no node of the other cluster")?;
        let other = ask(&format!("nodes/{foreign}-1"))?;
        ensure!(other.code != 0 && other.stderr.contains("NotFound"), "a node of another cluster: {other:?}");
        let own: Value = serde_json::from_str(&ask(&format!("nodes/{location}-1"))?.stdout)?;
        ensure!(own["kind"] == "NodeMetrics" && own["usage"]["cpu"] == "250m", "{own}");
        let pods: Value = serde_json::from_str(&ask("namespaces/looked/pods")?.stdout)?;
        let homes = pods["items"].as_array().context("no items")?.iter().map(|pod| &pod["metadata"]["namespace"]);
        let homes: Vec<_> = homes.collect();
        ensure!(homes == ["looked"; 2], "pods of the namespace: {homes:?}");
        Ok(())
    }

    /// `karmadactl promote` turns an existing Deployment into a template. The Deployment does not change.
    fn takes_over_what_was_there(&self) -> anyhow::Result<()> {
        let (member, kubectl) = &self.members[0];
        kubectl.ok(&["create", "deployment", "legacy", "--image=example.com/legacy:1", "-n=looked"])?;
        let uid = ["get", "deployment", "legacy", "-n=looked", "-o=jsonpath={.metadata.uid}"];
        let before = kubectl.ok(&uid)?;
        self.karmada.karmadactl().ok(&["promote", "deployment", "legacy", "-n=looked", "-C", member])?;
        let template = self.karmada.kubectl().ok(&["get", "deployment", "legacy", "-n=looked", "-o=json"])?;
        let template: Value = serde_json::from_str(&template)?;
        let pod = &template["spec"]["template"]["spec"];
        ensure!(
            pod.get("nodeSelector").is_none() && pod.get("tolerations").is_none(),
            "the pod shows the guard: {pod}"
        );
        eventually(SETTLED, || {
            let shown = "-o=jsonpath={.metadata.labels.karmada\\.io/managed} {.status.readyReplicas}";
            let seen = kubectl.ok(&["get", "deployment", "legacy", "-n=looked", shown])?;
            ensure!(seen == "true 1", "managed and ready: {seen}");
            Ok(())
        })?;
        ensure!(kubectl.ok(&uid)? == before, "it was created again");
        self.karmada.kubectl().ok(&["delete", "deployment", "legacy", "-n=looked"])?;
        Ok(())
    }

    /// A service account of Karmada may use the proxy to both members. Each member authorizes its requests.
    fn tom_may_where_he_was_allowed(&self, file: &Path) -> anyhow::Result<()> {
        let token = self.karmada.kubectl().ok(&["create", "token", "tom", "-n=default"])?;
        let tom = self.karmada.kubectl().with_token(token.trim(), file.to_owned())?;
        let ask = |member: &str| {
            let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy/api/v1/nodes");
            tom.run(&["get", "--raw", &path])
        };
        let is_refused = |member: &str| {
            let response = ask(member)?;
            let why = r#"User "system:serviceaccount:default:tom" cannot list resource "nodes""#;
            ensure!(response.code != 0 && response.stderr.contains(why), "in {member}: {response:?}");
            Ok(())
        };
        // Wait until Karmada has granted its impersonator the right to impersonate this account.
        eventually(SETTLED, || is_refused(BEIJING))?;
        eventually(SETTLED, || is_refused(HANGZHOU))?;
        let (_, beijing) = &self.members[0];
        for object in tom_of_beijing() {
            beijing.ok_with(&["create", "-f", "-"], &object.to_string())?;
        }
        let response = ask(BEIJING)?;
        ensure!(response.code == 0 && response.stdout.contains("beijing-1"), "in {BEIJING}, allowed: {response:?}");
        ensure!(!response.stdout.contains("hangzhou-1"), "{BEIJING} shows nodes of another cluster");
        is_refused(HANGZHOU)?;
        beijing.ok(&["delete", "clusterrolebinding/tom", "clusterrole/tom"])?;
        eventually(SETTLED, || is_refused(BEIJING))
    }
}

fn tom_of_beijing() -> [Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    [
        json!({
            "apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "tom"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        }),
        json!({
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": "tom"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "tom"},
            "subjects": [{"kind": "ServiceAccount", "name": "tom", "namespace": "default"}],
        }),
    ]
}
