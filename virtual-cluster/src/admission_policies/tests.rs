use std::collections::BTreeSet;

use rewrite::Guard;
use rewrite::name::ROOT_LABEL;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::*;
use crate::namespaces::annotations::Reserved;
use crate::namespaces::{self, Annotations, FULL};
use crate::provisioner::testing::FakeHost;

const UNSAFE: Accepted = Accepted { unsafe_direct_access: true, unverified_policies: false };
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const NODE_LABELS: &str = "validatingadmissionpolicies/node-labels.atoll.dev";

/// A host that serves these resources of the group's first version.
fn host(resources: &[&str]) -> FakeHost {
    let host = FakeHost::new();
    let resources: Vec<Value> = resources.iter().map(|name| json!({"name": name})).collect();
    host.put(GROUP, json!({"resources": resources}));
    host
}

/// Runs the loop of [`AdmissionPolicies`] until the set is dropped.
fn run(host: &FakeHost, accepted: Accepted) -> (AdmissionPolicies<FakeHost>, JoinSet<()>) {
    let namespaces = Arc::new(Namespaces::new([]));
    let policies = AdmissionPolicies::new(host.clone(), accepted, Arc::clone(&namespaces));
    let following = host.follow::<Value>(namespaces::PATH, "");
    let mut running = JoinSet::new();
    running.spawn(async move { namespaces.follow(following).await });
    running.spawn(policies.clone().run());
    (policies, running)
}

fn put_root(host: &FakeHost, cluster: &str, label: &str) {
    let guard = Guard::new([(label.to_owned(), "b".to_owned())], []);
    let name = format!("atoll-root-{cluster}");
    let namespace = json!({"metadata": {"name": name}});
    let namespace =
        Annotations::new(&guard, &Reserved::default(), [""; 0], BTreeSet::new()).repaired(&namespace).unwrap();
    host.put(&format!("{}/{name}", namespaces::PATH), namespace);
}

fn path(name: &str) -> String {
    format!("{GROUP}/{name}")
}

fn names(host: &FakeHost) -> Vec<String> {
    let state = host.lock();
    state.objects.keys().filter_map(|path| path.strip_prefix(GROUP)?.strip_prefix('/').map(str::to_owned)).collect()
}

async fn until(policies: &AdmissionPolicies<FakeHost>, is_so: impl FnMut(&PolicyState) -> bool) {
    policies.shared.state.wait_for(is_so).await;
}

#[tokio::test(start_paused = true)]
async fn policies_are_installed_and_restored() {
    let host = host(&["validatingadmissionpolicies", "mutatingadmissionpolicies"]);
    put_root(&host, "ke-beijing", "location");
    let (policies, _running) = run(&host, Accepted::default());
    until(&policies, |state| *state == PolicyState::Shut { guards: true }).await;
    let made = names(&host);

    let pods = path("validatingadmissionpolicies/pods.atoll.dev");
    let right = host.lock().objects[&pods]["spec"].clone();
    host.edit(&pods, |policy| policy["spec"]["validations"] = json!([]));
    host.until(|state| state.objects[&pods]["spec"] == right).await;
    host.remove(&pods);
    host.until(|state| state.objects.contains_key(&pods)).await;

    // More virtual clusters make no more policies.
    put_root(&host, "ke-hangzhou", "disk");
    let node_labels = path(NODE_LABELS);
    let says = |state: &crate::provisioner::testing::State, label: &str| {
        state.objects[&node_labels]["spec"]["validations"][0]["expression"].as_str().unwrap().contains(label)
    };
    host.until(|state| says(state, "\"disk\"") && says(state, "\"location\"")).await;
    assert_eq!(names(&host), made);
}

