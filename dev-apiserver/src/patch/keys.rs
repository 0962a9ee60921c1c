//! Which lists are merged by a key: `patchMergeKey` and `listMapKey` of the built-in types. Field names mean the same in
//! all of them, so the name is enough.

use serde_json::Value;

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListType {
    /// By these fields of its items.
    Map(&'static [&'static str]),
    /// As a set of values.
    Set,
    /// Not at all: the new one takes the place of the old one.
    Atomic,
}

/// The list of this name, whose items look like these.
pub(super) fn list_type(field: &str, items: &[Value]) -> ListType {
    ListType::Map(match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "secrets"
        | "resourceClaims"
        | "schedulingGates" => &["name"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "hostAliases" | "podIPs" | "hostIPs" => &["ip"],
        "conditions" => &["type"],
        "ownerReferences" => &["uid"],
        "taints" => &["key"],
        "topologySpreadConstraints" => &["topologyKey"],
        "ports" if items.iter().any(|item| item["containerPort"].is_number()) => &["containerPort", "protocol"],
        "ports" if items.iter().all(|item| item["port"].is_number()) => &["port", "protocol"],
        "finalizers" => return ListType::Set,
        _ => return ListType::Atomic,
    })
}

/// Maps that are one value to server-side apply (`x-kubernetes-map-type: atomic`).
pub(super) fn is_atomic_map(field: &str) -> bool {
    matches!(
        field,
        "selector"
            | "nodeSelector"
            | "roleRef"
            | "fieldRef"
            | "secretKeyRef"
            | "configMapKeyRef"
            | "resourceFieldRef"
            | "labelSelector"
            | "podSelector"
            | "namespaceSelector"
            | "claimRef"
            | "secretRef"
            | "involvedObject"
    )
}

/// Whether two items of a list are the same one.
pub(super) fn is_same(keys: &[&str], one: &Value, other: &Value) -> bool {
    keys.iter().all(|key| field(one, key) == field(other, key))
}

/// A key field, with the default that the API server would fill in.
pub(super) fn field(item: &Value, key: &str) -> Value {
    match &item[key] {
        Value::Null if key == "protocol" => "TCP".into(),
        value => value.clone(),
    }
}
