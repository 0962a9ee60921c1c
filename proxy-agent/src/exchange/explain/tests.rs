use std::path::Path;

use http::header;

use super::*;

const CONFIG: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: a.crt, key: a.key, serverCA: s.crt}
host: {kubeconfig: h}
virtualClusters:
- {name: ke-beijing, nodeSelector: {location: beijing}}
";

async fn explained(method: &str, target: &str, body: &'static str) -> Explanation {
    explained_as(method, target, "application/json", body).await
}

async fn explained_as(method: &str, target: &str, media_type: &str, body: &'static str) -> Explanation {
    let config: ProxyAgentConfiguration = ops::config::parse(CONFIG, Path::new("c.yaml")).unwrap();
    let groups = vec!["system:masters".to_owned()];
    let caller = Identity { user: "admin".into(), groups, uid: None, credential: None };
    let request = Request::builder().method(method).uri(target).header(header::CONTENT_TYPE, media_type);
    let request = request.body(Bytes::from(body)).unwrap();
    explain(&config, &"ke-beijing".parse().unwrap(), &caller, request).await.unwrap()
}

fn sent(explanation: &Explanation) -> (&Method, &str, Option<&str>, &Shown) {
    let Outcome::Sent(sent) = &explanation.outcome else { panic!("{explanation:?}") };
    let caller = sent.headers.get("impersonate-user").map(|user| user.to_str().unwrap());
    (&sent.method, &sent.target, caller, &sent.shown)
}

#[tokio::test]
async fn a_list_in_a_namespace_is_the_caller_s() {
    let explanation = explained("GET", "/api/v1/namespaces/edge/pods?limit=5", "").await;
    let user = Some("vc:ke-beijing:admin");
    let shown = Shown::List(Passing::InNamespaces);
    assert_eq!(sent(&explanation), (&Method::GET, "/api/v1/namespaces/edge-ke-beijing/pods?limit=5", user, &shown));
    // The namespace is known, so the host decides when the request arrives there.
    assert_eq!(explanation.questions, []);
}

#[tokio::test]
async fn nodes_are_reviewed_in_the_root_namespace_and_selected() {
    let explanation = explained("GET", "/api/v1/nodes", "").await;
    let shown = Shown::List(Passing::Everything);
    assert_eq!(sent(&explanation), (&Method::GET, "/api/v1/nodes?labelSelector=location%3Dbeijing", None, &shown));
    let Question::Access { user, verb, resource, namespace, .. } = &explanation.questions[0] else { panic!() };
    let found = [user, verb, resource, namespace].map(String::as_str);
    assert_eq!(found, ["vc:ke-beijing:admin", "list", "nodes", "atoll-root-ke-beijing"]);
}

