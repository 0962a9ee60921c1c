use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::guard::Toleration;
use crate::mapping::Index;
use crate::schema::program_for;
use crate::{Guard, Mapping, Program};

/// Virtual cluster `ke` with the namespaces `edge` and `default`, beside another one.
pub(crate) fn mapping() -> Mapping {
    let mut index = Index::new();
    for (host, cluster, name) in [("edge-ke", "ke", "edge"), ("default-ke", "ke", "default"), ("edge-hz", "hz", "edge")]
    {
        index.insert(host.parse().unwrap(), cluster.parse().unwrap(), name.parse().unwrap()).unwrap();
    }
    index.insert_host("kube-system".parse().unwrap());
    Mapping::new("ke".parse().unwrap(), Arc::new(index))
}

pub(crate) fn guard() -> Arc<Guard> {
    Arc::new(Guard::new([("location".into(), "beijing".into())], [Toleration::of_key("edge")]))
}

pub(crate) fn view() -> View {
    View::new(mapping()).with_guard(guard()).with_certificate(Arc::new(Certificate::new("PEM\n")))
}

#[track_caller]
fn shown_by(group: &str, kind: &str, filter: Filter, host: &Value) -> Option<Value> {
    let body = Bytes::from(host.to_string());
    let mut out: Vec<Bytes> = Vec::new();
    let verdict = view().object(&program_for(group, "v1", kind), filter, &body, &mut out).unwrap();
    (verdict == Verdict::Shown).then(|| serde_json::from_slice(&out.concat()).unwrap())
}

#[track_caller]
pub(crate) fn check(group: &str, kind: &str, host: &Value, shown: &Value) {
    assert_eq!(shown_by(group, kind, Filter::Everything, host).as_ref(), Some(shown));
}

#[test]
fn an_object_is_shown_if_its_namespace_belongs_to_the_cluster() {
    let pod = |namespace: &str| json!({"metadata": {"name": "a", "namespace": namespace}});
    let by_namespace = |host| shown_by("", "pods", Filter::ByNamespace, &host);
    assert_eq!(by_namespace(pod("edge-ke")), Some(pod("edge")));
    assert_eq!(by_namespace(pod("edge-hz")), None);
    assert_eq!(by_namespace(pod("kube-system")), None);
    assert_eq!(by_namespace(pod("unheard-of-ke")), None);
    assert_eq!(by_namespace(json!({"metadata": {"name": "a"}})), None);
    assert_eq!(by_namespace(json!({"metadata": {"name": "a", "namespace": null}})), None);
    assert_eq!(by_namespace(json!({})), None);
    assert_eq!(by_namespace(json!([])), None);
}

