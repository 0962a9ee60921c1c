//! Resources without namespaces that clients can only read: the agent reads them, and filters the response.

use std::time::Duration;

use serde_json::{Value, json};
use test_host::{Reply, expect};
use tokio::time::timeout;

use crate::tests::agent::{ClientRequest, ClientResponse};
use crate::tests::scripted::Scripted;
use crate::tests::scripted::known::Known;

/// Longer than an agent needs for anything here.
const MINUTE: Duration = Duration::from_secs(60);

fn list(items: &[Value]) -> Reply {
    Reply::json(200, &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}))
}

fn names(response: &ClientResponse) -> Vec<String> {
    let items = response.json()["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn named(name: &str, more: Value) -> Value {
    let mut object = more;
    object["metadata"]["name"] = name.into();
    object
}

/// What each class selects on the host, and what remains of the response.
#[tokio::test]
async fn each_list_has_only_what_is_the_clusters() {
    let agent = Scripted::new().await;
    let claimed =
        |name: &str, namespace: &str| named(name, json!({"spec": {"claimRef": {"namespace": namespace, "name": "c"}}}));
    let address = |name: &str, namespace: &str| {
        named(name, json!({"spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": "s"}}}))
    };
    let flow = |name: &str, is_own: bool| {
        named(name, json!({"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": is_own.to_string()}}}))
    };
    for (path, selected, items, shown) in [
        ("/api/v1/nodes", "?labelSelector=location=beijing", vec![named("beijing-1", json!({}))], vec!["beijing-1"]),
        (
            "/api/v1/persistentvolumes",
            "",
            vec![claimed("a", "edge-ke"), claimed("b", "edge-hz"), named("c", json!({}))],
            vec!["a"],
        ),
        (
            "/apis/storage.k8s.io/v1/csinodes",
            "",
            vec![named("beijing-1", json!({})), named("hangzhou-1", json!({}))],
            vec!["beijing-1"],
        ),
        (
            "/apis/networking.k8s.io/v1/ipaddresses",
            "",
            vec![address("10.0.0.1", "edge-ke"), address("10.0.0.2", "edge-hz")],
            vec!["10.0.0.1"],
        ),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices",
            "?labelSelector=kube-aggregator.kubernetes.io/automanaged=onstart",
            vec![named("v1.apps", json!({}))],
            vec!["v1.apps"],
        ),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            "",
            vec![flow("exempt", true), flow("theirs", false)],
            vec!["exempt"],
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            "?fieldSelector=metadata.name=taken.by.somebody.else",
            vec![named("theirs", json!({}))],
            vec![],
        ),
        ("/apis/example.com/v1/gadgets", "", vec![named("a", json!({}))], vec!["a"]),
        ("/apis/example.com/v1/secretive", "", vec![named("a", json!({}))], vec![]),
    ] {
        let host = expect("GET", &format!("{path}{selected}")).as_agent();
        let response = agent.exchange(ClientRequest::get(path), host, list(&items)).await.expect(200);
        assert_eq!(names(&response), shown, "{path}");
        let review = &agent.transcript()[0];
        assert!(review.starts_with("review vc:ke:admin: list ") && review.ends_with(" in atoll-root-ke"), "{review}");
    }
}

#[tokio::test]
async fn an_object_that_is_not_the_clusters_does_not_exist() {
    let agent = Scripted::new().await;
    for (path, own, foreign, message) in [
        (
            "/api/v1/nodes/a",
            json!({"metadata": {"labels": {"location": "beijing"}}}),
            json!({"metadata": {"labels": {"location": "hangzhou"}}}),
            "nodes \"a\" not found",
        ),
        (
            "/api/v1/persistentvolumes/a",
            json!({"spec": {"claimRef": {"namespace": "edge-ke"}}}),
            json!({"spec": {"claimRef": {"namespace": "edge-hz"}}}),
            "persistentvolumes \"a\" not found",
        ),
    ] {
        for (object, code) in [(own, 200), (foreign, 404)] {
            let host = expect("GET", path).as_agent().bodiless();
            let response = agent.exchange(ClientRequest::get(path), host, Reply::json(200, &named("a", object))).await;
            assert_eq!(response.code, code);
            if code == 404 {
                assert_eq!(response.refusal().2, message);
            }
        }
    }
}

/// The claim of a volume is in virtual names.
#[tokio::test]
async fn names_in_what_is_read_are_virtual() {
    let agent = Scripted::new().await;
    let volume = named("a", json!({"spec": {"claimRef": {"namespace": "edge-ke", "name": "c"}}}));
    let host = expect("GET", "/api/v1/persistentvolumes/a");
    let response =
        agent.exchange(ClientRequest::get("/api/v1/persistentvolumes/a"), host, Reply::json(200, &volume)).await;
    assert_eq!(response.json()["spec"]["claimRef"]["namespace"], "edge");
}

/// A watch delivers only own objects.
#[tokio::test(start_paused = true)]
async fn a_watch_is_filtered_too() {
    let agent = Scripted::new().await;
    let node = |name: &str| json!({"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": name, "resourceVersion": "2"}});
    let events = [("ADDED", node("hangzhou-1")), ("ADDED", node("beijing-1"))];
    let path = "/apis/storage.k8s.io/v1/csinodes?watch=1&resourceVersion=1";
    agent.on(expect("GET", path).as_agent(), Reply::watch(&events));
    let mut watch = agent.agent.open(ClientRequest::get(path)).await;
    assert_eq!(watch.line().await, json!({"type": "ADDED", "object": node("beijing-1")}));
}

