use ops::drain::Tasks;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::super::follow;
use super::super::super::object::Declared;
use super::super::{PATH as SETS_PATH, SET_LABEL};
use super::*;
use crate::provisioner::testing::FakeHost;

/// Longer than all waits.
const TEST_TIMEOUT: Duration = Duration::from_secs(3000);

fn put_node(host: &FakeHost, name: &str, site: &str) {
    let path = format!("{}/{name}", crate::nodes::PATH);
    host.put(&path, json!({"metadata": {"name": name, "labels": {"site": site}}}));
}

fn put_set(host: &FakeHost, spec: &Value) {
    host.put(
        &format!("{SETS_PATH}/sites"),
        json!({"metadata": {"name": "sites", "uid": "1", "generation": 1}, "spec": spec}),
    );
}

fn cluster(name: &str) -> String {
    format!("{CLUSTERS_PATH}/{name}")
}

/// A loop for this host, with all that it follows.
fn start(host: &FakeHost) -> Tasks {
    host.put("/api/v1/namespaces/default", json!({"metadata": {"name": "default"}}));
    let (nodes, tasks) = (Arc::new(AllNodes::default()), Tasks::new());
    let (sets, objects) = (watch::Sender::new(None), watch::Sender::new(None));
    let run = Sets::new(host.clone(), Arc::clone(&nodes)).run(sets.subscribe(), objects.subscribe());
    let (following_nodes, following_sets) =
        (host.follow::<Value>(crate::nodes::PATH, ""), host.follow::<ClusterSet>(SETS_PATH, ""));
    let following_objects = host.follow::<Declared>(CLUSTERS_PATH, "");
    tasks.spawn_until_cancelled("nodes", async move { nodes.follow(following_nodes).await });
    tasks.spawn_until_cancelled("sets", async move { follow(following_sets, &sets).await });
    tasks.spawn_until_cancelled("objects", async move { follow(following_objects, &objects).await });
    tasks.spawn_until_cancelled("run", run);
    tasks
}

fn message(host: &FakeHost) -> String {
    let state = host.lock();
    let status = state.objects.get(&format!("{SETS_PATH}/sites/status"));
    status.map(|status| status["status"]["conditions"][0]["message"].to_string()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn sites_come_and_go() {
    let host = FakeHost::new();
    for (name, site) in [("b1", "beijing"), ("b2", "beijing"), ("h1", "hangzhou")] {
        put_node(&host, name, site);
    }
    put_set(
        &host,
        &json!({"nodeLabel": "site", "deletionPolicy": "Delete", "template": {"spec": {"nodeSelector": {"a": "b"}}}}),
    );
    let _tasks = start(&host);
    let steps = async {
        for name in ["beijing", "hangzhou"] {
            host.until(|state| state.objects.contains_key(&cluster(name))).await;
        }
        let beijing = host.lock().objects[&cluster("beijing")].clone();
        assert_eq!(beijing["spec"]["nodeSelector"], json!({"a": "b", "site": "beijing"}));
        assert_eq!(beijing["metadata"]["labels"][SET_LABEL], "sites");

        // A new site.
        put_node(&host, "s1", "shanghai");
        host.until(|state| state.objects.contains_key(&cluster("shanghai"))).await;
        // Another template.
        put_set(&host, &json!({"nodeLabel": "site", "deletionPolicy": "Delete"}));
        host.until(|state| state.objects[&cluster("beijing")]["spec"] == json!({"nodeSelector": {"site": "beijing"}}))
            .await;

        // The node loses its label for a while, and then for ever.
        let before = Instant::now();
        put_node(&host, "s1", "hangzhou");
        sleep(Duration::from_secs(200)).await;
        put_node(&host, "s1", "shanghai");
        sleep(Duration::from_secs(200)).await;
        assert!(host.lock().objects.contains_key(&cluster("shanghai")));
        put_node(&host, "s1", "hangzhou");
        host.until(|state| !state.objects.contains_key(&cluster("shanghai"))).await;
        assert!(before.elapsed() >= Duration::from_secs(700), "{:?}", before.elapsed());
        assert_eq!(host.lock().objects.keys().filter(|path| path.starts_with(&cluster(""))).count(), 2);
    };
    timeout(TEST_TIMEOUT, steps).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn orphans_stay() {
    let host = FakeHost::new();
    put_node(&host, "b1", "beijing");
    put_set(&host, &json!({"nodeLabel": "site", "deletionDelaySeconds": 0}));
    let _tasks = start(&host);
    let steps = async {
        host.until(|state| state.objects.contains_key(&cluster("beijing"))).await;
        put_node(&host, "b1", "hangzhou");
        host.until(|state| state.objects.contains_key(&cluster("hangzhou"))).await;
        sleep(Duration::from_secs(60)).await;
        assert!(host.lock().objects.contains_key(&cluster("beijing")));
        assert!(message(&host).contains("these VirtualClusters stay"), "{}", message(&host));
    };
    timeout(TEST_TIMEOUT, steps).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn groups_are_clusters_if_there_are_any() {
    let host = FakeHost::new();
    put_set(&host, &json!({"nodeGroups": {}, "namePrefix": "ke-"}));
    let _tasks = start(&host);
    let steps = async {
        let group = |name: &str| format!("{GROUPS_PATH}/{name}");
        host.put(&group("north"), json!({"metadata": {"name": "north"}}));
        host.until(|state| state.objects.contains_key(&cluster("ke-north"))).await;
        assert_eq!(host.lock().objects[&cluster("ke-north")]["spec"], json!({"nodeGroup": "north"}));
    };
    timeout(TEST_TIMEOUT, steps).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_stays_as_it_is() {
    let host = FakeHost::new();
    let (sets, objects) = (ByName::default(), Objects::default());
    let mut run = Sets::new(host.clone(), Arc::default());
    run.round(&sets, &objects).await;
    let foreign = json!({"metadata": {"name": "north", "labels": {"a": "b"}}, "spec": {"nodeGroup": "other"}});
    // The loop has not seen it yet.
    host.put(&cluster("north"), foreign);
    let stored = host.lock().objects[&cluster("north")].clone();
    host.put("/api/v1/namespaces/default", json!({"metadata": {"name": "default"}}));
    host.put(&format!("{GROUPS_PATH}/north"), json!({"metadata": {"name": "north"}}));
    let set = json!({"metadata": {"name": "sites", "uid": "1", "generation": 1}, "spec": {"nodeGroups": {}}});
    let set: ClusterSet = serde_json::from_value(set).unwrap();
    run.round(&[("sites".to_owned(), Arc::new(set))].into(), &objects).await;
    assert_eq!(host.lock().objects[&cluster("north")], stored);
    assert!(message(&host).contains("north: "), "{}", message(&host));
}
