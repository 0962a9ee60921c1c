//! ClusterRoles and ClusterRoleBindings: what a caller may grant, and what reaches the host.

use serde_json::{Value, json};
use test_host::{Received, Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::Scripted;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn role(name: &str) -> Value {
    json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]})
}

/// The same on the host.
fn stored(version: &str) -> Value {
    let mut role = role("vc:ke:mine");
    role["metadata"]["resourceVersion"] = version.into();
    role["metadata"]["labels"] = json!({"atoll.dev/virtual-cluster": "ke"});
    role
}

fn binding(namespace: Option<&str>) -> Value {
    let mut binding = json!({
        "kind": if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" },
        "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": if namespace.is_some() { "vc:ke:mine" } else { "mine" }},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
            "name": if namespace.is_some() { "vc:ke:jane" } else { "jane" }}],
    });
    if let Some(namespace) = namespace {
        binding["metadata"]["namespace"] = namespace.into();
    }
    binding
}

#[tokio::test]
async fn roles_have_other_names_on_the_host_and_shared_ones_do_not() {
    let agent = Scripted::new().await;
    let shared = json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "cluster-admin", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}, "rules": []});
    for (name, host, object) in
        [("mine", "vc:ke:mine", stored("1")), ("cluster-admin", "cluster-admin", shared.clone())]
    {
        let expected = expect("GET", &format!("{RBAC}/clusterroles/{host}")).as_agent();
        let response = agent.exchange(
            ClientRequest::get(&format!("{RBAC}/clusterroles/{name}")),
            expected,
            Reply::json(200, &object),
        );
        assert_eq!(response.await.expect(200).json()["metadata"]["name"], name);
    }
    let others =
        json!({"metadata": {"name": "vc:hz:theirs", "labels": {"atoll.dev/virtual-cluster": "hz"}}, "rules": []});
    let operators = json!({"metadata": {"name": "operators"}, "rules": []});
    let list = json!({"kind": "ClusterRoleList", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {},
        "items": [stored("1"), others, operators, shared]});
    let host = expect("GET", &format!("{RBAC}/clusterroles")).as_agent();
    let response =
        agent.exchange(ClientRequest::get(&format!("{RBAC}/clusterroles")), host, Reply::json(200, &list)).await;
    let items = response.expect(200).json()["items"].clone();
    let names: Vec<_> = items.as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["mine", "cluster-admin"]);
}

/// The host compares the rules of a dry run of the caller. Then the agent stores them.
#[tokio::test(start_paused = true)]
async fn a_role_is_tried_by_its_writer_before_the_agent_stores_it() {
    let agent = Scripted::new().await;
    agent.denying(|question| question.contains(": escalate "));
    let post = |dry: &str| {
        let host = expect("POST", &format!("{RBAC}/clusterroles{dry}")).as_agent().with("/metadata/name", "vc:ke:mine");
        host.with("/metadata/labels/atoll.dev~1virtual-cluster", "ke")
    };
    let attempt = || {
        let target = format!("{RBAC}/namespaces/atoll-root-ke/roles/atoll:attempt?dryRun=All");
        expect("PUT", &target).as_user("vc:ke:admin").with("/rules", role("")["rules"].clone())
    };
    agent.on(post("?dryRun=All"), Reply::json(201, &stored("")));
    agent.on(attempt(), Reply::json(200, &json!({})));
    agent.on(post(""), Reply::json(201, &stored("1")));
    let request = ClientRequest::post(&format!("{RBAC}/clusterroles"), &role("mine"));
    agent.always(canary);
    assert_eq!(agent.send(request.clone()).await.expect(201).json()["metadata"]["name"], "mine");
    // The caller is in a group for the attempt alone.
    let received = agent.take_received();
    let tried = received.iter().find(|received| received.path().contains("/roles/")).unwrap();
    let groups = tried.header("impersonate-group");
    assert_eq!(groups.iter().filter(|group| group.contains("attempt")).count(), 1, "{groups:?}");

    // Without the rights that it grants.
    agent.on(post("?dryRun=All"), Reply::json(201, &stored("")));
    let refused = "roles.rbac.authorization.k8s.io \"atoll:attempt\" is forbidden: user \"vc:ke:admin\" (groups=[]) is attempting \
                   to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}";
    for _ in 0..=caller::authz::SETTLING_ATTEMPTS {
        agent.on(attempt(), Reply::status(403, "Forbidden", refused));
    }
    let (code, _, message) = agent.send(request).await.refusal();
    assert_eq!(code, 403);
    assert!(
        message.starts_with("clusterroles.rbac.authorization.k8s.io \"mine\" is forbidden: user \"admin\""),
        "{message}"
    );
    assert!(message.ends_with("{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"), "{message}");
}

