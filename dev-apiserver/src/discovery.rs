//! Discovery: the legacy form with one document for each group version, and the aggregated form (KEP-3352).

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::kinds::{self, Handling, Kind, Subresource};

/// `GET /`
pub(crate) fn paths() -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, version) in kinds::groups().filter(|(group, _)| !group.is_empty()) {
        paths.extend([format!("/apis/{group}"), format!("/apis/{group}/{version}")]);
    }
    paths.extend(["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
    json!({"paths": paths})
}

/// `GET /api`, in the legacy form.
pub(crate) fn core_versions(address: SocketAddr) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address.to_string()}],
    })
}

/// `GET /apis`, in the legacy form.
pub(crate) fn groups() -> Value {
    let named = kinds::groups().filter(|(group, _)| !group.is_empty());
    let groups: Vec<_> = named.map(|(group, version)| group_entry(group, version)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `GET /apis/GROUP`
pub(crate) fn group(group: &str) -> Option<Value> {
    let (group, version) = kinds::groups().find(|(name, _)| !name.is_empty() && *name == group)?;
    let mut entry = group_entry(group, version);
    entry["kind"] = "APIGroup".into();
    entry["apiVersion"] = "v1".into();
    Some(entry)
}

fn group_entry(group: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({"name": group, "versions": [version], "preferredVersion": version})
}

/// `GET /apis/GROUP/VERSION`
pub(crate) fn resources(group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in kinds::in_group(group, version) {
        let mut entry = json!({
            "name": kind.resource,
            "singularName": kind.singular(),
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": kind.verbs(),
        });
        if !kind.short.is_empty() {
            entry["shortNames"] = json!(kind.short);
        }
        if kind.in_all {
            entry["categories"] = json!(["all"]);
        }
        resources.push(entry);
        for subresource in kind.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", kind.resource, subresource.name),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": subresource.verbs,
            });
            if let Some((group, version, name)) = subresource.kind {
                entry["kind"] = name.into();
                if (group, version) != (kind.group, kind.version) {
                    entry["group"] = group.into();
                    entry["version"] = version.into();
                }
            }
            resources.push(entry);
        }
    }
    let group_version = kinds::api_version(group, version);
    (!resources.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
        })
    })
}

/// `GET /api` and `GET /apis`, in the aggregated form.
pub(crate) fn aggregated(core: bool) -> Value {
    let mut items = Vec::new();
    for (group, version) in kinds::groups().filter(|(group, _)| group.is_empty() == core) {
        let resources: Vec<_> = kinds::in_group(group, version).map(aggregated_resource).collect();
        let metadata = if core { json!({}) } else { json!({"name": group}) };
        items.push(json!({
            "metadata": metadata,
            "versions": [{"version": version, "resources": resources, "freshness": "Current"}],
        }));
    }
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let mut resource = json!({
        "resource": kind.resource,
        // Built-in resources leave group and version empty if they are those of the document.
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular(),
        "verbs": kind.verbs(),
    });
    if !kind.short.is_empty() {
        resource["shortNames"] = json!(kind.short);
    }
    if kind.in_all {
        resource["categories"] = json!(["all"]);
    }
    if !kind.subresources.is_empty() && kind.handling != Handling::Review {
        let below: Vec<_> =
            kind.subresources.iter().map(|subresource| aggregated_subresource(kind, subresource)).collect();
        resource["subresources"] = below.into();
    }
    resource
}

fn aggregated_subresource(kind: &Kind, subresource: &Subresource) -> Value {
    let (mut group, mut version, mut name) = ("", "", kind.kind);
    if let Some(own) = subresource.kind {
        name = own.2;
        if (own.0, own.1) != (kind.group, kind.version) {
            (group, version) = (own.0, own.1);
        }
    }
    json!({
        "subresource": subresource.name,
        "responseKind": {"group": group, "version": version, "kind": name},
        "verbs": subresource.verbs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_resources() {
        let core = aggregated(true);
        let new = core["items"][0]["versions"][0]["resources"].as_array().unwrap();
        let old = resources("", "v1").unwrap();
        let old = old["resources"].as_array().unwrap();
        let old: Vec<_> = old.iter().filter(|entry| !entry["name"].as_str().unwrap().contains('/')).collect();
        let names = |entries: &[&Value], field: &str| -> Vec<Value> {
            entries.iter().map(|entry| entry[field].clone()).collect()
        };
        assert_eq!(names(&new.iter().collect::<Vec<_>>(), "resource"), names(&old, "name"));
    }

    #[test]
    fn the_core_group_is_not_a_named_group() {
        assert!(group("").is_none() && group("apps").is_some());
        assert!(resources("", "v2").is_none() && resources("autoscaling", "v2").is_some());
    }
}
