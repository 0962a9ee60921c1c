//! The admission policies on the host: one set for all virtual clusters. Annotations of each Namespace have the
//! differences.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::{HostCluster, Kubectl, Nodes, Route, VirtualSite, eventually, kubectl::CONDITION_TIMEOUT};
use serde_json::{Value, json};

use super::admission_policies::{direct_user, pod, says};
use super::{BEIJING, CLUSTERS, namespace};

/// All policies of Atoll, for any number of virtual clusters.
const VALIDATING: [&str; 13] = [
    "bindings.atoll.dev",
    "claims.atoll.dev",
    "customs.atoll.dev",
    "namespaces.atoll.dev",
    "node-labels.atoll.dev",
    "nodes.atoll.dev",
    "pods.atoll.dev",
    "probe.atoll.dev",
    "quotas.atoll.dev",
    "revisions.atoll.dev",
    "roots.atoll.dev",
    "services.atoll.dev",
    "statuses.atoll.dev",
];
const MUTATING: [&str; 2] = ["pods.atoll.dev", "roles.atoll.dev"];

const SELECTOR: &str = "atoll.dev/node-selector";
const PROTECTED: &str = "atoll.dev/protected-keys";
const TOLERATIONS: &str = "atoll.dev/tolerations";

/// On a host with two virtual clusters.
pub(super) fn are_one_set(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    eventually(CONDITION_TIMEOUT, || are_all(&host))
}

/// Clients cannot create RoleBindings like mirrors, neither through the endpoint nor at the host.
pub(super) fn refuse_bindings_like_mirrors(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "policies-bindings";
    let (direct, host) = (direct_user(site, NAME)?, format!("{NAME}-{BEIJING}"));
    let admin = site.administrator(BEIJING, Route::Path)?;
    let binding = |name: &str, labels: Value| {
        let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "roleRef": role_ref,
            "metadata": {"name": name, "labels": labels}})
        .to_string()
    };
    let create = ["create", "-f", "-", "-n"];
    for (who, namespace) in [(&admin, NAME), (&direct, &*host)] {
        let create = [&create[..], &[namespace]].concat();
        for value in ["true", ""] {
            for label in ["atoll.dev/mirror", "atoll.dev/virtual-cluster"] {
                let refused = who.run_with(&create, &binding("mirror", json!({label: value})))?;
                ensure!(refused.code != 0 && refused.stderr.contains("are reserved"), "{refused:?}");
            }
        }
        let name = format!("plain-{namespace}");
        who.ok_with(&create, &binding(&name, json!({"atoll.dev/mirrors": "true"})))?;
        let refused = who.fails(&["label", "rolebinding", &name, "atoll.dev/mirror=true", "-n", namespace])?;
        ensure!(refused.contains("are reserved"), "{refused}");
        who.ok(&["label", "rolebinding", &name, "a=b", "-n", namespace])?;
    }
    let refused = direct.run_with(&[&create[..], &[&host]].concat(), &binding("atoll:crb:x", json!({})))?;
    ensure!(refused.code != 0 && refused.stderr.contains("are reserved"), "{refused:?}");
    // A RoleBinding that had such a name before the policy can be deleted, but cannot become a mirror. A mirror stays
    // one.
    let mut old: Value = serde_json::from_str(&binding("atoll:crb:old", json!({})))?;
    old["metadata"]["finalizers"] = json!(["example.com/direct"]);
    site.host().kubectl().ok_with(&[&create[..], &[&host]].concat(), &old.to_string())?;
    admin.ok(&["create", "clusterrolebinding", NAME, "--clusterrole=view", "--user=nobody"])?;
    let copy = format!("atoll:crb:{NAME}");
    for (name, change) in [("atoll:crb:old", "atoll.dev/mirror=true"), (&copy, "atoll.dev/mirror-"), (&copy, "a=b")] {
        let refused = direct.fails(&["label", "rolebinding", name, change, "-n", &host])?;
        ensure!(refused.contains("are reserved"), "{name} {change}: {refused}");
    }
    let released = r#"{"metadata":{"finalizers":null}}"#;
    direct.ok(&["patch", "rolebinding", "atoll:crb:old", "-p", released, "-n", &host])?;
    admin.ok(&["delete", "clusterrolebinding", NAME])?;
    admin.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

