//! Mirrors that are written, restored and released.

use super::super::catalog::{Event, MAX_CONCURRENT};
use super::*;

/// Tests with a provisioned cluster.
async fn provisioned_host(test: impl AsyncFnOnce(&FakeHost)) {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
        test(&host).await;
    })
    .await;
}

/// Creates a binding, and waits for its mirror in `default`. Returns the paths of both.
async fn mirrored(host: &FakeHost) -> (String, String) {
    let (source, mirror) = (binding_at("atoll-root-vc", "viewers"), binding_at("default-vc", "atoll:crb:viewers"));
    host.put(&source, cluster_role_binding("viewers"));
    host.until(|state| state.objects.contains_key(&mirror)).await;
    (source, mirror)
}

fn is_intact(state: &State, path: &str) -> bool {
    state.objects.get(path).is_some_and(|mirror| {
        !is_deleted(mirror)
            && mirror["subjects"][0]["name"] == "vc:vc:system:masters"
            && mirror["roleRef"]["name"] == "cluster-admin"
            && mirror["metadata"]["labels"]["atoll.dev/mirror"] == "true"
            && mirror["metadata"]["finalizers"] == json!(["atoll.dev/mirror"])
    })
}

#[tokio::test(start_paused = true)]
async fn a_mirror_that_is_deleted_or_changed_is_restored() {
    provisioned_host(async |host| {
        let path = mirror_at("default-vc");
        host.remove(&path);
        host.until(|state| is_intact(state, &path)).await;
        let changes: [fn(&mut Value); 4] = [
            |mirror| mirror["subjects"] = json!([]),
            |mirror| mirror["metadata"]["labels"] = json!({}),
            |mirror| mirror["metadata"]["finalizers"] = json!([]),
            // Another client deleted it and created it again.
            |mirror| mirror["roleRef"]["name"] = json!("view"),
        ];
        for change in changes {
            host.edit(&path, change);
            assert!(!is_intact(&host.lock(), &path));
            host.until(|state| is_intact(state, &path)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_changes_only_delay() {
    provisioned_host(async |host| {
        let path = mirror_at("default-vc");
        host.lock().meddling = 12;
        host.edit(&path, |mirror| mirror["subjects"] = json!([]));
        host.until(|state| is_intact(state, &path)).await;
        assert_eq!(host.lock().meddling, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_is_mirrored_while_it_exists() {
    provisioned_host(async |host| {
        let source = binding_at("atoll-root-vc", "viewers");
        let mirrors = INITIAL_NAMESPACES.map(|name| binding_at(&format!("{name}-vc"), "atoll:crb:viewers"));
        host.put(&source, cluster_role_binding("viewers"));
        host.until(|state| mirrors.iter().all(|path| state.objects.contains_key(path))).await;
        host.edit(&source, |binding| binding["subjects"][0]["name"] = json!("vc:vc:joe"));
        host.until(|state| mirrors.iter().all(|path| state.objects[path]["subjects"][0]["name"] == "vc:vc:joe")).await;
        host.remove(&source);
        host.until(|state| !mirrors.iter().any(|path| state.objects.contains_key(path))).await;
        assert!(has_all_mirrors(&host.lock()));
    })
    .await;
}

/// An agent whose watch is behind does not undo what another agent has done.
#[tokio::test(start_paused = true)]
async fn an_older_source_does_not_undo_a_change() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    let (source, mirror) = (binding_at("atoll-root-vc", "viewers"), binding_at("default-vc", "atoll:crb:viewers"));
    host.put(&source, cluster_role_binding("viewers"));
    with(&provisioner, async {
        host.until(|state| state.objects.contains_key(&mirror)).await;
        // From now on, no events of the root namespace are delivered.
        host.lock().deaf = Some("atoll-root-vc".to_owned());
        host.remove(&source);
        host.edit(&mirror, |mirror| mirror["metadata"]["finalizers"] = json!([]));
        host.remove(&mirror);
        assert!(timeout(TEST_TIMEOUT / 2, host.until(|state| state.objects.contains_key(&mirror))).await.is_err());

        // Conversely, it neither deletes nor reverts a mirror of a binding that is newer than its catalog.
        let mut joe = cluster_role_binding("viewers");
        joe["subjects"][0]["name"] = json!("vc:vc:joe");
        host.put(&source, joe.clone());
        provisioner.written(&vc(), "viewers").await;
        provisioner.shared.catalog.lock().tell(&vc(), Event::Gone { name: "viewers", version: 0 });
        host.edit(&mirror, |mirror| mirror["metadata"]["labels"]["touched"] = json!("true"));
        let is_gone = host.until(|state| state.objects.get(&mirror).is_none_or(is_deleted));
        assert!(timeout(TEST_TIMEOUT / 4, is_gone).await.is_err());
        assert_eq!(host.lock().objects[&mirror]["subjects"][0]["name"], "vc:vc:joe");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_dropped_request_is_completed() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
        let source = binding_at("atoll-root-vc", "viewers");
        let mirrors = INITIAL_NAMESPACES.map(|name| binding_at(&format!("{name}-vc"), "atoll:crb:viewers"));
        let has_all = |state: &State| mirrors.iter().all(|path| state.objects.contains_key(path));
        let has_none = |state: &State| !mirrors.iter().any(|path| state.objects.contains_key(path));
        // No events of the root namespace are delivered, so that only the client's own request knows of the change.
        host.lock().deaf = Some("atoll-root-vc".to_owned());
        let binding = cluster_role_binding("viewers");
        host.put(&source, binding.clone());
        host.lock().failing = 2;
        provisioner.written(&vc(), "viewers").await;
        host.until(has_all).await;
        host.remove(&source);
        drop(timeout(Duration::ZERO, provisioner.written(&vc(), "viewers")).await);
        host.until(has_none).await;
    })
    .await;
}

/// The watch may deliver a deletion after the request of the client has seen it. Then the watch shows no change.
#[tokio::test(start_paused = true)]
async fn a_request_revokes_rights_in_a_namespace_that_ends() {
    for change in ["deleted", "changed"] {
        let host = FakeHost::new();
        let provisioner = agent(&host);
        with(&provisioner, async {
            provisioner.provisioned().await;
            host.until(has_all_mirrors).await;
            let (source, mirror) = mirrored(&host).await;
            host.remove(&at("default-vc"));
            host.empty("default-vc", &["configmaps."]);
            // The loop has nothing more to do.
            tokio::time::sleep(Duration::from_secs(1)).await;
            host.lock().deaf = Some("atoll-root-vc".to_owned());
            match change {
                "deleted" => host.remove(&source),
                _ => host.edit(&source, |binding| binding["subjects"] = json!([])),
            }
            let grants =
                |state: &State| state.objects.get(&mirror).is_some_and(|mirror| mirror["subjects"] != json!([]));
            assert!(grants(&host.lock()));
            provisioner.written(&vc(), "viewers").await;
            assert!(!grants(&host.lock()), "{change}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_cluster_wait_for_each_other() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
        // The loop has nothing more to do.
        tokio::time::sleep(Duration::from_secs(1)).await;
        host.lock().deaf = Some("atoll-root-vc".to_owned());
        host.put(&binding_at("atoll-root-vc", "viewers"), cluster_role_binding("viewers"));
        let mirrors = INITIAL_NAMESPACES.map(|name| binding_at(&format!("{name}-vc"), "atoll:crb:viewers"));
        let count = |state: &State| mirrors.iter().filter(|path| state.objects.contains_key(*path)).count();
        let places = provisioner.shared.catalog.lock().places(&vc()).unwrap();
        let all = places.acquire_many(MAX_CONCURRENT).await.unwrap();
        let cluster = vc();
        let others = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(count(&host.lock()), 0);
            drop(all);
        };
        tokio::join!(provisioner.written(&cluster, "viewers"), others);
        assert_eq!(count(&host.lock()), mirrors.len());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn our_label_does_not_hide_bindings_of_clients() {
    provisioned_host(async |host| {
        let path = binding_at("default-vc", "mine");
        let mut mine = cluster_role_binding("mine");
        mine["metadata"]["namespace"] = json!("default-vc");
        mine["metadata"]["labels"] = json!({"atoll.dev/mirror": "true", "team": "a"});
        host.put(&path, mine);
        host.until(|state| state.objects[&path]["metadata"]["labels"] == json!({"team": "a"})).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_with_our_name_gets_our_label() {
    let host = FakeHost::new();
    for namespace in INITIAL_NAMESPACES {
        let labels = json!({"atoll.dev/virtual-cluster": "vc", "atoll.dev/namespace": namespace});
        let name = format!("{namespace}-vc");
        host.put(&at(&name), json!({"metadata": {"name": name, "labels": labels}}));
        host.put(&mirror_at(&name), cluster_role_binding("atoll:crb:cluster-admin"));
    }
    let provisioner = agent(&host);
    with(
        &provisioner,
        host.until(|state| INITIAL_NAMESPACES.iter().all(|name| is_intact(state, &mirror_at(&format!("{name}-vc"))))),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn mirrors_are_released_when_the_namespace_is_empty() {
    provisioned_host(async |host| {
        let (namespace, mirror) = ("default-vc", mirror_at("default-vc"));
        host.remove(&at(namespace));
        host.empty(namespace, &["configmaps."]);
        host.edit(&mirror, |mirror| mirror["subjects"] = json!([]));
        host.until(|state| state.objects[&mirror]["subjects"][0]["name"] == "vc:vc:system:masters").await;
        assert!(is_deleted(&host.lock().objects[&mirror]));
        // Another client has removed what kept the namespace.
        host.empty(namespace, &[]);
        host.until(|state| !state.objects.contains_key(&mirror)).await;
        host.empty(namespace, &[]);
        // It is one of the four default namespaces, so it is created again.
        host.until(|state| is_intact(state, &mirror)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_of_a_client_keeps_the_mirrors() {
    provisioned_host(async |host| {
        let (namespace, mirror, own) = ("default-vc", mirror_at("default-vc"), binding_at("default-vc", "own"));
        let mut stuck = cluster_role_binding("own");
        stuck["metadata"]["namespace"] = json!(namespace);
        stuck["metadata"]["finalizers"] = json!(["example.com/wait"]);
        host.put(&own, stuck.clone());
        host.remove(&at(namespace));
        host.empty(namespace, &[]);
        // It is repaired, which shows that it was reconciled; and it is kept.
        host.edit(&mirror, |mirror| mirror["subjects"] = json!([]));
        host.until(|state| state.objects[&mirror]["subjects"][0]["name"] == "vc:vc:system:masters").await;
        host.edit(&own, |own| own["metadata"]["finalizers"] = json!([]));
        host.remove(&own);
        host.empty(namespace, &[]);
        host.until(|state| !state.objects.contains_key(&mirror)).await;
    })
    .await;
}

/// In a namespace that is being deleted, a mirror cannot be created again. The subjects of a new binding of its name
/// must not get the role of the old one.
#[tokio::test(start_paused = true)]
async fn a_deleted_mirror_follows_its_binding_or_grants_nothing() {
    for is_made_again in [true, false] {
        provisioned_host(async |host| {
            let (source, mirror) = mirrored(host).await;
            host.remove(&at("default-vc"));
            host.empty("default-vc", &["configmaps."]);
            if is_made_again {
                host.edit(&source, |binding| {
                    binding["roleRef"]["name"] = json!("other");
                    binding["subjects"][0]["name"] = json!("vc:vc:joe");
                });
            } else {
                host.remove(&source);
            }
            let grants_nothing = |state: &State| {
                let mirror = state.objects.get(&mirror);
                assert!(mirror.is_none_or(|mirror| mirror["subjects"][0]["name"] != "vc:vc:joe"));
                mirror.is_none_or(|mirror| mirror["subjects"] == json!([]))
            };
            host.until(grants_nothing).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_does_not_keep_a_revoked_right() {
    provisioned_host(async |host| {
        let (source, mirror) = mirrored(host).await;
        host.lock().quota_is_full = true;
        host.edit(&source, |binding| binding["subjects"] = json!([]));
        host.until(|state| state.objects[&mirror]["subjects"] == json!([])).await;
    })
    .await;
}

/// A deleted mirror is kept by something other than the agent, such as `propagationPolicy: Foreground`.
#[tokio::test(start_paused = true)]
async fn a_mirror_with_another_finalizer_grants_nothing() {
    provisioned_host(async |host| {
        let (source, mirror) = mirrored(host).await;
        host.edit(&mirror, |mirror| {
            mirror["metadata"]["finalizers"] = json!(["atoll.dev/mirror", "foregroundDeletion"]);
        });
        host.remove(&source);
        host.until(|state| state.objects[&mirror]["subjects"] == json!([])).await;
        assert_eq!(host.lock().objects[&mirror]["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    })
    .await;
}
