//! The rules of the mapping over trees, as simple as possible.

use serde_json::{Map, Value, json};

use crate::CLUSTER;
use crate::objects::Kind;

const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const OURS: &str = "atoll.dev/virtual-cluster";

/// Virtual to host, or host to virtual.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    ToHost,
    ToVirtual,
}

/// An object of a client, mapped for the host.
pub(crate) fn map(kind: &Kind, mut object: Value) -> Value {
    apply(Direction::ToHost, kind, &mut object);
    object
}

/// An object of the host, mapped for a client. `None` if it does not belong to the virtual cluster.
pub(crate) fn show(kind: &Kind, mut object: Value) -> Option<Value> {
    let namespace = object["metadata"]["namespace"].as_str()?;
    if !["edge-ke", "default-ke"].contains(&namespace) {
        return None;
    }
    apply(Direction::ToVirtual, kind, &mut object);
    Some(object)
}

fn apply(direction: Direction, kind: &Kind, object: &mut Value) {
    name(direction, &mut object["metadata"]["namespace"]);
    for owner in elements(&mut object["metadata"], "ownerReferences") {
        reference(direction, owner);
    }
    if !kind.pod.is_empty() {
        let spec = kind.pod.iter().fold(&mut *object, |value, key| &mut value[*key]);
        pod(direction, spec);
    }
    match kind.name {
        "networkpolicies" => {
            for rule in elements(&mut object["spec"], "ingress") {
                for peer in elements(rule, "from") {
                    selector(direction, &mut peer["namespaceSelector"]);
                }
            }
        }
        "rolebindings" => {
            for subject in elements(object, "subjects") {
                if subject["kind"] == "ServiceAccount" {
                    name(direction, &mut subject["namespace"]);
                } else {
                    identity(direction, &mut subject["name"]);
                }
            }
        }
        "events" => reference(direction, &mut object["involvedObject"]),
        _ => {}
    }
}

fn pod(direction: Direction, spec: &mut Value) {
    let terms = "requiredDuringSchedulingIgnoredDuringExecution";
    if spec.get("affinity").is_some() {
        for term in elements(&mut spec["affinity"]["podAffinity"], terms) {
            for namespace in elements(term, "namespaces") {
                name(direction, namespace);
            }
            selector(direction, &mut term["namespaceSelector"]);
        }
    }
    let Value::Object(spec) = spec else { return };
    match direction {
        Direction::ToHost => {
            let selector = spec.entry("nodeSelector").or_insert_with(|| json!({}));
            selector["location"] = json!("beijing");
        }
        Direction::ToVirtual => remove(spec, "nodeSelector", |selector| {
            selector.as_object_mut().is_some_and(|selector| {
                selector.remove("location");
                selector.is_empty()
            })
        }),
    }
}

fn selector(direction: Direction, selector: &mut Value) {
    if let Some(label) = selector.get_mut("matchLabels").and_then(|labels| labels.get_mut(NAME_LABEL)) {
        name(direction, label);
    }
    for requirement in elements(selector, "matchExpressions") {
        if requirement["key"] == NAME_LABEL {
            for value in elements(requirement, "values") {
                name(direction, value);
            }
        }
    }
    let Value::Object(selector) = selector else { return };
    match direction {
        Direction::ToHost => {
            let ours = json!({"key": OURS, "operator": "In", "values": [CLUSTER]});
            let requirements = selector.entry("matchExpressions").or_insert_with(|| json!([]));
            requirements.as_array_mut().unwrap().push(ours);
        }
        Direction::ToVirtual => remove(selector, "matchExpressions", |requirements| {
            let requirements = requirements.as_array_mut().unwrap();
            requirements.retain(|requirement| requirement["key"] != OURS);
            requirements.is_empty()
        }),
    }
}

fn reference(direction: Direction, reference: &mut Value) {
    if reference["kind"] == "Namespace" {
        name(direction, &mut reference["name"]);
    }
    if reference.get("namespace").is_some() {
        name(direction, &mut reference["namespace"]);
    }
}

fn name(direction: Direction, value: &mut Value) {
    let text = value.as_str().unwrap();
    *value = match direction {
        Direction::ToHost => format!("{text}-{CLUSTER}").into(),
        Direction::ToVirtual => text.strip_suffix("-ke").unwrap().into(),
    };
}

fn identity(direction: Direction, value: &mut Value) {
    let text = value.as_str().unwrap();
    *value = match (direction, text.strip_prefix("system:serviceaccounts:")) {
        (Direction::ToHost, Some(namespace)) => format!("system:serviceaccounts:{namespace}-{CLUSTER}").into(),
        (Direction::ToHost, None) => format!("vc:{CLUSTER}:{text}").into(),
        (Direction::ToVirtual, Some(namespace)) => {
            format!("system:serviceaccounts:{}", namespace.strip_suffix("-ke").unwrap()).into()
        }
        (Direction::ToVirtual, None) => text.strip_prefix("vc:ke:").unwrap().into(),
    };
}

/// Changes a member and removes it if nothing is left of it.
fn remove(object: &mut Map<String, Value>, key: &str, change: impl FnOnce(&mut Value) -> bool) {
    if object.get_mut(key).is_some_and(change) {
        object.remove(key);
    }
}

fn elements<'a>(value: &'a mut Value, key: &str) -> &'a mut [Value] {
    value.get_mut(key).and_then(Value::as_array_mut).map_or(&mut [], |elements| &mut elements[..])
}
