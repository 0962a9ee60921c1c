use std::collections::BTreeMap;

use rewrite::name::ROOT_LABEL;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::*;
use crate::config::Shares;
use crate::namespaces::{FULL, Namespaces};
use crate::provisioner::testing::{FakeHost, State};
use crate::usage::Held;

const ROOT: &str = "/api/v1/namespaces/atoll-root-ke";

/// A virtual cluster `ke` that may store two objects of each resource.
fn usage(host: &FakeHost, running: &mut JoinSet<()>) -> Arc<Usage> {
    let cluster = ClusterName::new("ke").unwrap();
    let namespaces = Arc::new(Namespaces::new([cluster.clone()]));
    let usage = Arc::new(Usage::new(Arc::clone(&namespaces)));
    usage.limit(HashMap::from([(cluster, Shares { objects: 2, ..Shares::default() })]));
    usage.accounts().begin(["pods".into()]);
    let following = host.follow::<Value>(PATH, "");
    running.spawn(async move { namespaces.follow(following).await });
    running.spawn(declare(Arc::clone(&usage), host.clone()));
    usage
}

fn host() -> FakeHost {
    let host = FakeHost::new();
    let metadata = json!({"name": "atoll-root-ke", "labels": {ROOT_LABEL: "ke"}});
    host.put(ROOT, json!({"metadata": metadata}));
    host
}

fn hold(usage: &Usage, objects: u64) {
    let all = HashMap::from([("default-ke".into(), Held { objects, bytes: 0 })]);
    usage.accounts().replace_namespaced(&"pods".into(), all, |_| Some(ClusterName::new("ke").unwrap()));
}

/// The clock is paused, and runs while nothing else does.
async fn until(host: &FakeHost, is_so: impl Fn(&State) -> bool) {
    timeout(Duration::from_secs(3600), host.until(is_so)).await.expect("it happens within an hour");
}

fn declared(state: &State) -> &Value {
    &state.objects[ROOT]["metadata"]["annotations"][FULL]
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_declared_at_once_and_withdrawn_later() {
    let (host, mut running) = (host(), JoinSet::new());
    let usage = usage(&host, &mut running);
    hold(&usage, 2);
    until(&host, |state| declared(state) == "pods=2").await;
    let version = |host: &FakeHost| host.lock().objects[ROOT]["metadata"]["resourceVersion"].clone();
    let written = version(&host);

    // One that stays at its limit writes nothing.
    for objects in [1, 2, 3, 1, 2] {
        hold(&usage, objects);
        sleep(SETTLED * 9 / 10).await;
    }
    // Before everything is listed, nothing is known to be below its limit.
    hold(&usage, 1);
    sleep(2 * SETTLED).await;
    assert_eq!(version(&host), written);
    usage.accounts().listed("pods");
    until(&host, |state| declared(state).is_null()).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing() {
    let (host, mut running) = (host(), JoinSet::new());
    host.edit(ROOT, |root| root["metadata"]["annotations"] = json!({FULL: "pods=2"}));
    let before: BTreeMap<_, _> = host.lock().objects.clone();
    let usage = usage(&host, &mut running);
    sleep(SETTLED).await;
    hold(&usage, 2);
    usage.accounts().listed("pods");
    sleep(2 * SETTLED).await;
    assert_eq!(host.lock().objects, before);
}

/// The other agents of the host know what was written before.
#[tokio::test(start_paused = true)]
async fn an_agent_that_has_just_started_keeps_the_limit_for_recent_versions() {
    let (host, mut running) = (host(), JoinSet::new());
    host.edit(ROOT, |root| root["metadata"]["annotations"] = json!({FULL: "written=7"}));
    let usage = usage(&host, &mut running);
    usage.accounts().listed("pods");
    sleep(Duration::from_secs(10 * 60)).await;
    assert_eq!(declared(&host.lock()), "written=7");
    let begun = Instant::now();
    until(&host, |state| declared(state).is_null()).await;
    assert!(begun.elapsed() < Duration::from_secs(3 * 60), "{:?}", begun.elapsed());
}

/// An agent that has started later may not see all that the host stores.
#[tokio::test(start_paused = true)]
async fn agents_that_disagree_write_less_and_less() {
    let (host, mut running) = (host(), JoinSet::new());
    let usage = usage(&host, &mut running);
    hold(&usage, 1);
    usage.accounts().listed("pods");
    for doublings in 0..4 {
        host.edit(ROOT, |root| root["metadata"]["annotations"] = json!({FULL: "storage=7"}));
        let declared_at = Instant::now();
        until(&host, |state| declared(state).is_null()).await;
        let waited = declared_at.elapsed().as_secs();
        let settled = SETTLED.as_secs() << doublings;
        assert!((settled..settled + 4).contains(&waited), "{waited} s instead of {settled}");
    }
    // When it has reached the limit itself, it is the one that knows.
    hold(&usage, 2);
    until(&host, |state| declared(state) == "pods=2").await;
    sleep(SETTLED).await;
    hold(&usage, 1);
    let below = Instant::now();
    until(&host, |state| declared(state).is_null()).await;
    assert!(below.elapsed() < SETTLED + Duration::from_secs(4), "{:?}", below.elapsed());
}

/// A limit that is reached does not withdraw another one.
#[tokio::test(start_paused = true)]
async fn other_limits_stay_for_their_time() {
    let (host, mut running) = (host(), JoinSet::new());
    host.edit(ROOT, |root| root["metadata"]["annotations"] = json!({FULL: "secrets=7"}));
    let usage = usage(&host, &mut running);
    usage.accounts().listed("pods");
    hold(&usage, 2);
    until(&host, |state| declared(state) == "pods=2,secrets=7").await;
    until(&host, |state| declared(state) == "pods=2").await;
}
