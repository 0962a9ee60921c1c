//! CustomResourceDefinitions of virtual clusters: which ones they may create, and their effects.
//!
//! Each test has its own group, because all share one host.

use anyhow::ensure;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Curl, Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, Listed};

pub(super) const TRIALS: [Listed; 5] = [
    ("definitions_of_reserved_groups_are_refused", of_reserved_groups_are_refused),
    ("definitions_say_which_name_is_taken", say_which_name_is_taken),
    ("definitions_are_in_nobodys_way", are_in_nobodys_way),
    ("definitions_are_deleted_as_collections", are_deleted_as_collections),
    ("definitions_have_a_status", have_a_status),
];

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of namespaced objects without a schema.
fn definition(plural: &str, kind: &str, group: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "labels": {"of": group}},
        "spec": {"group": group, "names": {"kind": kind, "plural": plural}, "scope": "Namespaced", "versions": [version]},
    })
}

fn create(kubectl: &Kubectl, object: &Value) -> anyhow::Result<String> {
    kubectl.ok_with(&["create", "-f", "-"], &object.to_string())
}

/// The names of the definitions of a group.
fn names(kubectl: &Kubectl, group: &str) -> anyhow::Result<String> {
    kubectl.ok(&["get", "crd", "-o=name", "-l", &format!("of={group}")])
}

