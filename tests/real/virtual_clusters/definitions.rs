//! CustomResourceDefinitions that virtual clusters bring: which they may, and what an API server does with them.
//!
//! Each trial has its own group, because all share one host.

use anyhow::ensure;
use atoll_tests::kubectl::SOON;
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

/// A definition of namespaced objects that may hold anything.
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
            let said = administrator.run_with(&[how, &["-f", "-"]].concat(), &approved(group).to_string())?;
            let why = format!("reserves API group \"{group}\"");
            ensure!(said.code != 0 && said.stderr.contains(&why), "{group}: {said:?}");
        }
    }
    // The configuration allows this one.
    let group = "allowed.operators.k8s.io";
    create(&administrator, &approved(group))?;
    let crd = format!("crd/gears.{group}");
    administrator.ok(&["patch", &crd, "--type=merge", "-p", r#"{"spec": {"names": {"shortNames": ["agr"]}}}"#])?;
    eventually(SOON, || administrator.ok(&["get", "agr", "-A"]))?;
    let annotations = administrator.ok(&["get", &crd, "-o=jsonpath={.metadata.annotations}"])?;
    ensure!(annotations == r#"{"api-approved.kubernetes.io":"unapproved, for a test"}"#, "{annotations}");
    administrator.ok(&["delete", &crd])?;
    Ok(())
}

/// Two definitions of one group cannot have the same kind, and who does not see the first is told.
fn say_which_name_is_taken(site: &VirtualSite) -> anyhow::Result<()> {
    let (beijing, hangzhou) = (site.administrator(BEIJING, Route::Proxy)?, site.administrator(HANGZHOU, Route::Path)?);
    let group = "names.example.com";
    let mut first = definition("gears", "Gear", group);
    first["spec"]["names"]["shortNames"] = json!(["gr"]);
    create(&beijing, &first)?;
    eventually(SOON, || beijing.ok(&["get", "gears.names.example.com", "-A"]))?;
    let mut short = definition("wheels", "Wheel", group);
    short["spec"]["names"]["shortNames"] = json!(["gr"]);
    for (clashing, name) in [(definition("cogs", "Gear", group), "gear"), (short, "gr")] {
        let said = hangzhou.run_with(&["create", "-f", "-"], &clashing.to_string())?;
        let why = format!("spec.names: \"{name}\" is taken in API group \"{group}\"");
        ensure!(said.stderr.contains("(Conflict)") && said.stderr.contains(&why), "{said:?}");
        ensure!(!said.stderr.contains("beijing"), "{said:?}");
    }
    ensure!(names(&hangzhou, group)?.is_empty(), "a refused definition is there");
    create(&hangzhou, &definition("wheels", "Wheel", group))?;
    eventually(SOON, || hangzhou.ok(&["get", "wheels.names.example.com", "-A"]))?;
    let said = hangzhou.fails(&[
        "patch",
        "crd/wheels.names.example.com",
        "--type=merge",
        "-p",
        r#"{"spec": {"names": {"shortNames": ["gr"]}}}"#,
    ])?;
    ensure!(said.contains("is taken in API group"), "{said}");
    // To who sees both, the condition of an API server says it.
    create(&beijing, &definition("cogs", "Gear", group))?;
    let accepted = "-o=jsonpath={.status.conditions[?(@.type==\"NamesAccepted\")].reason}";
    eventually(SOON, || {
        let reason = beijing.ok(&["get", "crd/cogs.names.example.com", accepted])?;
        ensure!(reason.contains("Conflict"), "{reason:?}");
        Ok(())
    })?;
    for kubectl in [&beijing, &hangzhou] {
        kubectl.ok(&["delete", "crd", "-l", "of=names.example.com"])?;
    }
    Ok(())
}

/// Virtual clusters that apply an object of the operator's do not manage its fields: the operator's next apply has no
/// conflict, and removes what it leaves out.
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
        // Labels are no conflict either: they are the cluster's own.
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
    let answer = delete(&format!("{selected}&dryRun=All"))?;
    ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
    ensure!(names(&beijing, group)?.lines().count() == 2, "a dry run deletes");
    let answer = delete(&selected)?;
    ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
    ensure!(answer.body.contains("\"CustomResourceDefinitionList\""), "{}", answer.body);
    // A definition goes when its objects are gone.
    eventually(SOON, || {
        let left = names(&beijing, group)?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })?;
    ensure!(names(&hangzhou, group)?.contains("cogs"), "the neighbour's is gone");
    ensure!(host.fails(&["get", "crd/gears.collected.example.com"])?.contains("(NotFound)"), "left on the host");
    beijing.ok(&["get", "crd/wheels.collected.example.com"])?;
    let answer = delete("fieldSelector=metadata.name%3Dwheels.collected.example.com")?;
    ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
    eventually(SOON, || beijing.fails(&["get", "crd/wheels.collected.example.com"]))?;

    // The operator's stays, and that is said.
    host.ok_with(&["create", "-f", "-"], &definition("racks", "Rack", group).to_string())?;
    create(&beijing, &definition("gears", "Gear", group))?;
    let answer = delete(&selected)?;
    ensure!(answer.code == 403 && answer.body.contains("created it for all virtual clusters"), "{}", answer.body);
    eventually(SOON, || {
        let left = names(&beijing, group)?;
        ensure!(left.contains("racks") && left.lines().count() == 1, "{left}");
        Ok(())
    })?;
    // Who may not, does not; and the other shared kinds are deleted so too.
    let jane = site.curl_like(&site.user(BEIJING, "jane")?, BEIJING, Route::Path)?;
    let answer = jane.send("DELETE", &format!("{PATH}?{selected}"), "")?;
    ensure!(answer.code == 403 && answer.body.contains("cannot deletecollection resource"), "{}", answer.body);
    for kubectl in [&beijing, &hangzhou] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "collected", "labels": {"of": group}}, "value": 3,
        });
        create(kubectl, &class)?;
    }
    let answer = curl.send("DELETE", &format!("/apis/scheduling.k8s.io/v1/priorityclasses?{selected}"), "")?;
    ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
    ensure!(beijing.fails(&["get", "priorityclass/collected"])?.contains("(NotFound)"), "it is still there");
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
    eventually(SOON, || beijing.ok(&["get", &name, "-A"]))?;
    let reason = |kubectl: &Kubectl, kind: &str| {
        let path = format!("-o=jsonpath={{.status.conditions[?(@.type==\"{kind}\")].reason}}");
        kubectl.ok(&["get", &crd, "--subresource=status", &path])
    };
    // Get and replace, as Kubernetes' own test of it does.
    let seen = curl.get(&format!("{PATH}/{name}/status"))?;
    ensure!(seen.code == 200 && !seen.body.contains("atoll"), "{}", seen.body);
    eventually(SOON, || {
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
    ensure!(names(&beijing, group)?.contains(&name), "a write of the status writes labels");
    let patch = json!({"status": {"conditions": [{"type": "StatusPatched", "status": "True", "reason": "E2E", "message": "x"}]}});
    for (kind, patch) in [
        ("merge", patch.clone()),
        ("json", json!([{"op": "replace", "path": "/status/acceptedNames/kind", "value": "Cog"}])),
        ("strategic", json!({"status": {"conditions": []}})),
    ] {
        beijing.ok(&["patch", &crd, "--subresource=status", "--type", kind, "-p", &patch.to_string()])?;
        // What the host's controllers have concluded is still there.
        let accepted = beijing.ok(&["get", &crd, "-o=jsonpath={.status.acceptedNames.kind}"])?;
        ensure!(accepted == "Gear" && reason(&beijing, "NamesAccepted")? == "NoConflicts", "{accepted}");
        let patched = reason(&beijing, "StatusPatched")?;
        ensure!(patched == if kind == "strategic" { "" } else { "E2E" }, "{patched} after {kind}");
    }
    let stale = json!({"metadata": {"resourceVersion": "1"}, "status": {"conditions": []}});
    let said = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &stale.to_string()])?;
    ensure!(said.contains("the object has been modified"), "{said}");

    create(&hangzhou, &definition("gears", "Gear", group))?;
    let said = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &patch.to_string()])?;
    ensure!(said.contains("(Forbidden)") && said.contains("none of them can write its status"), "{said}");
    beijing.ok(&["delete", &crd])?;
    let said = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &patch.to_string()])?;
    ensure!(said.contains("(NotFound)"), "{said}");
    hangzhou.ok(&["delete", &crd])?;

    host.ok_with(&["create", "-f", "-"], &definition("gears", "Gear", group).to_string())?;
    eventually(SOON, || beijing.ok(&["get", &crd, "--subresource=status"]))?;
    let said = beijing.fails(&["patch", &crd, "--subresource=status", "--type=merge", "-p", &patch.to_string()])?;
    ensure!(said.contains("(Forbidden)") && said.contains("only its labels and annotations"), "{said}");
    host.ok(&["delete", &crd])?;
    Ok(())
}

fn put(curl: &Curl, path: &str, object: &Value) -> anyhow::Result<()> {
    let answer = curl.send("PUT", path, &object.to_string())?;
    ensure!(answer.code == 200, "{} {}", answer.code, answer.body);
    Ok(())
}
