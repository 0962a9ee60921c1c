//! Fields of an export that act on more than the virtual cluster.

use kube_wire::gvr::GroupResource;
use rewrite::name::is_own_key;
use rewrite::parked::AUTO_UPDATE;
use serde_json::Value;
use virtual_cluster::policy::{Class, class};
use virtual_cluster::shared::config::{CustomResourceDefinitions, SharedObjects, StorageClasses, is_within};
use virtual_cluster::shared::{Kind, objection};

use super::pod_specs::names_a_node;
use crate::clusters::kinds::Resource;

/// With one of these, objects of the whole host use the class.
const DEFAULT_CLASS: [&str; 3] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
    "ingressclass.kubernetes.io/is-default-class",
];

/// Why an object of the virtual cluster alone is not created.
pub(super) fn to_own(resource: &Resource, object: &Value) -> Option<String> {
    let metadata = &object["metadata"];
    let name = GroupResource { group: &resource.group, resource: &resource.name };
    match class(name) {
        Class::Roles => {
            // A role of the host may select any label. The agent stores those of clients under other keys.
            let mut labels = metadata["labels"].as_object().into_iter().flatten();
            if let Some((label, _)) = labels.find(|(key, _)| !is_own_key(key)) {
                return Some(format!("its label {label} would have an effect on the host"));
            }
            if !metadata["annotations"][AUTO_UPDATE].is_null() {
                return Some(format!("its annotation {AUTO_UPDATE} would have an effect on the host"));
            }
            let is_aggregated = !object["aggregationRule"].is_null();
            is_aggregated.then(|| "its aggregationRule would select roles of the host".to_owned())
        }
        Class::Shared => None,
        _ if names_a_node(object) => {
            Some("it names the node of a pod (nodeName), which may not belong to the virtual cluster".to_owned())
        }
        _ => None,
    }
}

/// Why a shared object is not created. If the host has it, it can belong to the virtual cluster, too.
pub(super) fn to_shared(resource: &Resource, object: &Value) -> Option<String> {
    let name = GroupResource { group: &resource.group, resource: &resource.name };
    let annotations = &object["metadata"]["annotations"];
    let is_default = |key: &&str| !annotations[*key].is_null() && annotations[*key] != "false";
    if let Some(key) = DEFAULT_CLASS.into_iter().find(is_default) {
        return Some(format!("its annotation {key} would have an effect on the whole host"));
    }
    match Kind::of(name) {
        Some(kind) => objection(kind, object, &rules(object)),
        None if class(name) == Class::Shared => Some("virtual clusters cannot create objects of this kind".to_owned()),
        None if is_within(&resource.group, CustomResourceDefinitions::OWN_GROUP) => {
            Some("it is Atoll's own".to_owned())
        }
        None => None,
    }
}

/// Those of an agent that lets virtual clusters have this StorageClass: the command does not know the agent's configuration.
fn rules(object: &Value) -> SharedObjects {
    let texts = |value: &Value| {
        let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let provisioners = object["provisioner"].as_str().map(str::to_owned).into_iter().collect();
    let storage_classes = StorageClasses { provisioners, mount_options: texts(&object["mountOptions"]) };
    SharedObjects { storage_classes, ..SharedObjects::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roles_have_no_effect_on_the_host() {
        let roles = Resource::for_tests("rbac.authorization.k8s.io", "clusterroles", false);
        let fine = json!({"metadata": {
            "labels": {"atoll.dev/virtual-cluster": "ke", "rbac.authorization.k8s.io.parked.atoll.dev/aggregate-to-view": "true"},
            "annotations": {"rbac.authorization.kubernetes.io.parked.atoll.dev/autoupdate": "true"},
        }, "rules": []});
        assert_eq!(to_own(&roles, &fine), None);
        for (change, expect) in [
            (
                json!({"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}}}),
                "aggregate-to-admin",
            ),
            (json!({"metadata": {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}}), "bootstrapping"),
            (json!({"metadata": {"annotations": {AUTO_UPDATE: "true"}}}), "autoupdate"),
            (json!({"aggregationRule": {}}), "aggregationRule"),
        ] {
            let why = to_own(&roles, &change).unwrap();
            assert!(why.contains(expect), "{why}");
        }
        assert_eq!(to_own(&roles, &json!({"aggregationRule": null})), None);
    }

    #[test]
    fn pods_name_no_node() {
        let pods = Resource::for_tests("", "pods", true);
        assert!(to_own(&pods, &json!({"kind": "Pod", "spec": {"nodeName": "n", "containers": []}})).is_some());
        assert_eq!(to_own(&pods, &json!({"kind": "Pod", "spec": {"containers": []}})), None);
    }

    #[test]
    fn shared_objects_have_no_effect_on_other_clusters() {
        let refused = |group: &str, name: &str, object: Value| {
            to_shared(&Resource::for_tests(group, name, false), &object).is_some()
        };
        let priorities = |object: Value| refused("scheduling.k8s.io", "priorityclasses", object);
        assert!(priorities(json!({"globalDefault": true})) && !priorities(json!({"globalDefault": false})));
        let classes = |object: Value| refused("storage.k8s.io", "storageclasses", object);
        let default = |value: &str| json!({"metadata": {"annotations": {DEFAULT_CLASS[0]: value}}, "provisioner": "p"});
        assert!(classes(default("true")) && classes(json!({"provisioner": "p", "parameters": {"x-secret-name": "y"}})));
        assert!(!classes(default("false")) && !classes(json!({"provisioner": "p", "mountOptions": ["ro"]})));
        let ingress = json!({"metadata": {"annotations": {DEFAULT_CLASS[2]: "true"}}});
        assert!(refused("networking.k8s.io", "ingressclasses", ingress));
        let definitions =
            |spec: Value| refused("apiextensions.k8s.io", "customresourcedefinitions", json!({"spec": spec}));
        assert!(definitions(json!({"group": "a.io", "conversion": {"strategy": "Webhook"}})));
        assert!(definitions(json!({"group": "x.kubeedge.io"})) && definitions(json!({"group": "atoll.dev"})));
        assert!(!definitions(json!({"group": "a.io", "conversion": {"strategy": "None"}})));
        assert!(refused("storage.k8s.io", "csidrivers", json!({})) && refused("x.atoll.dev", "gears", json!({})));
        assert!(!refused("example.com", "gears", json!({})));
    }
}
