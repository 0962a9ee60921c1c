//! Clusters that come and go while the agent runs.

use super::*;

fn other() -> ClusterName {
    ClusterName::new("other").unwrap()
}

fn serve(provisioner: &Provisioner<FakeHost>, clusters: &[ClusterName]) {
    provisioner.shared.namespaces.serve(clusters.to_vec());
    provisioner.serve(clusters.iter().map(|cluster| (cluster.clone(), Annotations::default())).collect());
}

fn finalizers(state: &State, cluster: &str) -> Vec<usize> {
    let mirrors =
        INITIAL_NAMESPACES.iter().filter_map(|name| state.objects.get(&mirror_at(&format!("{name}-{cluster}"))));
    mirrors.map(|mirror| mirror["metadata"]["finalizers"].as_array().map_or(0, Vec::len)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_is_provisioned_beside_the_others() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        serve(&provisioner, &[vc(), other()]);
        provisioner.provisioned().await;
        assert_eq!(provisioner.provision_state(&other()), Some(ProvisionState::Provisioned));
        host.until(|state| finalizers(state, "other") == [1; 4] && finalizers(state, "vc") == [1; 4]).await;
        assert_eq!(host.lock().objects[&at("atoll-root-other")]["metadata"]["labels"][ROOT_LABEL], "other");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_cluster_has_no_finalizers_on_the_host() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        serve(&provisioner, &[vc(), other()]);
        provisioner.provisioned().await;
        host.until(|state| finalizers(state, "other") == [1; 4] && finalizers(state, "vc") == [1; 4]).await;
        // The host does not answer at first.
        host.lock().failing = 3;
        serve(&provisioner, &[vc()]);
        assert!(provisioner.is_leaving(&other()) && !provisioner.is_leaving(&vc()));
        host.until(|state| finalizers(state, "other") == [0; 4]).await;
        // The last requests of the work for it.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!provisioner.is_leaving(&other()));
        assert_eq!(provisioner.provision_state(&other()), None);
        assert_eq!(finalizers(&host.lock(), "vc"), [1; 4]);
        assert!(host.lock().objects.contains_key(&at("kube-system-other")));
        // No finalizer of ours hinders an operator who cleans up, and nothing is created again.
        let namespace = "default-other";
        host.edit(&at(namespace), |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
        host.empty(namespace, &[]);
        assert!(!host.lock().objects.contains_key(&at(namespace)));

        // The cluster comes back, and everything is restored.
        serve(&provisioner, &[vc(), other()]);
        assert!(!provisioner.is_leaving(&other()));
        host.until(|state| finalizers(state, "other") == [1; 4]).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_came_and_left_at_once_has_left() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        // The control loop does not see the first one.
        serve(&provisioner, &[vc(), other()]);
        serve(&provisioner, &[vc()]);
        assert!(provisioner.is_leaving(&other()));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!provisioner.is_leaving(&other()));
    })
    .await;
}