/// What the agent does after an RBAC write: it reads the binding that was written, and mirrors it. Then it writes a
/// canary, and waits until it is in force.
fn canary(received: &Received) -> Option<Reply> {
    let path = received.path();
    if received.user().is_some() || !path.starts_with(RBAC) {
        return None;
    }
    let is_mirror = path.contains("/rolebindings/atoll:crb:");
    match received.method.as_str() {
        "GET" if path.ends_with("/rolebindings/b") => Some(Reply::json(200, &binding(Some("atoll-root-ke")))),
        "GET" if is_mirror => Some(Reply::status(404, "NotFound", "there is no mirror yet")),
        "GET" if path.ends_with("/rolebindings") => Some(Reply::json(200, &json!({"metadata": {}, "items": []}))),
        "DELETE" if is_mirror => Some(Reply::json(200, &json!({}))),
        "PATCH" | "POST" | "PUT" => Some(Reply::json(200, &received.json())),
        _ => None,
    }
}

/// What reaches a ClusterRole of the host must not act there: the host aggregates by labels.
#[tokio::test(start_paused = true)]
async fn aggregation_is_parked() {
    let agent = Scripted::new().await;
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let mut aggregated = role("mine");
    aggregated["metadata"]["labels"] = json!({label: "true"});
    agent.always(canary);
    agent.always(|received| {
        let is_write = received.method == "POST" && received.path().ends_with("/clusterroles");
        is_write.then(|| Reply::json(201, &received.json()))
    });
    let response = agent.send(ClientRequest::post(&format!("{RBAC}/clusterroles"), &aggregated)).await.expect(201);
    assert_eq!(response.json()["metadata"]["labels"], json!({label: "true"}), "the client sees its label");
    let received = agent.take_received();
    let is_write = |received: &&Received| received.method == "POST" && received.path().ends_with("/clusterroles");
    let labels: Vec<_> =
        received.iter().filter(is_write).map(|write| write.json()["metadata"]["labels"].clone()).collect();
    // The dry run and the write.
    assert!(labels.len() == 2 && labels.iter().all(|labels| labels.get(label).is_none()), "{labels:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_role_binding_is_a_role_binding_in_the_root_namespace() {
    let agent = Scripted::new().await;
    agent.denying(|question| question.contains(": bind "));
    let root = format!("{RBAC}/namespaces/atoll-root-ke/rolebindings");
    let post = |dry: &str| {
        let host = expect("POST", &format!("{root}{dry}")).as_agent().with("/kind", "RoleBinding");
        let host = host.with("/metadata/labels/atoll.dev~1virtual-cluster", "ke");
        host.with("/roleRef/name", "vc:ke:mine").with("/subjects/0/name", "vc:ke:jane")
    };
    agent.on(post("?dryRun=All"), Reply::json(201, &binding(Some("atoll-root-ke"))));
    let attempt = expect("PUT", &format!("{root}/atoll:attempt?dryRun=All")).as_user("vc:ke:admin");
    agent.on(attempt.clone().with("/roleRef/name", "vc:ke:mine"), Reply::json(200, &json!({})));
    agent.on(post(""), Reply::json(201, &binding(Some("atoll-root-ke"))));
    agent.always(canary);
    let request = ClientRequest::post(&format!("{RBAC}/clusterrolebindings"), &binding(None));
    assert_eq!(agent.send(request.clone()).await.expect(201).json(), binding(None));
    // Each namespace has the mirror before the client gets its response.
    let transcript = agent.transcript();
    for namespace in ["default", "edge", "kube-node-lease", "kube-public", "kube-system"] {
        let mirrored =
            |line: &String| !line.starts_with("GET") && line.contains(&format!("/{namespace}-ke/rolebindings"));
        assert!(transcript.iter().any(mirrored), "{namespace}: {transcript:?}");
    }
    // The caller may not bind the role.
    agent.on(post("?dryRun=All"), Reply::json(201, &binding(Some("atoll-root-ke"))));
    let refused = "rolebindings.rbac.authorization.k8s.io \"atoll:attempt\" is forbidden: user \"vc:ke:admin\" is attempting \
                   to grant RBAC permissions not currently held:\n{APIGroups:[\"*\"]}";
    for _ in 0..=caller::authz::SETTLING_ATTEMPTS {
        agent.on(attempt.clone(), Reply::status(403, "Forbidden", refused));
    }
    let (code, _, message) = agent.send(request).await.refusal();
    assert_eq!(code, 403);
    assert!(message.starts_with("clusterrolebindings.rbac.authorization.k8s.io \"b\" is forbidden"), "{message}");
}

/// `ValidateClusterRoleBinding` is stricter than `ValidateRoleBinding`.
#[tokio::test]
async fn a_cluster_role_binding_is_validated_as_such() {
    let agent = Scripted::new().await;
    let mut bad = binding(Some("atoll-root-ke"));
    bad["roleRef"]["kind"] = "Role".into();
    let host = expect("POST", &format!("{RBAC}/namespaces/atoll-root-ke/rolebindings?dryRun=All"));
    let request = ClientRequest::post(&format!("{RBAC}/clusterrolebindings"), &binding(None));
    let (code, _, message) = agent.exchange(request, host, Reply::json(201, &bad)).await.refusal();
    assert_eq!(code, 422);
    assert!(message.contains("supported values: \"ClusterRole\""), "{message}");
}

#[tokio::test]
async fn reads_of_bindings_hide_what_is_the_agents() {
    let agent = Scripted::new().await;
    let list = json!({"kind": "RoleBindingList", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {},
        "items": [binding(Some("atoll-root-ke"))]});
    let host =
        expect("GET", &format!("{RBAC}/namespaces/atoll-root-ke/rolebindings?labelSelector=!atoll.dev/internal"));
    let request = ClientRequest::get(&format!("{RBAC}/clusterrolebindings"));
    let response = agent.exchange(request, host.as_agent(), Reply::json(200, &list)).await.expect(200).json();
    assert_eq!(
        (&response["kind"], &response["items"][0]["roleRef"]["name"]),
        (&"ClusterRoleBindingList".into(), &"mine".into())
    );
    for method in ["GET", "DELETE"] {
        let response = agent.send(ClientRequest::new(method, &format!("{RBAC}/clusterrolebindings/atoll:a"))).await;
        assert_eq!(response.code, 404);
    }
}

/// Deletions reach only what is the cluster's.
#[tokio::test(start_paused = true)]
async fn deletions_are_limited_to_the_cluster() {
    let agent = Scripted::new().await;
    agent.always(canary);
    let gone = || Reply::json(200, &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}));
    let list = |kind: &str| {
        let api_version = "rbac.authorization.k8s.io/v1";
        Reply::json(200, &json!({"kind": kind, "apiVersion": api_version, "metadata": {}, "items": []}))
    };
    agent.always(|received| {
        let is_deleted = received.method == "GET" && received.path().ends_with("/rolebindings/b");
        is_deleted.then(|| Reply::status(404, "NotFound", "it is deleted"))
    });
    let root = format!("{RBAC}/namespaces/atoll-root-ke/rolebindings");
    for (path, host, reply) in [
        ("clusterroles/mine", format!("{RBAC}/clusterroles/vc:ke:mine"), gone()),
        (
            "clusterroles?labelSelector=a%3Db",
            format!("{RBAC}/clusterroles?labelSelector=atoll.dev/virtual-cluster=ke,parked.atoll.dev/a=b"),
            list("ClusterRoleList"),
        ),
        ("clusterrolebindings/b", format!("{root}/b"), gone()),
        (
            "clusterrolebindings?labelSelector=a%3Db",
            format!("{root}?labelSelector=a=b,!atoll.dev/internal,!atoll.dev/protected"),
            list("RoleBindingList"),
        ),
    ] {
        agent.on(expect("DELETE", &host).as_agent(), reply);
        agent.send(ClientRequest::delete(&format!("{RBAC}/{path}"))).await.expect(200);
    }
}
