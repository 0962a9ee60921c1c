//! Objects as clients of a virtual cluster write them, with every kind of place in them.

use proptest::prelude::*;
use serde_json::{Value, json};

/// A kind that the oracle knows.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) name: &'static str,
    pub(crate) object: fn() -> BoxedStrategy<Value>,
    /// Where the pod specification is.
    pub(crate) pod: &'static [&'static str],
    pub(crate) is_guarded: bool,
    pub(crate) is_confined: bool,
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind { group: "", name: "pods", object: pod, pod: &["spec"], is_guarded: true, is_confined: true },
    Kind {
        group: "apps",
        name: "deployments",
        object: deployment,
        pod: &["spec", "template", "spec"],
        is_guarded: true,
        is_confined: true,
    },
    Kind {
        group: "networking.k8s.io",
        name: "networkpolicies",
        object: policy,
        pod: &[],
        is_guarded: false,
        is_confined: true,
    },
    Kind {
        group: "rbac.authorization.k8s.io",
        name: "rolebindings",
        object: binding,
        pod: &[],
        is_guarded: false,
        is_confined: false,
    },
    Kind { group: "", name: "events", object: event, pod: &[], is_guarded: false, is_confined: false },
    Kind { group: "example.com", name: "things", object: thing, pod: &[], is_guarded: false, is_confined: false },
];

/// A namespace of the virtual cluster, existing or not.
fn namespace() -> impl Strategy<Value = String> {
    prop_oneof![Just("edge".to_owned()), Just("default".to_owned()), "[a-z]{1,6}"]
}

/// Any value of a field, including names of namespaces and of the host.
fn anything() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("edge".to_owned()),
        Just("edge-ke".to_owned()),
        Just("edge-hz".to_owned()),
        "[ -~é😀\n\"\\\\]{0,12}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("namespace|name|nodeSelector|[a-z\"\\\\]{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Value> {
    (anything(), "[a-z]{1,5}", proptest::option::of("[a-z]{1,5}")).prop_map(|(annotations, name, owner)| {
        let mut metadata = json!({"namespace": "edge", "name": name, "annotations": {"x": annotations}});
        if let Some(owner) = owner {
            metadata["ownerReferences"] = json!([
                {"kind": "ReplicaSet", "name": owner}, {"kind": "Namespace", "name": "edge"}
            ]);
        }
        metadata
    })
}

/// A selector without the empty lists that an API server would remove.
fn selector() -> impl Strategy<Value = Value> {
    let requirement = (namespace(), any::<bool>()).prop_map(|(name, by_name)| {
        let key = if by_name { "kubernetes.io/metadata.name" } else { "team" };
        json!({"key": key, "operator": "In", "values": [name]})
    });
    (proptest::option::of(namespace()), proptest::collection::vec(requirement, 0..3)).prop_map(
        |(label, requirements)| {
            let mut selector = json!({});
            if let Some(label) = label {
                selector["matchLabels"] = json!({"kubernetes.io/metadata.name": label, "other": label});
            }
            if !requirements.is_empty() {
                selector["matchExpressions"] = requirements.into();
            }
            selector
        },
    )
}

fn pod_spec() -> impl Strategy<Value = Value> {
    let node_selector =
        proptest::option::of(proptest::collection::btree_map("[a-z]{1,4}/?[a-z]{1,3}", "[a-z]{0,4}", 1..3));
    (anything(), node_selector, proptest::option::of((namespace(), selector()))).prop_map(
        |(containers, node_selector, affinity)| {
            let mut spec = json!({"containers": containers});
            if let Some(node_selector) = node_selector {
                spec["nodeSelector"] = json!(node_selector);
            }
            if let Some((namespace, selector)) = affinity {
                spec["affinity"] = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"namespaces": [namespace], "namespaceSelector": selector}
                ]}});
            }
            spec
        },
    )
}

pub(crate) fn pod() -> BoxedStrategy<Value> {
    (metadata(), pod_spec(), anything())
        .prop_map(|(metadata, spec, more)| json!({"kind": "Pod", "metadata": metadata, "spec": spec, "zzz": more}))
        .boxed()
}

fn deployment() -> BoxedStrategy<Value> {
    (metadata(), pod_spec(), anything())
        .prop_map(
            |(metadata, spec, more)| json!({"metadata": metadata, "spec": {"template": {"spec": spec}, "more": more}}),
        )
        .boxed()
}

fn policy() -> BoxedStrategy<Value> {
    (metadata(), proptest::collection::vec(selector(), 0..3), anything())
        .prop_map(|(metadata, selectors, pods)| {
            let peers: Vec<_> = selectors
                .into_iter()
                .map(|selector| json!({"podSelector": pods, "namespaceSelector": selector}))
                .collect();
            json!({"metadata": metadata, "spec": {"ingress": [{"from": peers}], "podSelector": pods}})
        })
        .boxed()
}

fn binding() -> BoxedStrategy<Value> {
    let subject = prop_oneof![
        "[a-z:@\"\\\\é]{1,8}"
            .prop_filter("reserved", |name| !name.starts_with("host:"))
            .prop_map(|name| json!({"kind": "User", "name": name})),
        namespace().prop_map(|name| json!({"name": format!("system:serviceaccounts:{name}"), "kind": "Group"})),
        (namespace(), "[a-z]{1,5}")
            .prop_map(|(namespace, name)| json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})),
    ];
    (metadata(), proptest::collection::vec(subject, 0..4))
        .prop_map(|(metadata, subjects)| json!({"metadata": metadata, "subjects": subjects}))
        .boxed()
}

fn event() -> BoxedStrategy<Value> {
    (metadata(), namespace(), any::<bool>(), "[a-z ]{0,12}")
        .prop_map(|(metadata, name, about_namespace, message)| {
            let object = if about_namespace {
                json!({"kind": "Namespace", "name": name})
            } else {
                json!({"kind": "Pod", "name": name, "namespace": name})
            };
            json!({"metadata": metadata, "involvedObject": object, "message": message})
        })
        .boxed()
}

fn thing() -> BoxedStrategy<Value> {
    (metadata(), anything()).prop_map(|(metadata, spec)| json!({"metadata": metadata, "spec": spec})).boxed()
}