fn of_reserved_groups_are_refused(site: &VirtualSite) -> anyhow::Result<()> {
    let administrator = site.administrator(BEIJING, Route::Proxy)?;
    let approved = |group: &str| {
        let mut definition = definition("gears", "Gear", group);
        definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
        definition
    };
    for group in ["operations.kubeedge.io", "cluster.x-k8s.io", "sigs.k8s.io", "example.kubernetes.io", "x.atoll.dev"] {
        for how in [&["create"][..], &["apply", "--server-side"]] {
            let output = administrator.run_with(&[how, &["-f", "-"]].concat(), &approved(group).to_string())?;
            let why = format!("reserves API group \"{group}\"");
            ensure!(output.code != 0 && output.stderr.contains(&why), "{group}: {output:?}");
        }
    }
    // The configuration allows this group.
    let group = "allowed.operators.k8s.io";
    create(&administrator, &approved(group))?;
    let crd = format!("crd/gears.{group}");
    administrator.ok(&["patch", &crd, "--type=merge", "-p", r#"{"spec": {"names": {"shortNames": ["agr"]}}}"#])?;
    eventually(CONDITION_TIMEOUT, || administrator.ok(&["get", "agr", "-A"]))?;
    let annotations = administrator.ok(&["get", &crd, "-o=jsonpath={.metadata.annotations}"])?;
    ensure!(annotations == r#"{"api-approved.kubernetes.io":"unapproved, for a test"}"#, "{annotations}");
    administrator.ok(&["delete", &crd])?;
    Ok(())
}

/// Two definitions of one group cannot have the same kind. A cluster that does not see the first one gets an error.
fn say_which_name_is_taken(site: &VirtualSite) -> anyhow::Result<()> {
    let (beijing, hangzhou) = (site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?);
    let group = "names.example.com";
    let mut first = definition("gears", "Gear", group);
    first["spec"]["names"]["shortNames"] = json!(["gr"]);
    create(&beijing, &first)?;
    eventually(CONDITION_TIMEOUT, || beijing.ok(&["get", "gears.names.example.com", "-A"]))?;
    let mut short = definition("wheels", "Wheel", group);
    short["spec"]["names"]["shortNames"] = json!(["gr"]);
    for (clashing, name) in [(definition("cogs", "Gear", group), "gear"), (short, "gr")] {
        let output = hangzhou.run_with(&["create", "-f", "-"], &clashing.to_string())?;
        let why = format!("spec.names: \"{name}\" is taken in API group \"{group}\"");
        ensure!(output.stderr.contains("(Conflict)") && output.stderr.contains(&why), "{output:?}");
        ensure!(!output.stderr.contains("beijing"), "{output:?}");
    }
    ensure!(names(&hangzhou, group)?.is_empty(), "a refused definition exists");
    create(&hangzhou, &definition("wheels", "Wheel", group))?;
    eventually(CONDITION_TIMEOUT, || hangzhou.ok(&["get", "wheels.names.example.com", "-A"]))?;
    let output = hangzhou.fails(&[
        "patch",
        "crd/wheels.names.example.com",
        "--type=merge",
        "-p",
        r#"{"spec": {"names": {"shortNames": ["gr"]}}}"#,
    ])?;
    ensure!(output.contains("is taken in API group"), "{output}");
    // A cluster that sees both gets the condition of an API server.
    create(&beijing, &definition("cogs", "Gear", group))?;
    let accepted = "-o=jsonpath={.status.conditions[?(@.type==\"NamesAccepted\")].reason}";
    eventually(CONDITION_TIMEOUT, || {
        let reason = beijing.ok(&["get", "crd/cogs.names.example.com", accepted])?;
        ensure!(reason.contains("Conflict"), "{reason:?}");
        Ok(())
    })?;
    for kubectl in [&beijing, &hangzhou] {
        kubectl.ok(&["delete", "crd", "-l", "of=names.example.com"])?;
    }
    Ok(())
}

/// Virtual clusters that apply an object of the operator do not manage its fields. The next apply of the operator has
/// no conflict, and removes fields.
fn are_in_nobodys_way(site: &VirtualSite) -> anyhow::Result<()> {
    let host = site.host().kubectl();
    let group = "way.example.com";
    let mut operators = definition("gears", "Gear", group);
    operators["spec"]["names"]["shortNames"] = json!(["g"]);
    let apply = |kubectl: &Kubectl, manager: &str, definition: &Value| {
        let manager = format!("--field-manager={manager}");
        kubectl.ok_with(&["apply", "--server-side", &manager, "-f", "-"], &definition.to_string())
    };
    apply(&host, "operator", &operators)?;
    for (cluster, route) in [(BEIJING, Route::Proxy), (HANGZHOU, Route::Path)] {
        let kubectl = site.administrator(cluster, route)?;
        let mut own = operators.clone();
        own["metadata"]["labels"] = json!({"of": cluster});
        // Labels cause no conflict either, because each cluster has its own.
        apply(&kubectl, "kubectl", &own)?;
        apply(&kubectl, "helm", &own)?;
        kubectl.ok(&["annotate", &format!("crd/gears.{group}"), "--field-manager=another", "a=b"])?;
        ensure!(names(&kubectl, cluster)? == format!("customresourcedefinition.apiextensions.k8s.io/gears.{group}\n"));
    }
    let managers = [
        "get",
        &format!("crd/gears.{group}"),
        "--show-managed-fields",
        "-o=jsonpath={.metadata.managedFields[*].manager}",
    ];
    let managers = host.ok(&managers)?;
    let mut of_agent = managers.split(' ').filter(|manager| manager.starts_with("atoll:"));
    ensure!(of_agent.all(|manager| manager == "atoll:proxy-agent"), "{managers}");
    for short in [Some("gr"), Some("grr"), None] {
        let names = &mut operators["spec"]["names"];
        match short {
            Some(short) => names["shortNames"] = json!([short]),
            None => drop(names.as_object_mut().map(|names| names.remove("shortNames"))),
        }
        apply(&host, "operator", &operators)?;
        let names = host.ok(&["get", &format!("crd/gears.{group}"), "-o=jsonpath={.spec.names.shortNames[0]}"])?;
        ensure!(names == short.unwrap_or_default(), "{names} instead of {short:?}");
    }
    host.ok(&["delete", &format!("crd/gears.{group}")])?;
    Ok(())
}

fn are_deleted_as_collections(site: &VirtualSite) -> anyhow::Result<()> {
    let (beijing, hangzhou) = (site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?);
    let (host, curl) = (site.host().kubectl(), site.curl(BEIJING, Route::Path)?);
    let group = "collected.example.com";
    let definitions = [("gears", "Gear"), ("cogs", "Cog"), ("wheels", "Wheel")];
    for (plural, kind) in definitions {
        create(&beijing, &definition(plural, kind, group))?;
    }
    create(&hangzhou, &definition("cogs", "Cog", group))?;
    beijing.ok(&["label", "crd/wheels.collected.example.com", "--overwrite", "of=others"])?;
    let delete = |query: &str| curl.send("DELETE", &format!("{PATH}?{query}"), "");

    let selected = format!("labelSelector=of%3D{group}");
    let response = delete(&format!("{selected}&dryRun=All"))?;
    ensure!(response.code == 200, "{} {}", response.code, response.body);
    ensure!(names(&beijing, group)?.lines().count() == 2, "a dry run has deleted it");
    let response = delete(&selected)?;
    ensure!(response.code == 200, "{} {}", response.code, response.body);
    ensure!(response.body.contains("\"CustomResourceDefinitionList\""), "{}", response.body);
    // The host deletes a definition when its objects are gone.
    eventually(CONDITION_TIMEOUT, || {
        let left = names(&beijing, group)?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })?;
    ensure!(names(&hangzhou, group)?.contains("cogs"), "the object of the other cluster does not exist");
    ensure!(
        host.fails(&["get", "crd/gears.collected.example.com"])?.contains("(NotFound)"),
        "it still exists on the host"
    );
    beijing.ok(&["get", "crd/wheels.collected.example.com"])?;
    let response = delete("fieldSelector=metadata.name%3Dwheels.collected.example.com")?;
    ensure!(response.code == 200, "{} {}", response.code, response.body);
    eventually(CONDITION_TIMEOUT, || beijing.fails(&["get", "crd/wheels.collected.example.com"]))?;

    // That of the operator stays, and the response says so.
    host.ok_with(&["create", "-f", "-"], &definition("racks", "Rack", group).to_string())?;
    create(&beijing, &definition("gears", "Gear", group))?;
    let response = delete(&selected)?;
    ensure!(response.code == 403 && response.body.contains("created it for all virtual clusters"), "{}", response.body);
    eventually(CONDITION_TIMEOUT, || {
        let left = names(&beijing, group)?;
        ensure!(left.contains("racks") && left.lines().count() == 1, "{left}");
        Ok(())
    })?;
    // A user without the right cannot delete it. Other shared kinds have the same behavior.
    let jane = site.curl_like(&site.user(BEIJING, "jane")?, BEIJING, Route::Path)?;
    let response = jane.send("DELETE", &format!("{PATH}?{selected}"), "")?;
    ensure!(response.code == 403 && response.body.contains("cannot deletecollection resource"), "{}", response.body);
    for kubectl in [&beijing, &hangzhou] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "collected", "labels": {"of": group}}, "value": 3,
        });
        create(kubectl, &class)?;
    }
    let response = curl.send("DELETE", &format!("/apis/scheduling.k8s.io/v1/priorityclasses?{selected}"), "")?;
    ensure!(response.code == 200, "{} {}", response.code, response.body);
    ensure!(beijing.fails(&["get", "priorityclass/collected"])?.contains("(NotFound)"), "it still exists");
    hangzhou.ok(&["delete", "priorityclass/collected", "crd/cogs.collected.example.com"])?;
    host.ok(&["delete", "crd/racks.collected.example.com"])?;
    Ok(())
}

