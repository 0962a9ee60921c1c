//! Objects that a tenant stores, and requests for them.

use anyhow::ensure;
use serde_json::{Map, Value, json};

use super::paths::{JSON, MERGE_PATCH, RBAC};
use super::repeat::texts;
use crate::attack::Attack;
use crate::site::AttackSite;
use crate::traffic::{CONFIG_MAPS, Credential, NUMBER, RequestTemplate, Traffic};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACES: &str = "/api/v1/namespaces";

pub(super) static ATTACKS: &[Attack] = &[
    Attack::new("discovery", "100 requests/s for kinds that do not exist", || {
        let path = format!("/apis/nobody{NUMBER}.example.com/v1/namespaces/default/things");
        Traffic::Requests(
            100,
            [Credential::None, Credential::User, Credential::Admin]
                .map(|credential| RequestTemplate::new(credential, "GET", &path))
                .into(),
        )
    }),
    Attack::new("documents", "8 discovery and OpenAPI documents/s, in all formats", || {
        let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        let of = |path: &str| RequestTemplate::new(Credential::User, "GET", path);
        let openapi = of("/openapi/v2");
        let all = [
            openapi.clone(),
            openapi.accepting(protobuf),
            of("/openapi/v3/apis/apps/v1"),
            of("/apis").accepting(aggregated),
        ];
        Traffic::Requests(8, all.into())
    }),
    Attack::new("remembered-reviews", "100 access reviews/s whose responses contain a role name of 60 KB", || {
        let attributes = json!({"verb": "get", "resource": "configmaps", "namespace": "default", "name": NUMBER});
        let review =
            RequestTemplate::new(Credential::User, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
                .with(JSON, json!({"spec": {"resourceAttributes": attributes}}).to_string());
        Traffic::Requests(
            100,
            vec![review, RequestTemplate::new(Credential::User, "GET", &format!("{CONFIG_MAPS}/{NUMBER}"))],
        )
    })
    .after(long_role),
    Attack::new("selectors-of-roles", "5 lists/s of ClusterRoles of 6,000 labels by a selector of 6,000", || {
        let path = format!("{RBAC}/clusterroles?labelSelector={}", texts("l", 6_000).join(","));
        Traffic::Requests(5, vec![RequestTemplate::new(Credential::Admin, "GET", &path)])
    })
    .after(labelled_roles),
    Attack::new("aggregation", "4 changes/s of ClusterRoles of 2,500 rules that another one aggregates", || {
        let parts = texts("part-", 4).into_iter();
        Traffic::Requests(4, parts.map(|part| annotate(&format!("{RBAC}/clusterroles/{part}"))).collect())
    })
    .after(aggregated),
    Attack::new("large-roles", "300 ClusterRoles of 500 KB, and 20 reads/s", || {
        Traffic::Requests(
            20,
            vec![RequestTemplate::new(Credential::Admin, "GET", &format!("{RBAC}/clusterroles?limit=1"))],
        )
    })
    .after(large_roles),
    Attack::new("large-bindings", "120 ClusterRoleBindings of 500 KB, and 20 reads/s", || {
        Traffic::Requests(
            20,
            vec![RequestTemplate::new(Credential::Admin, "GET", &format!("{RBAC}/clusterrolebindings?limit=1"))],
        )
    })
    .after(large_bindings),
    Attack::new("many-subjects", "4 ClusterRoleBindings/s of 48,000 subjects", || {
        let path = format!("{RBAC}/clusterrolebindings");
        Traffic::Requests(
            4,
            vec![RequestTemplate::new(Credential::Admin, "POST", &path).with(JSON, many_subjects().to_string())],
        )
    }),
    Attack::new("stored-subjects", "1 change/s of a stored ClusterRoleBinding of 48,000 subjects", || {
        Traffic::Requests(1, vec![annotate(&format!("{RBAC}/clusterrolebindings/many"))])
    })
    .after(stored_subjects),
    Attack::new("large-namespaces", "300 Namespaces with annotations of 250 KB, and 2 reads/s", || {
        Traffic::Requests(2, vec![RequestTemplate::new(Credential::Admin, "GET", &format!("{NAMESPACES}?limit=10"))])
    })
    .after(large_namespaces),
    Attack::new("mirrors", "1 ClusterRoleBinding/s that is mirrored into 100 namespaces", || {
        let binding =
            json!({"metadata": {"generateName": "mirrored-"}, "roleRef": role_ref(), "subjects": [user(NUMBER)]});
        let path = format!("{RBAC}/clusterrolebindings");
        Traffic::Requests(
            1,
            vec![RequestTemplate::new(Credential::Admin, "POST", &path).with(JSON, binding.to_string())],
        )
    })
    .after(|site| site.create_all(NAMESPACES, 100, &json!({"metadata": {"name": "mirrored"}}))),
    Attack::new("definitions", "40 definitions with annotations of 250 KB, and 4 requests/s for them", || {
        let requests = vec![
            RequestTemplate::new(Credential::Admin, "GET", DEFINITIONS),
            RequestTemplate::new(Credential::User, "GET", "/openapi/v2"),
            RequestTemplate::new(Credential::User, "GET", &format!("/apis/nobody{NUMBER}.example.com/v1")),
            annotate(&format!("{DEFINITIONS}/things0.definitions.example.com")),
        ];
        Traffic::Requests(4, requests)
    })
    .after(definitions),
    Attack::new(
        "small-patches-of-large-objects",
        "20 changes/s of a definition of 20,000 properties, of 45 bytes each",
        || Traffic::Requests(20, vec![annotate(&format!("{DEFINITIONS}/things.dense.example.com"))]),
    )
    .after(dense_definition),
];

/// A patch with a different value for each request.
fn annotate(path: &str) -> RequestTemplate {
    let patch = json!({"metadata": {"annotations": {"changed": NUMBER}}});
    RequestTemplate::new(Credential::Admin, "PATCH", path).with(MERGE_PATCH, patch.to_string())
}

fn role_ref() -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

fn long_role(site: &AttackSite) -> anyhow::Result<()> {
    let name = "r".repeat(60_000);
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]);
    site.create(&format!("{RBAC}/clusterroles"), &json!({"metadata": {"name": name}, "rules": rules}))?;
    site.bind_user(&name)
}

