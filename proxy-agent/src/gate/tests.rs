use rewrite::guard::Toleration;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;
use crate::root::testing::FakeHost;

const UNSAFE: Accepted = Accepted { unsafe_direct_access: true, unverified_policies: false };
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn slice(cluster: &str, location: &str) -> Slice {
    let tolerations = [Toleration::of_key("location")];
    let guard = Guard::new([("location".to_owned(), location.to_owned())], tolerations);
    Slice { cluster: ClusterName::new(cluster).unwrap(), guard: Arc::new(guard) }
}

/// A host that serves these resources of the group's first version.
fn host(resources: &[&str]) -> FakeHost {
    let host = FakeHost::new();
    let resources: Vec<Value> = resources.iter().map(|name| json!({"name": name})).collect();
    host.put(GROUP, json!({"resources": resources}));
    host
}

fn names(host: &FakeHost) -> Vec<String> {
    let state = host.lock();
    state.objects.keys().filter_map(|path| path.strip_prefix(GROUP)?.strip_prefix('/').map(str::to_owned)).collect()
}

async fn until(gate: &Gate<FakeHost>, is_so: impl Fn(&Standing) -> bool) {
    let mut standing = gate.shared.standing.subscribe();
    standing.wait_for(|all| all.values().all(&is_so)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn policies_come_and_are_kept() {
    let host = host(&["validatingadmissionpolicies", "mutatingadmissionpolicies"]);
    let gate = Gate::new(host.clone(), Accepted::default(), vec![slice("ke-beijing", "beijing")]);
    let mut running = JoinSet::new();
    running.spawn(gate.clone().run());
    until(&gate, |standing| *standing == Standing::Shut { guards: true }).await;
    let made = names(&host);
    assert_eq!(made.len(), 10, "{made:?}");

    let path = format!("{GROUP}/validatingadmissionpolicies/pods.ke-beijing.atoll.dev");
    let right = host.lock().objects[&path]["spec"].clone();
    host.edit(&path, |policy| policy["spec"]["validations"] = json!([]));
    host.until(|state| state.objects[&path]["spec"] == right).await;
    host.remove(&path);
    host.until(|state| state.objects.contains_key(&path)).await;

    gate.serve(vec![slice("ke-hangzhou", "hangzhou")]);
    until(&gate, |standing| standing.admits().is_ok()).await;
    // What ke-beijing left on the host is still kept in.
    assert_eq!(names(&host).len(), 14);
}

#[tokio::test(start_paused = true)]
async fn a_host_without_policies_is_served_if_that_is_accepted() {
    let slices = vec![slice("ke-beijing", "beijing")];
    let refusing = Gate::new(host(&[]), Accepted::default(), slices.clone());
    let mut running = JoinSet::new();
    running.spawn(refusing.clone().run());
    until(&refusing, |standing| matches!(standing, Standing::Failed(_))).await;
    let standing = refusing.standing(&slices[0].cluster).unwrap();
    assert!(standing.admits().is_err_and(|reason| reason.contains("unsafeDirectAccess")), "{standing:?}");

    let accepting = Gate::new(host(&[]), UNSAFE, slices);
    let mut running = JoinSet::new();
    running.spawn(accepting.clone().run());
    until(&accepting, |standing| *standing == Standing::Open).await;
}

#[tokio::test(start_paused = true)]
async fn what_stands_is_not_forgotten_when_the_host_is_away() {
    let host = host(&["validatingadmissionpolicies"]);
    let gate = Gate::new(host.clone(), Accepted::default(), vec![slice("ke-beijing", "beijing")]);
    host.lock().failing = 1;
    let mut running = JoinSet::new();
    running.spawn(gate.clone().run());
    until(&gate, |standing| *standing == Standing::Shut { guards: false }).await;
    host.lock().failing = 3;
    host.edit(&format!("{GROUP}/validatingadmissionpolicies/nodes.atoll.dev"), |policy| policy["spec"] = json!({}));
    host.until(|state| state.failing == 0).await;
    assert!(gate.shared.standing.borrow().values().all(|standing| standing.admits().is_ok()));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_served_before_policies_are_enforced() {
    let host = host(&["validatingadmissionpolicies"]);
    host.lock().policies_behind = 5;
    let slices = vec![slice("ke-beijing", "beijing")];
    let gate = Gate::new(host.clone(), Accepted::default(), slices.clone());
    let mut running = JoinSet::new();
    running.spawn(gate.clone().run());
    host.until(|state| state.policies_behind == 3).await;
    assert_eq!(gate.standing(&slices[0].cluster), Some(Standing::Pending));
    assert_eq!(gate.looked_at(&slices[0].cluster).await, Some(Standing::Shut { guards: false }));
    until(&gate, |standing| *standing == Standing::Shut { guards: false }).await;
    assert_eq!(host.lock().policies_behind, 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_enforces_them_is_like_one_without() {
    for accepted in [false, true] {
        let host = host(&["validatingadmissionpolicies"]);
        host.lock().policies_behind = u32::MAX;
        let slices = ["beijing", "hangzhou", "shanghai"].map(|location| slice(&format!("ke-{location}"), location));
        let gate = Gate::new(host, if accepted { UNSAFE } else { Accepted::default() }, slices.into());
        let mut running = JoinSet::new();
        let start = Instant::now();
        running.spawn(gate.clone().run());
        until(&gate, |standing| *standing != Standing::Pending).await;
        // However many there are. Time is paused: it is the sum of what is waited for.
        assert!(start.elapsed() < Duration::from_secs(11), "{:?}", start.elapsed());
        let standing = gate.standing(&"ke-beijing".parse().unwrap()).unwrap();
        assert_eq!(standing == Standing::Open, accepted, "{standing:?}");
        assert_eq!(standing.admits().is_ok(), accepted);
    }
}

#[tokio::test(start_paused = true)]
async fn policies_that_cannot_be_probed_are_not_taken_to_be_in_force() {
    for (accepted, expected) in [
        (Accepted::default(), None),
        (Accepted { unverified_policies: true, ..Accepted::default() }, Some(Standing::Unverified)),
        (UNSAFE, Some(Standing::Open)),
    ] {
        let host = host(&["validatingadmissionpolicies"]);
        host.lock().dry_runs_refused = true;
        let gate = Gate::new(host.clone(), accepted, vec![slice("ke-beijing", "beijing")]);
        let mut running = JoinSet::new();
        running.spawn(gate.clone().run());
        until(&gate, |standing| *standing != Standing::Pending).await;
        let standing = gate.standing(&"ke-beijing".parse().unwrap()).unwrap();
        match &expected {
            Some(expected) => assert_eq!(standing, *expected),
            None => {
                assert!(standing.admits().is_err_and(|reason| reason.contains("unverifiedPolicies")), "{standing:?}");
            }
        }
        // The agent tries again until it knows.
        if expected != Some(Standing::Open) {
            host.lock().dry_runs_refused = false;
            host.edit(&format!("{GROUP}/validatingadmissionpolicies/nodes.atoll.dev"), |policy| {
                policy["spec"] = json!({});
            });
            until(&gate, |standing| *standing == Standing::Shut { guards: false }).await;
        }
    }
}

#[test]
fn texts_are_quoted() {
    let guard = Guard::new([("a\"b\\".to_owned(), "c'd\n".to_owned())], [Toleration::of_key("k\"")]);
    let slice = Slice { cluster: ClusterName::new("vc").unwrap(), guard: Arc::new(guard) };
    let all = policies::all(Served { validating: Some("v1"), mutating: Some("v1") }, &[slice]);
    let guards: Vec<&Value> = all.iter().map(|object| &object.body["spec"]["variables"][0]).collect();
    assert!(guards.contains(&&json!({"name": "guard", "expression": r#"{"a\"b\\": "c'd\n"}"#})), "{guards:?}");
}
