//! Kinds and definitions of the operator of the host, which virtual clusters cannot write, change or delete.
//!
//! Each test has its own kinds, because all share one host.

use anyhow::ensure;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::admission_policies::direct_user;
use super::{BEIJING, HANGZHOU, Listed};

pub(super) const TRIALS: [Listed; 6] = [
    ("operators_kinds_are_not_written", kinds_are_not_written),
    ("operators_kinds_in_namespaces_are_not_written", kinds_in_namespaces_are_not_written),
    ("operators_kinds_are_taken_over", kinds_are_taken_over),
    ("operators_definitions_survive_who_came_first", definitions_survive_who_came_first),
    ("operators_definitions_survive_with_objects", definitions_survive_with_objects),
    ("who_may_not_create_applies_to_what_is_there", who_may_not_create_applies_to_what_is_there),
];

const APPLY: &str = "application/apply-patch+yaml";

/// A definition of `plural` without a schema. `owner` is one of its labels.
fn definition(plural: &str, group: &str, scope: &str, owner: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "labels": {"owner": owner}},
        "spec": {"group": group, "names": {"kind": kind(plural), "plural": plural}, "scope": scope, "versions": [version]},
    })
}

fn kind(plural: &str) -> String {
    let singular = plural.trim_end_matches('s');
    format!("{}{}", singular[..1].to_uppercase(), &singular[1..])
}

fn object(plural: &str, group: &str, metadata: &Value) -> String {
    json!({
        "apiVersion": format!("{group}/v1"), "kind": kind(plural), "metadata": metadata,
        "spec": {"image": "registry.example.com/pwn", "nodeNames": ["hangzhou-1"]},
    })
    .to_string()
}

fn apply(kubectl: &Kubectl, object: &Value) -> anyhow::Result<String> {
    kubectl.ok_with(&["apply", "-f", "-"], &object.to_string())
}

/// Waits until the virtual cluster serves the objects of a definition.
fn bring(kubectl: &Kubectl, definition: &Value) -> anyhow::Result<()> {
    apply(kubectl, definition)?;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", name, "--all-namespaces"]))?;
    Ok(())
}

