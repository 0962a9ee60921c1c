//! Requests that their client resets before the response.

use std::time::Duration;

use serde_json::json;
use test_host::{Expected, Reply, expect};
use tokio::time::{Instant, sleep, timeout};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

/// Longer than an agent needs for anything here.
const MINUTE: Duration = Duration::from_secs(60);

/// Shorter than the time limit of anything here.
const MOMENT: Duration = Duration::from_millis(100);

/// The time that a slow host takes for a response.
const SLOW: Duration = Duration::from_secs(10);

const MAPS: &str = "/api/v1/namespaces/edge/configmaps";
const MAPS_OF_HOST: &str = "/api/v1/namespaces/edge-ke/configmaps";
const POD: &str = "/api/v1/namespaces/edge/pods/a";
const POD_OF_HOST: &str = "/api/v1/namespaces/edge-ke/pods/a";

fn upgrade(target: &str) -> ClientRequest {
    ClientRequest::get(target).header("sec-websocket-version", "13").header("sec-websocket-key", "a2V5")
}

impl Scripted {
    /// Makes a request that the host does not answer, and leaves when the host has got it.
    async fn abandon(&self, request: ClientRequest, expected: Expected) {
        let described = format!("{request:?}");
        self.on(expected, Reply::never());
        let waiting = self.agent.begin(request).await;
        self.until_unanswered(1).await;
        waiting.reset();
        timeout(MOMENT, self.until_unanswered(0)).await.expect(&described);
    }
}

/// Otherwise, such requests would occupy the connections to the host for ever: an API server has no time limit for the
/// servers of pods, logs and watches.
#[tokio::test(start_paused = true)]
async fn the_host_learns_that_the_client_has_left() {
    let agent = Scripted::new().await;
    let below = |suffix: &str| (format!("{POD}{suffix}"), format!("{POD_OF_HOST}{suffix}"));
    for (target, host) in [below("/log?follow=true"), below("/log"), below("/proxy/slow"), below("")] {
        agent.abandon(ClientRequest::get(&target), expect("GET", &host)).await;
    }
    let (target, host) = below("/proxy/slow");
    for method in ["POST", "PUT", "DELETE"] {
        agent.abandon(ClientRequest::new(method, &target).typed("text/plain", "data"), expect(method, &host)).await;
    }
    let service = ("/api/v1/namespaces/edge/services/a/proxy/", "/api/v1/namespaces/edge-ke/services/a/proxy/");
    agent.abandon(ClientRequest::get(service.0), expect("GET", service.1)).await;
    for query in ["?watch=1", "?watch=1&resourceVersion=5"] {
        agent
            .abandon(ClientRequest::get(&format!("{MAPS}{query}")), expect("GET", &format!("{MAPS_OF_HOST}{query}")))
            .await;
    }
    agent.check();
}

#[tokio::test(start_paused = true)]
async fn the_host_learns_that_the_client_of_an_upgrade_has_left() {
    let agent = Scripted::new().await;
    for suffix in ["/exec?command=sh", "/attach", "/portforward", "/proxy/slow"] {
        agent.on(expect("GET", &format!("{POD_OF_HOST}{suffix}")), Reply::never());
        let waiting = agent.agent.begin_upgrade(upgrade(&format!("{POD}{suffix}")), "websocket").await;
        agent.until_unanswered(1).await;
        waiting.reset();
        timeout(MOMENT, agent.until_unanswered(0)).await.expect(suffix);
    }
    agent.check();
}

/// Nothing has been written yet, and the write is not sent.
#[tokio::test(start_paused = true)]
async fn a_write_ends_while_its_right_is_reviewed() {
    let agent = Scripted::new().await;
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    let review = expect("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    agent.abandon(ClientRequest::post(MAPS, &map), review).await;
    sleep(MINUTE).await;
    assert_eq!(agent.transcript(), ["review vc:ke:admin: create configmaps in edge-ke"]);
}

/// The host may execute a write although it was reset. Then the agent does what follows.
#[tokio::test(start_paused = true)]
async fn a_write_is_carried_to_its_end() {
    let agent = Scripted::new().await;
    let new = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new"}});
    let stored = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new-ke", "uid": "n",
        "resourceVersion": "5", "labels": {"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new"}}});
    agent.on(expect("POST", "/api/v1/namespaces"), Reply::json(201, &stored).after(SLOW));
    let is_mirror = |path: &str| path.ends_with("/namespaces/new-ke/rolebindings");
    agent.always(move |received| is_mirror(received.path()).then(|| Reply::json(201, &received.json())));
    let waiting = agent.agent.begin(ClientRequest::post("/api/v1/namespaces", &new)).await;
    sleep(SLOW / 2).await;
    waiting.reset();
    agent.transcript();
    sleep(MINUTE).await;
    agent.check();
    let received = agent.take_received();
    assert!(received.iter().any(|received| is_mirror(received.path())), "the new namespace has no mirrors");
}

/// The host works on a list whether its client waits or not, so its seats are not free before the response.
#[tokio::test(start_paused = true)]
async fn a_list_occupies_its_seats_until_the_host_responds() {
    let agent = Scripted::new().await;
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []});
    for _ in 0..3 {
        agent.on(expect("GET", MAPS_OF_HOST), Reply::json(200, &list).after(SLOW));
        let waiting = agent.agent.begin(ClientRequest::get(MAPS)).await;
        sleep(Duration::from_secs(1)).await;
        waiting.reset();
    }
    let begun = Instant::now();
    agent.exchange(ClientRequest::get(MAPS), expect("GET", MAPS_OF_HOST), Reply::json(200, &list)).await.expect(200);
    assert_eq!(begun.elapsed().as_secs(), 7);
}
