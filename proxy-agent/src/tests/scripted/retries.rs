//! A request that is planned again: why, how often, and what the client sees in the end.

use serde_json::{Value, json};
use test_host::{Expected, Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;
use caller::authz::SETTLING_ATTEMPTS;

/// `MaxRetryWhenPatchConflicts` in apiserver's `handlers/patch.go`.
const MAX_CONFLICTS: u32 = 5;

const WEB: &str = "/apis/apps/v1/namespaces/edge/deployments/web";
const HOST_WEB: &str = "/apis/apps/v1/namespaces/edge-ke/deployments/web";
const MODIFIED: &str = "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified";

/// The Deployment on the host, in a version.
fn deployment(version: &str) -> Value {
    json!({
        "kind": "Deployment", "apiVersion": "apps/v1",
        "metadata": {"name": "web", "namespace": "edge-ke", "uid": "u", "resourceVersion": version},
        "spec": {"template": {"spec": {"nodeSelector": {"location": "beijing"}}}},
    })
}

/// A JSON patch of the node selector, which the agent applies itself, because the host's has the guard.
fn select_disk() -> ClientRequest {
    ClientRequest::operations(
        WEB,
        &json!([{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"disk": "ssd"}}]),
    )
}

/// The PUT by which the agent sends the patched object of a version.
fn put(version: &str) -> Expected {
    expect("PUT", HOST_WEB)
        .as_user("vc:ke:admin")
        .with("/metadata/resourceVersion", version)
        .with("/metadata/namespace", "edge-ke")
        .with("/spec/template/spec/nodeSelector", json!({"disk": "ssd", "location": "beijing"}))
}

fn conflict() -> Reply {
    Reply::status(409, "Conflict", MODIFIED)
}

fn forbidden() -> Reply {
    Reply::status(403, "Forbidden", "deployments.apps \"web\" is forbidden: User \"vc:ke:admin\" cannot update it")
}

impl Scripted {
    /// One attempt of [`select_disk`]: the host has this version, and responds to the PUT.
    fn attempt(&self, version: &str, reply: Reply) {
        self.on(expect("GET", HOST_WEB).as_user("vc:ke:admin"), Reply::json(200, &deployment(version)));
        self.on(put(version), reply);
    }

    /// A write of a RoleBinding, after which the host's RBAC settles for two seconds.
    async fn unsettle(&self) {
        let path = |namespace| format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/b");
        let binding = json!({"metadata": {"name": "b", "namespace": "edge-ke"}, "subjects": []});
        self.on(expect("PATCH", &path("edge-ke")).as_user("vc:ke:admin"), Reply::json(200, &binding));
        self.send(ClientRequest::merge(&path("edge"), &json!({"subjects": []}))).await.expect(200);
        self.transcript();
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_about_the_version_that_the_agent_has_added_is_solved() {
    let agent = Scripted::new().await;
    agent.attempt("1", conflict());
    agent.attempt("2", Reply::json(200, &deployment("3")));
    let shown = agent.send(select_disk()).await.expect(200).json();
    assert_eq!(shown["metadata"], json!({"name": "web", "namespace": "edge", "uid": "u", "resourceVersion": "3"}));
    assert_eq!(shown["spec"]["template"]["spec"], json!({}), "the guard is hidden");
}

#[tokio::test(start_paused = true)]
async fn after_the_budget_the_client_gets_the_conflict() {
    let agent = Scripted::new().await;
    for version in 0..=MAX_CONFLICTS {
        agent.attempt(&version.to_string(), conflict());
    }
    let (code, reason, message) = agent.send(select_disk()).await.refusal();
    assert_eq!((code, &*reason, &*message), (409, "Conflict", MODIFIED));
}

/// The version is the client's, so the client must read again.
#[tokio::test(start_paused = true)]
async fn a_conflict_about_the_version_of_the_client_is_final() {
    let agent = Scripted::new().await;
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "resourceVersion": "1"}});
    let host = expect("PUT", "/api/v1/namespaces/edge-ke/configmaps/a").with("/metadata/resourceVersion", "1");
    agent
        .exchange(ClientRequest::put("/api/v1/namespaces/edge/configmaps/a", &map), host, conflict())
        .await
        .expect(409);
}