fn have_a_status(site: &VirtualSite) -> anyhow::Result<()> {
    let (beijing, hangzhou) = (site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?);
    let (host, curl) = (site.host().kubectl(), site.curl(BEIJING, Route::Path)?);
    let group = "status.example.com";
    let (name, crd) = (format!("gears.{group}"), format!("crd/gears.{group}"));
    create(&beijing, &definition("gears", "Gear", group))?;
    eventually(CONDITION_TIMEOUT, || beijing.ok(&["get", &name, "-A"]))?;
    let reason = |kubectl: &Kubectl, kind: &str| {
        let path = format!("-o=jsonpath={{.status.conditions[?(@.type==\"{kind}\")].reason}}");
        kubectl.ok(&["get", &crd, "--subresource=status", &path])
    };
    // Get and replace, like the conformance test of Kubernetes.
    let seen = curl.get(&format!("{PATH}/{name}/status"))?;
    ensure!(seen.code == 200 && !seen.body.contains("atoll"), "{}", seen.body);
    eventually(CONDITION_TIMEOUT, || {
        let mut object: Value = serde_json::from_str(&curl.get(&format!("{PATH}/{name}/status"))?.body)?;
        let condition =
            json!({"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "Set from a test"});
        if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
            conditions.push(condition);
        }
        object["metadata"]["labels"] = json!({"changed": "yes"});
        put(&curl, &format!("{PATH}/{name}/status"), &object)
    })?;
    ensure!(reason(&beijing, "StatusUpdate")? == "E2E");
    ensure!(names(&beijing, group)?.contains(&name), "a write of the status has changed labels");
    let patch = json!({"status": {"conditions": [{"type": "StatusPatched", "status": "True", "reason": "E2E", "message": "x"}]}});
    for (kind, patch) in [
        ("merge", patch.clone()),
        ("json", json!([{"op": "replace", "path": "/status/acceptedNames/kind", "value": "Cog"}])),
        ("strategic", json!({"status": {"conditions": []}})),
    ] {
        beijing.ok(&["patch", &crd, "--subresource=status", "--type", kind, "-p", &patch.to_string()])?;
        // The conditions of the host's controllers still exist.
        let accepted = beijing.ok(&["get", &crd, "-o=jsonpath={.status.acceptedNames.kind}"])?;
        ensure!(accepted == "Gear" && reason(&beijing, "NamesAccepted")? == "NoConflicts", "{accepted}");
        let patched = reason(&beijing, "StatusPatched")?;
        ensure!(patched == if kind == "strategic" { "" } else { "E2E" }, "{patched} after {kind}");
    }
    let stale = json!({"metadata": {"resourceVersion": "1"}, "status": {"conditions": []}});
    let output = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &stale.to_string()])?;
    ensure!(output.contains("the object has been modified"), "{output}");

    create(&hangzhou, &definition("gears", "Gear", group))?;
    let output = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &patch.to_string()])?;
    ensure!(output.contains("(Forbidden)") && output.contains("none of them can write its status"), "{output}");
    beijing.ok(&["delete", &crd])?;
    let output = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &patch.to_string()])?;
    ensure!(output.contains("(NotFound)"), "{output}");
    hangzhou.ok(&["delete", &crd])?;

    host.ok_with(&["create", "-f", "-"], &definition("gears", "Gear", group).to_string())?;
    eventually(CONDITION_TIMEOUT, || beijing.ok(&["get", &crd, "--subresource=status"]))?;
    let output = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &patch.to_string()])?;
    ensure!(output.contains("(Forbidden)") && output.contains("only its labels and annotations"), "{output}");
    host.ok(&["delete", &crd])?;
    Ok(())
}

fn put(curl: &Curl, path: &str, object: &Value) -> anyhow::Result<()> {
    let response = curl.send("PUT", path, &object.to_string())?;
    ensure!(response.code == 200, "{} {}", response.code, response.body);
    Ok(())
}
