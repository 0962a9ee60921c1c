use serde_json::json;

use super::*;

fn object(api_version: &str, kind: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind, "status": {"x": 1},
        "metadata": {
            "name": "a", "namespace": "edge-ke", "uid": "u", "resourceVersion": "7", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}], "finalizers": ["f"],
            "ownerReferences": [{"kind": "ConfigMap", "name": "b", "uid": "v"}], "labels": {"app": "x"},
            "annotations": {"volume.kubernetes.io/selected-node": "n"},
        },
    });
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

#[test]
fn what_only_one_host_knows_is_removed() {
    let found = cleaned(object("v1", "ConfigMap", json!({"data": {"k": "v"}})), false).unwrap();
    let metadata = json!({"name": "a", "namespace": "edge-ke", "labels": {"app": "x"}});
    let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}});
    assert_eq!(found, expected);
}

#[test]
fn what_the_host_makes_again_is_skipped() {
    let skipped = |object: Value| cleaned(object, true).err();
    let mut owned = object("apps/v1", "ReplicaSet", json!({}));
    owned["metadata"]["ownerReferences"][0]["controller"] = json!(true);
    assert_eq!(skipped(owned), Some(Skip::Derived));
    let mut root_ca = object("v1", "ConfigMap", json!({}));
    root_ca["metadata"]["name"] = json!("kube-root-ca.crt");
    assert_eq!(skipped(root_ca), Some(Skip::Derived));
    let mut mirror = object("rbac.authorization.k8s.io/v1", "RoleBinding", json!({}));
    mirror["metadata"]["labels"][MIRROR_LABEL] = json!("true");
    assert_eq!(skipped(mirror), Some(Skip::Derived));
    assert_eq!(skipped(object("v1", "Pod", json!({"status": {"phase": "Succeeded"}}))), Some(Skip::Ended));
    let complete = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    assert_eq!(skipped(object("batch/v1", "Job", complete)), Some(Skip::Ended));
    let mut ending = object("v1", "ConfigMap", json!({}));
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(skipped(ending), Some(Skip::Ended));
}

#[test]
fn secrets_need_permission_and_tokens_are_never_written() {
    let secret = object("v1", "Secret", json!({"type": "Opaque", "data": {"k": "dg=="}}));
    assert_eq!(cleaned(secret.clone(), false), Err(Skip::Secret));
    assert_eq!(cleaned(secret, true).unwrap()["data"]["k"], "dg==");
    for with_secrets in [false, true] {
        let token = object("v1", "Secret", json!({"type": TOKEN_SECRET, "data": {"token": "dA=="}}));
        assert!(cleaned(token, with_secrets).unwrap()["data"].is_null());
    }
}

#[test]
fn addresses_nodes_and_volumes_are_assigned_again() {
    let spec = |object: Value| cleaned(object, false).unwrap()["spec"].clone();
    let service = json!({"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 1}]}});
    assert_eq!(spec(object("v1", "Service", service)), json!({"ports": [{"port": 1}]}));
    let headless = json!({"clusterIP": "None", "clusterIPs": ["None"]});
    assert_eq!(spec(object("v1", "Service", json!({"spec": headless}))), headless);
    let token = json!({"name": "kube-api-access-x"});
    let pod = json!({"spec": {
        "nodeName": "n", "volumes": [token, {"name": "data"}],
        "containers": [{"volumeMounts": [token, {"name": "data"}]}],
    }});
    let expected = json!({"volumes": [{"name": "data"}], "containers": [{"volumeMounts": [{"name": "data"}]}]});
    assert_eq!(spec(object("v1", "Pod", pod)), expected);
    let claim = json!({"spec": {"volumeName": "pv", "storageClassName": "c"}});
    assert_eq!(spec(object("v1", "PersistentVolumeClaim", claim)), json!({"storageClassName": "c"}));
    let labels = json!({"controller-uid": "u", "app": "x"});
    let job = json!({"spec": {"selector": {}, "template": {"metadata": {"labels": labels}}}});
    assert_eq!(spec(object("batch/v1", "Job", job)), json!({"template": {"metadata": {"labels": {"app": "x"}}}}));
}

#[test]
fn a_shared_object_has_the_overlay_of_one_cluster() {
    let annotations =
        json!({"overlay.atoll.dev/ke": "{}", "overlay.atoll.dev/hz": "{}", "left.atoll.dev/ke": "", "a": ""});
    let found = shared(json!({"metadata": {"name": "x", "annotations": annotations}}), "ke");
    assert_eq!(found["metadata"]["annotations"], json!({"overlay.atoll.dev/ke": "{}", "a": ""}));
}

#[test]
fn the_root_namespace_has_the_identity() {
    let annotations = json!({FULL: "secrets=1"});
    let root = json!({"metadata": {"name": "r", "annotations": annotations}, "spec": {"finalizers": ["kubernetes"]}});
    let found = namespace(root, Some("u"));
    assert_eq!(found, json!({"metadata": {"name": "r", "annotations": {IDENTITY: "u"}}}));
}
