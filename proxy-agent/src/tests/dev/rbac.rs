//! Rights: what a virtual cluster's administrator grants is in force in that cluster, at once, and nowhere else.

use serde_json::{Value, json};

use crate::tests::agent::ClientRequest;
use crate::tests::dev::Dev;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn role(name: &str, verbs: &[&str], group: &str, resource: &str) -> Value {
    json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "rules": [{"verbs": verbs, "apiGroups": [group], "resources": [resource]}]})
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

impl Dev {
    /// The administrator of `ke` grants this to a user.
    async fn grant(&self, name: &str, user: &str, verbs: &[&str], group: &str, resource: &str) {
        let role = role(name, verbs, group, resource);
        self.send(ClientRequest::post(&format!("{RBAC}/clusterroles"), &role)).await.expect(201);
        let binding = binding(name, name, user);
        self.send(ClientRequest::post(&format!("{RBAC}/clusterrolebindings"), &binding)).await.expect(201);
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_is_in_force_at_once_and_in_every_namespace() {
    let dev = Dev::new().await;
    let reads = ["/api/v1/configmaps", "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/new/configmaps"];
    for path in reads {
        let (code, _, message) = dev.send(ClientRequest::get(path).by("jane")).await.refusal();
        assert_eq!(code, 403);
        assert!(message.contains("User \"jane\" cannot list resource \"configmaps\""), "{message}");
    }
    dev.grant("reader", "jane", &["get", "list"], "", "configmaps").await;
    let new = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new"}});
    dev.send(ClientRequest::post("/api/v1/namespaces", &new)).await.expect(201);
    for path in reads {
        dev.send(ClientRequest::get(path).by("jane")).await.expect(200);
        // She is another user in the other cluster.
        assert_eq!(dev.send(ClientRequest::get(path).by("jane").of("hz")).await.code, 403);
    }
    dev.send(ClientRequest::get("/api/v1/secrets").by("jane")).await.expect(403);
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    dev.send(ClientRequest::post("/api/v1/namespaces/new/configmaps", &map).by("jane")).await.expect(403);
    // The host has no binding that is in force everywhere.
    let on_host = dev.on_host(&format!("{RBAC}/clusterrolebindings/reader")).await;
    assert_eq!(on_host, None);
    let role = dev.on_host(&format!("{RBAC}/clusterroles/vc:ke:reader")).await.unwrap();
    assert_eq!(role["rules"][0]["resources"], json!(["configmaps"]));

    dev.send(ClientRequest::delete(&format!("{RBAC}/clusterrolebindings/reader"))).await.expect(200);
    for path in reads {
        assert_eq!(dev.send(ClientRequest::get(path).by("jane")).await.code, 403, "{path}");
    }
}

/// `ConfirmNoEscalation` of the host decides.
#[tokio::test(start_paused = true)]
async fn nobody_grants_more_than_they_have() {
    let dev = Dev::new().await;
    dev.grant("roles", "jane", &["create", "update", "patch"], "rbac.authorization.k8s.io", "clusterroles").await;
    dev.grant("bindings", "jane", &["create"], "rbac.authorization.k8s.io", "clusterrolebindings").await;
    dev.grant("reader", "jane", &["get"], "", "configmaps").await;
    let roles = format!("{RBAC}/clusterroles");
    let bindings = format!("{RBAC}/clusterrolebindings");
    dev.send(ClientRequest::post(&roles, &role("less", &["get"], "", "configmaps")).by("jane")).await.expect(201);
    let (code, _, message) =
        dev.send(ClientRequest::post(&roles, &role("more", &["get"], "", "secrets")).by("jane")).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("is attempting to grant RBAC permissions not currently held"), "{message}");
    assert!(message.contains("\"more\"") && !message.contains("vc:ke"), "{message}");
    let patch = json!([{"op": "add", "path": "/rules/0/resources/-", "value": "secrets"}]);
    dev.send(ClientRequest::operations(&format!("{roles}/less"), &patch).by("jane")).await.expect(403);
    let merge = json!({"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
    dev.send(ClientRequest::merge(&format!("{roles}/less"), &merge).by("jane")).await.expect(403);
    let stored = dev.on_host(&format!("{roles}/vc:ke:less")).await.unwrap();
    assert_eq!(stored["rules"], role("", &["get"], "", "configmaps")["rules"], "a refused write stores nothing");

    dev.send(ClientRequest::post(&bindings, &binding("less", "less", "eve")).by("jane")).await.expect(201);
    let (code, _, message) =
        dev.send(ClientRequest::post(&bindings, &binding("all", "cluster-admin", "jane")).by("jane")).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("clusterrolebindings.rbac.authorization.k8s.io \"all\" is forbidden"), "{message}");
}

/// An update of a binding that the host has not refused is in force in every namespace, too.
#[tokio::test(start_paused = true)]
async fn roles_and_bindings_are_patched_and_deleted() {
    let dev = Dev::new().await;
    dev.grant("reader", "jane", &["get", "list"], "", "configmaps").await;
    let path = format!("{RBAC}/clusterrolebindings/reader");
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]);
    let shown = dev.send(ClientRequest::merge(&path, &json!({"subjects": subjects}))).await.expect(200).json();
    assert_eq!((&shown["kind"], &shown["subjects"]), (&"ClusterRoleBinding".into(), &subjects));
    let maps = "/api/v1/namespaces/default/configmaps";
    dev.send(ClientRequest::get(maps).by("eve")).await.expect(200);
    dev.send(ClientRequest::get(maps).by("jane")).await.expect(403);
    let rules = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]}]);
    dev.send(ClientRequest::merge(&format!("{RBAC}/clusterroles/reader"), &json!({"rules": rules}))).await.expect(200);
    dev.send(ClientRequest::get("/api/v1/namespaces/default/secrets").by("eve")).await.expect(200);
    dev.send(ClientRequest::delete(&format!("{RBAC}/clusterroles/reader"))).await.expect(200);
    dev.send(ClientRequest::get("/api/v1/namespaces/default/secrets").by("eve")).await.expect(403);
    dev.send(ClientRequest::delete(&format!("{RBAC}/clusterrolebindings/cluster-admin"))).await.expect(403);
}