#[tokio::test]
async fn shared_cluster_roles_keep_their_names_and_others_are_the_cluster_s() {
    for (name, host) in [
        ("cluster-admin", "cluster-admin"),
        // Takes in the cluster's own roles, so each has a copy.
        ("view", "vc:ke-beijing:view"),
        ("mine", "vc:ke-beijing:mine"),
    ] {
        let explanation =
            explained("GET", &format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"), "").await;
        let Outcome::Sent(sent) = &explanation.outcome else { panic!("{explanation:?}") };
        assert!(sent.target.replace("%3A", ":").ends_with(&format!("/clusterroles/{host}")), "{}", sent.target);
    }
}

/// Between the dry run and the write, somebody else may have changed what the caller is checked against.
#[tokio::test]
async fn the_checked_version_of_rbac_objects_is_written() {
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/mine";
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/mine";
    let role = r#"{"metadata":{"name":"mine"},"rules":[]}"#;
    for (method, target, media_type, body, sent_as) in [
        ("PUT", path, "application/json", role, Method::PUT),
        ("PATCH", path, "application/merge-patch+json", r#"{"rules":[]}"#, Method::PUT),
        ("PATCH", path, "application/json-patch+json", r#"[{"op":"remove","path":"/immutable"}]"#, Method::PUT),
        (
            "PATCH",
            binding,
            "application/strategic-merge-patch+json",
            r#"{"roleRef":{"kind":"ClusterRole"}}"#,
            Method::PUT,
        ),
        ("PATCH", path, "application/apply-patch+yaml", "metadata: {name: mine}", Method::PATCH),
        ("PATCH", path, "application/apply-patch+yaml", "rules: []", Method::PATCH),
    ] {
        let explanation = explained_as(method, &format!("{target}?fieldManager=a"), media_type, body).await;
        let Outcome::Sent(sent) = &explanation.outcome else { panic!("{method} {body}: {explanation:?}") };
        let written: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
        assert_eq!((&sent.method, &written["metadata"]["resourceVersion"]), (&sent_as, &"1".into()), "{body}");
    }
}

#[tokio::test]
async fn an_object_is_mapped_and_guarded() {
    let pod = r#"{"metadata":{"name":"a","namespace":"edge"},"spec":{"containers":[]}}"#;
    let explanation = explained("POST", "/api/v1/namespaces/edge/pods", pod).await;
    let Outcome::Sent(sent) = &explanation.outcome else { panic!("{explanation:?}") };
    let body: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["metadata"]["namespace"], "edge-ke-beijing");
    assert_eq!(body["spec"]["nodeSelector"]["location"], "beijing");
    let [Question::Access { verb, namespace, .. }] = &explanation.questions[..] else { panic!("{explanation:?}") };
    assert_eq!([verb, namespace].map(String::as_str), ["create", "edge-ke-beijing"]);
}

#[tokio::test]
async fn a_namespace_is_made_in_the_agent_s_name() {
    let explanation = explained("POST", "/api/v1/namespaces", r#"{"metadata":{"name":"edge"}}"#).await;
    let Outcome::Sent(sent) = &explanation.outcome else { panic!("{explanation:?}") };
    assert!(sent.is_namespace_creation && String::from_utf8_lossy(&sent.body).contains("edge-ke-beijing"));
}

#[tokio::test]
async fn refusals_are_the_agent_s() {
    let pod = r#"{"metadata":{"name":"a"},"spec":{"nodeSelector":{"location":"hangzhou"}}}"#;
    for (method, target, body, code) in [
        ("POST", "/api/v1/namespaces/edge/pods", pod, 422),
        ("GET", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/a", "", 404),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/a", "", 403),
        ("DELETE", "/api/v1/nodes/a", "", 403),
        ("GET", "/metrics", "", 403),
    ] {
        let explanation = explained(method, target, body).await;
        let Outcome::Refused(status) = &explanation.outcome else { panic!("{method} {target}: {explanation:?}") };
        assert_eq!(status.code, code, "{target}");
    }
}

#[tokio::test]
async fn objects_that_act_on_the_whole_host_are_hidden() {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    for (query, selector) in [
        ("", "metadata.name=taken.by.somebody.else"),
        ("?fieldSelector=metadata.name%21%3Da", "metadata.name!=a,metadata.name=taken.by.somebody.else"),
        ("?fieldSelector=metadata.name%3Da", "metadata.name=a"),
    ] {
        let explanation = explained("GET", &format!("{path}{query}"), "").await;
        let (_, target, _, shown) = sent(&explanation);
        assert_eq!(shown, &Shown::List(Passing::Nothing));
        let target = target.replace("%3D", "=").replace("%21", "!").replace("%2C", ",");
        assert_eq!(target, format!("{path}?fieldSelector={selector}"));
    }
}

#[tokio::test]
async fn a_dependency_on_the_host_is_reported() {
    let patch = r#"[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]"#;
    let config: ProxyAgentConfiguration = ops::config::parse(CONFIG, Path::new("c.yaml")).unwrap();
    let caller = Identity { user: "jane".into(), groups: Vec::new(), uid: None, credential: None };
    let request = Request::patch("/apis/apps/v1/namespaces/edge/deployments/web")
        .header(header::CONTENT_TYPE, "application/json-patch+json")
        .body(Bytes::from(patch))
        .unwrap();
    let explanation = explain(&config, &"ke-beijing".parse().unwrap(), &caller, request).await.unwrap();
    assert!(explanation.depends_on_the_host(), "{explanation:?}");
}

#[tokio::test]
async fn a_cluster_that_is_none_is_an_error() {
    let config: ProxyAgentConfiguration = ops::config::parse(CONFIG, Path::new("c.yaml")).unwrap();
    let caller = Identity { user: "jane".into(), groups: Vec::new(), uid: None, credential: None };
    let request = Request::get("/api").body(Bytes::new()).unwrap();
    let error = explain(&config, &"other".parse().unwrap(), &caller, request).await.unwrap_err();
    assert!(matches!(error, ExplainError::NoCluster(_)));
}

#[test]
fn scopes_of_kubernetes_own_resources() {
    for (group, resource, namespaced) in [
        ("", "pods", Some(true)),
        ("", "nodes", Some(false)),
        ("apps", "deployments", Some(true)),
        ("certificates.k8s.io", "certificatesigningrequests", Some(false)),
        ("certificates.k8s.io", "podcertificaterequests", Some(true)),
        ("networking.k8s.io", "ipaddresses", Some(false)),
        ("example.com", "widgets", None),
    ] {
        assert_eq!(is_namespaced(group, resource), namespaced, "{resource}.{group}");
    }
}