/// The agent creates policies again that the administrator of the host deletes.
pub(super) fn are_restored(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    eventually(CONDITION_TIMEOUT, || are_all(&host))?;
    host.ok(&["delete", "validatingadmissionpolicy", "namespaces.atoll.dev"])?;
    // The binding of the policy that adds the node selector, or of the one that refuses pods without it.
    let kind = if everywhere_kubeedge() { "validating" } else { "mutating" };
    let binding = format!("{kind}admissionpolicybinding/pods.atoll.dev");
    host.ok(&["delete", &binding])?;
    let policy = "validatingadmissionpolicy/nodes.atoll.dev";
    let nothing = r#"[{"op": "replace", "path": "/spec/validations/0/expression", "value": "true"}]"#;
    host.ok(&["patch", policy, "--type=json", "-p", nothing])?;
    eventually(CONDITION_TIMEOUT, || {
        are_all(&host)?;
        let expression = host.ok(&["get", policy, "-o", "jsonpath={.spec.validations[0].expression}"])?;
        ensure!(expression != "true", "it stays");
        Ok(())
    })
}

/// Policies for namespaced objects do not apply to cluster-scoped objects. RBAC authorizes those, and can allow a
/// single name.
pub(super) fn leave_what_is_in_no_namespace(site: &VirtualSite) -> anyhow::Result<()> {
    // The agent serves clients only after the host enforces the policies.
    site.administrator(BEIJING, Route::Path)?.ok(&["get", "namespaces"])?;
    let host = site.host().kubectl();
    let user = "policies-operator";
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": user}, "handler": "runc",
    });
    host.ok_with(&["create", "-f", "-"], &class.to_string())?;
    let rights = ["--verb=get,update,patch,delete", "--resource=runtimeclasses", "--resource-name", user];
    host.ok(&[&["create", "clusterrole", user], &rights[..]].concat())?;
    host.ok(&["create", "clusterrolebinding", user, "--clusterrole", user, "--user", user])?;
    let own = ["runtimeclass", user, "--as", user];
    eventually(CONDITION_TIMEOUT, || host.ok(&[&["annotate", "--overwrite"], &own[..], &["a=b"]].concat()))?;
    host.ok(&[&["delete"], &own[..]].concat())?;
    host.ok(&["delete", "clusterrole,clusterrolebinding", user])?;
    Ok(())
}

/// The number of policies does not depend on the number of virtual clusters. The agent removes the policies of an
/// earlier version, and adds the annotations to its namespaces.
pub(super) fn replace_those_of_an_earlier_version() -> anyhow::Result<()> {
    let host = HostCluster::up(1)?;
    let kubectl = host.kubectl();
    let labels = json!({"atoll.dev/virtual-cluster": BEIJING, "atoll.dev/namespace": "old"});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("old-{BEIJING}"), "labels": labels},
    });
    kubectl.ok_with(&["create", "-f", "-"], &namespace.to_string())?;
    let name = format!("pods.{BEIJING}.atoll.dev");
    for kind in kinds().iter().copied() {
        let metadata = json!({"name": name, "labels": {"atoll.dev/gate": ""}});
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"], "operations": ["CREATE"],
        });
        let policy = match kind {
            "Validating" => json!({"validations": [{"expression": "true"}]}),
            _ => json!({"reinvocationPolicy": "Never", "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": "[true].map(it, JSONPatch{op: 'test', path: '/kind', value: 'Pod'})"}},
            ]}),
        };
        let mut spec = json!({"matchConstraints": {"resourceRules": [rule]}});
        spec.as_object_mut().context("not an object")?.extend(policy.as_object().context("not an object")?.clone());
        let mut binding = json!({"policyName": name});
        if kind == "Validating" {
            binding["validationActions"] = json!(["Deny"]);
        }
        for (suffix, spec) in [("", spec), ("Binding", binding)] {
            let object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}AdmissionPolicy{suffix}"),
                "metadata": metadata, "spec": spec,
            });
            kubectl.ok_with(&["create", "-f", "-"], &object.to_string())?;
        }
    }
    let site = VirtualSite::on(host, &CLUSTERS[..1])?;
    eventually(CONDITION_TIMEOUT, || are_all(&kubectl))?;
    let old = format!("old-{BEIJING}");
    ensure!(annotation(&kubectl, &old, SELECTOR)? == selector(), "it has no annotation");
    site.administrator(BEIJING, Route::Proxy)?.ok(&["create", "configmap", "mine", "-n", "old"])?;
    Ok(())
}

