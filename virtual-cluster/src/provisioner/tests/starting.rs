//! The start of an agent: when it is ready, and what it sends.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn clusters() -> Vec<ClusterName> {
    (0..20).map(|number| ClusterName::new(&format!("vc{number}")).unwrap()).collect()
}

fn agent_of(host: &FakeHost, clusters: &[ClusterName]) -> Provisioner<FakeHost> {
    let annotations = clusters.iter().map(|cluster| (cluster.clone(), Annotations::default())).collect();
    let namespaces = Arc::new(Namespaces::new(clusters.to_vec()));
    Provisioner::of(host.clone(), namespaces, Roles::with([]), annotations)
}

fn bindings_of(cluster: &ClusterName) -> Vec<String> {
    INITIAL_NAMESPACES.iter().map(|name| mirror_at(&format!("{name}-{cluster}"))).collect()
}

/// With many clusters, the administrators of the first ones must not wait for the last one, nor be refused.
#[tokio::test(start_paused = true)]
async fn administrators_can_act_when_their_cluster_is_provisioned() {
    let (host, clusters) = (FakeHost::new(), clusters());
    host.lock().reviews_behind = 50;
    let provisioner = agent_of(&host, &clusters);
    with(&provisioner, async {
        let check = |all: &BTreeMap<ClusterName, ProvisionState>| {
            let state = host.lock();
            let provisioned = all.iter().filter(|(_, one)| **one == ProvisionState::Provisioned);
            for (cluster, _) in provisioned {
                let missing = bindings_of(cluster).into_iter().find(|path| !state.objects.contains_key(path));
                assert_eq!(missing, None, "{cluster} is provisioned");
            }
            let count = all.values().filter(|one| **one == ProvisionState::Provisioned).count();
            assert!(count == 0 || state.reviews_behind == 0, "rights are in force before a cluster is provisioned");
            count == all.len()
        };
        provisioner.shared.states.wait_for(check).await;
    })
    .await;
}

/// Requests until nothing is left to do.
async fn requests_of_a_start(host: &FakeHost, clusters: &[ClusterName]) -> Vec<String> {
    host.lock().requests.clear();
    let provisioner = agent_of(host, clusters);
    with(&provisioner, async {
        provisioner.provisioned().await;
        tokio::time::sleep(Duration::from_secs(100)).await;
    })
    .await;
    std::mem::take(&mut host.lock().requests)
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_changes_writes_nothing() {
    let (host, clusters) = (FakeHost::new(), clusters());
    host.put(&binding_at("atoll-root-vc7", "viewers"), {
        let mut binding = cluster_role_binding("viewers");
        binding["metadata"]["namespace"] = json!("atoll-root-vc7");
        binding
    });
    requests_of_a_start(&host, &clusters).await;
    let before = host.lock().objects.clone();
    let requests = requests_of_a_start(&host, &clusters).await;
    assert_eq!(host.lock().objects, before);
    let of_clusters: Vec<_> = requests.iter().filter(|request| request.contains("/namespaces/atoll-root-")).collect();
    assert!(requests.iter().all(|request| request.starts_with("LIST ")), "{requests:#?}");
    // Each root namespace is listed, and pages have two objects.
    assert!(of_clusters.len() <= 2 * clusters.len() + 1, "{of_clusters:#?}");
    let others = requests.len() - of_clusters.len();
    let pages = clusters.len().div_ceil(2);
    assert!(others <= 2 * pages, "only lists of all clusters: {requests:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_repairs_only_what_has_changed() {
    let (host, clusters) = (FakeHost::new(), clusters());
    requests_of_a_start(&host, &clusters).await;
    let before = host.lock().objects.clone();
    let paths = [
        mirror_at("default-vc3"),
        binding_at("atoll-root-vc4", "cluster-admin"),
        binding_at("atoll-root-vc5", "atoll:attempts"),
        "/apis/rbac.authorization.k8s.io/v1/namespaces/atoll-root-vc6/roles/atoll:attempts".to_owned(),
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/atoll-vc8".to_owned(),
    ];
    for path in &paths {
        host.edit(path, |object| object["metadata"]["finalizers"] = json!([]));
        host.remove(path);
    }
    let requests = requests_of_a_start(&host, &clusters).await;
    let content = |object: &Value| {
        let metadata = json!({"labels": object["metadata"]["labels"], "finalizers": object["metadata"]["finalizers"]});
        [&metadata, &object["rules"], &object["subjects"], &object["roleRef"], &object["spec"]].map(Clone::clone)
    };
    let after = host.lock().objects.clone();
    for path in &paths {
        assert_eq!(content(&after[path]), content(&before[path]), "{path}");
    }
    let writes: BTreeSet<_> = requests
        .iter()
        .filter(|request| {
            let is_read = request.starts_with("LIST ") || request.starts_with("GET ");
            !is_read && !request.ends_with("subjectaccessreviews")
        })
        .collect();
    // The PriorityLevelConfiguration exists.
    assert_eq!(writes.len(), paths.len() + 1, "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_flow_schema_is_created_when_it_is_allowed() {
    let host = FakeHost::new();
    host.lock().flows_are_forbidden = true;
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        host.lock().flows_are_forbidden = false;
        let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/atoll-vc";
        host.until(|state| state.objects.contains_key(path)).await;
        // A new root namespace gets a new one.
        host.remove(path);
        end(&host, "atoll-root-vc").await;
        host.until(|state| state.objects.contains_key(path)).await;
    })
    .await;
}
