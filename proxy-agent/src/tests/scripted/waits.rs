//! What a request waits for, and what the client gets if it waits in vain.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use test_host::{Reply, expect};
use tokio::time::{Instant, sleep, timeout};

use crate::config::ProxyAgentConfiguration;
use crate::tests::agent::ClientRequest;
use crate::tests::scripted::{CONFIG, Scripted, Unknown};
use virtual_cluster::share::in_flight::Kind;

/// Longer than an agent needs for anything here.
const MINUTE: Duration = Duration::from_secs(60);

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/edge/configmaps";

/// Shortly after its start, the agent does not know the host yet. A client may try again.
#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_know_the_host_yet_says_so() {
    for (unknown, path, part) in [
        (Unknown::Namespaces, MAPS, "cluster ke is not served yet"),
        (Unknown::Nodes, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", "the nodes of this cluster"),
        (Unknown::Nodes, "/apis/storage.k8s.io/v1/csinodes", "the nodes of this cluster"),
        (Unknown::Roles, &format!("{RBAC}/clusterroles"), "the roles of this cluster"),
        (Unknown::Roles, &format!("{RBAC}/namespaces/edge/rolebindings"), "the roles of this cluster"),
        (Unknown::Definitions, "/apis/example.com/v1/widgets", "the resources of this cluster"),
        (Unknown::Definitions, "/apis/example.com/v1", "the resources of this cluster"),
    ] {
        let agent = Scripted::without(unknown).await;
        let response = agent.send(ClientRequest::get(path)).await;
        let (code, reason, message) = response.refusal();
        assert_eq!((code, &*reason), (503, "ServiceUnavailable"), "{path}: {message}");
        assert_eq!(response.headers["retry-after"], "1", "{path}");
        assert!(message.contains(part), "{path}: {message}");
    }
}

/// Without discovery, the agent does not know whether a resource has namespaces.
#[tokio::test(start_paused = true)]
async fn without_discovery_resources_are_not_known() {
    let agent = Scripted::new().await;
    agent.always(|received| {
        let is_root = matches!(received.path(), "/api" | "/apis");
        is_root.then(|| Reply::status(500, "InternalError", "etcd is away"))
    });
    let (code, _, message) = agent.send(ClientRequest::get("/api/v1/nodes")).await.refusal();
    assert_eq!(code, 503, "{message}");
    assert!(!message.contains("etcd"), "{message}");
    // A namespace needs no discovery.
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a");
    agent.exchange(ClientRequest::get(&format!("{MAPS}/a")), host, Reply::json(200, &json!({}))).await.expect(200);
}

/// The lists of a cluster that the host still sends occupy its seats there. A fourth one waits for 15 seconds.
#[tokio::test(start_paused = true)]
async fn a_cluster_has_seats_for_three_lists() {
    let agent = Scripted::new().await;
    let mut lists = Vec::new();
    for _ in 0..3 {
        // Its body does not end.
        agent.on(expect("GET", "/api/v1/namespaces/edge-ke/configmaps"), Reply::watch(&[]));
        lists.push(agent.agent.open(ClientRequest::get(MAPS)).await);
    }
    let response = agent.send(ClientRequest::get(MAPS)).await;
    assert_eq!((response.code, &response.headers["retry-after"]), (429, &"1".parse().unwrap()));
    assert!(response.refusal().2.contains("still in progress at the API server"));
    // Neither another cluster nor a read of one object waits.
    let host = expect("GET", "/api/v1/namespaces/edge-hz/configmaps");
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []});
    agent.exchange(ClientRequest::get(MAPS).of("hz"), host, Reply::json(200, &list)).await.expect(200);
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a");
    agent.exchange(ClientRequest::get(&format!("{MAPS}/a")), host, Reply::json(200, &json!({}))).await.expect(200);
    lists.pop();
    agent
        .exchange(
            ClientRequest::get(MAPS),
            expect("GET", "/api/v1/namespaces/edge-ke/configmaps"),
            Reply::json(200, &list),
        )
        .await;
}

