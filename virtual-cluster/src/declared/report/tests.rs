use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::{FINALIZER, InForce, Objects, Others, Reach, accept, follow};
use super::*;
use crate::provisioner::ProvisionState;
use crate::provisioner::testing::FakeHost;
use host_client::api::HostApi;

/// Longer than all waits.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);

/// The delay of deletions.
const DELAY: Duration = Duration::from_secs(120);

/// The facts of every cluster, and whether clusters are leaving.
#[derive(Clone)]
struct Observed(Arc<Mutex<(Facts, bool)>>);

impl Observe for Observed {
    fn facts(&self) -> HashMap<String, Facts> {
        HashMap::from([("a".to_owned(), self.0.lock().unwrap().0.clone())])
    }

    fn is_leaving(&self, _: &ClusterName) -> bool {
        self.0.lock().unwrap().1
    }
}

impl Observed {
    fn new() -> Self {
        let facts = Facts {
            provisioned: ProvisionState::Provisioned,
            not_admitted: None,
            weakness: None,
            reach: Reach::Served { refused: None },
            endpoint: None,
            node_selector: "a=b".to_owned(),
            node_label_failure: None,
            nodes: 2,
            namespaces: 4,
            shared_with: std::collections::BTreeMap::new(),
            last_error: None,
            kubeconfig: None,
        };
        Self(Arc::new(Mutex::new((facts, false))))
    }

    fn set(&self, change: impl FnOnce(&mut (Facts, bool))) {
        change(&mut self.0.lock().unwrap());
    }
}

fn path() -> String {
    format!("{PATH}/a")
}

/// The path under which the host in memory stores what is applied to the status.
fn status_path() -> String {
    format!("{PATH}/a/status")
}

fn put(host: &FakeHost, policy: &str) {
    // For Events.
    host.put("/api/v1/namespaces/default", json!({"metadata": {"name": "default"}}));
    let spec = json!({"nodeSelector": {"location": "beijing"}, "deletionPolicy": policy});
    host.put(&path(), json!({"metadata": {"name": "a", "generation": 1, "finalizers": []}, "spec": spec}));
}

