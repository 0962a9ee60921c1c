//! Projected objects: objects of the host that clients can only read.

use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

fn named(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}})
}

fn list(items: &[Value]) -> Reply {
    Reply::json(200, &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}))
}

fn event(namespace: &str, name: &str, kind: &str, about: &str) -> Value {
    let mut event = named(namespace, name);
    event["involvedObject"] = json!({"kind": kind, "name": about});
    if kind != "Node" {
        event["involvedObject"]["namespace"] = namespace.into();
    }
    event
}

#[tokio::test]
async fn the_leases_of_own_nodes_are_read_where_the_host_has_them() {
    let agent = Scripted::new().await;
    let leases = [named("kube-node-lease", "beijing-1"), named("kube-node-lease", "hangzhou-1")];
    let response =
        agent.exchange(ClientRequest::get(LEASES), expect("GET", LEASES).as_agent(), list(&leases)).await.expect(200);
    assert_eq!(response.json()["items"], json!([named("kube-node-lease", "beijing-1")]));
    assert_eq!(agent.transcript()[0], "review vc:ke:admin: list leases.coordination.k8s.io in kube-node-lease-ke");
    for (node, code) in [("beijing-1", 200), ("hangzhou-1", 404)] {
        let path = format!("{LEASES}/{node}");
        let reply = Reply::json(200, &named("kube-node-lease", node));
        agent.exchange(ClientRequest::get(&path), expect("GET", &path).as_agent(), reply).await.expect(code);
    }
}

/// The host is asked once, for all namespaces, so one list has one version.
#[tokio::test]
async fn the_default_namespace_has_objects_of_both() {
    let agent = Scripted::new().await;
    let services = [
        named("default", "kubernetes"),
        named("default", "operators"),
        named("default-ke", "own"),
        named("edge-ke", "elsewhere"),
        named("default-hz", "theirs"),
    ];
    let request = ClientRequest::get("/api/v1/namespaces/default/services");
    let response =
        agent.exchange(request, expect("GET", "/api/v1/services").as_agent(), list(&services)).await.expect(200);
    assert_eq!(response.json()["items"], json!([named("default", "kubernetes"), named("default", "own")]));
    let events = [
        event("default", "a", "Node", "beijing-1"),
        event("default", "b", "Node", "hangzhou-1"),
        event("default", "c", "Pod", "beijing-1"),
        event("default-ke", "d", "Pod", "p"),
    ];
    let request = ClientRequest::get("/api/v1/namespaces/default/events");
    let response = agent.exchange(request, expect("GET", "/api/v1/events").as_agent(), list(&events)).await.expect(200);
    assert_eq!(
        response.json()["items"],
        json!([event("default", "a", "Node", "beijing-1"), event("default", "d", "Pod", "p")])
    );
    // In all namespaces, too.
    let response = agent
        .exchange(ClientRequest::get("/api/v1/services"), expect("GET", "/api/v1/services").as_agent(), list(&services))
        .await;
    let all = [named("default", "kubernetes"), named("default", "own"), named("edge", "elsewhere")];
    assert_eq!(response.json()["items"], json!(all));
}

#[tokio::test]
async fn the_service_of_the_api_server_is_read_and_not_written() {
    let agent = Scripted::new().await;
    let path = "/api/v1/namespaces/default/services/kubernetes";
    let reply = Reply::json(200, &named("default", "kubernetes"));
    agent.exchange(ClientRequest::get(path), expect("GET", path).as_agent(), reply).await.expect(200);
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "kubernetes"}});
    for (request, code) in [
        (ClientRequest::put(path, &service), 403),
        (ClientRequest::merge(path, &json!({})), 403),
        (ClientRequest::delete(path), 403),
        (ClientRequest::post("/api/v1/namespaces/default/services", &service), 409),
        (ClientRequest::delete(&format!("{LEASES}/beijing-1")), 403),
        (ClientRequest::post(LEASES, &named("kube-node-lease", "mine")), 403),
        (ClientRequest::delete(LEASES), 403),
    ] {
        let response = agent.send(request).await.expect(code);
        let (_, reason, message) = response.refusal();
        assert_eq!(reason, if code == 403 { "Forbidden" } else { "AlreadyExists" }, "{message}");
    }
    // A Service of another name is the cluster's own.
    let other = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "other"}});
    let host = expect("POST", "/api/v1/namespaces/default-ke/services").as_user("vc:ke:admin");
    let request = ClientRequest::post("/api/v1/namespaces/default/services", &other);
    agent.exchange(request, host, Reply::json(201, &other)).await.expect(201);
}
