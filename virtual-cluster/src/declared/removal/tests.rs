use crate::provisioner::testing::FakeHost;
use rewrite::VirtualNamespace;

use super::*;

fn vc() -> ClusterName {
    ClusterName::new("vc").unwrap()
}

fn at(name: &str) -> String {
    format!("{}/{name}", namespaces::PATH)
}

fn role_at(name: &str) -> String {
    format!("{}/{name}", roles::PATH)
}

fn mirror_at(namespace: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/atoll:crb:cluster-admin")
}

fn put(host: &FakeHost, name: &str, labels: &Value) {
    host.put(&at(name), json!({"metadata": {"name": name, "labels": labels}, "status": {"phase": "Active"}}));
}

/// A host with two virtual clusters. `edge-vc` and `shop-vc` have a mirror.
fn host() -> FakeHost {
    let host = FakeHost::new();
    for (name, cluster) in [("edge", "vc"), ("shop", "vc"), ("edge", "other")] {
        let labels = json!({"atoll.dev/virtual-cluster": cluster, "atoll.dev/namespace": name});
        let virtual_name = VirtualNamespace::new(name).unwrap();
        put(&host, HostNamespace::derive(&virtual_name, &ClusterName::new(cluster).unwrap()).as_str(), &labels);
    }
    for cluster in ["vc", "other"] {
        put(&host, &format!("atoll-root-{cluster}"), &json!({"atoll.dev/root": cluster}));
        host.put(&role_at(&format!("vc:{cluster}:a")), json!({"metadata": {"name": format!("vc:{cluster}:a")}}));
    }
    for namespace in ["edge-vc", "shop-vc"] {
        host.put(&mirror_at(namespace), json!({"metadata": {
            "name": "atoll:crb:cluster-admin", "finalizers": ["atoll.dev/mirror"], "labels": {"atoll.dev/mirror": "true"},
        }}));
    }
    host
}

#[tokio::test]
async fn everything_of_the_cluster_is_deleted_and_its_root_namespace_last() {
    let host = host();
    let left = remove(&host, &vc()).await.unwrap();
    assert_eq!(left.namespaces.iter().map(HostNamespace::as_str).collect::<Vec<_>>(), ["edge-vc", "shop-vc"]);
    assert!(left.root);
    let is_ending = |name: &str| !host.lock().objects[&at(name)]["metadata"]["deletionTimestamp"].is_null();
    assert!(is_ending("edge-vc") && is_ending("shop-vc") && !is_ending("atoll-root-vc") && !is_ending("edge-other"));
    // No finalizer of ours keeps the namespaces.
    for namespace in ["edge-vc", "shop-vc"] {
        host.empty(namespace, &[]);
        assert!(!host.lock().objects.contains_key(&at(namespace)));
    }
    assert_eq!(remove(&host, &vc()).await.unwrap(), Left { namespaces: Vec::new(), root: true });
    assert!(is_ending("atoll-root-vc"));
    host.empty("atoll-root-vc", &[]);
    assert!(remove(&host, &vc()).await.unwrap().is_nothing());
    let left: Vec<_> = host.lock().objects.keys().cloned().collect();
    assert_eq!(left, [at("atoll-root-other"), at("edge-other"), role_at("vc:other:a")]);
}

#[tokio::test]
async fn a_label_alone_makes_no_namespace_deletable() {
    let host = FakeHost::new();
    for (name, labels) in [
        ("kube-system", json!({"atoll.dev/virtual-cluster": "vc", "atoll.dev/namespace": "kube-system"})),
        ("default", json!({"atoll.dev/root": "vc"})),
        ("edge-vc", json!({"atoll.dev/virtual-cluster": "vc"})),
    ] {
        put(&host, name, &labels);
    }
    assert!(remove(&host, &vc()).await.unwrap().is_nothing());
    assert!(!host.lock().requests.iter().any(|request| request.starts_with("DELETE")));
}
