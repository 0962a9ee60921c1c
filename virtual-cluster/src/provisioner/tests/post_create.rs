//! New namespaces.

use tokio::time::Instant;

use super::*;
use crate::provisioner::NamespaceReadiness;

fn namespace() -> Value {
    json!({"metadata": {
        "name": "edge-vc",
        "labels": {"atoll.dev/virtual-cluster": "vc", "atoll.dev/namespace": "edge"},
    }})
}

async fn create(host: &FakeHost) -> Value {
    host.create(namespaces::PATH, &namespace()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_ready_before_the_response() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        let source = binding_at("atoll-root-vc", "viewers");
        host.put(&source, cluster_role_binding("viewers"));
        host.until(|state| state.objects.contains_key(&binding_at("default-vc", "atoll:crb:viewers"))).await;
        host.lock().reviews_behind = 3;
        let before = host.lock().reviews;
        let created = create(&host).await;
        assert_eq!(provisioner.post_create(&created).await, NamespaceReadiness::InForce);
        let state = host.lock();
        assert_eq!(state.reviews - before, 4);
        for name in ["atoll:crb:viewers", "atoll:crb:cluster-admin"] {
            assert!(state.objects.contains_key(&binding_at("edge-vc", name)));
        }
        assert!(provisioner.shared.namespaces.index().owner(b"edge-vc").is_some());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_request_waits_longer_than_five_seconds_for_rbac() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.lock().reviews_behind = u32::MAX;
        let created = create(&host).await;
        let begun = Instant::now();
        assert_eq!(provisioner.post_create(&created).await, NamespaceReadiness::Late);
        assert_eq!(begun.elapsed().as_millis(), 5000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_succeeds_despite_failures_of_the_host() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
        let created = create(&host).await;
        host.lock().failing = 3;
        assert_eq!(provisioner.post_create(&created).await, NamespaceReadiness::InForce);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_deleted_at_once_does_not_delay_others() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        let created = create(&host).await;
        host.remove(&at("edge-vc"));
        assert_eq!(provisioner.post_create(&created).await, NamespaceReadiness::Late);
        assert!(!host.lock().objects.contains_key(&mirror_at("edge-vc")));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_without_an_owner_gets_nothing() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    let mut foreign = namespace();
    foreign["metadata"]["uid"] = json!("u");
    foreign["metadata"]["labels"]["atoll.dev/virtual-cluster"] = json!("other");
    assert_eq!(provisioner.post_create(&foreign).await, NamespaceReadiness::Foreign);
    assert!(host.lock().objects.is_empty());
}
