//! The refusals of the agent itself, by status code.

use serde_json::{Value, json};
use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::{CONFIG, Scripted};
use protocol::ClusterName;

const MAPS: &str = "/api/v1/namespaces/edge/configmaps";

/// A pod that demands another node selector than the guard.
fn pod_on_another_node() -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
        "spec": {"nodeSelector": {"location": "hangzhou"}, "containers": []}})
}

fn named(kind: &str, api_version: &str, name: &str) -> Value {
    json!({"kind": kind, "apiVersion": api_version, "metadata": {"name": name}})
}

/// What the agent refuses without a request to the host, besides reviews and discovery.
#[tokio::test(start_paused = true)]
async fn refusals_that_depend_on_the_request_alone() {
    let agent = Scripted::new().await;
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "atoll:crb:a"}, "roleRef": {"kind": "Role", "name": "a", "apiGroup": ""}});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (request, code, reason, part) in [
        (ClientRequest::get("/metrics"), 403, "Forbidden", "/metrics"),
        (ClientRequest::delete("/api/v1/nodes/beijing-1"), 403, "Forbidden", "nodes belong to the operator"),
        (ClientRequest::delete("/api/v1/namespaces/kube-system"), 403, "Forbidden", "may not be deleted"),
        (
            ClientRequest::delete(&format!("{rbac}/clusterrolebindings/cluster-admin")),
            403,
            "Forbidden",
            "cannot be changed",
        ),
        (ClientRequest::delete(&format!("{rbac}/clusterroles/cluster-admin")), 403, "Forbidden", "share this role"),
        (ClientRequest::post("/apis/example.com/v1/gadgets", &json!({})), 403, "Forbidden", "operator"),
        (ClientRequest::delete("/apis/example.com/v1/secretive/a"), 403, "Forbidden", "does not offer this resource"),
        (
            ClientRequest::post(&format!("{rbac}/namespaces/edge/rolebindings"), &binding),
            422,
            "Invalid",
            "are reserved",
        ),
        (
            ClientRequest::get(&format!("{rbac}/namespaces/edge/rolebindings/atoll:crb:a")),
            404,
            "NotFound",
            "atoll:crb:a",
        ),
        (ClientRequest::get(&format!("{rbac}/clusterrolebindings/atoll:a")), 404, "NotFound", "atoll:a"),
        (ClientRequest::get("/api/v1/namespaces/operators/configmaps/a"), 404, "NotFound", "\"a\" not found"),
        (
            ClientRequest::post("/api/v1/namespaces/operators/configmaps", &json!({})),
            404,
            "NotFound",
            "\"operators\" not found",
        ),
        (ClientRequest::get("/api/v1/namespaces/operators"), 404, "NotFound", "namespaces \"operators\" not found"),
        (ClientRequest::get("/apis/example.com/v1/secretive/a"), 404, "NotFound", "\"a\" not found"),
        (ClientRequest::delete("/api/v1/configmaps"), 405, "MethodNotAllowed", "method"),
        (ClientRequest::delete("/api/v1/namespaces"), 405, "MethodNotAllowed", "method"),
        (ClientRequest::post(&format!("{rbac}/clusterroles/a"), &json!({})), 405, "MethodNotAllowed", "method"),
        (
            ClientRequest::post("/api/v1/namespaces", &named("Namespace", "v1", "operators")),
            409,
            "Conflict",
            "operators",
        ),
        (
            ClientRequest::post("/api/v1/namespaces/edge/pods", &pod_on_another_node()),
            422,
            "Invalid",
            "this cluster's nodes have",
        ),
        (
            ClientRequest::get(&format!("{MAPS}?labelSelector=atoll.dev/x")),
            400,
            "BadRequest",
            "labels with the prefix atoll.dev/",
        ),
        (ClientRequest::get(&format!("{MAPS}?labelSelector=%21%21")), 400, "BadRequest", ""),
        (
            ClientRequest::put(
                "/api/v1/namespaces/edge/configmaps/a?fieldManager=a",
                &json!({"metadata": {
            "name": "a", "managedFields": [{"manager": "x".repeat(200)}]}}),
            ),
            422,
            "Invalid",
            "managedFields",
        ),
        (
            ClientRequest::put(&format!("{MAPS}/a?fieldManager={}", "x".repeat(200)), &json!({})),
            422,
            "Invalid",
            "fieldManager",
        ),
    ] {
        let described = format!("{request:?}");
        let (is_code, is_reason, message) = agent.send(request).await.refusal();
        assert_eq!((is_code, &*is_reason), (code, reason), "{described}: {message}");
        assert!(message.contains(part), "{described}: {message}");
        let transcript = agent.transcript();
        let is_own = |line: &String| line.starts_with("review ") || line.contains("/api") && line.starts_with("GET ");
        assert!(transcript.iter().all(is_own), "{transcript:?}");
    }
}

