//! Rights apply only in their virtual cluster, and the administrator has all rights there.

use std::time::Duration;

use anyhow::ensure;
use atoll_tests::{Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};

use super::{BEIJING, HANGZHOU, namespace};

fn binding(namespace: &str, name: &str) -> String {
    format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
"metadata":{{"name":"{name}","namespace":"{namespace}"}},
"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"}},
"subjects":[{{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}}]}}"#
    )
}

pub(super) fn end_with_their_namespace(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let jane = site.user(BEIJING, "jane")?;
    let namesake = site.user(HANGZHOU, "jane")?;
    admin.ok_with(&["create", "-f", "-"], &namespace("other-team"))?;
    jane.fails(&["get", "secrets", "-n", "kube-system"])?;
    admin.ok_with(&["create", "-f", "-"], &binding("kube-system", "jane"))?;
    let ends_here = |after: &str| {
        jane.ok(&["get", "secrets", "-n", "kube-system"])?;
        for (args, why) in [
            (&["get", "secrets", "-A"][..], r#"cannot list resource "secrets" in API group "" at the cluster scope"#),
            (&["get", "secrets", "-n", "other-team"], r#"cannot list resource "secrets""#),
            (&["get", "secrets", "-n", "default"], r#"cannot list resource "secrets""#),
            (&["get", "namespaces"], r#"cannot list resource "namespaces""#),
            (&["get", "nodes"], r#"cannot list resource "nodes""#),
            (&["delete", "namespace", "other-team"], r#"cannot delete resource "namespaces""#),
        ] {
            let refused = jane.fails(args)?;
            ensure!(refused.contains("(Forbidden)") && refused.contains(why), "{after}, {args:?}: {refused}");
        }
        // The same name in another cluster is another user.
        let refused = namesake.fails(&["get", "secrets", "-n", "kube-system"])?;
        ensure!(refused.contains("(Forbidden)"), "{after}: {refused}");
        anyhow::Ok(())
    };
    ends_here("bound by the administrator")?;
    jane.ok_with(&["create", "-f", "-"], &binding("kube-system", "by-herself"))?;
    ends_here("bound by herself")?;
    // Clients cannot use the names of the bindings of Atoll.
    let refused = jane.run_with(&["create", "-f", "-"], &binding("kube-system", "atoll:crb:x"))?;
    ensure!(refused.code != 0 && refused.stderr.contains("reserved"), "{refused:?}");
    ends_here("refused a reserved name")?;
    Ok(())
}

pub(super) fn the_administrator_keeps_all_rights(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(HANGZHOU, Route::Proxy)?;
    admin.ok_with(&["create", "-f", "-"], &namespace("unbound"))?;
    admin.ok_with(&["create", "-f", "-"], &binding("unbound", "jane"))?;
    admin.ok(&["delete", "rolebindings", "--all", "-n", "unbound"])?;
    ensure!(admin.ok(&["get", "rolebindings", "-n", "unbound", "-o", "name"])?.is_empty());
    admin.ok(&["get", "secrets", "-n", "unbound"])?;
    admin.ok_with(&["create", "-f", "-"], &binding("unbound", "again"))?;
    let hidden = admin.fails(&["delete", "rolebinding", "atoll:crb:cluster-admin", "-n", "unbound"])?;
    ensure!(hidden.contains("(NotFound)"), "{hidden}");
    admin.ok(&["delete", "rolebindings", "--all", "--all-namespaces"])?;
    for args in [&["get", "secrets", "-A"][..], &["get", "pods", "-n", "unbound"], &["get", "nodes"]] {
        admin.ok(args)?;
    }
    ensure!(admin.ok(&["get", "rolebindings", "-A", "-o", "name"])?.is_empty());
    Ok(())
}

/// The host deletes the bindings of a namespace before the namespace. A user that may read all namespaces can still
/// read it.
pub(super) fn an_ending_namespace_is_read_to_its_end(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("ending"))?;
    kubectl.ok(&["create", "configmap", "kept", "-n", "ending"])?;
    kubectl.ok(&["delete", "namespace", "ending", "--wait=false"])?;
    let mut refusals = Vec::new();
    eventually(Duration::from_secs(60), || {
        for words in [["get", "configmap", "kept"], ["get", "pods,rolebindings", "-v=0"]] {
            let read = kubectl.run(&[&words[..], &["-n", "ending"]].concat())?;
            if read.stderr.contains("Forbidden") || read.stdout.contains("atoll") {
                refusals.push(read);
            }
        }
        ensure!(kubectl.run(&["get", "namespace", "ending"])?.stderr.contains("NotFound"), "it still exists");
        Ok(())
    })?;
    ensure!(refusals.is_empty(), "{refusals:?}");
    Ok(())
}

pub(super) fn a_stuck_namespace_can_be_repaired(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    admin.ok_with(&["create", "-f", "-"], &namespace("stuck"))?;
    let held = r#"{"apiVersion":"v1","kind":"ConfigMap",
"metadata":{"name":"held","namespace":"stuck","finalizers":["example.com/hold"]}}"#;
    admin.ok_with(&["create", "-f", "-"], held)?;
    admin.ok(&["delete", "namespace", "stuck", "--wait=false"])?;
    // The controller of the host sets the condition after it has deleted all objects without finalizers, including
    // bindings.
    eventually(CONDITION_TIMEOUT, || {
        let condition = r#"jsonpath={.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].status}"#;
        let remaining = admin.ok(&["get", "namespace", "stuck", "-o", condition])?;
        ensure!(remaining == "True", "{remaining}");
        Ok(())
    })?;
    ensure!(admin.ok(&["get", "configmaps", "-n", "stuck", "-o", "name"])?.contains("held"));
    let free = r#"{"metadata":{"finalizers":null}}"#;
    admin.ok(&["patch", "configmap", "held", "-n", "stuck", "--type=merge", "-p", free])?;
    admin.ok(&["wait", "--for=delete", "namespace/stuck", "--timeout=50s"])?;
    let host = site.host().kubectl().fails(&["get", "namespace", "stuck-ke-beijing"])?;
    ensure!(host.contains("(NotFound)"), "{host}");
    Ok(())
}
