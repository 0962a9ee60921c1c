//! Tests with a host in memory, one or two agents, and paused time, so that a wait without end fails at its deadline.

mod annotations;
mod canaries;
mod former;
mod leaving;
mod mirrors;
mod post_create;
mod roots;
mod starting;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::binding::is_deleted;
use super::testing::{FakeHost, State};
use super::*;
use crate::namespaces;

/// Longer than any back-off.
const TEST_TIMEOUT: Duration = Duration::from_secs(1200);

fn vc() -> ClusterName {
    ClusterName::new("vc").unwrap()
}

/// The path of a namespace on the host.
fn at(name: &str) -> String {
    format!("/api/v1/namespaces/{name}")
}

fn binding_at(namespace: &str, name: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{name}")
}

fn mirror_at(namespace: &str) -> String {
    binding_at(namespace, "atoll:crb:cluster-admin")
}

fn agent(host: &FakeHost) -> Provisioner<FakeHost> {
    let clusters = HashMap::from([(vc(), Annotations::default())]);
    Provisioner::of(host.clone(), Arc::new(Namespaces::new([vc()])), Roles::with([view()]), clusters)
}

/// An aggregated role of the host.
fn view() -> Value {
    let metadata = json!({"name": "view", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}});
    json!({"metadata": metadata, "aggregationRule": {"clusterRoleSelectors": []}, "rules": []})
}

/// Runs an agent until the test ends.
async fn with(provisioner: &Provisioner<FakeHost>, test: impl Future<Output = ()>) {
    let host = provisioner.shared.api.clone();
    let namespaces = Arc::clone(&provisioner.shared.namespaces);
    tokio::select! {
        () = namespaces.follow(host.follow::<Value>(namespaces::PATH, "")) => {}
        () = provisioner.clone().run() => {}
        tested = timeout(TEST_TIMEOUT, test) => tested.expect("what was waited for has not come"),
    }
}

fn has_all_mirrors(state: &State) -> bool {
    INITIAL_NAMESPACES.iter().all(|name| state.objects.contains_key(&mirror_at(&format!("{name}-vc"))))
}

#[tokio::test(start_paused = true)]
async fn a_virtual_cluster_is_provisioned() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    assert_eq!(provisioner.provision_state(&vc()), Some(ProvisionState::Pending));
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
        let state = host.lock();
        assert_eq!(state.objects[&at("atoll-root-vc")]["metadata"]["labels"], json!({"atoll.dev/root": "vc"}));
        assert_eq!(
            state.objects[&at("kube-system-vc")]["metadata"]["labels"],
            json!({"atoll.dev/virtual-cluster": "vc", "atoll.dev/namespace": "kube-system"})
        );
        let binding = &state.objects[&binding_at("atoll-root-vc", "cluster-admin")];
        assert_eq!(binding["metadata"]["labels"]["atoll.dev/protected"], "true");
        assert_eq!(binding["subjects"][0]["name"], "vc:vc:system:masters");
        assert!(!state.objects.contains_key(&mirror_at("atoll-root-vc")));
        assert!(state.objects.contains_key("/apis/rbac.authorization.k8s.io/v1/clusterroles/vc:vc:view"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_another_owner_is_not_adopted() {
    let host = FakeHost::new();
    host.put(&at("default-vc"), json!({"metadata": {"name": "default-vc", "labels": {"theirs": "1"}}}));
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.shared.states.wait_for(|all| matches!(all[&vc()], ProvisionState::Failed(_))).await;
        let Some(ProvisionState::Failed(reason)) = provisioner.provision_state(&vc()) else { panic!("it has failed") };
        assert!(reason.contains("namespace default-vc of the host exists") && reason.contains("delete it"), "{reason}");
        assert_eq!(host.lock().objects[&at("default-vc")]["metadata"]["labels"], json!({"theirs": "1"}));
        // The operator deletes it, as the message says.
        host.remove(&at("default-vc"));
        host.empty("default-vc", &[]);
        provisioner.provisioned().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_the_end_of_another_name_is_not_created() {
    let host = FakeHost::new();
    let root = json!({"metadata": {"name": "atoll-root-a-vc", "uid": "r", "labels": {ROOT_LABEL: "a-vc"}}});
    host.put(&at("atoll-root-a-vc"), root);
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.shared.states.wait_for(|all| matches!(all[&vc()], ProvisionState::Failed(_))).await;
        let Some(ProvisionState::Failed(reason)) = provisioner.provision_state(&vc()) else { panic!("it has failed") };
        assert!(reason.contains("the host has the virtual cluster a-vc"), "{reason}");
        assert!(!host.lock().objects.contains_key(&at("atoll-root-vc")));
        host.remove(&at("atoll-root-a-vc"));
        host.empty("atoll-root-a-vc", &[]);
        provisioner.provisioned().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_host_is_tried_again() {
    let host = FakeHost::new();
    host.lock().failing = 8;
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        host.until(has_all_mirrors).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_agents_do_the_same_work() {
    let host = FakeHost::new();
    let (one, other) = (agent(&host), agent(&host));
    with(
        &one,
        with(&other, async {
            one.provisioned().await;
            other.provisioned().await;
            host.until(has_all_mirrors).await;
            for namespace in INITIAL_NAMESPACES {
                host.remove(&mirror_at(&format!("{namespace}-vc")));
            }
            host.until(|state| has_all_mirrors(state) && !state.objects.values().any(is_deleted)).await;
        }),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn missing_objects_are_provisioned_again() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        let admin = binding_at("atoll-root-vc", "cluster-admin");
        host.edit(&admin, |binding| binding["subjects"] = json!([]));
        host.until(|state| state.objects[&admin]["subjects"][0]["name"] == "vc:vc:system:masters").await;
        host.remove(&admin);
        host.until(|state| state.objects.contains_key(&admin)).await;
        for namespace in ["atoll-root-vc", "default-vc"] {
            end(&host, namespace).await;
            host.until(|state| state.objects.get(&at(namespace)).is_some_and(|it| !is_deleted(it))).await;
        }
        host.until(|state| state.objects.contains_key(&admin) && has_all_mirrors(state)).await;
    })
    .await;
}

/// Deletes a namespace, with as many passes as the namespace controller needs.
async fn end(host: &FakeHost, namespace: &str) {
    host.remove(&at(namespace));
    host.empty(namespace, &[]);
    // If it still exists, only mirrors are left in it.
    if host.lock().objects.contains_key(&at(namespace)) {
        host.until(|state| !state.objects.contains_key(&mirror_at(namespace))).await;
        host.empty(namespace, &[]);
    }
}

/// As the endpoint writes it.
fn cluster_role_binding(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "atoll-root-vc", "labels": {"atoll.dev/virtual-cluster": "vc"}},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "vc:vc:jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    })
}