#[test]
fn keys_and_names_may_be_escaped_and_repeated() {
    let show = |text: &'static str| {
        let mut out: Vec<Bytes> = Vec::new();
        let program = program_for("", "v1", "pods");
        let verdict = view().object(&program, Filter::ByNamespace, &Bytes::from(text), &mut out).unwrap();
        (verdict, String::from_utf8(out.concat()).unwrap())
    };
    assert_eq!(
        show(r#"{"met\u0061data":{"n\u0061mespace":"edge\u002dke"}}"#),
        (Verdict::Shown, r#"{"met\u0061data":{"n\u0061mespace":"edge"}}"#.into())
    );
    for mixed in [
        r#"{"metadata":{"namespace":"edge-ke","namespace":"edge-hz"}}"#,
        r#"{"metadata":{"namespace":"edge-hz","namespace":"edge-ke"}}"#,
        r#"{"metadata":{"namespace":"edge-ke"},"metadata":{"namespace":"edge-hz"}}"#,
    ] {
        assert_eq!(show(mixed), (Verdict::Foreign, String::new()));
    }
}

#[test]
fn the_guard_is_hidden_in_managed_fields_too() {
    let managed = |template: &Value| json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:template": {"f:spec": template}}}}]);
    check(
        "apps",
        "deployments",
        &json!({
            "metadata": {"managedFields": managed(&json!({
                "f:containers": {}, "f:nodeSelector": {}, "f:tolerations": {}
            }))},
            "spec": {"template": {"spec": {
                "nodeSelector": {"location": "beijing"},
                "tolerations": [{"operator": "Exists", "key": "edge"}],
                "containers": []
            }}}
        }),
        &json!({
            "metadata": {"managedFields": managed(&json!({"f:containers": {}}))},
            "spec": {"template": {"spec": {"containers": []}}}
        }),
    );
    check(
        "apps",
        "deployments",
        &json!({
            "metadata": {"managedFields": managed(&json!({
                "f:nodeSelector": {".": {}, "f:disk": {}, "f:location": {}}, "f:tolerations": {}
            }))},
            "spec": {"template": {"spec": {
                "nodeSelector": {"disk": "ssd", "location": "elsewhere"},
                "tolerations": [{"key": "edge"}, {"operator": "Exists", "key": "edge"}]
            }}}
        }),
        &json!({
            "metadata": {"managedFields": managed(&json!({
                "f:nodeSelector": {".": {}, "f:disk": {}}, "f:tolerations": {}
            }))},
            "spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "edge"}]}}}
        }),
    );
}

#[test]
fn tolerations_that_the_host_adds_have_no_manager() {
    let object = |owned: &Value, tolerations: &Value| {
        json!({
            "metadata": {"managedFields": [{"manager": "kube-controller-manager", "fieldsV1": {"f:spec": owned}}]},
            "spec": {"containers": [], "tolerations": tolerations}
        })
    };
    let ours = json!({"key": "edge", "operator": "Exists"});
    let admitted = |key: &str, seconds: i64| {
        let key = format!("node.kubernetes.io/{key}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds})
    };
    let (not_ready, unreachable) = (admitted("not-ready", 300), admitted("unreachable", 30));
    let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"});
    for (tolerations, of_somebody) in [
        (json!([not_ready, unreachable]), false),
        (json!([unreachable]), false),
        // As in a DaemonSet: without an end.
        (json!([own, unreachable]), true),
    ] {
        let mut with_ours = tolerations.clone();
        with_ours.as_array_mut().unwrap().insert(0, ours.clone());
        let owned = |is_owned| {
            if is_owned { json!({"f:containers": {}, "f:tolerations": {}}) } else { json!({"f:containers": {}}) }
        };
        check("", "pods", &object(&owned(true), &with_ours), &object(&owned(of_somebody), &tolerations));
        // Without the guard, the managed fields are those of the client.
        check("", "pods", &object(&owned(true), &tolerations), &object(&owned(true), &tolerations));
    }
}

#[test]
fn one_template_with_own_fields_keeps_the_managed_fields() {
    let mut program = Program::default();
    program.add_pod_spec("spec.tasks[].template.spec").unwrap();
    let host = json!({"spec": {"tasks": [
        {"template": {"spec": {"nodeSelector": {"location": "beijing"}}}},
        {"template": {"spec": {"nodeSelector": {"disk": "ssd", "location": "beijing"}}}}
    ]}});
    let mut out: Vec<Bytes> = Vec::new();
    view().object(&program, Filter::Everything, &host.to_string().into(), &mut out).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&out.concat()).unwrap(),
        json!({"spec": {"tasks": [
            {"template": {"spec": {}}},
            {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}
        ]}})
    );
}

#[test]
fn a_namespace_has_its_virtual_name_and_none_of_our_labels() {
    let owned = json!({
        "f:annotations": {".": {}, "f:atoll.dev/x": {}},
        "f:labels": {".": {}, "f:team": {}, "f:atoll.dev/namespace": {}}
    });
    let host = json!({"metadata": {
        "name": "edge-ke",
        "labels": {
            "atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "edge",
            "kubernetes.io/metadata.name": "edge-ke", "team": "a"
        },
        "annotations": {"atoll.dev/x": "y"},
        "managedFields": [{"fieldsV1": {"f:metadata": owned}}]
    }});
    let virtual_form = json!({"metadata": {
        "name": "edge",
        "labels": {"kubernetes.io/metadata.name": "edge", "team": "a"},
        "managedFields": [{"fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:team": {}}}}}]
    }});
    assert_eq!(shown_by("", "namespaces", Filter::ByName, &host), Some(virtual_form));
    assert_eq!(shown_by("", "namespaces", Filter::ByName, &json!({"metadata": {"name": "edge-hz"}})), None);
}

