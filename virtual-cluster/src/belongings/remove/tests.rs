use serde_json::Map;

use super::*;
use crate::provisioner::testing::FakeHost;

const PATH: &str = "/apis/scheduling.k8s.io/v1/priorityclasses/high";

fn found(hold: Hold) -> Found {
    let (resource, name) = ("priorityclasses.scheduling.k8s.io".to_owned(), "high".to_owned());
    Found { cluster: "ke".parse().unwrap(), resource, name, uid: "u".to_owned(), path: PATH.to_owned(), hold }
}

/// A host with an object that has these annotations, and these managers.
fn host(is_marked: bool, annotations: &[&str], managers: &[&str]) -> FakeHost {
    let host = FakeHost::new();
    let annotations: Map<_, _> = annotations.iter().map(|key| ((*key).to_owned(), json!("{}"))).collect();
    let labels = if is_marked { json!({"atoll.dev/shared": ""}) } else { json!({}) };
    let managers: Vec<_> =
        managers.iter().map(|manager| json!({"manager": manager, "fieldsV1": {"f:value": {}}})).collect();
    let metadata = json!({
        "name": "high", "uid": "u", "labels": labels, "annotations": annotations, "managedFields": managers,
    });
    host.put(PATH, json!({"metadata": metadata}));
    host
}

fn object(host: &FakeHost) -> Option<Value> {
    host.lock().objects.get(PATH).cloned()
}

#[tokio::test]
async fn the_last_virtual_cluster_deletes_a_shared_object() {
    let host = host(true, &["overlay.atoll.dev/ke", "left.atoll.dev/hz"], &["atoll:ke:kubectl"]);
    remove(&host, &found(Hold::Overlay)).await.unwrap();
    assert_eq!(object(&host), None);
    remove(&host, &found(Hold::Overlay)).await.unwrap();
}

#[tokio::test]
async fn others_keep_a_shared_object() {
    let host = host(true, &["overlay.atoll.dev/ke", "overlay.atoll.dev/hz"], &["atoll:ke:kubectl"]);
    host.lock().meddling = 2;
    remove(&host, &found(Hold::Overlay)).await.unwrap();
    let annotations = object(&host).unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations["overlay.atoll.dev/hz"], "{}");
    assert!(annotations["overlay.atoll.dev/ke"].is_null() && annotations["left.atoll.dev/ke"].is_null());
}

#[tokio::test]
async fn the_operator_keeps_its_objects() {
    for (is_marked, manager) in [(true, "helm"), (false, "atoll:ke:kubectl")] {
        let host = host(is_marked, &["overlay.atoll.dev/ke"], &[manager]);
        remove(&host, &found(Hold::Overlay)).await.unwrap();
        let left = object(&host).unwrap();
        assert_eq!(left["metadata"]["annotations"], json!({}), "{manager}");
        assert!(left["metadata"]["labels"]["atoll.dev/shared"].is_null(), "{manager}");
    }
}

#[tokio::test]
async fn a_record_of_a_former_overlay_deletes_nothing() {
    let host = host(true, &["left.atoll.dev/ke"], &["atoll:hz:kubectl"]);
    remove(&host, &found(Hold::Former)).await.unwrap();
    assert_eq!(object(&host).unwrap()["metadata"]["annotations"], json!({}));
}

#[tokio::test]
async fn an_object_of_the_virtual_cluster_is_deleted_but_not_its_successor() {
    let host = host(false, &[], &[]);
    assert_eq!(only(&found(Hold::Whole)), json!({"preconditions": {"uid": "u"}}));
    remove(&host, &found(Hold::Whole)).await.unwrap();
    assert_eq!(object(&host), None);
    remove(&host, &found(Hold::Whole)).await.unwrap();
}

#[tokio::test]
async fn a_node_loses_only_this_label() {
    let (host, path) = (FakeHost::new(), "/api/v1/nodes/n1");
    let labels =
        json!({"atoll.node-restriction.kubernetes.io/ke": "true", "atoll.node-restriction.kubernetes.io/hz": "true"});
    host.put(path, json!({"metadata": {"name": "n1", "uid": "u", "labels": labels}}));
    let (cluster, resource, name) = ("ke".parse().unwrap(), "nodes".to_owned(), "n1".to_owned());
    let found = Found { cluster, resource, name, uid: "u".to_owned(), path: path.to_owned(), hold: Hold::Label };
    remove(&host, &found).await.unwrap();
    let labels = host.lock().objects[path]["metadata"]["labels"].clone();
    assert_eq!(labels, json!({"atoll.node-restriction.kubernetes.io/hz": "true"}));
    host.remove(path);
    remove(&host, &found).await.unwrap();
}