/// An apply with the agent's version: a conflict of field managers remains, whatever is repeated.
#[tokio::test(start_paused = true)]
async fn a_conflict_about_the_same_version_is_final() {
    let agent = Scripted::new().await;
    let apply = || {
        let object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"},
            "spec": {"replicas": 2}});
        ClientRequest::apply(&format!("{WEB}?fieldManager=a"), &object)
    };
    let managers = "Apply failed with 1 conflict: conflict with \"b\": .spec.replicas";
    let attempt = |version: &str, reply: Reply| {
        agent.on(expect("GET", HOST_WEB).as_agent(), Reply::json(200, &deployment(version)));
        let patch = expect("PATCH", &format!("{HOST_WEB}?fieldManager=a")).as_user("vc:ke:admin");
        agent.on(patch.with("/metadata/resourceVersion", version).with("/metadata/uid", "u"), reply);
    };
    attempt("1", conflict());
    attempt("2", Reply::status(409, "Conflict", managers));
    attempt("2", Reply::status(409, "Conflict", managers));
    assert_eq!(agent.send(apply()).await.refusal(), (409, "Conflict".to_owned(), managers.to_owned()));
    // In another version, it is another conflict.
    attempt("3", conflict());
    attempt("4", Reply::json(200, &deployment("5")));
    agent.send(apply()).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_403_is_repeated_while_rbac_settles() {
    let agent = Scripted::new().await;
    let get = || ClientRequest::get("/api/v1/namespaces/edge/configmaps/a");
    let host = || expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a").as_user("vc:ke:admin");
    agent.exchange(get(), host(), forbidden()).await.expect(403);
    agent.unsettle().await;
    for _ in 0..SETTLING_ATTEMPTS {
        agent.on(host(), forbidden());
    }
    agent.on(host(), Reply::json(200, &json!({"metadata": {"name": "a", "namespace": "edge-ke"}})));
    assert_eq!(agent.send(get()).await.expect(200).json()["metadata"]["namespace"], "edge");
}

#[tokio::test(start_paused = true)]
async fn a_403_is_final_after_the_budget() {
    let agent = Scripted::new().await;
    agent.unsettle().await;
    for _ in 0..=SETTLING_ATTEMPTS {
        agent.on(expect("GET", "/api/v1/namespaces/edge-ke/configmaps/a"), forbidden());
    }
    let (code, reason, message) =
        agent.send(ClientRequest::get("/api/v1/namespaces/edge/configmaps/a")).await.refusal();
    assert_eq!((code, &*reason), (403, "Forbidden"));
    assert!(message.contains("User \"admin\""), "the client sees its own name: {message}");
}

/// The body of a request to a pod's server is not kept, so it cannot be sent again.
#[tokio::test(start_paused = true)]
async fn a_streamed_body_is_sent_once() {
    let agent = Scripted::new().await;
    agent.unsettle().await;
    let request = ClientRequest::post("/api/v1/namespaces/edge/pods/a/proxy/x", &json!({"a": 1}));
    let host = expect("POST", "/api/v1/namespaces/edge-ke/pods/a/proxy/x").as_user("vc:ke:admin").with("/a", 1);
    agent.exchange(request, host, forbidden()).await.expect(403);
}

#[tokio::test(start_paused = true)]
async fn the_budgets_are_independent() {
    let agent = Scripted::new().await;
    agent.unsettle().await;
    let mut version = 0;
    let mut attempt = |reply: Reply| {
        version += 1;
        agent.attempt(&version.to_string(), reply);
    };
    for _ in 0..SETTLING_ATTEMPTS - 1 {
        attempt(forbidden());
    }
    for _ in 0..MAX_CONFLICTS {
        attempt(conflict());
    }
    attempt(forbidden());
    attempt(Reply::json(200, &deployment("9")));
    agent.send(select_disk()).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_cluster_does_not_have_may_be_about_its_node() {
    let agent = Scripted::new().await;
    let event = |node: &str| {
        json!({
            "kind": "Event", "apiVersion": "v1", "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Node", "name": node},
        })
    };
    let missing = || Reply::status(404, "NotFound", "events \"e\" not found");
    for (node, code) in [("beijing-1", 200), ("hangzhou-1", 404)] {
        agent.on(expect("GET", "/api/v1/namespaces/default-ke/events/e").as_user("vc:ke:admin"), missing());
        agent.on(expect("GET", "/api/v1/namespaces/default/events/e").as_agent(), Reply::json(200, &event(node)));
        let response = agent.send(ClientRequest::get("/api/v1/namespaces/default/events/e")).await.expect(code);
        let (shown, is_shown) = (response.json(), code == 200);
        assert_eq!(shown == event(node), is_shown, "{shown}");
    }
    // Neither has it.
    agent.on(expect("GET", "/api/v1/namespaces/default-ke/events/e"), missing());
    agent.on(expect("GET", "/api/v1/namespaces/default/events/e"), missing());
    let (code, _, message) = agent.send(ClientRequest::get("/api/v1/namespaces/default/events/e")).await.refusal();
    assert_eq!((code, &*message), (404, "events \"e\" not found"));
}

/// A write may have been executed before the connection broke.
#[tokio::test(start_paused = true)]
async fn other_refusals_of_the_host_are_final() {
    let agent = Scripted::new().await;
    agent.unsettle().await;
    for (code, reason) in [(400, "BadRequest"), (404, "NotFound"), (422, "Invalid"), (429, "TooManyRequests")] {
        agent.attempt("1", Reply::status(code, reason, "no"));
        assert_eq!(agent.send(select_disk()).await.refusal().0, code);
    }
    for code in [500, 503, 504] {
        agent.attempt("1", Reply::status(code, "InternalError", "no"));
        assert_eq!(agent.send(select_disk()).await.refusal().0, code);
    }
}