/// The host says what is wrong with a media type, because it knows which it supports. If it accepts the dry run, the
/// agent refuses the request.
#[tokio::test(start_paused = true)]
async fn media_types_that_cannot_be_mapped_are_refused() {
    let agent = Scripted::new().await;
    let host = "/api/v1/namespaces/edge-ke/configmaps";
    for (request, expected, code, reason) in [
        (
            ClientRequest::get(&format!("{MAPS}/a")).header("accept", "application/cbor"),
            expect("GET", &format!("{host}/a?dryRun=All")),
            406,
            "NotAcceptable",
        ),
        (
            ClientRequest::new("POST", MAPS).typed("application/cbor", "\u{1}"),
            expect("POST", &format!("{host}?dryRun=All")).bodiless(),
            415,
            "UnsupportedMediaType",
        ),
        (
            ClientRequest::new("PATCH", &format!("{MAPS}/a")).typed("application/apply-patch+cbor", "\u{1}"),
            expect("PATCH", &format!("{host}/a?dryRun=All")).bodiless(),
            415,
            "UnsupportedMediaType",
        ),
    ] {
        // The host accepts it.
        agent.on(expected.clone().as_user("vc:ke:admin"), Reply::json(200, &json!({})));
        let (is_code, is_reason, message) = agent.send(request.clone()).await.refusal();
        assert_eq!((is_code, &*is_reason), (code, reason), "{message}");
        // The host refuses it: then the client gets what the host says.
        agent.on(expected, Reply::status(code, reason, "the host says which types it supports"));
        assert_eq!(agent.send(request).await.refusal().2, "the host says which types it supports");
    }
    // The claim of a volume is not in its metadata.
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (code, reason, _) =
        agent.send(ClientRequest::get("/api/v1/persistentvolumes/a").header("accept", metadata)).await.refusal();
    assert_eq!((code, &*reason), (406, "NotAcceptable"));
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_of_another_agent_is_expired() {
    let (agent, other) = (Scripted::new().await, Scripted::new().await);
    let page = json!({"kind": "ConfigMapList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "1", "continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"}, "items": []});
    let request = ClientRequest::get(&format!("{MAPS}?limit=1"));
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps?limit=1");
    let token = agent.exchange(request, host, Reply::json(200, &page)).await.expect(200).json();
    let token = token["metadata"]["continue"].as_str().unwrap().to_owned();
    assert!(!token.contains("eyJ"), "the token is sealed: {token}");
    let next = ClientRequest::get(&format!("{MAPS}?limit=1&continue={token}"));
    let (code, reason, _) = other.send(next.clone()).await.refusal();
    assert_eq!((code, &*reason), (410, "Expired"));
    // It belongs to one list.
    let elsewhere = ClientRequest::get(&format!("/api/v1/namespaces/default/configmaps?limit=1&continue={token}"));
    assert_eq!(agent.send(elsewhere).await.refusal().0, 410);
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ");
    agent.exchange(next, host, Reply::json(200, &page)).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_refused() {
    let agent = Scripted::new().await;
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "x".repeat(3 << 20)}});
    let (code, reason, _) = agent.send(ClientRequest::post(MAPS, &map)).await.refusal();
    assert_eq!((code, &*reason), (413, "RequestEntityTooLarge"));
}

/// Each host name is longer than its virtual name.
#[tokio::test(start_paused = true)]
async fn a_target_that_is_too_long_with_host_names_is_refused() {
    let agent = Scripted::new().await;
    let selector = |count: usize| {
        let names: Vec<_> = (0..count).map(|number| format!("n{number:04}")).collect();
        format!("kubernetes.io/metadata.name%20in%20%28{}%29", names.join("%2C"))
    };
    let (code, _, message) =
        agent.send(ClientRequest::get(&format!("/api/v1/namespaces?labelSelector={}", selector(7000)))).await.refusal();
    assert_eq!(code, 414, "{message}");
    assert!(message.contains("65534 bytes"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_uses_up_its_memory_waits() {
    let agent = Scripted::new().await;
    let cluster = agent.clusters.get(&"ke".parse::<ClusterName>().unwrap()).unwrap();
    let bodies = &cluster.lasting.memory.bodies;
    let mut held = Vec::new();
    for size in (0..30).rev().map(|shift| 1_usize << shift) {
        held.extend(bodies.reserve(size));
    }
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "x".repeat(100_000)}});
    let response = agent.send(ClientRequest::post(MAPS, &map)).await;
    assert_eq!((response.code, &response.headers["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(response.refusal().1, "TooManyRequests");
    drop(held);
    let host = expect("POST", "/api/v1/namespaces/edge-ke/configmaps");
    agent.exchange(ClientRequest::post(MAPS, &map), host, Reply::json(201, &json!({}))).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_not_served_may_be_served_soon() {
    let agent = Scripted::new().await;
    let response = agent.send(ClientRequest::get("/api/v1/nodes").of("other")).await;
    assert_eq!((response.code, &response.headers["retry-after"]), (503, &"1".parse().unwrap()));
    assert!(response.refusal().2.contains("does not serve cluster other"));
    // The configuration has lost it.
    let none = agent.clusters.read(std::iter::empty()).unwrap();
    agent.clusters.exchange(none);
    assert_eq!(agent.send(ClientRequest::get("/api/v1/nodes")).await.code, 503);
}

/// No proxy-server opens such a stream.
#[tokio::test(start_paused = true)]
async fn a_stream_of_no_kind_is_refused() {
    let agent = Scripted::new().await;
    let response = agent.send(ClientRequest::get("/api/v1/nodes").of("-")).await;
    assert_eq!(response.headers["x-atoll-fault"], "client");
    let (code, reason, message) = response.refusal();
    assert_eq!((code, &*reason, &*message), (404, "NotFound", "the cluster name of the stream is invalid"));
    // The response to HEAD has no body.
    let response = agent.send(ClientRequest::new("HEAD", "/api/v1/nodes").of("-")).await;
    assert_eq!((response.code, response.body.len()), (404, 0));
}

/// On a host without admission policies, the agent itself refuses the statuses that direct the host's control plane.
#[tokio::test(start_paused = true)]
async fn a_status_that_directs_the_host_is_refused_without_policies() {
    let agent = Scripted::new().await;
    let status =
        ClientRequest::merge("/api/v1/namespaces/edge/pods/a/status", &json!({"status": {"podIP": "10.0.0.1"}}));
    let (code, _, message) = agent.send(status).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("admission policies"), "{message}");
    let status = json!({"status": {"conditions": []}});
    let request = ClientRequest::merge("/apis/apps/v1/namespaces/edge/deployments/a/status", &status);
    let host = expect("PATCH", "/apis/apps/v1/namespaces/edge-ke/deployments/a/status").as_user("vc:ke:admin");
    agent.exchange(request, host, Reply::json(200, &json!({}))).await.expect(200);
}

/// The host does not answer reviews.
#[tokio::test(start_paused = true)]
async fn a_review_without_an_answer_is_no_permission() {
    let agent = Scripted::new().await;
    agent.always(|received| received.is_review().then(|| Reply::status(500, "InternalError", "etcd is away")));
    let response = agent.send(ClientRequest::get("/api/v1/nodes")).await;
    assert!(response.code >= 500, "{:?}", response.refusal());
    assert!(!agent.transcript().iter().any(|line| line.contains("/nodes")), "nothing is read without permission");
}

/// A virtual cluster whose host is not known to enforce the admission policies is not served.
#[tokio::test(start_paused = true)]
async fn nothing_is_served_without_policies() {
    let agent = Scripted::configured(&CONFIG.replace(", unsafeDirectAccess: true", "")).await;
    let response = agent.send(ClientRequest::get("/api/v1/nodes")).await;
    let (code, reason, message) = response.refusal();
    assert_eq!((code, &*reason), (503, "ServiceUnavailable"), "{message}");
    assert!(message.contains("cluster ke is not served yet"), "{message}");
}

/// The operator sees the errors that the agent makes: not those of clients, and nothing of what the host sends.
#[tokio::test(start_paused = true)]
async fn the_operator_sees_the_last_errors_of_each_cluster() {
    let agent = Scripted::new().await;
    let seen = |cluster| {
        let errors = agent.agent.last_errors(cluster).into_iter();
        errors.map(|error| (error.code, error.count, error.fault, error.message)).collect::<Vec<_>>()
    };
    assert_eq!(agent.send(ClientRequest::delete("/api/v1/namespaces/kube-system")).await.refusal().0, 403);
    assert_eq!(seen("ke"), []);
    // A response that the agent cannot read.
    let host = expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a");
    for _ in 0..2 {
        let reply = Reply::empty(200).with_header("content-type", "text/top-secret").with_body("{}");
        let response = agent.exchange(ClientRequest::get(&format!("{MAPS}/a")), host.clone(), reply).await;
        assert_eq!(response.code, 500);
    }
    let unreadable = "the host's response cannot be mapped; the log at level debug has the reason".to_owned();
    assert_eq!(seen("ke"), [(500, 2, "atoll".to_owned(), unreadable)]);
    // An error of the host is not one of the agent.
    let busy = Reply::status(503, "ServiceUnavailable", "busy");
    assert_eq!(agent.exchange(ClientRequest::get(&format!("{MAPS}/a")), host, busy).await.code, 503);
    assert_eq!((seen("ke").len(), seen("hz")), (1, vec![]));
    let heads = agent.clusters.get(&"hz".parse::<ClusterName>().unwrap()).unwrap().lasting.memory.heads.clone();
    let mut held = Vec::new();
    for size in (0..30).rev().map(|shift| 1_usize << shift) {
        held.extend(heads.reserve(size));
    }
    let long = format!("{MAPS}?labelSelector={}", "a".repeat(20_000));
    assert_eq!(agent.send(ClientRequest::get(&long).of("hz")).await.code, 429);
    let errors = seen("hz");
    assert_eq!((errors.len(), errors[0].0, &*errors[0].2), (1, 429, "client"));
    assert!(errors[0].3.starts_with("too many requests: long URLs"), "{errors:?}");
}
