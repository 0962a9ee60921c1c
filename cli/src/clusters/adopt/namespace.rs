//! The Namespaces of an export.

use anyhow::ensure;
use rewrite::HostNamespace;
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL, ROOT_LABEL};
use serde_json::Value;
use virtual_cluster::namespaces::{FULL, IDENTITY, annotations};

/// Checks that the root namespace gives the virtual cluster the identity in the header, which the user has seen.
pub(super) fn check_identity(namespace: &Value, identity: Option<&str>) -> anyhow::Result<()> {
    let found = namespace["metadata"]["annotations"][IDENTITY].as_str();
    ensure!(
        !is_root(namespace) || found == identity,
        "its annotation {IDENTITY} ({}) is not the identity in the first document of the file ({})",
        found.unwrap_or("none"),
        identity.unwrap_or("none")
    );
    Ok(())
}

/// The Namespace without what the agent writes, except the identity.
pub(super) fn prepared(namespace: &Value) -> Value {
    let mut prepared = namespace.clone();
    let is_root = is_root(namespace);
    if let Some(members) = prepared.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        let is_agents = |key: &str| annotations::KEYS.contains(&key) || key == FULL || (key == IDENTITY && !is_root);
        members.retain(|key, _| !is_agents(key));
    }
    prepared
}

/// Checks that a namespace of the host is the same one of the same virtual cluster.
pub(super) fn check_found(wanted: &Value, found: &Value) -> anyhow::Result<()> {
    for label in [CLUSTER_LABEL, NAMESPACE_LABEL, ROOT_LABEL] {
        let (wanted, is) = (&wanted["metadata"]["labels"][label], &found["metadata"]["labels"][label]);
        ensure!(wanted == is, "the host has a namespace of this name that does not belong to this virtual cluster");
    }
    ensure!(found["metadata"]["deletionTimestamp"].is_null(), "the host is deleting the namespace of this name");
    Ok(())
}

/// The identity to add to a namespace of the host, if it has another one.
pub(super) fn new_identity<'a>(wanted: &'a Value, found: &Value) -> Option<&'a Value> {
    let identity = &wanted["metadata"]["annotations"][IDENTITY];
    (!identity.is_null() && found["metadata"]["annotations"][IDENTITY] != *identity).then_some(identity)
}

fn is_root(namespace: &Value) -> bool {
    namespace["metadata"]["name"].as_str().is_some_and(|name| HostNamespace::new(name).is_ok_and(|host| host.is_root()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(name: &str, annotations: &Value) -> Value {
        json!({"metadata": {"name": name, "annotations": annotations}})
    }

    #[test]
    fn the_identity_is_the_one_of_the_header() {
        let root = |identity: &str| named("atoll-root-ke", &json!({IDENTITY: identity}));
        check_identity(&root("u"), Some("u")).unwrap();
        check_identity(&named("atoll-root-ke", &json!({})), None).unwrap();
        check_identity(&named("shop-ke", &json!({})), Some("u")).unwrap();
        for (namespace, identity) in
            [(root("v"), Some("u")), (root("v"), None), (named("atoll-root-ke", &json!({})), Some("u"))]
        {
            assert!(check_identity(&namespace, identity).is_err(), "{namespace}");
        }
    }

    #[test]
    fn the_agent_writes_its_annotations_itself() {
        let annotations = json!({
            "atoll.dev/node-selector": "a=b", "atoll.dev/tolerations": "x", "atoll.dev/protected-keys": "x",
            "atoll.dev/external-ips": "x", "atoll.dev/reserved-resources": "x", "atoll.dev/full": "x",
            "atoll.dev/identity": "u", "theirs": "x",
        });
        let root = prepared(&named("atoll-root-ke", &annotations));
        assert_eq!(root["metadata"]["annotations"], json!({"atoll.dev/identity": "u", "theirs": "x"}));
        let shop = prepared(&named("shop-ke", &annotations));
        assert_eq!(shop["metadata"]["annotations"], json!({"theirs": "x"}));
    }

    #[test]
    fn a_namespace_of_the_host_must_have_the_same_labels() {
        let labels = json!({CLUSTER_LABEL: "ke", NAMESPACE_LABEL: "shop"});
        let wanted = json!({"metadata": {"name": "shop-ke", "labels": labels}});
        check_found(&wanted, &wanted).unwrap();
        for found in [
            json!({"labels": {}}),
            json!({"labels": {CLUSTER_LABEL: "ke"}}),
            json!({"labels": {CLUSTER_LABEL: "ke", NAMESPACE_LABEL: "shop", ROOT_LABEL: "ke"}}),
            json!({"labels": labels, "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ] {
            assert!(check_found(&wanted, &json!({"metadata": found})).is_err(), "{found}");
        }
    }
}