/// The Namespace has the settings of its virtual cluster. Clients cannot see or change them.
pub(super) fn read_the_namespace(site: &VirtualSite) -> anyhow::Result<()> {
    let (host, administrator) = (site.host().kubectl(), site.administrator(BEIJING, Route::Proxy)?);
    administrator.ok_with(&["create", "-f", "-"], &namespace("policies"))?;
    let name = format!("policies-{BEIJING}");
    ensure!(annotation(&host, &name, SELECTOR)? == selector(), "it does not exist immediately");
    for name in [format!("default-{BEIJING}"), format!("atoll-root-{BEIJING}")] {
        ensure!(annotation(&host, &name, SELECTOR)? == selector(), "{name} does not have it");
    }
    let shown = administrator.ok(&["get", "namespace", "policies", "-o", "json", "--show-managed-fields"])?;
    ensure!(!shown.contains("atoll.dev"), "{shown}");

    for annotation in
        [format!("{SELECTOR}=location=hangzhou"), format!("{SELECTOR}-"), format!("{TOLERATIONS}=:Exists:::")]
    {
        let output = administrator.run(&["annotate", "namespace", "policies", "--overwrite", &annotation])?;
        let is_forbidden = output.code != 0 && output.stderr.contains("managed by the operator of the host cluster");
        // kubectl omits fields that it does not see.
        ensure!(is_forbidden || annotation.ends_with('-'), "{annotation}: {output:?}");
    }
    // A client that replaces the whole object does not know the annotation.
    administrator.ok_with(&["replace", "-f", "-"], &namespace("policies"))?;
    ensure!(annotation(&host, &name, SELECTOR)? == selector(), "it is gone");
    for change in
        [format!("{SELECTOR}=location=hangzhou"), format!("{SELECTOR}-"), format!("{TOLERATIONS}=a:Exists:::")]
    {
        host.ok(&["annotate", "namespace", &name, "--overwrite", &change])?;
        eventually(CONDITION_TIMEOUT, || {
            let (selects, tolerates) = (annotation(&host, &name, SELECTOR)?, annotation(&host, &name, TOLERATIONS)?);
            ensure!(selects == selector() && !tolerates.starts_with("a:"), "{selects} {tolerates}");
            Ok(())
        })?;
    }
    let direct = direct_user(site, "policies-direct")?;
    let change = format!("{SELECTOR}=location=hangzhou");
    let output =
        direct.run(&["annotate", "namespace", &format!("policies-direct-{BEIJING}"), "--overwrite", &change])?;
    says(&output, "namespaces.atoll.dev")?;
    for name in ["policies", "policies-direct"] {
        administrator.ok(&["delete", "namespace", name, "--wait=false"])?;
    }
    foreign(&host, !everywhere_kubeedge())
}