#[test]
fn subjects_references_and_reviews_are_mapped() {
    check(
        "rbac.authorization.k8s.io",
        "rolebindings",
        &json!({"subjects": [
            {"kind": "ServiceAccount", "name": "vc:ke:a", "namespace": "edge-ke"},
            {"kind": "ServiceAccount", "name": "a", "namespace": "kube-system"},
            {"name": "vc:ke:eve", "kind": "User"},
            {"kind": "Group", "name": "system:serviceaccounts:not-yet-ke"},
            {"kind": "Group", "name": "system:masters"}
        ]}),
        &json!({"subjects": [
            {"kind": "ServiceAccount", "name": "vc:ke:a", "namespace": "edge"},
            {"kind": "ServiceAccount", "name": "a", "namespace": "host:kube-system"},
            {"name": "eve", "kind": "User"},
            {"kind": "Group", "name": "system:serviceaccounts:not-yet"},
            {"kind": "Group", "name": "host:system:masters"}
        ]}),
    );
    check(
        "authentication.k8s.io",
        "SelfSubjectReview",
        &json!({"status": {"userInfo": {"username": "vc:ke:eve", "groups": [
            "system:authenticated", "vc:ke:system:authenticated", "vc:ke:dev", "vc:hz:dev"
        ]}}}),
        &json!({"status": {"userInfo": {"username": "eve", "groups": ["system:authenticated", "dev"]}}}),
    );
    check(
        "",
        "events",
        &json!({
            "involvedObject": {"kind": "Namespace", "name": "edge-ke"},
            "related": {"kind": "Pod", "name": "edge-ke", "namespace": "edge-ke"},
            "message": "\"edge-ke\"\nedge-ke"
        }),
        &json!({
            "involvedObject": {"kind": "Namespace", "name": "edge"},
            "related": {"kind": "Pod", "name": "edge-ke", "namespace": "edge"},
            "message": "\"edge\"\nedge"
        }),
    );
    check(
        "authorization.k8s.io",
        "SubjectAccessReview",
        &json!({"spec": {"user": "vc:ke:eve", "groups": [], "resourceAttributes": {
            "namespace": "edge-ke", "name": "edge-ke", "resource": "namespaces"
        }}}),
        &json!({"spec": {"user": "eve", "groups": [], "resourceAttributes": {
            "namespace": "edge", "name": "edge", "resource": "namespaces"
        }}}),
    );
}

#[test]
fn selectors_lose_the_requirement_that_confines_them() {
    let policy = |selector: Value| json!({"spec": {"ingress": [{"from": [{"namespaceSelector": selector}]}]}});
    let ours = json!({"key": "atoll.dev/virtual-cluster", "operator": "In", "values": ["ke"]});
    check("networking.k8s.io", "networkpolicies", &policy(json!({"matchExpressions": [ours]})), &policy(json!({})));
    check(
        "networking.k8s.io",
        "networkpolicies",
        &policy(json!({
            "matchLabels": {"kubernetes.io/metadata.name": "edge-ke", "a": "edge-ke"},
            "matchExpressions": [
                {"key": "a", "operator": "Exists"},
                {"values": ["edge-ke", "default-ke"], "operator": "In", "key": "kubernetes.io/metadata.name"},
                ours
            ]
        })),
        &policy(json!({
            "matchLabels": {"kubernetes.io/metadata.name": "edge", "a": "edge-ke"},
            "matchExpressions": [
                {"key": "a", "operator": "Exists"},
                {"values": ["edge", "default"], "operator": "In", "key": "kubernetes.io/metadata.name"}
            ]
        })),
    );
}

#[test]
fn the_certificate_of_the_endpoint_is_shown() {
    let secret = |namespace: &str, certificate: &str, kind: &str| json!({"data": {"namespace": namespace, "ca.crt": certificate, "token": "dA=="}, "type": kind});
    let token = "kubernetes.io/service-account-token";
    // printf edge-ke | base64, printf edge | base64, printf 'PEM\n' | base64
    check("", "secrets", &secret("ZWRnZS1rZQ==", "eA==", token), &secret("ZWRnZQ==", "UEVNCg==", token));
    check("", "secrets", &secret("ZWRnZS1rZQ==", "eA==", "Opaque"), &secret("ZWRnZS1rZQ==", "eA==", "Opaque"));
    let config_map = |name: &str, pem: &str| json!({"metadata": {"name": name}, "data": {"ca.crt": pem}});
    check("", "configmaps", &config_map("kube-root-ca.crt", "x"), &config_map("kube-root-ca.crt", "PEM\n"));
    check("", "configmaps", &config_map("other", "x"), &config_map("other", "x"));
}

#[test]
fn a_status_contains_virtual_names() {
    check(
        "",
        "pods",
        &json!({
            "kind": "Status", "apiVersion": "v1", "message": "namespaces \"edge-ke\" not found",
            "details": {"name": "edge-ke", "kind": "namespaces", "causes": [{"message": "in edge-ke"}]}
        }),
        &json!({
            "kind": "Status", "apiVersion": "v1", "message": "namespaces \"edge\" not found",
            "details": {"name": "edge", "kind": "namespaces", "causes": [{"message": "in edge"}]}
        }),
    );
    // A pod may have that name.
    let about_a_pod = json!({"kind": "Status", "apiVersion": "v1", "details": {"name": "edge-ke", "kind": "pods"}});
    check("", "pods", &about_a_pod, &about_a_pod);
}

