//! The order of the phases: what a caller without the right costs the agent and the host.

use test_host::{Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

/// The writes of each class, which have bodies. The client sends nothing of the body, so a response shows that the agent
/// does not wait for it.
const WRITES: [(&str, &str); 24] = [
    ("POST", "/api/v1/namespaces/edge/configmaps"),
    ("PUT", "/api/v1/namespaces/edge/configmaps/a"),
    ("PATCH", "/api/v1/namespaces/edge/configmaps/a"),
    ("DELETE", "/api/v1/namespaces/edge/configmaps/a"),
    ("DELETE", "/api/v1/namespaces/edge/configmaps"),
    ("POST", "/api/v1/namespaces/edge/pods/a/eviction"),
    ("POST", "/api/v1/namespaces/edge/services"),
    ("POST", "/api/v1/namespaces/edge/pods/a/proxy/x"),
    ("POST", "/api/v1/namespaces/nowhere/configmaps"),
    ("POST", "/api/v1/namespaces/operators/secrets"),
    ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/beijing-1"),
    ("POST", "/apis/authorization.k8s.io/v1/namespaces/edge/localsubjectaccessreviews"),
    ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
    ("POST", "/api/v1/namespaces"),
    ("PUT", "/api/v1/namespaces/edge"),
    ("PATCH", "/api/v1/namespaces/new"),
    ("DELETE", "/api/v1/namespaces/edge"),
    ("PATCH", "/api/v1/nodes/beijing-1"),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("PUT", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/a"),
    ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ("POST", "/apis/example.com/v1/widgets"),
    ("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
];

#[tokio::test(start_paused = true)]
async fn a_caller_without_the_right_costs_reviews_and_no_body() {
    let agent = Scripted::new().await;
    agent.denying(|_| true);
    for (method, target) in WRITES {
        let response = agent.send(ClientRequest::new(method, target).by("eve").withholding_body()).await;
        let (code, reason, message) = response.refusal();
        assert_eq!((code, &*reason), (403, "Forbidden"), "{method} {target}: {message}");
        assert!(message.contains("User \"eve\" cannot"), "{method} {target}: {message}");
        let transcript = agent.transcript();
        let are_reviews = transcript.iter().all(|line| line.starts_with("review vc:ke:eve: "));
        assert!(are_reviews && !transcript.is_empty(), "{method} {target}: {transcript:?}");
    }
}

/// Regardless of what the host grants to `system:unauthenticated`.
#[tokio::test(start_paused = true)]
async fn an_anonymous_caller_costs_the_host_nothing() {
    let agent = Scripted::new().await;
    for (method, target) in WRITES.into_iter().chain([("GET", "/api/v1/nodes"), ("GET", "/metrics")]) {
        let response = agent.send(ClientRequest::new(method, target).by_nobody().withholding_body()).await;
        assert_eq!(response.code, 403, "{method} {target}");
        assert_eq!(agent.transcript(), [""; 0], "{method} {target}");
    }
}

/// A bad token costs one TokenReview, and a second request with the same token costs none.
#[tokio::test(start_paused = true)]
async fn a_bad_token_costs_one_review() {
    let agent = Scripted::new().await;
    let reviewed = expect("POST", "/apis/authentication.k8s.io/v1/tokenreviews").as_agent().with("/spec/token", "bad");
    agent.on(reviewed, Reply::json(201, &serde_json::json!({"status": {"authenticated": false}})));
    for target in ["/api/v1/namespaces/edge/configmaps", "/api/v1/namespaces"] {
        let request =
            ClientRequest::new("POST", target).by_nobody().header("authorization", "Bearer bad").withholding_body();
        let (code, reason, _) = agent.send(request).await.refusal();
        assert_eq!((code, &*reason), (401, "Unauthorized"));
    }
}

/// The reviews name the host's names.
#[tokio::test(start_paused = true)]
async fn reviews_are_in_the_namespace_or_in_the_root_namespace() {
    let agent = Scripted::new().await;
    agent.denying(|_| true);
    for (method, target, reviews) in [
        ("POST", "/api/v1/namespaces/edge/pods", &["review vc:ke:eve: create pods in edge-ke"] as &[_]),
        (
            "DELETE",
            "/api/v1/namespaces/edge/pods/a",
            &["review vc:ke:eve: delete pods in edge-ke", "review vc:ke:eve: delete pods a in edge-ke"],
        ),
        (
            "PATCH",
            "/api/v1/namespaces/edge/pods/a/status",
            &["review vc:ke:eve: patch pods/status in edge-ke", "review vc:ke:eve: patch pods/status a in edge-ke"],
        ),
        ("GET", "/api/v1/nodes/beijing-1", &["review vc:ke:eve: get nodes beijing-1 in atoll-root-ke"]),
        ("GET", "/apis/apps/v1/deployments", &["review vc:ke:eve: list deployments.apps in atoll-root-ke"]),
        (
            "GET",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/mine",
            &["review vc:ke:eve: get clusterroles.rbac.authorization.k8s.io vc:ke:mine in atoll-root-ke"],
        ),
        (
            "GET",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
            &["review vc:ke:eve: get clusterroles.rbac.authorization.k8s.io cluster-admin in atoll-root-ke"],
        ),
        (
            "PATCH",
            "/api/v1/namespaces/edge",
            &["review vc:ke:eve: patch namespaces in edge-ke", "review vc:ke:eve: patch namespaces edge-ke in edge-ke"],
        ),
        // The cluster can have no such namespace, so only a right in all namespaces counts.
        ("GET", "/api/v1/namespaces/operators/pods", &["review vc:ke:eve: list pods in atoll-root-ke"]),
    ] {
        agent.send(ClientRequest::new(method, target).by("eve").withholding_body()).await.expect(403);
        assert_eq!(agent.transcript(), reviews, "{method} {target}");
    }
}