/// A namespace of a virtual cluster that no agent serves. `guards` says whether the host adds the node selector to
/// pods.
pub(super) fn foreign(host: &Kubectl, guards: bool) -> anyhow::Result<()> {
    let name = "policies-ke-shanghai";
    let metadata = json!({"name": name, "labels": {"atoll.dev/virtual-cluster": "ke-shanghai"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    host.ok_with(&["create", "-f", "-"], &namespace.to_string())?;
    let create = |pod: &str| host.run_with(&["create", "-f", "-"], pod);
    let right = json!({"nodeSelector": {"edge": "", "location": "shanghai"}});
    says(&create(&pod(name, "whatever", &right))?, "pods.atoll.dev").context("a namespace without annotations")?;

    // An empty value matches only an empty value.
    host.ok(&["annotate", "namespace", name, &format!("{SELECTOR}=edge=,location=shanghai")])?;
    host.ok(&[
        "annotate",
        "namespace",
        name,
        &format!("{TOLERATIONS}=edge:Exists::NoSchedule:,gone:Equal:yes:NoExecute:7"),
    ])?;
    eventually(CONDITION_TIMEOUT, || {
        let output = create(&pod(name, "right", &right))?;
        ensure!(output.code == 0, "{}", output.stderr);
        Ok(())
    })?;
    for (number, selector) in [Value::Null, json!({"location": "shanghai"}), json!({"edge": "no"})].iter().enumerate() {
        let bare = format!("bare-{number}");
        let output = create(&pod(name, &bare, &json!({"nodeSelector": selector})))?;
        if !guards {
            says(&output, "pods.atoll.dev").with_context(|| selector.to_string())?;
            continue;
        }
        ensure!(output.code == 0, "{}", output.stderr);
        let made: Value = serde_json::from_str(&host.ok(&["get", "pod", &bare, "-n", name, "-o", "json"])?)?;
        ensure!(made["spec"]["nodeSelector"] == right["nodeSelector"], "{made}");
        let tolerations = made["spec"]["tolerations"].as_array().context("tolerations")?;
        let edge = json!({"key": "edge", "operator": "Exists", "effect": "NoSchedule"});
        let gone = json!({
            "key": "gone", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 7,
        });
        ensure!(tolerations.contains(&edge) && tolerations.contains(&gone), "{made}");
    }
    host.ok(&["delete", "namespace", name, "--wait=false"])?;
    Ok(())
}

/// The policies protect the configured labels and annotations, even if the agent allowed a change.
pub(super) fn protect_what_the_operator_lists(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "policies-keys-ke-shanghai";
    let host = site.host().kubectl();
    let default = annotation(&host, &format!("default-{BEIJING}"), PROTECTED)?;
    ensure!(default.starts_with("resource.kubernetes.io/admin-access,"), "{default}");
    ensure!(default.split(',').any(|pattern| pattern == "admission.gatekeeper.sh/*"), "{default}");

    // No agent serves this cluster, so only the test sends requests for it.
    let labels = json!({
        "atoll.dev/virtual-cluster": "ke-shanghai", "example.com/exact": "a", "a.example.net/part": "a", "free": "a",
    });
    let annotations = json!({PROTECTED: "example.com/exact,prefix.example.com/*,*.example.org/suffix,*.example.net/*"});
    let metadata = json!({"name": NAME, "labels": labels, "annotations": annotations});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    host.ok_with(&["create", "-f", "-"], &namespace.to_string())?;
    host.ok(&[
        "create",
        "rolebinding",
        "editor",
        "--clusterrole=cluster-admin",
        "--user=vc:ke-shanghai:editor",
        "-n",
        NAME,
    ])?;
    // Impersonate the users like the agent.
    let change = |verb: &str, change: &str| {
        let who = ["--as=vc:ke-shanghai:editor", "--as-group=vc:ke-shanghai:system:authenticated"];
        host.run(&[&[verb, "namespace", NAME, "--overwrite", change], &who[..]].concat())
    };
    for key in ["free", "example.com/exact2", "prefix.example.com.example/a", "example.org/suffix", "b.example.net.c/d"]
    {
        for verb in ["label", "annotate"] {
            let output = change(verb, &format!("{key}=b"))?;
            ensure!(output.code == 0, "{verb} {key}: {}", output.stderr);
        }
    }
    for key in ["example.com/exact", "prefix.example.com/a", "a.example.org/suffix", "a.example.net/part"] {
        for verb in ["label", "annotate"] {
            says(&change(verb, &format!("{key}=b"))?, "namespaces.atoll.dev")
                .with_context(|| format!("{verb} {key}"))?;
        }
    }
    for (verb, key) in [("label", "example.com/exact"), ("label", "a.example.net/part"), ("annotate", PROTECTED)] {
        says(&change(verb, &format!("{key}-"))?, "namespaces.atoll.dev").with_context(|| format!("{verb} {key}-"))?;
    }
    // The operator of the host may change them.
    host.ok(&["label", "namespace", NAME, "--overwrite", "example.com/exact=b", "prefix.example.com/a=b"])?;
    host.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

fn are_all(host: &Kubectl) -> anyhow::Result<()> {
    for kind in kinds().iter().copied() {
        let expected: BTreeSet<_> =
            if kind == "Validating" { VALIDATING.into_iter().collect() } else { MUTATING.into_iter().collect() };
        for suffix in ["", "Binding"] {
            let kind = format!("{kind}AdmissionPolicy{suffix}");
            let names = host.ok(&["get", &kind, "-o", "jsonpath={.items[*].metadata.name}"])?;
            let names: BTreeSet<_> = names.split_whitespace().filter(|name| name.ends_with("atoll.dev")).collect();
            ensure!(names == expected, "{kind}: {names:?}");
        }
    }
    Ok(())
}

/// The kinds of policies that the host serves.
fn kinds() -> &'static [&'static str] {
    if everywhere_kubeedge() { &["Validating"] } else { &["Validating", "Mutating"] }
}

fn annotation(host: &Kubectl, namespace: &str, key: &str) -> anyhow::Result<String> {
    let path = format!("jsonpath={{.metadata.annotations.{}}}", key.replace('.', r"\."));
    host.ok(&["get", "namespace", namespace, "-o", &path])
}

/// The one of Beijing.
fn selector() -> String {
    let labels = Nodes::Location("beijing").selector();
    let mut labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.sort();
    labels.join(",")
}