#[test]
fn a_table_of_one_object_is_shown() {
    let table = |name: &str| {
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "columnDefinitions": [{"name": "Name"}, {"name": "Status"}],
            "rows": [{"cells": [name, name], "object": {"metadata": {"name": name}}}]
        })
    };
    let mut shown = table("edge");
    shown["rows"][0]["cells"][1] = json!("edge-ke");
    assert_eq!(shown_by("", "namespaces", Filter::ByName, &table("edge-ke")), Some(shown));
    assert_eq!(shown_by("", "namespaces", Filter::ByName, &table("edge-hz")), None);
    check("", "pods", &table("edge-ke"), &table("edge-ke"));
}

#[test]
fn a_table_shows_no_guard() {
    let table = |kind: &str, selector: &str| {
        let row = json!({"cells": ["a", selector], "object": {"metadata": {"name": "a"}}});
        let table = json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "columnDefinitions": [{"name": "Name"}, {"name": "Node Selector"}], "rows": [row]
        });
        let shown = shown_by("apps", kind, Filter::Everything, &table).unwrap();
        shown["rows"][0]["cells"][1].as_str().unwrap().to_owned()
    };
    assert_eq!(table("daemonsets", "location=beijing"), "<none>");
    assert_eq!(table("daemonsets", "disk=ssd,location=beijing,zone=1"), "disk=ssd,zone=1");
    assert_eq!(table("daemonsets", "disk=ssd"), "disk=ssd");
    assert_eq!(table("daemonsets", "<none>"), "<none>");
    // A custom resource may have such a column too.
    assert_eq!(table("widgets", "location=beijing"), "location=beijing");
}

#[test]
fn last_applied_of_the_host_has_virtual_names() {
    let deployment = |namespace: &str, applied: &str, selector: &Value| {
        let applied = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": applied},
            "spec": {"template": {"spec": selector}}
        });
        json!({
            "metadata": {
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{applied}\n")},
                "name": "a", "namespace": namespace
            },
            "spec": {"template": {"spec": {}}}
        })
    };
    let guarded = json!({"nodeSelector": {"location": "beijing"}});
    let shown = deployment("edge", "edge", &json!({}));
    check("apps", "deployments", &deployment("edge-ke", "edge-ke", &guarded), &shown);
    // An annotation of kubectl is not changed, whatever it contains.
    let written = |namespace: &str| deployment(namespace, "edge", &guarded);
    check("apps", "deployments", &written("edge-ke"), &written("edge"));
    let namespace = |name: &str, applied: &str, labels: Value| {
        let applied = json!({"kind": "Namespace", "metadata": {"labels": labels, "name": applied}}).to_string();
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": applied});
        json!({"metadata": {"annotations": annotations, "name": name}})
    };
    let labels = json!({"atoll.dev/namespace": "edge", "team": "b"});
    let host = namespace("edge-ke", "edge-ke", labels);
    let shown = namespace("edge", "edge", json!({"team": "b"}));
    check("", "namespaces", &host, &shown);
    // Kinds of Kubernetes print their name first, custom resources their annotations.
    let annotations = host["metadata"]["annotations"].to_string();
    let reversed = Bytes::from(format!(r#"{{"metadata":{{"name":"edge-ke","annotations":{annotations}}}}}"#));
    let mut out: Vec<Bytes> = Vec::new();
    view().object(&program_for("", "v1", "namespaces"), Filter::ByName, &reversed, &mut out).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&out.concat()).unwrap(), shown);
}

#[test]
fn broken_bodies_are_errors() {
    for bad in ["", "{", "{\"metadata\":{\"namespace\":\"edge-ke\"}} x", "{\"metadata\":{\"namespace\":\"edge-ke\"}"] {
        let result =
            view().object(&program_for("", "v1", "pods"), Filter::Everything, &Bytes::from(bad), &mut Vec::new());
        assert!(result.is_err(), "{bad}");
    }
}

#[test]
fn rows_may_be_shown_without_their_objects() {
    let row = |namespace: &str| {
        format!(
            r#"{{"cells":["a"],"object":{{"kind":"PartialObjectMetadata","metadata":{{"namespace":"{namespace}"}}}}}}"#
        )
    };
    let table = |rows: &str| format!(r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{rows}]}}"#);
    let body = table(&[row("edge-ke"), row("edge-hz")].join(","));
    let view = view().with_bare_rows();
    let mut pieces: Vec<Bytes> = Vec::new();
    let program = program_for("", "v1", "pods");
    let verdict = view.object(&program, Filter::ByNamespace, &Bytes::from(body), &mut pieces).unwrap();
    assert_eq!(verdict, Verdict::Shown);
    assert_eq!(pieces.concat(), table(r#"{"cells":["a"],"object":null}"#).as_bytes());
}
