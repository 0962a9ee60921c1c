//! A virtual cluster whose name is so long that an earlier version gave its namespaces other names.

use rewrite::VirtualNamespace;

use super::*;

fn long() -> ClusterName {
    ClusterName::new(&"c".repeat(60)).unwrap()
}

/// The namespaces that an earlier version created on the host.
fn left(host: &FakeHost) -> (HostNamespace, HostNamespace) {
    let system = VirtualNamespace::new("kube-system").unwrap();
    let system = HostNamespace::derive_formerly(&system, &long()).unwrap();
    let labels = json!({"atoll.dev/virtual-cluster": long().as_str(), "atoll.dev/namespace": "kube-system"});
    host.put(&at(system.as_str()), json!({"metadata": {"name": system.as_str(), "labels": labels}}));
    let root = HostNamespace::former_root(&long()).unwrap();
    let labels = json!({"atoll.dev/root": long().as_str()});
    host.put(&at(root.as_str()), json!({"metadata": {"name": root.as_str(), "labels": labels}}));
    (system, root)
}

fn agent(host: &FakeHost) -> Provisioner<FakeHost> {
    let clusters = HashMap::from([(long(), Annotations::default())]);
    Provisioner::of(host.clone(), Arc::new(Namespaces::new([long()])), Roles::with([view()]), clusters)
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_kept_and_bindings_are_moved() {
    let host = FakeHost::new();
    let (system, former) = left(&host);
    let mut binding = cluster_role_binding("viewers");
    binding["metadata"]["annotations"] = json!({"someone": "else's"});
    host.put(&binding_at(former.as_str(), "viewers"), binding);
    host.put(&binding_at(former.as_str(), "cluster-admin"), cluster_role_binding("cluster-admin"));
    let uid = host.lock().objects[&at(system.as_str())]["metadata"]["uid"].clone();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        let now = HostNamespace::root(&long());
        assert_ne!(now, former);
        host.until(|state| state.objects.contains_key(&binding_at(system.as_str(), "atoll:crb:viewers"))).await;
        let state = host.lock();
        let moved = &state.objects[&binding_at(now.as_str(), "viewers")];
        assert_eq!(moved["metadata"]["annotations"]["someone"], "else's");
        assert_eq!(moved["metadata"]["namespace"], now.as_str());
        assert_eq!(moved["metadata"]["labels"]["atoll.dev/virtual-cluster"], long().as_str());
        assert!(is_deleted(&state.objects[&at(former.as_str())]));
        let administrators = &state.objects[&binding_at(now.as_str(), "cluster-admin")];
        assert_eq!(administrators["metadata"]["labels"]["atoll.dev/protected"], "true");
        // `kube-system` identifies the cluster, so it must not be a new one.
        assert_eq!(state.objects[&at(system.as_str())]["metadata"]["uid"], uid);
        let called = |object: &&Value| object["metadata"]["labels"]["atoll.dev/namespace"] == "kube-system";
        assert_eq!(state.objects.values().filter(called).count(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_former_root_of_another_cluster_is_unchanged() {
    let host = FakeHost::new();
    let (_, former) = left(&host);
    host.edit(&at(former.as_str()), |root| root["metadata"]["labels"] = json!({"atoll.dev/root": "other"}));
    host.put(&binding_at(former.as_str(), "viewers"), cluster_role_binding("viewers"));
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        let state = host.lock();
        assert!(!is_deleted(&state.objects[&at(former.as_str())]));
        assert!(!state.objects.contains_key(&binding_at(HostNamespace::root(&long()).as_str(), "viewers")));
    })
    .await;
}
