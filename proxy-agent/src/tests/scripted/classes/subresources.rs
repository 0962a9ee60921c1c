//! Subresources of objects in namespaces, and bodies in other media types.

use kube_wire::envelope::Envelope;
use kube_wire::proto::Writer;
use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const USER: &str = "vc:ke:admin";

fn object(kind: &str, api_version: &str, namespace: &str, more: &Value) -> Value {
    let mut object =
        json!({"kind": kind, "apiVersion": api_version, "metadata": {"name": "a", "namespace": namespace}});
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

#[tokio::test(start_paused = true)]
async fn subresources_are_mapped_as_their_kinds() {
    let agent = Scripted::new().await;
    for (method, group, path, kind, api_version, more) in [
        ("PUT", "/apis/apps/v1", "deployments/a/scale", "Scale", "autoscaling/v1", json!({"spec": {"replicas": 2}})),
        ("PUT", "/apis/apps/v1", "deployments/a/status", "Deployment", "apps/v1", json!({"status": {"replicas": 2}})),
        ("POST", "/api/v1", "pods/a/eviction", "Eviction", "policy/v1", json!({"deleteOptions": {}})),
        (
            "POST",
            "/api/v1",
            "serviceaccounts/a/token",
            "TokenRequest",
            "authentication.k8s.io/v1",
            json!({"spec": {"audiences": ["x"]}}),
        ),
    ] {
        let (ours, theirs) = (object(kind, api_version, "edge", &more), object(kind, api_version, "edge-ke", &more));
        let host = expect(method, &format!("{group}/namespaces/edge-ke/{path}")).as_user(USER).with("", theirs.clone());
        let request = ClientRequest::new(method, &format!("{group}/namespaces/edge/{path}")).json(&ours);
        let response = agent.exchange(request, host, Reply::json(201, &theirs)).await.expect(201);
        assert_eq!(response.json(), ours, "{path}");
    }
}

/// Typed Go clients send protobuf.
#[tokio::test]
async fn a_body_in_protobuf_is_mapped() {
    let agent = Scripted::new().await;
    let map = |namespace: &str| {
        let mut metadata = Writer::new();
        metadata.bytes(1, b"a");
        metadata.bytes(3, namespace.as_bytes());
        let mut map = Writer::new();
        map.bytes(1, &metadata.into_bytes());
        Envelope { api_version: "v1", kind: "ConfigMap", raw: &map.into_bytes(), ..Envelope::default() }.encode()
    };
    let media_type = "application/vnd.kubernetes.protobuf";
    let host =
        expect("POST", "/api/v1/namespaces/edge-ke/configmaps").as_user(USER).with_header("content-type", media_type);
    let request = ClientRequest::new("POST", "/api/v1/namespaces/edge/configmaps").typed(media_type, map("edge"));
    let request = request.header("accept", &format!("{media_type},application/json"));
    // The agent asks for JSON, which the client also accepts.
    let reply = Reply::json(201, &object("ConfigMap", "v1", "edge-ke", &json!({})));
    let response = agent.exchange(request, host.with_header("accept", "application/json"), reply).await.expect(201);
    assert_eq!(response.json(), object("ConfigMap", "v1", "edge", &json!({})));
    let received = agent.take_received();
    let sent = received.iter().find(|received| !received.is_review()).unwrap();
    let sent = Envelope::decode(&sent.body).unwrap();
    assert_eq!(sent.raw, Envelope::decode(&map("edge-ke")).unwrap().raw);

    // A client that accepts nothing but protobuf gets it, mapped.
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a").with_header("accept", media_type);
    let request = ClientRequest::get("/api/v1/namespaces/edge/configmaps/a").header("accept", media_type);
    let reply = Reply::empty(200).with_header("content-type", media_type).with_body(map("edge-ke"));
    let response = agent.exchange(request, host, reply).await.expect(200);
    assert_eq!(Envelope::decode(&response.body).unwrap().raw, Envelope::decode(&map("edge")).unwrap().raw);
    // So is a refusal of the agent.
    let request = ClientRequest::get("/api/v1/namespaces/operators/configmaps/a").header("accept", media_type);
    let response = agent.send(request).await.expect(404);
    assert_eq!(kube_wire::Status::from_protobuf(&response.body).unwrap().message, "configmaps \"a\" not found");
}

/// kubectl sends YAML if it is asked to.
#[tokio::test]
async fn a_body_in_yaml_is_mapped() {
    let agent = Scripted::new().await;
    let yaml = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\n  namespace: edge\ndata: {key: 'yes'}\n";
    let host = expect("POST", "/api/v1/namespaces/edge-ke/configmaps").as_user(USER);
    let host = host.with("/metadata/namespace", "edge-ke").with("/data/key", "yes");
    let request = ClientRequest::new("POST", "/api/v1/namespaces/edge/configmaps").typed("application/yaml", yaml);
    let theirs = object("ConfigMap", "v1", "edge-ke", &json!({}));
    agent.exchange(request, host, Reply::json(201, &theirs)).await.expect(201);
}

/// What the engine cannot read, the host refuses: it gets the request as a dry run.
#[tokio::test]
async fn a_body_that_is_no_object_is_the_hosts_to_refuse() {
    let agent = Scripted::new().await;
    let maps = "/api/v1/namespaces/edge/configmaps";
    let host = expect("POST", "/api/v1/namespaces/edge-ke/configmaps?dryRun=All").as_user(USER);
    let message = "the object provided is unrecognized (must be of type ConfigMap)";
    let request = ClientRequest::new("POST", maps).typed("application/json", "{\"metadata\":");
    let response = agent.exchange(request.clone(), host.clone(), Reply::status(400, "BadRequest", message)).await;
    assert_eq!(response.refusal().2, message);
    // If the host accepts it, the agent does not: it would not know what the host stores.
    let response = agent.exchange(request, host, Reply::json(201, &json!({}))).await;
    assert_eq!(response.refusal().1, "BadRequest");
    // The namespace in the object is another one.
    let other = object("ConfigMap", "v1", "default", &json!({}));
    let host = expect("POST", "/api/v1/namespaces/edge-ke/configmaps?dryRun=All").as_user(USER);
    let response = agent.exchange(ClientRequest::post(maps, &other), host, Reply::json(201, &json!({}))).await;
    assert_eq!(
        response.refusal().2,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}