/// By the label, the agent finds the binding on the host. Clients neither see nor remove it.
#[tokio::test(start_paused = true)]
async fn every_write_of_a_binding_keeps_the_label_of_the_cluster() {
    let dev = Dev::new().await;
    dev.grant("reader", "jane", &["get"], "", "configmaps").await;
    let path = format!("{RBAC}/clusterrolebindings/reader");
    let mut put = binding("reader", "reader", "jane");
    put["metadata"]["labels"] = json!({"c": "d"});
    let on_host = format!("{RBAC}/namespaces/atoll-root-ke/rolebindings/reader");
    for (request, labels) in [
        (ClientRequest::merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})), json!({"a": "b"})),
        (ClientRequest::merge(&path, &json!({"metadata": {"labels": null}})), Value::Null),
        (ClientRequest::put(&path, &put), json!({"c": "d"})),
        (ClientRequest::operations(&path, &json!([{"op": "remove", "path": "/metadata/labels"}])), Value::Null),
        (ClientRequest::apply(&format!("{path}?fieldManager=a"), &binding("reader", "reader", "jane")), Value::Null),
    ] {
        let shown = dev.send(request).await.expect(200).json();
        assert_eq!(shown["metadata"]["labels"], labels);
        let stored = dev.on_host(&on_host).await.unwrap();
        assert_eq!(stored["metadata"]["labels"]["atoll.dev/virtual-cluster"], "ke", "{stored}");
    }
    let ours = json!({"metadata": {"labels": {"atoll.dev/virtual-cluster": null}}});
    dev.send(ClientRequest::merge(&path, &ours)).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn reviews_say_what_requests_get() {
    let dev = Dev::new().await;
    dev.grant("reader", "jane", &["list"], "", "configmaps").await;
    for (resource, allowed) in [("configmaps", true), ("secrets", false), ("nodes", false)] {
        let path =
            if resource == "nodes" { "/api/v1/nodes".into() } else { format!("/api/v1/namespaces/default/{resource}") };
        let code = dev.send(ClientRequest::get(&path).by("jane")).await.code;
        let namespace = if resource == "nodes" { "" } else { "default" };
        let attributes = json!({"verb": "list", "resource": resource, "namespace": namespace});
        let own = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes": attributes}});
        let other = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {"user": "jane", "resourceAttributes": attributes}});
        let reviews = "/apis/authorization.k8s.io/v1";
        let own = dev
            .send(ClientRequest::post(&format!("{reviews}/selfsubjectaccessreviews"), &own).by("jane"))
            .await
            .expect(201);
        let other = dev.send(ClientRequest::post(&format!("{reviews}/subjectaccessreviews"), &other)).await.expect(201);
        let answers = [own.json(), other.json()].map(|response| response["status"]["allowed"] == true);
        assert_eq!((code == 200, answers), (allowed, [allowed; 2]), "{resource}");
    }
    dev.send(ClientRequest::post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &json!({})).by("jane"))
        .await
        .expect(403);
}
