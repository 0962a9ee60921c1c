//! Merge keys of lists: `patchMergeKey` and `listMapKey` of the built-in types. A field name has the same meaning in all
//! types, so these functions need only the name.

use serde_json::Value;

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListType {
    /// Items are merged by these fields.
    Map(&'static [&'static str]),
    /// A set of values.
    Set,
    /// The list is replaced.
    Atomic,
}

/// The type of a list with this name and items like these.
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

/// Whether server-side apply replaces the map (`x-kubernetes-map-type: atomic`).
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

/// Whether two items have the same key.
pub(super) fn is_same(keys: &[&str], one: &Value, other: &Value) -> bool {
    keys.iter().all(|key| field(one, key) == field(other, key))
}

/// A field of the key, with its default value.
pub(super) fn field(item: &Value, key: &str) -> Value {
    match &item[key] {
        Value::Null if key == "protocol" => "TCP".into(),
        value => value.clone(),
    }
}
