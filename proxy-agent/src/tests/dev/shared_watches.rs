//! Watches that a feed answers. The host is watched once.

use std::sync::Arc;
use std::time::Duration;

use ops::metrics::{Build, Registry};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::exchange::Answer;
use crate::tests::agent::{ClientRequest, Open};
use crate::tests::dev::Dev;

const HUB: &str = "hub: {memoryMiB: 16, exclude: [secrets]}\n";
const EVERYWHERE: &str = "/api/v1/configmaps";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// What a watch shows of an object.
fn summary(event: &Value) -> (String, String, String) {
    let metadata = &event["object"]["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&event["type"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

fn map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}})
}

async fn version(dev: &Dev, cluster: &'static str) -> String {
    let list = dev.send(ClientRequest::get(EVERYWHERE).of(cluster)).await.expect(200).json();
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

async fn watch(dev: &Dev, cluster: &'static str, path: &str, query: &str) -> Open {
    let path = format!("{path}?watch=1&allowWatchBookmarks=true&{query}");
    let open = dev.agent.open(ClientRequest::get(&path).of(cluster)).await;
    assert_eq!(open.code, 200);
    open
}

/// The number of watches of ConfigMaps that a feed has.
fn watchers(dev: &Dev) -> usize {
    let feeds = dev.sharing.as_ref().expect("the configuration shares watches").feeds();
    let of_maps = feeds.iter().filter(|feed| feed.collection().path == EVERYWHERE);
    of_maps.map(|feed| feed.statistics().watchers).sum()
}

#[tokio::test(start_paused = true)]
async fn clusters_share_a_watch_and_see_their_own_objects() {
    let dev = Dev::configured(HUB).await;
    let from = format!("resourceVersion={}", version(&dev, "ke").await);
    let mut first = watch(&dev, "ke", EVERYWHERE, &from).await;
    assert_eq!(watchers(&dev), 0, "one cluster needs no feed");
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut newest = watch(&dev, "hz", EVERYWHERE, initial).await;
    let mut any = watch(&dev, "ke", EVERYWHERE, &format!("{initial}&resourceVersion=0")).await;
    let mut own = watch(&dev, "ke", MAPS, &format!("{initial}&resourceVersion=0")).await;
    assert_eq!(watchers(&dev), 3);
    for open in [&mut newest, &mut any, &mut own] {
        loop {
            let event = open.line().await;
            if event["type"] == "BOOKMARK" {
                assert_eq!(event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
                break;
            }
            assert_eq!(summary(&event).2, "kube-root-ca.crt", "{event}");
        }
    }
    dev.send(ClientRequest::post(MAPS, &map("a"))).await.expect(201);
    dev.send(ClientRequest::post(MAPS, &map("b")).of("hz")).await.expect(201);
    let added = |name: &str| ("ADDED".to_owned(), "default".to_owned(), name.to_owned());
    let from_host = first.line().await;
    assert_eq!(summary(&from_host), added("a"));
    for open in [&mut any, &mut own] {
        assert_eq!(open.line().await, from_host, "the same as from the host");
    }
    assert_eq!(summary(&newest.line().await), added("b"));
    dev.send(ClientRequest::delete(&format!("{MAPS}/a"))).await.expect(200);
    let from_host = first.line().await;
    assert_eq!(from_host["type"], "DELETED");
    assert_eq!(any.line().await, from_host);
    // Quiet watches get bookmarks.
    assert_eq!(summary(&newest.line().await).0, "BOOKMARK");
    drop((newest, any, own));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(watchers(&dev), 0, "a watch ends with its client");
}

/// The initial events of a watch, without the mark at their end, sorted.
async fn initial(dev: &Dev, cluster: &'static str, path: &str) -> (Open, Vec<String>) {
    let mut open = watch(dev, cluster, path, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan").await;
    let mut events = Vec::new();
    loop {
        let event = open.line().await;
        if event["type"] == "BOOKMARK" {
            events.sort();
            return (open, events);
        }
        events.push(event.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn watches_of_what_has_no_namespace_are_shared() {
    let dev = Dev::configured(HUB).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let own = json!({
        "kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "new"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": [],
    });
    for (path, feed) in [
        ("/api/v1/nodes", "/api/v1/nodes"),
        ("/api/v1/namespaces", "/api/v1/namespaces"),
        (&format!("{rbac}/clusterroles"), &format!("{rbac}/clusterroles")),
        // They are RoleBindings of the root namespace.
        (&format!("{rbac}/clusterrolebindings"), &format!("{rbac}/rolebindings")),
        ("/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/storageclasses"),
    ] {
        let (_first, from_host) = initial(&dev, "ke", path).await;
        let (_second, of_other) = initial(&dev, "hz", path).await;
        let (_third, from_feed) = initial(&dev, "ke", path).await;
        assert_eq!(from_feed, from_host, "{path}");
        let feeds = dev.sharing.as_ref().unwrap().feeds();
        let watchers = feeds.iter().find(|open| open.collection().path == feed).map(|feed| feed.statistics().watchers);
        assert_eq!(watchers, Some(2), "{path}");
        if path.ends_with("/nodes") {
            assert_ne!(of_other, from_feed);
        }
    }
    let (mut bindings, _) = initial(&dev, "ke", &format!("{rbac}/clusterrolebindings")).await;
    let (mut others, _) = initial(&dev, "hz", &format!("{rbac}/clusterrolebindings")).await;
    dev.send(ClientRequest::post(&format!("{rbac}/clusterrolebindings"), &own)).await.expect(201);
    assert_eq!(summary(&bindings.line().await), ("ADDED".to_owned(), String::new(), "new".to_owned()));
    assert_eq!(summary(&others.line().await).0, "BOOKMARK", "another cluster");
    let (mut namespaces, _) = initial(&dev, "ke", "/api/v1/namespaces").await;
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new"}});
    dev.send(ClientRequest::post("/api/v1/namespaces", &namespace)).await.expect(201);
    assert_eq!(summary(&namespaces.line().await), ("ADDED".to_owned(), String::new(), "new".to_owned()));
}

/// The items of a list, sorted, and its version.
async fn listed(dev: &Dev, cluster: &'static str, path: &str) -> (Value, u64) {
    let mut list = dev.send(ClientRequest::get(path).of(cluster)).await.expect(200).json();
    let version = list["metadata"]["resourceVersion"].take().as_str().unwrap().parse().unwrap();
    list["items"].as_array_mut().unwrap().sort_by_key(Value::to_string);
    (list, version)
}

/// The lists of clients that list before they watch.
#[tokio::test(start_paused = true)]
async fn lists_of_any_version_are_those_of_the_host() {
    let dev = Dev::configured(HUB).await;
    dev.send(ClientRequest::post(MAPS, &map("a"))).await.expect(201);
    dev.send(ClientRequest::post(MAPS, &map("b")).of("hz")).await.expect(201);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let paths = [
        EVERYWHERE,
        MAPS,
        &format!("{MAPS}?fieldSelector=metadata.name%3Da"),
        "/api/v1/nodes",
        "/api/v1/namespaces",
        &format!("{rbac}/rolebindings"),
        &format!("{rbac}/clusterrolebindings"),
        &format!("{rbac}/clusterroles"),
        "/apis/storage.k8s.io/v1/storageclasses",
    ];
    let mut open = Vec::new();
    for path in paths {
        for cluster in ["ke", "hz"] {
            open.push(initial(&dev, cluster, path.split_once('?').map_or(path, |(path, _)| path)).await);
        }
    }
    let registry = Registry::new(Build { component: "test", version: "0" });
    let (answers, reviews) = (registry.counters("answers", "Answers."), registry.counters("reviews", "Reviews."));
    dev.sharing.as_ref().unwrap().count_in(answers.clone(), reviews);
    let shared = || answers.with(&Answer { answer: "list" }).get();
    for path in paths {
        for cluster in ["ke", "hz"] {
            let before = shared();
            let (newest, version) = listed(&dev, cluster, path).await;
            let separator = if path.contains('?') { '&' } else { '?' };
            let any = format!("{path}{separator}resourceVersion=0&limit=500");
            let (any, version_of_any) = listed(&dev, cluster, &any).await;
            assert_eq!(any, newest, "{path}");
            assert!(version_of_any <= version);
            assert_eq!(shared(), before + 1, "{path}");
        }
    }
    let before = shared();
    let refused = dev.send(ClientRequest::get(&format!("{EVERYWHERE}?resourceVersion=0")).by("jane")).await;
    assert!(refused.expect(403).json()["message"].as_str().unwrap().contains("cannot list resource"));
    let secrets = dev.send(ClientRequest::get("/api/v1/secrets?resourceVersion=0")).await;
    assert_eq!(secrets.expect(200).json()["kind"], "SecretList");
    assert_eq!(shared(), before, "the host answers these");
}

/// A virtual cluster has seats for three new watches at a time. A watch that waits for the feed needs none.
#[tokio::test(start_paused = true)]
async fn watches_that_wait_for_the_newest_state_occupy_no_seats() {
    let dev = Arc::new(Dev::configured(HUB).await);
    let _feed = [initial(&dev, "ke", EVERYWHERE).await, initial(&dev, "hz", EVERYWHERE).await];
    let begun = Instant::now();
    let mut begin = JoinSet::new();
    for _ in 0..30 {
        let dev = Arc::clone(&dev);
        begin.spawn(async move { initial(&dev, "ke", EVERYWHERE).await });
    }
    let informers = begin.join_all().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(watchers(&dev), informers.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn excluded_resources_and_other_forms_are_watched_at_the_host() {
    let dev = Dev::configured(HUB).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for cluster in ["ke", "hz", "ke"] {
        let secrets = ClientRequest::get("/api/v1/secrets?watch=1&resourceVersion=0").of(cluster);
        assert_eq!(dev.agent.open(secrets).await.code, 200);
        let maps = ClientRequest::get(&format!("{EVERYWHERE}?watch=1&resourceVersion=0")).of(cluster);
        assert_eq!(dev.agent.open(maps.header("accept", table)).await.code, 200);
    }
    assert!(dev.sharing.as_ref().unwrap().feeds().is_empty());
}

/// Lets the user `jane` read in the namespace `default`.
async fn let_jane_view(dev: &Dev) {
    let binding = json!({
        "kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    dev.send(ClientRequest::post(BINDINGS, &binding)).await.expect(201);
}

/// Waits until the agent watches RBAC of the host.
async fn until_rights_are_watched(dev: &Dev) {
    let sharing = dev.sharing.as_ref().unwrap();
    for _ in 0..100 {
        sleep(Duration::from_millis(100)).await;
        if sharing.current_rights() == 4 {
            return;
        }
    }
    panic!("{} of 4 watches are current", sharing.current_rights());
}

#[tokio::test(start_paused = true)]
async fn the_next_watch_of_a_feed_needs_no_review() {
    let dev = Dev::configured(HUB).await;
    let any = "resourceVersion=0";
    let _others = [watch(&dev, "ke", EVERYWHERE, any).await, watch(&dev, "hz", EVERYWHERE, any).await];
    until_rights_are_watched(&dev).await;
    // The first lists of RBAC count as a change, and soon after a change, reviews are cached for seconds only.
    sleep(Duration::from_secs(15)).await;
    let served = watchers(&dev);
    let mut last = watch(&dev, "ke", EVERYWHERE, any).await;
    assert_eq!(watchers(&dev), served + 1);
    let reviews = dev.authz.reviews_sent();
    for _ in 0..3 {
        sleep(Duration::from_secs(10)).await;
        last = watch(&dev, "ke", EVERYWHERE, any).await;
    }
    assert_eq!(dev.authz.reviews_sent(), reviews);
    drop(last);
    // The agent sends it to the host with its own identity, and checks nothing while it is open.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let at_host = ClientRequest::get(&format!("{EVERYWHERE}?watch=1&{any}")).header("accept", table);
    assert_eq!(dev.agent.open(at_host).await.code, 200);
    assert_eq!(dev.authz.reviews_sent(), reviews + 1);
}

/// The agent sends it to the host with its own identity, for a caller who may only read in this namespace.
#[tokio::test(start_paused = true)]
async fn a_watch_of_projected_objects_needs_the_right_in_its_namespace() {
    let dev = Dev::configured(HUB).await;
    let path = "/api/v1/namespaces/default/services?watch=1&resourceVersion=0";
    dev.send(ClientRequest::get(path).by("jane")).await.expect(403);
    let_jane_view(&dev).await;
    assert_eq!(dev.agent.open(ClientRequest::get(path).by("jane")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_right_ends_a_quiet_watch() {
    let dev = Dev::configured(HUB).await;
    let_jane_view(&dev).await;
    let any = "resourceVersion=0";
    let _others = [watch(&dev, "ke", EVERYWHERE, any).await, watch(&dev, "hz", EVERYWHERE, any).await];
    let path = format!("{MAPS}?watch=1&resourceVersion={}", version(&dev, "ke").await);
    let everywhere = format!("{EVERYWHERE}?watch=1&resourceVersion=0");
    dev.send(ClientRequest::get(&everywhere).by("jane")).await.expect(403);
    let before = watchers(&dev);
    let mut jane = dev.agent.open(ClientRequest::get(&path).by("jane")).await;
    assert_eq!((jane.code, watchers(&dev)), (200, before + 1));
    dev.send(ClientRequest::post(MAPS, &map("a"))).await.expect(201);
    assert_eq!(summary(&jane.line().await).2, "a");
    until_rights_are_watched(&dev).await;
    dev.send(ClientRequest::delete(&format!("{BINDINGS}/jane"))).await.expect(200);
    // No event comes.
    let rest = timeout(Duration::from_secs(5), jane.rest()).await.expect("the watch ends");
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(watchers(&dev), before);
    dev.send(ClientRequest::get(&path).by("jane")).await.expect(403);
}