/// The host has the error for a resource that it does not serve. The agent sends a read instead of the request.
#[tokio::test(start_paused = true)]
async fn an_unknown_resource_is_the_hosts_404() {
    let agent = Scripted::new().await;
    let path = "/apis/example.com/v1/things";
    let missing = || Reply::status(404, "NotFound", "the server could not find the requested resource");
    for method in ["GET", "POST", "DELETE"] {
        let host = expect("GET", &format!("{path}?limit=1")).as_agent();
        let request = ClientRequest::new(method, path).json(&json!({"metadata": {"name": "a"}}));
        let (code, _, message) = agent.exchange(request, host, missing()).await.refusal();
        assert_eq!((code, &*message), (404, "the server could not find the requested resource"));
    }
    // It is served by now, and its owner is not known.
    let host = expect("GET", &format!("{path}?limit=1"));
    let response = agent
        .exchange(ClientRequest::get(path), host, Reply::json(200, &json!({"kind": "ThingList", "items": []})))
        .await;
    assert_eq!(response.code, 404);
}

#[tokio::test]
async fn scale_and_other_subresources_are_not_read() {
    let agent = Scripted::new().await;
    assert_eq!(agent.send(ClientRequest::get("/api/v1/nodes/beijing-1/proxy/metrics")).await.code, 403);
    let host = expect("GET", "/api/v1/nodes/beijing-1/status").as_agent();
    let node = named("beijing-1", json!({"metadata": {"labels": {"location": "beijing"}}}));
    agent
        .exchange(ClientRequest::get("/api/v1/nodes/beijing-1/status"), host, Reply::json(200, &node))
        .await
        .expect(200);
}

/// HEAD of a kind whose objects all clusters see.
#[tokio::test]
async fn head_is_followed_by_get() {
    let agent = Scripted::new().await;
    let path = "/apis/example.com/v1/gadgets/a";
    agent.on(expect("HEAD", path).as_agent(), Reply::empty(200));
    agent.on(expect("GET", path).as_agent(), Reply::json(200, &named("a", json!({}))));
    assert_eq!(agent.send(ClientRequest::new("HEAD", path)).await.expect(200).body.len(), 0);
    agent.on(expect("HEAD", path).as_agent(), Reply::empty(404));
    assert_eq!(agent.send(ClientRequest::new("HEAD", path)).await.expect(404).body.len(), 0);
}

/// HEAD has no body that shows the owner, so the agent reads the object.
#[tokio::test]
async fn head_of_a_custom_object_shows_only_own_ones() {
    let agent = Scripted::new().await;
    let path = "/apis/example.com/v1/widgets";
    for (cluster, code) in [("ke", 200), ("hz", 404)] {
        let widget = json!({"kind": "Widget", "apiVersion": "example.com/v1",
            "metadata": {"name": "a.ke", "labels": {"atoll.dev/virtual-cluster": cluster}}});
        // It has read the object already to find its owner.
        for _ in 0..2 {
            agent.on(expect("GET", &format!("{path}/a.ke")).as_agent(), Reply::json(200, &widget));
        }
        let response = agent.send(ClientRequest::new("HEAD", &format!("{path}/a"))).await.expect(code);
        assert_eq!(response.body.len(), 0);
    }
}

/// The host sends no event about an object of a node when the operator labels the node into the cluster.
#[tokio::test(start_paused = true)]
async fn a_watch_of_objects_of_nodes_ends_when_the_cluster_gets_a_node() {
    let agent = Scripted::new().await;
    let nodes = agent.clusters.nodes();
    let labelled = async |name: &str, location: &str| {
        let node = json!({"metadata": {"name": name, "labels": {"location": location}}});
        // It never ends.
        let _ = timeout(Duration::ZERO, nodes.follow(Known::all(Some(vec![node])))).await;
    };
    let (csi, pods) = ("/apis/storage.k8s.io/v1/csinodes?watch=1", "/api/v1/pods?watch=1");
    let own = named("beijing-1", json!({"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "metadata": {}}));
    agent.on(expect("GET", csi), Reply::watch(&[("ADDED", own)]));
    agent.on(expect("GET", pods), Reply::watch(&[]));
    let (mut of_nodes, mut of_pods) =
        (agent.agent.open(ClientRequest::get(csi)).await, agent.agent.open(ClientRequest::get(pods)).await);
    assert_eq!(of_nodes.line().await["object"]["metadata"]["name"], "beijing-1");
    // Neither a node of another cluster nor a change of its own node.
    labelled("hangzhou-2", "hangzhou").await;
    labelled("beijing-1", "beijing").await;
    assert!(timeout(MINUTE, of_nodes.line()).await.is_err());
    labelled("hangzhou-1", "beijing").await;
    let last = timeout(MINUTE, of_nodes.line()).await.expect("the watch remains open");
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)), "{last}");
    assert!(of_nodes.rest().await.is_empty());
    assert!(timeout(MINUTE, of_pods.line()).await.is_err());
    agent.check();
}