/// The host makes one list of a cluster at a time while another cluster is active. A list that takes long delays the next one by
/// a second, and a pause of a second follows.
#[tokio::test(start_paused = true)]
async fn a_list_waits_for_the_one_before_it_while_others_are_active() {
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []});
    for others_are_active in [false, true] {
        let agent = Scripted::new().await;
        if others_are_active {
            let host = expect("GET", "/api/v1/namespaces/edge-hz/configmaps/a");
            let request = ClientRequest::get(&format!("{MAPS}/a")).of("hz");
            agent.exchange(request, host, Reply::json(200, &json!({}))).await.expect(200);
        }
        let host = || expect("GET", "/api/v1/namespaces/edge-ke/configmaps");
        // Its body does not end.
        agent.on(host(), Reply::watch(&[]));
        let _first = agent.agent.open(ClientRequest::get(MAPS)).await;
        let begun = Instant::now();
        agent.exchange(ClientRequest::get(MAPS), host(), Reply::json(200, &list)).await.expect(200);
        assert_eq!(begun.elapsed() > Duration::from_millis(900), others_are_active, "{:?}", begun.elapsed());
        assert!(begun.elapsed() <= Duration::from_millis(2_100), "{:?}", begun.elapsed());
    }
}

/// kube-apiserver counts requests in the same two groups (`--max-requests-inflight`).
#[tokio::test(start_paused = true)]
async fn a_cluster_has_so_many_requests_in_flight() {
    const SHORT: usize = 1_000;
    let agent = Scripted::new().await;
    agent.always(|received| received.path().starts_with("/api/v1/namespaces/edge-ke/pods").then(Reply::never));
    let mut waiting = Vec::new();
    for _ in 0..SHORT {
        waiting.push(agent.agent.begin(ClientRequest::get("/api/v1/namespaces/edge/pods/a")).await);
    }
    agent.until_unanswered(SHORT).await;
    let response = agent.send(ClientRequest::get(&format!("{MAPS}/a"))).await;
    assert_eq!((response.code, &response.headers["retry-after"]), (429, &"1".parse().unwrap()));
    assert!(response.refusal().2.contains("too many requests without a complete response"), "{:?}", response.refusal());
    // Neither another cluster nor a watch is refused.
    let other = expect("GET", "/api/v1/namespaces/edge-hz/configmaps/a");
    agent
        .exchange(ClientRequest::get(&format!("{MAPS}/a")).of("hz"), other, Reply::json(200, &json!({})))
        .await
        .expect(200);
    agent.on(expect("GET", "/api/v1/namespaces/edge-ke/configmaps?watch=1"), Reply::watch(&[]));
    assert_eq!(agent.agent.open(ClientRequest::get(&format!("{MAPS}?watch=1"))).await.code, 200);
    waiting.pop().unwrap().reset();
    agent.until_unanswered(SHORT - 1).await;
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a");
    agent.exchange(ClientRequest::get(&format!("{MAPS}/a")), host, Reply::json(200, &json!({}))).await.expect(200);
}

/// Both count until they end.
#[tokio::test(start_paused = true)]
async fn a_cluster_has_so_many_watches_and_sessions() {
    let agent = Scripted::new().await;
    let cluster = agent.clusters.get(&"ke".parse().unwrap()).unwrap();
    let in_flight = &cluster.lasting.in_flight;
    let fill = |kind| std::iter::from_fn(move || in_flight.admit(kind)).take(10_000).collect::<Vec<_>>();
    let (mut watches, mut sessions) = (fill(Kind::LongRunning), fill(Kind::Session));
    let watch = || ClientRequest::get(&format!("{MAPS}?watch=1"));
    let exec = || ClientRequest::get("/api/v1/namespaces/edge/pods/a/exec?command=sh");
    let (code, _, message) = agent.send(watch()).await.refusal();
    assert!(code == 429 && message.contains("too many watches"), "{code} {message}");
    let mut refused = agent.agent.upgrade(exec(), "websocket").await;
    let message = String::from_utf8(refused.rest().await.to_vec()).unwrap();
    assert!(refused.code == 429 && message.contains("too many sessions"), "{message}");
    drop(watches.pop());
    let (code, _, message) = agent.send(ClientRequest::get("/api/v1/namespaces/edge/pods/a/proxy/")).await.refusal();
    assert!(code == 429 && message.contains("too many sessions"), "{code} {message}");
    drop(sessions.pop());
    agent.on(expect("GET", "/api/v1/namespaces/edge-ke/configmaps?watch=1"), Reply::watch(&[]));
    let open = agent.agent.open(watch()).await;
    agent.on(expect("GET", "/api/v1/namespaces/edge-ke/pods/a/exec?command=sh"), Reply::switch("websocket"));
    let mut session = agent.agent.upgrade(exec(), "websocket").await;
    assert_eq!(session.echoed(b"ls\n").await, "ls\n");
    let is_free = || [Kind::LongRunning, Kind::Session].map(|kind| in_flight.admit(kind).is_some());
    assert_eq!(is_free(), [false; 2]);
    drop((open, session));
    sleep(MINUTE).await;
    assert_eq!(is_free(), [true; 2]);
    agent.check();
}

