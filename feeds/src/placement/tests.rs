use std::collections::VecDeque;
use std::time::Duration;

use host_client::api::{Change, Following};
use rewrite::ClusterName;
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use serde_json::{Value, json};

use super::*;

struct Site {
    namespaces: Arc<Namespaces>,
    placement: ByNamespace,
}

impl Site {
    /// A complete index, without namespaces, at version 1.
    async fn new() -> Self {
        let (ke, hz) = (ClusterName::new("ke").unwrap(), ClusterName::new("hz").unwrap());
        let namespaces = Arc::new(Namespaces::new([ke.clone(), hz]));
        let clusters = Arc::new(Clusters::default());
        assert_eq!(clusters.number(&ke), KE);
        let placement = ByNamespace::new(Arc::clone(&namespaces), clusters);
        let site = Self { namespaces, placement };
        site.see([Change::Applied(host("kube-system", 1)), Change::Applied(host("atoll-root-ke", 1)), Change::Synced])
            .await;
        site
    }

    async fn see(&self, changes: impl IntoIterator<Item = Change<Value>>) {
        let follow = self.namespaces.follow(Changes(changes.into_iter().collect()));
        assert!(timeout(Duration::from_secs(1), follow).await.is_err(), "it follows for ever");
    }

    async fn place(&self, namespace: &str, version: u64) -> Placed {
        self.placement.place(Membership::Namespaced, namespace, ResourceVersion::new(version)).await
    }
}

/// Changes, and then nothing.
struct Changes(VecDeque<Change<Value>>);

impl Following for Changes {
    async fn next(&mut self) -> Change<Value> {
        match self.0.pop_front() {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

const KE: ClusterId = ClusterId(0);

fn host(name: &str, version: u64) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()}})
}

fn member(virtual_name: &str, cluster: &str, version: u64) -> Value {
    let mut namespace = host(&format!("{virtual_name}-{cluster}"), version);
    namespace["metadata"]["labels"] = json!({CLUSTER_LABEL: cluster, NAMESPACE_LABEL: virtual_name});
    namespace
}

#[tokio::test(start_paused = true)]
async fn an_object_belongs_to_the_cluster_of_its_namespace() {
    let site = Site::new().await;
    site.see([Change::Applied(member("a", "ke", 5)), Change::Applied(member("a", "other", 6))]).await;
    let begun = Instant::now();
    assert_eq!(site.place("a-ke", 9).await, Placed::Now(Place::One(KE)));
    assert_eq!(site.place("a-other", 9).await, Placed::Now(Place::Nobody), "another agent serves this cluster");
    assert_eq!(site.place("kube-system", 9).await, Placed::Now(Place::Nobody));
    assert_eq!(Instant::now(), begun, "no wait for namespaces that are known");
}

#[tokio::test(start_paused = true)]
async fn late_events_go_to_the_former_owner() {
    let site = Site::new().await;
    let gone = [Change::Applied(member("a", "ke", 5)), Change::Deleted(member("a", "ke", 8))];
    site.see(gone).await;
    assert_eq!(site.place("a-ke", 7).await, Placed::Formerly(Place::One(KE)));
    assert_eq!(site.place("never-ke", 7).await, Placed::Formerly(Place::Nobody), "the index is newer than the object");
}

#[tokio::test(start_paused = true)]
async fn an_object_waits_for_its_namespace_but_not_for_long() {
    let site = Site::new().await;
    let (placed, ()) = tokio::join!(site.place("a-ke", 9), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        site.namespaces.learn(&member("a", "ke", 8)).unwrap();
    });
    assert_eq!(placed, Placed::Now(Place::One(KE)));
    let begun = Instant::now();
    for number in 0..1000 {
        assert_eq!(site.place(&format!("never{number}-ke"), 9).await, Placed::Now(Place::Nobody));
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn only_bindings_belong_to_the_cluster_of_a_root_namespace() {
    let site = Site::new().await;
    for (membership, expected) in
        [(Membership::Namespaced, Place::Nobody), (Membership::NamespacedOrRoot, Place::One(KE))]
    {
        assert_eq!(site.placement.place_of(membership, "atoll-root-ke"), Some(expected));
    }
    let hosts = |membership| site.placement.namespaces_of(membership, KE);
    assert_eq!(hosts(Membership::Namespaced), []);
    assert_eq!(hosts(Membership::NamespacedOrRoot), [HostNamespace::new("atoll-root-ke").unwrap()]);
}
