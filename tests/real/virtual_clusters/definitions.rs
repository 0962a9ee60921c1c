//! CustomResourceDefinitions that virtual clusters bring: which they may, and what an API server does with them.
//!
//! Each trial has a group of its own, for all share one host.

use anyhow::ensure;
use atoll_tests::{Kubectl, VirtualSite, Way};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, Listed};

pub(super) const TRIALS: [Listed; 1] = [("definitions_are_in_nobodys_way", are_in_nobodys_way)];

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

/// The names of the definitions of a group.
fn names(kubectl: &Kubectl, group: &str) -> anyhow::Result<String> {
    kubectl.ok(&["get", "crd", "-o=name", "-l", &format!("of={group}")])
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
