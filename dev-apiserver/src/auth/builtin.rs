//! The roles and bindings of a new cluster (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`), reduced to the kinds that
//! this server has.

use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];
const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The default ClusterRoles.
pub(crate) fn cluster_roles() -> Vec<Value> {
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    let paths = |paths: &[&str]| json!([{"nonResourceURLs": paths, "verbs": ["get"]}]);
    let health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let discovery = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"];
    let (view, edit) = (view(), [edit(), view()].concat());
    let admin = [admin(), edit.clone()].concat();
    vec![
        role("cluster-admin", everything),
        role("admin", admin.into()),
        role("edit", edit.into()),
        role("view", view.into()),
        role("system:discovery", paths(&[&discovery[..], &health].concat())),
        role("system:public-info-viewer", paths(&health)),
        role(
            "system:basic-user",
            json!([
                rule("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"], &["create"]),
                rule("authentication.k8s.io", &["selfsubjectreviews"], &["create"]),
            ]),
        ),
    ]
}

/// The default ClusterRoleBindings.
pub(crate) fn cluster_role_bindings() -> Vec<Value> {
    vec![
        binding("cluster-admin", &[super::MASTERS]),
        binding("system:basic-user", &[super::AUTHENTICATED]),
        binding("system:discovery", &[super::AUTHENTICATED]),
        binding("system:public-info-viewer", &[super::AUTHENTICATED, super::UNAUTHENTICATED]),
    ]
}

fn view() -> Vec<Value> {
    let core = [
        "bindings",
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "namespaces/status",
        "persistentvolumeclaims",
        "persistentvolumeclaims/status",
        "pods",
        "pods/log",
        "pods/status",
        "replicationcontrollers",
        "resourcequotas",
        "resourcequotas/status",
        "serviceaccounts",
        "services",
        "services/status",
    ];
    let apps = [
        "controllerrevisions",
        "daemonsets",
        "daemonsets/status",
        "deployments",
        "deployments/scale",
        "deployments/status",
        "replicasets",
        "replicasets/scale",
        "replicasets/status",
        "statefulsets",
        "statefulsets/scale",
        "statefulsets/status",
    ];
    vec![
        rule("", &core, &READ),
        rule("apps", &apps, &READ),
        rule("autoscaling", &["horizontalpodautoscalers", "horizontalpodautoscalers/status"], &READ),
        rule("batch", &["cronjobs", "cronjobs/status", "jobs", "jobs/status"], &READ),
        rule("discovery.k8s.io", &["endpointslices"], &READ),
        rule("networking.k8s.io", &["ingresses", "ingresses/status", "networkpolicies"], &READ),
        rule("policy", &["poddisruptionbudgets", "poddisruptionbudgets/status"], &READ),
    ]
}

fn edit() -> Vec<Value> {
    let streams = ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"];
    let core = [
        "configmaps",
        "events",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "secrets",
        "serviceaccounts",
        "services",
    ];
    let apps = [
        "daemonsets",
        "deployments",
        "deployments/scale",
        "replicasets",
        "replicasets/scale",
        "statefulsets",
        "statefulsets/scale",
    ];
    vec![
        rule("", &[&streams[..], &["secrets"]].concat(), &READ),
        rule("", &["serviceaccounts"], &["impersonate"]),
        rule("", &[&streams[..], &core].concat(), &WRITE),
        rule("", &["pods/eviction", "serviceaccounts/token"], &["create"]),
        rule("apps", &apps, &WRITE),
        rule("autoscaling", &["horizontalpodautoscalers"], &WRITE),
        rule("batch", &["cronjobs", "jobs"], &WRITE),
        rule("coordination.k8s.io", &["leases"], &ALL),
        rule("networking.k8s.io", &["ingresses", "networkpolicies"], &WRITE),
        rule("policy", &["poddisruptionbudgets"], &WRITE),
    ]
}

fn admin() -> Vec<Value> {
    vec![
        rule("authorization.k8s.io", &["localsubjectaccessreviews"], &["create"]),
        rule(GROUP, &["rolebindings", "roles"], &ALL),
    ]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

#[expect(clippy::needless_pass_by_value, reason = "callers create the rules for this call")]
fn role(name: &str, rules: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRole",
        "metadata": metadata(name),
        "rules": rules,
    })
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<_> =
        groups.iter().map(|group| json!({"apiGroup": GROUP, "kind": "Group", "name": group})).collect();
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": metadata(role),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}

/// The agent of a virtual cluster finds built-in roles by this label.
fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}