fn delete(host: &FakeHost) {
    host.edit(&path(), |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
}

fn reason(host: &FakeHost) -> Value {
    let state = host.lock();
    state.objects.get(&status_path()).map_or(Value::Null, |object| object["status"]["conditions"][0]["reason"].clone())
}

fn events(host: &FakeHost) -> Vec<String> {
    let state = host.lock();
    let events = state.objects.iter().filter(|(path, _)| path.contains("/events/"));
    events.map(|(_, event)| format!("{} {}", event["type"], event["reason"]).replace('"', "")).collect()
}

/// Runs the loop until the test ends. The host in memory stores a status elsewhere, so it is copied to the object, as the host does.
async fn with(host: &FakeHost, observed: &Observed, test: impl Future<Output = ()>) {
    let (objects, judged) = (watch::Sender::new(None), watch::Sender::new(None));
    let mut followed = objects.subscribe();
    let judge = async {
        let mut before = InForce::new();
        while let Ok(()) = followed.changed().await {
            let objects: Option<Arc<Objects>> = followed.borrow_and_update().clone();
            let Some(objects) = objects else { continue };
            let accepted = accept(&Others::default(), &before, &objects);
            before = accepted.clusters;
            judged.send_replace(Some(Judged { objects, verdicts: accepted.verdicts.into_iter().collect() }));
        }
    };
    let copy = async {
        loop {
            let differs = |host: &FakeHost| {
                let state = host.lock();
                let status = state.objects.get(&status_path()).map(|object| object["status"].clone());
                status.filter(|status| state.objects.get(&path()).is_some_and(|object| object["status"] != *status))
            };
            host.until(|state| {
                let status = state.objects.get(&status_path()).map(|object| &object["status"]);
                state
                    .objects
                    .get(&path())
                    .is_some_and(|object| status.is_some_and(|status| object["status"] != *status))
            })
            .await;
            if let Some(status) = differs(host) {
                host.edit(&path(), |object| object["status"] = status);
            }
        }
    };
    tokio::select! {
        () = follow(host.follow::<Declared>(PATH, ""), &objects) => {}
        () = judge => {}
        () = copy => {}
        () = Report::new(host.clone(), observed.clone(), DELAY).run(judged.subscribe()) => {}
        tested = timeout(TEST_TIMEOUT, test) => tested.expect("what was waited for has not come"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_gets_the_finalizer_and_then_a_status() {
    let (host, observed) = (FakeHost::new(), Observed::new());
    put(&host, "Orphan");
    with(&host, &observed, async {
        host.until(|state| state.objects[&path()]["metadata"]["finalizers"] == json!([FINALIZER])).await;
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "True").await;
        host.until(|state| state.objects.keys().any(|path| path.contains("/events/"))).await;
        assert_eq!(events(&host), ["Normal Serving"]);
        observed.set(|(facts, _)| facts.reach = Reach::Refused("not granted".into()));
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "False").await;
        host.until(|state| state.objects.keys().filter(|path| path.contains("/events/")).count() == 2).await;
        assert_eq!(reason(&host), "RefusedByProxyServer");
        assert!(events(&host).contains(&"Warning RefusedByProxyServer".to_owned()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_another_replica_has_written_stays_for_a_while() {
    let (host, observed) = (FakeHost::new(), Observed::new());
    put(&host, "Orphan");
    with(&host, &observed, async {
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "True").await;
        let since = Instant::now();
        observed.set(|(facts, _)| facts.reach = Reach::Nowhere("refused".into()));
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "False").await;
        assert!(since.elapsed() >= PATIENCE, "{:?}", since.elapsed());
        assert_eq!(reason(&host), "NoTunnel");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_released_and_its_namespaces_stay() {
    let (host, observed) = (FakeHost::new(), Observed::new());
    put(&host, "Orphan");
    let namespace = "/api/v1/namespaces/edge-a";
    let labels = json!({"atoll.dev/virtual-cluster": "a", "atoll.dev/namespace": "edge"});
    host.put(namespace, json!({"metadata": {"name": "edge-a", "labels": labels}}));
    with(&host, &observed, async {
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "True").await;
        delete(&host);
        host.until(|state| !state.objects.contains_key(&path())).await;
        host.until(|state| state.objects.values().any(|object| object["reason"] == "Orphaned")).await;
        assert!(host.lock().objects[namespace]["metadata"]["deletionTimestamp"].is_null());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_stays_until_its_namespaces_are_gone() {
    let (host, observed) = (FakeHost::new(), Observed::new());
    put(&host, "Delete");
    let namespace = "/api/v1/namespaces/edge-a";
    let labels = json!({"atoll.dev/virtual-cluster": "a", "atoll.dev/namespace": "edge"});
    host.put(namespace, json!({"metadata": {"name": "edge-a", "labels": labels}}));
    with(&host, &observed, async {
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "True").await;
        observed.set(|(_, is_leaving)| *is_leaving = true);
        delete(&host);
        host.until(|state| !state.objects[namespace]["metadata"]["deletionTimestamp"].is_null()).await;
        host.until(|state| {
            let message = &state.objects[&path()]["status"]["conditions"][0]["message"];
            message
                .as_str()
                .is_some_and(|message| message.starts_with("1 of its namespaces") && message.contains("edge-a"))
        })
        .await;
        host.empty("edge-a", &[]);
        // The provisioner still works for the cluster.
        host.until(|state| {
            let message = &state.objects[&path()]["status"]["conditions"][0]["message"];
            message.as_str().is_some_and(|message| message.starts_with("its root namespace"))
        })
        .await;
        observed.set(|(_, is_leaving)| *is_leaving = false);
        host.until(|state| !state.objects.contains_key(&path())).await;
        host.until(|state| state.objects.values().any(|object| object["reason"] == "Deleted")).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_moves_to_the_file_of_another_replica_keeps_its_namespaces() {
    let (host, observed) = (FakeHost::new(), Observed::new());
    put(&host, "Delete");
    let namespace = "/api/v1/namespaces/edge-a";
    let labels = json!({"atoll.dev/virtual-cluster": "a", "atoll.dev/namespace": "edge"});
    host.put(namespace, json!({"metadata": {"name": "edge-a", "labels": labels}}));
    with(&host, &observed, async {
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "True").await;
        // The clock of the host is ahead.
        host.edit(&path(), |object| object["metadata"]["deletionTimestamp"] = json!("9000-01-01T00:00:00Z"));
        let since = Instant::now();
        let is_waiting = |message: &Value| message.as_str().is_some_and(|it| it.contains("after 9000-01-01T00:02:00Z"));
        host.until(|state| is_waiting(&state.objects[&path()]["status"]["conditions"][0]["message"])).await;
        let event = |object: &Value| object["reason"] == "Deleting" && is_waiting(&object["message"]);
        host.until(|state| state.objects.values().any(event)).await;
        host.until(|state| !state.objects[namespace]["metadata"]["deletionTimestamp"].is_null()).await;
        assert!(since.elapsed() >= DELAY, "{:?}", since.elapsed());
    })
    .await;
}

/// The operator has upgraded the agent, and has not applied the new definition of the kind.
#[tokio::test(start_paused = true)]
async fn an_older_definition_of_the_kind_gets_a_status_without_the_new_fields() {
    let (host, observed) = (FakeHost::new(), Observed::new());
    host.lock().undeclared = Some("endpoint");
    observed.set(|(facts, _)| facts.endpoint = Some("https://a.atoll.internal:443".to_owned()));
    put(&host, "Orphan");
    with(&host, &observed, async {
        host.until(|state| state.objects[&path()]["status"]["conditions"][0]["status"] == "True").await;
        assert!(host.lock().objects[&path()]["status"]["endpoint"].is_null());
        host.lock().undeclared = None;
        host.until(|state| !state.objects[&path()]["status"]["endpoint"].is_null()).await;
    })
    .await;
}
