//! The bindings of root namespaces: their watch, and their label.

use super::*;

const LABEL: &str = "atoll.dev/virtual-cluster";

fn named(cluster: &str) -> ClusterName {
    ClusterName::new(cluster).unwrap()
}

fn serve(provisioner: &Provisioner<FakeHost>, clusters: &[ClusterName]) {
    provisioner.shared.namespaces.serve(clusters.to_vec());
    provisioner.serve(clusters.iter().map(|cluster| (cluster.clone(), Annotations::default())).collect());
}

/// A binding that neither the endpoint nor the agent has written.
fn unlabelled() -> Value {
    let mut binding = cluster_role_binding("viewers");
    binding["metadata"]["labels"] = json!({"team": "a"});
    binding
}

fn source() -> String {
    binding_at("atoll-root-vc", "viewers")
}

fn mirrors() -> [String; 4] {
    INITIAL_NAMESPACES.map(|name| binding_at(&format!("{name}-vc"), "atoll:crb:viewers"))
}

fn has_mirrors(state: &State) -> bool {
    mirrors().iter().all(|path| state.objects.contains_key(path))
}

fn has_no_mirrors(state: &State) -> bool {
    !mirrors().iter().any(|path| state.objects.contains_key(path))
}

#[tokio::test(start_paused = true)]
async fn two_watches_of_bindings_serve_all_clusters() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    let watches = |host: &FakeHost| {
        let state = host.lock();
        state.followers.iter().filter(|follower| follower.path.ends_with("/rolebindings")).count()
    };
    // The cluster that is added later has been served before, so that its binding has the label.
    let of_third = binding_at("atoll-root-third", "viewers");
    let mut binding = cluster_role_binding("viewers");
    binding["metadata"]["namespace"] = json!("atoll-root-third");
    binding["metadata"]["labels"][LABEL] = json!("third");
    host.put(
        &at("atoll-root-third"),
        json!({"metadata": {"name": "atoll-root-third", "labels": {ROOT_LABEL: "third"}}}),
    );
    host.put(&of_third, binding);
    with(&provisioner, async {
        let clusters: Vec<_> = (0..20).map(|number| named(&format!("vc{number}"))).chain([vc()]).collect();
        serve(&provisioner, &clusters);
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
        assert_eq!(watches(&host), 2, "one of mirrors, and one of all root namespaces");
        serve(&provisioner, &[vc(), named("third")]);
        let mirror = binding_at("default-third", "atoll:crb:viewers");
        host.until(|state| state.objects.contains_key(&mirror)).await;
        host.remove(&of_third);
        host.until(|state| !state.objects.contains_key(&mirror)).await;
        let later = binding_at("atoll-root-third", "later");
        let mut binding = cluster_role_binding("later");
        binding["metadata"]["namespace"] = json!("atoll-root-third");
        host.put(&later, binding);
        host.until(|state| state.objects.contains_key(&binding_at("default-third", "atoll:crb:later"))).await;
        assert_eq!(watches(&host), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bindings_of_earlier_versions_get_the_label() {
    let host = FakeHost::new();
    host.put(&source(), unlabelled());
    let provisioner = agent(&host);
    with(&provisioner, async {
        host.until(has_mirrors).await;
        let labels = host.lock().objects[&source()]["metadata"]["labels"].clone();
        assert_eq!(labels, json!({"team": "a", LABEL: "vc"}));
        host.remove(&source());
        host.until(has_no_mirrors).await;
    })
    .await;
}

/// A removed label must neither revoke the right, nor keep it after the deletion of the binding.
#[tokio::test(start_paused = true)]
async fn a_label_that_is_removed_is_restored() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.put(&source(), cluster_role_binding("viewers"));
        host.until(has_mirrors).await;
        let has_label = |state: &State| state.objects[&source()]["metadata"]["labels"][LABEL] == "vc";
        host.edit(&source(), |binding| binding["metadata"]["labels"] = json!({"team": "a"}));
        host.until(|state| has_label(state) && has_mirrors(state)).await;
        // The label is removed, and the binding is deleted before the agent can restore it.
        host.edit(&source(), |binding| binding["metadata"]["labels"] = json!({}));
        host.remove(&source());
        host.until(has_no_mirrors).await;
    })
    .await;
}

/// An agent of an earlier version writes bindings without the label, and mirrors them.
#[tokio::test(start_paused = true)]
async fn a_mirror_leads_to_a_binding_without_the_label() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
        host.put(&source(), unlabelled());
        let mut mirror = cluster_role_binding("atoll:crb:viewers");
        mirror["metadata"] = json!({
            "name": "atoll:crb:viewers", "namespace": "default-vc", "labels": {"atoll.dev/mirror": "true"},
            "finalizers": ["atoll.dev/mirror"],
        });
        host.put(&binding_at("default-vc", "atoll:crb:viewers"), mirror);
        host.until(has_mirrors).await;
        host.remove(&source());
        host.until(has_no_mirrors).await;
    })
    .await;
}

/// A client changes a binding that the agent does not know.
#[tokio::test(start_paused = true)]
async fn a_write_finds_a_binding_without_the_label() {
    for failing in [0, 4] {
        let host = FakeHost::new();
        let provisioner = agent(&host);
        with(&provisioner, async {
            provisioner.provisioned().await;
            host.until(has_all_mirrors).await;
            // The loop has nothing more to do.
            tokio::time::sleep(Duration::from_secs(1)).await;
            host.put(&source(), unlabelled());
            host.lock().failing = failing;
            provisioner.written(&vc(), "viewers").await;
            host.until(has_mirrors).await;
            host.edit(&source(), |binding| binding["subjects"] = json!([]));
            host.until(|state| mirrors().iter().all(|path| state.objects[path]["subjects"] == json!([]))).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_label_has_no_effect_in_other_namespaces() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        let mut binding = cluster_role_binding("viewers");
        binding["metadata"]["namespace"] = json!("default-vc");
        host.put(&binding_at("default-vc", "viewers"), binding);
        host.put(&binding_at("atoll-root-unknown", "viewers"), cluster_role_binding("viewers"));
        host.put(&source(), cluster_role_binding("viewers"));
        host.until(has_mirrors).await;
        host.remove(&binding_at("default-vc", "viewers"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(has_mirrors(&host.lock()));
    })
    .await;
}
