//! Karmada's token for a member, used directly at the host.

use anyhow::{Context, ensure};
use atoll_tests::{VirtualSite, eventually};
use serde_json::Value;

use super::pair::Pair;
use super::{BEIJING, HANGZHOU, SETTLED};
use crate::virtual_clusters::{admission_policies, roles};

/// ClusterRoles for both members. If they aggregated on the host, its `view` would have their rules within a second.
const AGGREGATED: &str = r#"
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: aggregated}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: aggregated}]
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: aggregated
  labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}
rules: [{apiGroups: [example.com], resources: [aggregated], verbs: [get]}]
"#;

/// Rights on the host that no virtual cluster may have.
pub(super) fn of_the_host(site: &VirtualSite) -> anyhow::Result<[Value; 2]> {
    roles::of_the_host(&site.host().kubectl())
}

/// Requests that the host refuses with the token of Beijing. Both members have the namespace `namespace`.
pub(super) fn ends_at_its_cluster(site: &VirtualSite, pair: &Pair, namespace: &str) -> anyhow::Result<()> {
    let shown = "-o=go-template={{.data.token | base64decode}}";
    let token = pair.karmada.kubectl().ok(&["get", "secret", BEIJING, "-n=karmada-cluster", shown])?;
    let holder = site.host().with_token(&token)?;
    let own = format!("{namespace}-{BEIJING}");
    let foreign = format!("-n={namespace}-{HANGZHOU}");
    // The token is valid, and has some rights.
    holder.ok(&["get", "secrets", "-n", &own])?;
    for args in [
        &["get", "namespaces"][..],
        &["get", "nodes"],
        &["get", "pods", "-A"],
        &["get", "secrets", "-A"],
        &["get", "clusterroles"],
        &["get", "pods", &foreign],
        &["get", "secrets", &foreign],
        &["create", "configmap", "mine", &foreign],
        &["get", "secrets", "-n=kube-system"],
        &["get", "secrets", "-n=atoll-system"],
        &["create", "configmap", "mine", "-n=default"],
        &["create", "namespace", "mine"],
        &["create", "clusterrole", "mine", "--verb=get", "--resource=pods"],
        &["create", "clusterrolebinding", "mine", "--clusterrole=cluster-admin", "--user=mine"],
        &["get", "pods", "-n", &own, "--as=system:admin", "--as-group=system:masters"],
        &["get", "--raw", "/metrics"],
    ] {
        let refused = holder.fails(args)?;
        ensure!(refused.contains("orbidden"), "{args:?}: {refused}");
    }
    admission_policies::refused(&holder, namespace).context("in its own namespaces")?;
    admission_policies::guarded(&holder, &own)
}

/// Both members aggregate the ClusterRoles. The rights on the host are the same as before the members joined.
pub(super) fn nothing_has_changed(site: &VirtualSite, pair: &Pair, before: &[Value; 2]) -> anyhow::Result<()> {
    let karmada = pair.karmada.kubectl();
    karmada.ok_with(&["apply", "-f", "-"], AGGREGATED)?;
    for (member, kubectl) in &pair.members {
        let selected = ["get", "clusterroles", "-l=rbac.authorization.k8s.io/aggregate-to-view=true", "-o=name"];
        eventually(SETTLED, || {
            let found = kubectl.ok(&selected)?;
            ensure!(found.contains("/aggregated\n"), "{member} has {found}");
            let resources = kubectl.ok(&["get", "clusterrole", "view", "-o=jsonpath={.rules[*].resources}"])?;
            ensure!(resources.contains("\"aggregated\""), "view of {member} is for {resources}");
            Ok(())
        })?;
    }
    roles::aggregated(&site.host().kubectl())?;
    ensure!(of_the_host(site)? == *before, "roles or bindings of the host have changed");
    karmada.ok_with(&["delete", "-f", "-"], AGGREGATED)?;
    Ok(())
}