/// Virtual clusters cannot read or write a cluster-scoped kind of the operator, for example one with a controller for
/// all nodes of the host.
fn kinds_are_not_written(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let (plural, group) = ("nodewipejobs", "operations.kubeedge.io");
    let name = format!("{plural}.{group}");
    host.ok_with(&["create", "-f", "-"], &definition(plural, group, "Cluster", "operator").to_string())?;
    eventually(CONDITION_TIMEOUT, || host.ok(&["get", &name]))?;
    host.ok_with(&["create", "-f", "-"], &object(plural, group, &json!({"name": "real"})))?;
    let administrator = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl(BEIJING, Route::Path)?;
    let collection = format!("/apis/{group}/v1/{plural}");
    let pwn = object(plural, group, &json!({"name": "pwn"}));
    let one = format!("{collection}/pwn");
    for (method, path, media_type, body) in [
        ("POST", &collection, "application/json", &*pwn),
        ("PATCH", &format!("{one}?fieldManager=x&force=true"), APPLY, &pwn),
        ("PUT", &one, "application/json", &pwn),
        ("PATCH", &format!("{collection}/real"), "application/merge-patch+json", r#"{"spec":{"image":"x"}}"#),
        ("DELETE", &format!("{collection}/real"), "application/json", ""),
        ("DELETE", &collection, "application/json", ""),
    ] {
        let response = curl.send_as(method, path, media_type, body)?;
        ensure!(response.code == 403, "{method} {path}: {} {}", response.code, response.body);
        ensure!(response.body.contains("does not offer this resource to virtual clusters"), "{}", response.body);
    }
    ensure!(curl.get(&format!("{collection}/real"))?.code == 404, "the cluster shows an object of the operator");
    let listed = curl.get(&collection)?;
    ensure!(listed.code == 200 && !listed.body.contains("real"), "{}", listed.body);
    let objects = host.ok(&["get", &name, "-o=jsonpath={.items[*].metadata.name} {.items[*].spec.image}"])?;
    ensure!(objects == "real registry.example.com/pwn", "{objects}");
    ensure!(host.fails(&["get", "clusterrole", &format!("atoll:custom:{name}")])?.contains("(NotFound)"));
    // No discovery document contains it.
    eventually(CONDITION_TIMEOUT, || {
        for path in ["/apis", "/openapi/v2", "/openapi/v3"] {
            ensure!(!administrator.ok(&["get", "--raw", path])?.contains(plural), "{path} contains it");
        }
        Ok(())
    })?;
    let attributes = json!({"verb": "create", "group": group, "resource": plural});
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let output = administrator.ok_with(&["create", "-f", "-", "-o=jsonpath={.status.allowed}"], &review.to_string())?;
    ensure!(output == "false", "a review allows a refused request");
    let output = administrator.run_with(&["create", "-f", "-"], &pwn)?;
    ensure!(output.code != 0 && output.stderr.contains("no matches for kind"), "{output:?}");
    host.ok(&["delete", "crd", &name])?;
    Ok(())
}

/// If the configuration says so, virtual clusters can only read a namespaced kind of the operator. This does not affect
/// other kinds.
fn kinds_in_namespaces_are_not_written(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "operators";
    let (host, administrator) = (site.host().kubectl(), site.administrator(BEIJING, Route::Proxy)?);
    let direct = direct_user(site, NAME)?;
    let host_name = format!("{NAME}-{BEIJING}");
    let group = "custom.example.com";
    for plural in ["devices", "gadgets"] {
        let name = format!("{plural}.{group}");
        host.ok_with(&["create", "-f", "-"], &definition(plural, group, "Namespaced", "operator").to_string())?;
        eventually(CONDITION_TIMEOUT, || host.ok(&["get", &name]))?;
        eventually(CONDITION_TIMEOUT, || administrator.ok(&["get", &name, "-n", NAME]))?;
        host.ok_with(&["create", "-f", "-", "-n", &host_name], &object(plural, group, &json!({"name": "real"})))?;
    }
    let why = "the operator of the host cluster does not offer this resource to virtual clusters";
    for (kubectl, namespace) in [(&direct, &host_name[..]), (&administrator, NAME)] {
        let mine =
            |plural| object(plural, group, &json!({"name": format!("mine-{namespace}"), "namespace": namespace}));
        ensure!(kubectl.ok(&["get", &format!("devices.{group}"), "-n", namespace])?.contains("real"));
        for output in [
            kubectl.run_with(&["create", "-f", "-"], &mine("devices"))?,
            kubectl.run(&["label", &format!("devices.{group}"), "real", "mine=yes", "-n", namespace])?,
            kubectl.run(&["delete", &format!("devices.{group}"), "real", "-n", namespace, "--wait=false"])?,
        ] {
            ensure!(output.code != 0 && output.stderr.contains(why), "{output:?}");
        }
        kubectl.ok_with(&["create", "-f", "-"], &mine("gadgets"))?;
    }
    let review = ["auth", "can-i", "create", &format!("devices.{group}"), "-n", NAME];
    ensure!(administrator.run(&review)?.stdout.starts_with("no"), "a review allows a refused request");
    host.ok(&["delete", "crd", &format!("devices.{group}"), &format!("gadgets.{group}")])?;
    administrator.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

/// If the operator applies a definition that a virtual cluster has created, it belongs to the operator. A delete by the
/// virtual cluster removes neither the definition nor its objects.
fn definitions_survive_who_came_first(site: &VirtualSite) -> anyhow::Result<()> {
    for (how, group) in [(&["apply"][..], "first.example.com"), (&["apply", "--server-side"], "second.example.com")] {
        for spec in ["same", "other"] {
            survives(site, how, &format!("{spec}.{group}"), spec == "other")?;
        }
    }
    Ok(())
}

fn survives(site: &VirtualSite, how: &[&str], group: &str, differs: bool) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let (beijing, hangzhou) = (site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?);
    let (plural, name) = ("warrants", format!("warrants.{group}"));
    let crd = format!("crd/{name}");
    bring(&beijing, &definition(plural, group, "Namespaced", "beijing"))?;
    ensure!(
        hangzhou.fails(&["get", &crd])?.contains("(NotFound)"),
        "the cluster can read a definition of another cluster"
    );

    let mut real = definition(plural, group, "Namespaced", "operator");
    if differs {
        real["spec"]["names"]["shortNames"] = json!(["wrt"]);
    }
    let force: &[&str] = if how.len() > 1 { &["--force-conflicts"] } else { &[] };
    host.ok_with(&[how, force, &["-f", "-"]].concat(), &real.to_string())?;
    host.ok_with(&["create", "-f", "-"], &object(plural, group, &json!({"name": "real", "namespace": "default"})))?;
    // All virtual clusters see it now.
    eventually(CONDITION_TIMEOUT, || hangzhou.ok(&["get", &crd]))?;

    let patch = r#"{"spec": {"names": {"shortNames": ["mine"]}}}"#;
    let output = beijing.fails(&["patch", &crd, "--type=merge", "-p", patch])?;
    ensure!(output.contains("(Forbidden)") && output.contains("only its labels and annotations"), "{output}");
    stays(&beijing, &host, &name)?;
    // This includes definitions that only the operator uses.
    ensure!(beijing.fails(&["delete", &crd])?.contains("created it for all virtual clusters"));
    host.ok(&["get", &name, "real", "-n=default"])?;
    host.ok(&["delete", &crd])?;
    Ok(())
}

/// The virtual cluster deletes the definition. kubectl does not wait, and the definition and its object stay.
fn stays(kubectl: &Kubectl, host: &Kubectl, name: &str) -> anyhow::Result<()> {
    let crd = format!("crd/{name}");
    let uid = || host.ok(&["get", &crd, "-o=jsonpath={.metadata.uid}{.metadata.deletionTimestamp}"]);
    let before = uid()?;
    kubectl.ok(&["delete", &crd, "--timeout=20s"])?;
    ensure!(uid()? == before, "the definition of the operator does not exist");
    let labels = kubectl.ok(&["get", &crd, "-o=jsonpath={.metadata.labels.owner}"])?;
    ensure!(labels != "beijing", "labels of the cluster still exist: {labels}");
    Ok(())
}

/// A cluster with objects of a definition uses it, even if it has not written it.
fn definitions_survive_with_objects(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let (beijing, hangzhou) = (site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?);
    for scope in ["Namespaced", "Cluster"] {
        for changes in [true, false] {
            let (plural, group) = ("deeds", format!("{}{changes}.deeds.example.com", scope.to_lowercase()));
            let (name, crd) = (format!("{plural}.{group}"), format!("crd/{plural}.{group}"));
            bring(&beijing, &definition(plural, &group, scope, "beijing"))?;
            let metadata = |name: &str| match scope {
                "Namespaced" => json!({"name": name, "namespace": "default"}),
                _ => json!({"name": name}),
            };
            eventually(CONDITION_TIMEOUT, || {
                beijing.ok_with(&["create", "-f", "-"], &object(plural, &group, &metadata("own")))
            })?;
            // If no other cluster uses it, the cluster can change it.
            let short = |name: &str| format!(r#"{{"spec": {{"names": {{"shortNames": ["{name}"]}}}}}}"#);
            beijing.ok(&["patch", &crd, "--type=merge", "-p", &short("one")])?;
            host.ok_with(&["create", "-f", "-"], &object(plural, &group, &metadata("real")))?;
            if changes {
                let output = beijing.fails(&["patch", &crd, "--type=merge", "-p", &short("two")])?;
                ensure!(
                    output.contains("(Forbidden)") && output.contains("only its labels and annotations"),
                    "{output}"
                );
                eventually(CONDITION_TIMEOUT, || hangzhou.ok(&["get", &crd]))?;
            }
            stays(&beijing, &host, &name)?;
            host.ok(&[&["get", &name, "real"][..], if scope == "Cluster" { &[] } else { &["-n=default"] }].concat())?;
            host.ok(&["delete", &crd])?;
        }
    }
    Ok(())
}

/// If the operator uses a kind of a virtual cluster, virtual clusters can no longer write it.
fn kinds_are_taken_over(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let beijing = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl(BEIJING, Route::Path)?;
    for how in ["applies", "makes"] {
        let (plural, group) = ("edicts", format!("{how}.edicts.example.com"));
        let (name, crd) = (format!("{plural}.{group}"), format!("crd/{plural}.{group}"));
        let brought = definition(plural, &group, "Cluster", "beijing");
        bring(&beijing, &brought)?;
        let own = |number: usize| object(plural, &group, &json!({"name": format!("own-{number}")}));
        eventually(CONDITION_TIMEOUT, || beijing.ok_with(&["create", "-f", "-"], &own(0)))?;
        let role = format!("atoll:custom:{name}");
        host.ok(&["get", "clusterrole", &role])?;
        if how == "applies" {
            host.ok_with(&["apply", "-f", "-"], &brought.to_string())?;
        } else {
            host.ok_with(&["create", "-f", "-"], &object(plural, &group, &json!({"name": "real"})))?;
        }
        let mut number = 0;
        eventually(CONDITION_TIMEOUT, || {
            number += 1;
            let response = curl.send("POST", &format!("/apis/{group}/v1/{plural}"), &own(number))?;
            ensure!(response.code == 403, "{} {}", response.code, response.body);
            ensure!(response.body.contains("does not offer this resource to virtual clusters"), "{}", response.body);
            Ok(())
        })?;
        // The agent removes its own right.
        eventually(CONDITION_TIMEOUT, || host.fails(&["get", "clusterrole", &role]))?;
        host.ok(&["delete", &crd])?;
    }
    Ok(())
}

/// An apply that creates an object requires the right to create, as on any API server.
fn who_may_not_create_applies_to_what_is_there(site: &VirtualSite) -> anyhow::Result<()> {
    let administrator = site.administrator(BEIJING, Route::Proxy)?;
    let (plural, group) = ("pumps", "mended.example.com");
    let brought = definition(plural, group, "Cluster", "beijing");
    bring(&administrator, &brought)?;
    let verbs = json!(["get", "list", "patch", "update"]);
    let rules = json!([
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": verbs},
        {"apiGroups": [group], "resources": [plural], "verbs": verbs},
    ]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "mender"}, "rules": rules,
    });
    apply(&administrator, &role)?;
    administrator.ok(&["create", "clusterrolebinding", "mender", "--clusterrole=mender", "--user=mender"])?;
    let mender = site.user(BEIJING, "mender")?;
    let applied = |object: &str, more: &[&str]| {
        mender.run_with(&[&["apply", "--server-side", "--validate=false", "-f", "-"], more].concat(), object)
    };
    let new = definition("valves", group, "Cluster", "mender").to_string();
    let pump = object(plural, group, &json!({"name": "own", "labels": {"by": "mender"}}));
    for (object, resource) in [(&new, "customresourcedefinitions"), (&pump, plural)] {
        for more in [&[][..], &["--dry-run=server"], &["--force-conflicts"]] {
            let output = applied(object, more)?;
            let refused = format!("User \"mender\" cannot create resource \"{resource}\"");
            ensure!(output.code != 0 && output.stderr.contains(&refused), "{more:?}: {output:?}");
        }
    }
    administrator.ok_with(&["create", "-f", "-"], &object(plural, group, &json!({"name": "own"})))?;
    let output = applied(&pump, &["--force-conflicts"])?;
    ensure!(output.code == 0, "{output:?}");
    let by = "-o=jsonpath={.metadata.labels.by}";
    ensure!(administrator.ok(&["get", plural, "own", by])? == "mender");
    let output = applied(&definition(plural, group, "Cluster", "mender").to_string(), &["--force-conflicts"])?;
    ensure!(output.code == 0, "{output:?}");
    administrator.ok(&["delete", &format!("crd/{plural}.{group}")])?;
    administrator.ok(&["delete", "clusterrolebinding/mender", "clusterrole/mender"])?;
    Ok(())
}