/// The agent collects a body for as long as an API server takes for the whole request.
#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_given_up() {
    let agent = Scripted::new().await;
    let (code, reason, _) = agent.send(ClientRequest::new("POST", MAPS).withholding_body()).await.refusal();
    assert_eq!((code, &*reason), (504, "Timeout"));
    assert_eq!(agent.transcript(), ["review vc:ke:admin: create configmaps in edge-ke"]);
}

/// An API server responds within a minute to a request that is not long-running, unless it is broken.
#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_respond_is_given_up() {
    let agent = Scripted::new().await;
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    let host = "/api/v1/namespaces/edge-ke/configmaps";
    for (request, expected) in
        [(ClientRequest::get(MAPS), expect("GET", host)), (ClientRequest::post(MAPS, &map), expect("POST", host))]
    {
        let response = agent.exchange(request, expected, Reply::never()).await;
        assert_eq!(
            (response.refusal().0, response.headers.get("retry-after")),
            (504, None),
            "it may have been executed"
        );
        agent.until_unanswered(0).await;
    }
    // The server of a pod takes as long as it likes.
    agent.on(expect("GET", "/api/v1/namespaces/edge-ke/pods/a/proxy/x"), Reply::never());
    let proxied = agent.agent.send(ClientRequest::get("/api/v1/namespaces/edge/pods/a/proxy/x"));
    assert!(timeout(5 * MINUTE, proxied).await.is_err());
}

/// The connection breaks after the host got the write: it may have been executed.
#[tokio::test(start_paused = true)]
async fn a_response_that_breaks_is_no_reason_to_repeat_a_write() {
    let agent = Scripted::new().await;
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    let host = expect("POST", "/api/v1/namespaces/edge-ke/configmaps");
    agent.on(host, Reply::json(201, &map).broken());
    let response = agent.agent.try_send(ClientRequest::post(MAPS, &map)).await;
    assert!(response.as_ref().map_or(true, |response| response.code == 500), "{response:?}");
    agent.check();
}

/// The client must not take what it has got for everything.
#[tokio::test(start_paused = true)]
async fn a_watch_is_reset_when_its_cluster_is_removed() {
    let agent = Scripted::new().await;
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "edge-ke"}});
    let watch = || Reply::watch(&[("ADDED", map.clone())]);
    agent.on(expect("GET", "/api/v1/namespaces/edge-ke/configmaps?watch=1"), watch());
    agent.on(expect("GET", "/api/v1/namespaces/edge-hz/configmaps?watch=1"), watch());
    let request = ClientRequest::get(&format!("{MAPS}?watch=1"));
    let (mut removed, mut other) = (agent.agent.open(request.clone()).await, agent.agent.open(request.of("hz")).await);
    assert_eq!(removed.line().await["type"], "ADDED");
    let config = ops::config::parse::<ProxyAgentConfiguration>(CONFIG, Path::new("c.yaml")).unwrap();
    let kept = config.virtual_clusters.iter().map(|cluster| &**cluster).filter(|cluster| cluster.name.as_str() == "hz");
    agent.clusters.exchange(agent.clusters.read(kept).unwrap());
    let ended = timeout(MINUTE, removed.try_read()).await.expect("the watch remains open");
    assert!(ended.unwrap_err().is_reset());
    // The other one remains open. Its object is not the cluster's.
    assert!(timeout(MINUTE, other.line()).await.is_err());
    agent.check();
}
