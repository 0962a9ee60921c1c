//! CustomResourceDefinitions that virtual clusters bring: which they may, and what an API server does with them.
//!
//! Each trial has a group of its own, for all share one host.

use anyhow::ensure;
use atoll_tests::kubectl::SOON;
use atoll_tests::{Kubectl, VirtualSite, Way, eventually};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, Listed};

pub(super) const TRIALS: [Listed; 3] = [
    ("definitions_of_reserved_groups_are_refused", of_reserved_groups_are_refused),
    ("definitions_say_which_name_is_taken", say_which_name_is_taken),
    ("definitions_are_in_nobodys_way", are_in_nobodys_way),
];

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
    let administrator = site.administrator(BEIJING, Way::Proxy)?;
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
    administrator.ok(&["patch", &crd, "--type=merge", "-p", r#"{"spec": {"names": {"shortNames": ["gr"]}}}"#])?;
    eventually(SOON, || administrator.ok(&["get", "gr", "-A"]))?;
    let annotations = administrator.ok(&["get", &crd, "-o=jsonpath={.metadata.annotations}"])?;
    ensure!(annotations == r#"{"api-approved.kubernetes.io":"unapproved, for a test"}"#, "{annotations}");
    administrator.ok(&["delete", &crd])?;
    Ok(())
}

/// Two definitions of one group cannot have the same kind, and who does not see the first is told.
fn say_which_name_is_taken(site: &VirtualSite) -> anyhow::Result<()> {
    let (beijing, hangzhou) = (site.administrator(BEIJING, Way::Proxy)?, site.administrator(HANGZHOU, Way::Path)?);
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
    for (cluster, way) in [(BEIJING, Way::Proxy), (HANGZHOU, Way::Path)] {
        let kubectl = site.administrator(cluster, way)?;
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