#[tokio::test(start_paused = true)]
async fn root_namespaces_say_which_clusters_are_full() {
    let host = host(&["validatingadmissionpolicies"]);
    put_root(&host, "ke-beijing", "location");
    put_root(&host, "ke-hangzhou", "location");
    let (policies, _running) = run(&host, Accepted::default());
    until(&policies, |state| *state == PolicyState::Shut { guards: false }).await;
    let root = format!("{}/atoll-root-ke-beijing", namespaces::PATH);
    host.edit(&root, |root| {
        root["metadata"]["labels"] = json!({ROOT_LABEL: "ke-beijing"});
        root["metadata"]["annotations"][FULL] = json!("secrets=5");
    });
    let quotas = path("validatingadmissionpolicies/quotas.atoll.dev");
    let selected = |state: &crate::provisioner::testing::State| {
        state.objects[&quotas]["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][0]["values"].clone()
    };
    let becomes = async |clusters: Value| {
        let soon = timeout(Duration::from_secs(3600), host.until(|state| selected(state) == clusters)).await;
        soon.expect("it happens within an hour");
    };
    becomes(json!(["ke-beijing"])).await;
    host.edit(&root, |root| root["metadata"]["annotations"][FULL] = json!(""));
    becomes(json!([""])).await;
}

#[tokio::test(start_paused = true)]
async fn policies_of_earlier_versions_are_removed_later() {
    let host = host(&["validatingadmissionpolicies", "mutatingadmissionpolicies"]);
    let former =
        ["validating", "mutating"].map(|kind| ["policies", "policybindings"].map(|it| format!("{kind}admission{it}")));
    let labels = json!({LABEL: ""});
    for collection in former.iter().flatten() {
        for name in ["pods.ke-beijing.atoll.dev", "pods.somebody.else"] {
            host.put(&path(&format!("{collection}/{name}")), json!({"metadata": {"name": name, "labels": labels}}));
        }
    }
    host.lock().policies_behind = 5;
    let (policies, _running) = run(&host, Accepted::default());
    host.until(|state| state.policies_behind == 1).await;
    let left = |host: &FakeHost| names(host).iter().filter(|name| name.ends_with("/pods.ke-beijing.atoll.dev")).count();
    assert_eq!((policies.state(), left(&host)), (PolicyState::Pending, 4));
    until(&policies, |state| *state == PolicyState::Shut { guards: true }).await;
    host.until(|state| !state.objects.keys().any(|path| path.ends_with("/pods.ke-beijing.atoll.dev"))).await;
    assert_eq!(names(&host).iter().filter(|name| name.ends_with("/pods.somebody.else")).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_host_without_policies_is_served_if_that_is_accepted() {
    let (refusing, _running) = run(&host(&[]), Accepted::default());
    until(&refusing, |state| matches!(state, PolicyState::Failed(_))).await;
    let state = refusing.state();
    assert!(state.admits().is_err_and(|reason| reason.contains("unsafeDirectAccess")), "{state:?}");

    let (accepting, _running) = run(&host(&[]), UNSAFE);
    until(&accepting, |state| *state == PolicyState::Open).await;
}

#[tokio::test(start_paused = true)]
async fn policies_stay_in_force_while_the_host_is_down() {
    let host = host(&["validatingadmissionpolicies"]);
    host.lock().failing = 1;
    let (policies, _running) = run(&host, Accepted::default());
    until(&policies, |state| *state == PolicyState::Shut { guards: false }).await;
    host.lock().failing = 3;
    host.edit(&path(NODE_LABELS), |policy| policy["spec"] = json!({}));
    host.until(|state| state.failing == 0).await;
    assert!(policies.state().admits().is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_cluster_is_served_before_policies_are_enforced() {
    let host = host(&["validatingadmissionpolicies"]);
    host.lock().policies_behind = 5;
    let (policies, _running) = run(&host, Accepted::default());
    host.until(|state| state.policies_behind == 3).await;
    assert_eq!(policies.state(), PolicyState::Pending);
    assert_eq!(policies.first_state().await, PolicyState::Shut { guards: false });
    assert_eq!(host.lock().policies_behind, 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_enforce_policies_is_like_one_without_them() {
    for accepted in [Accepted::default(), UNSAFE] {
        let host = host(&["validatingadmissionpolicies"]);
        host.lock().policies_behind = u32::MAX;
        let start = Instant::now();
        let (policies, _running) = run(&host, accepted);
        until(&policies, |state| *state != PolicyState::Pending).await;
        // Time is paused, so it is the sum of all waits.
        assert!(start.elapsed() < Duration::from_secs(11), "{:?}", start.elapsed());
        let state = policies.state();
        assert_eq!(state == PolicyState::Open, accepted.unsafe_direct_access, "{state:?}");
        assert_eq!(state.admits().is_ok(), accepted.unsafe_direct_access);
    }
}

#[tokio::test(start_paused = true)]
async fn policies_that_cannot_be_probed_count_as_unverified() {
    for (accepted, expected) in [
        (Accepted::default(), None),
        (Accepted { unverified_policies: true, ..Accepted::default() }, Some(PolicyState::Unverified)),
        (UNSAFE, Some(PolicyState::Open)),
    ] {
        let host = host(&["validatingadmissionpolicies"]);
        host.lock().dry_runs_refused = true;
        let (policies, _running) = run(&host, accepted);
        until(&policies, |state| *state != PolicyState::Pending).await;
        let state = policies.state();
        match &expected {
            Some(expected) => assert_eq!(state, *expected),
            None => {
                assert!(state.admits().is_err_and(|reason| reason.contains("unverifiedPolicies")), "{state:?}");
            }
        }
        // Whenever the policies change, the agent tries again.
        host.lock().dry_runs_refused = false;
        host.edit(&path(NODE_LABELS), |policy| policy["spec"] = json!({}));
        until(&policies, |state| *state == PolicyState::Shut { guards: false }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_recreated_policy_is_probed_again() {
    let host = host(&["validatingadmissionpolicies"]);
    let (policies, _running) = run(&host, Accepted::default());
    until(&policies, |state| *state == PolicyState::Shut { guards: false }).await;
    let probe = path("validatingadmissionpolicies/probe.atoll.dev");
    let revision = |state: &crate::provisioner::testing::State| state.objects[&probe]["spec"].clone();
    let before = revision(&host.lock());
    host.remove(&path("validatingadmissionpolicybindings/pods.atoll.dev"));
    host.until(|state| revision(state) != before).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_no_policy_again() {
    let host = host(&["validatingadmissionpolicies", "mutatingadmissionpolicies"]);
    let in_force = PolicyState::Shut { guards: true };
    for is_first in [true, false] {
        host.lock().requests.clear();
        let (policies, running) = run(&host, Accepted::default());
        until(&policies, |state| *state == in_force).await;
        let requests = std::mem::take(&mut host.lock().requests);
        let patches = requests.iter().filter(|request| request.starts_with("PATCH ")).count();
        assert_eq!(patches, if is_first { names(&host).len() } else { 0 }, "{requests:#?}");
        drop(running);
    }
}

#[test]
fn texts_are_quoted() {
    let known = Known { node_labels: ["a\"b\\'".to_owned()].into(), ..Known::default() };
    let all = policies::all(Served { validating: Some("v1"), mutating: Some("v1"), has_cidr: true }, &known);
    let expressions: Vec<_> =
        all.iter().map(|object| object.body["spec"]["validations"][0]["expression"].to_string()).collect();
    let expected = Value::from(r#"["a\"b\\'"].all("#).to_string();
    assert!(expressions.iter().any(|it| it.starts_with(expected.trim_end_matches('"'))), "{expressions:?}");
    // A policy without labels exists too, because the number of policies is constant.
    assert_eq!(
        policies::all(Served { validating: Some("v1"), mutating: Some("v1"), has_cidr: true }, &Known::default()).len(),
        all.len()
    );
}