fn labelled_roles(site: &AttackSite) -> anyhow::Result<()> {
    let labels: Map<String, Value> = texts("l", 6_000).into_iter().map(|label| (label, json!(""))).collect();
    texts("labelled-", 10).iter().try_for_each(|name| {
        site.create(
            &format!("{RBAC}/clusterroles"),
            &json!({"metadata": {"name": name, "labels": labels}, "rules": []}),
        )
    })
}

fn aggregated(site: &AttackSite) -> anyhow::Result<()> {
    let path = format!("{RBAC}/clusterroles");
    let rule = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "of-sum"}}]});
    site.create(&path, &json!({"metadata": {"name": "sum"}, "aggregationRule": rule, "rules": []}))?;
    texts("part-", 4).iter().try_for_each(|part| {
        let resources = texts(part, 2_500).into_iter();
        let rules: Value =
            resources.map(|of| json!({"verbs": ["get"], "apiGroups": [""], "resources": [of]})).collect();
        site.create(&path, &json!({"metadata": {"name": part, "labels": {"part": "of-sum"}}, "rules": rules}))
    })
}

fn large_roles(site: &AttackSite) -> anyhow::Result<()> {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["x".repeat(500_000)]}]);
    site.create_all(&format!("{RBAC}/clusterroles"), 300, &json!({"metadata": {"name": "large"}, "rules": rules}))
}

fn large_bindings(site: &AttackSite) -> anyhow::Result<()> {
    let subjects = [user(&"x".repeat(500_000))];
    let binding = json!({"metadata": {"name": "large"}, "roleRef": role_ref(), "subjects": subjects});
    site.create_all(&format!("{RBAC}/clusterrolebindings"), 120, &binding)
}

/// The maximum number of subjects in a body. Parsed small objects need many times the memory of their JSON.
fn many_subjects() -> Value {
    let subject = json!({"kind": "ServiceAccount", "name": "a", "namespace": "b"});
    json!({"metadata": {"generateName": "many-"}, "roleRef": role_ref(), "subjects": vec![subject; 48_000]})
}

/// Stores the object directly on the host, as if an earlier version had accepted it.
fn stored_subjects(site: &AttackSite) -> anyhow::Result<()> {
    let mut binding = many_subjects();
    binding["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    binding["kind"] = "RoleBinding".into();
    let labels = json!({"atoll.dev/virtual-cluster": site.cluster});
    binding["metadata"] =
        json!({"name": "many", "namespace": format!("atoll-root-{}", site.cluster), "labels": labels});
    site.host().ok_with(&["create", "-f", "-"], &binding.to_string()).map(drop)
}

fn large_namespaces(site: &AttackSite) -> anyhow::Result<()> {
    let annotations = json!({"text": "x".repeat(250_000)});
    site.create_all(NAMESPACES, 300, &json!({"metadata": {"name": "large", "annotations": annotations}}))
}

fn definitions(site: &AttackSite) -> anyhow::Result<()> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    (0..40).try_for_each(|number| {
        let names = json!({"plural": format!("things{number}"), "singular": format!("thing{number}"), "kind": format!("Thing{number}")});
        let metadata = json!({"name": format!("things{number}.definitions.example.com"), "annotations": {"text": "x".repeat(250_000)}});
        let spec = json!({"group": "definitions.example.com", "scope": "Namespaced", "names": names, "versions": [version]});
        site.create(DEFINITIONS, &json!({"metadata": metadata, "spec": spec}))
    })?;
    // The host computes the OpenAPI document after the first request for it, with or without Atoll.
    let response = site.curl.get("/openapi/v2")?;
    ensure!(response.code == 200, "/openapi/v2: {}", response.code);
    Ok(())
}

/// A definition of half a megabyte. Its parsed form needs thirty times as much memory.
fn dense_definition(site: &AttackSite) -> anyhow::Result<()> {
    let properties: Map<String, Value> =
        texts("p", 20_000).into_iter().map(|name| (name, json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing"});
    let spec = json!({"group": "dense.example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    site.create(DEFINITIONS, &json!({"metadata": {"name": "things.dense.example.com"}, "spec": spec}))
}
