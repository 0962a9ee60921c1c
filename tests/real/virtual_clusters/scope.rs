//! What is in no namespace, or in several: a virtual cluster shows it as any cluster would.

use anyhow::ensure;
use atoll_tests::{Kubectl, VirtualSite, Way};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, namespace};

/// Questions about rights, which any cluster answers.
fn questions() -> Vec<(&'static str, Value)> {
    let pods = json!({"verb": "list", "resource": "pods"});
    let masters = json!(["dev", "system:masters", "system:authenticated"]);
    vec![
        ("SelfSubjectAccessReview", json!({"resourceAttributes": pods})),
        ("SelfSubjectAccessReview", json!({"resourceAttributes": {"namespace": "", "verb": "*", "resource": "*"}})),
        (
            "SelfSubjectAccessReview",
            json!({"resourceAttributes": {
                "namespace": "kube-system", "verb": "get", "resource": "pods", "subresource": "log", "name": "a"
            }}),
        ),
        ("SelfSubjectAccessReview", json!({"resourceAttributes": {"namespace": "*", "verb": "x", "resource": "pods"}})),
        ("SelfSubjectAccessReview", json!({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}})),
        ("SelfSubjectAccessReview", json!({"nonResourceAttributes": {"path": "/openid/v1/jwks", "verb": "get"}})),
        ("SubjectAccessReview", json!({"user": "nobody", "resourceAttributes": pods})),
        (
            "SubjectAccessReview",
            json!({"user": "a", "groups": masters, "extra": {"k": ["v"]}, "resourceAttributes": pods}),
        ),
        (
            "SubjectAccessReview",
            json!({"user": "system:serviceaccount:kube-system:x", "uid": "u", "resourceAttributes": {
                "namespace": "no-such", "verb": "get", "resource": "namespaces", "name": "default"
            }}),
        ),
        ("SubjectAccessReview", json!({"user": "a", "nonResourceAttributes": {"path": "/api", "verb": "get"}})),
        (
            "SubjectAccessReview",
            json!({"groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/api", "verb": "get"}}),
        ),
        (
            "LocalSubjectAccessReview",
            json!({"groups": masters, "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}}),
        ),
    ]
}

/// The same answers as from the host, to the last managed field; only reasons are the authoriser's own.
pub(super) fn reviews_are_answered_as_anywhere(site: &VirtualSite) -> anyhow::Result<()> {
    let cluster = site.administrator(BEIJING, Way::Proxy)?;
    let host = site.host().kubectl();
    for (kind, spec) in questions() {
        let answer = |kubectl: &Kubectl| {
            let mut answer = ask(kubectl, "authorization.k8s.io", kind, &spec)?;
            if let Some(field) = answer.pointer_mut("/metadata/managedFields/0/time") {
                field.take();
            }
            if let Some(status) = answer["status"].as_object_mut() {
                status.remove("reason");
            }
            anyhow::Ok(answer)
        };
        let (plain, own) = (answer(&host)?, answer(&cluster)?);
        ensure!(plain == own, "{kind} {spec}: the host answers\n{plain}\nand the virtual cluster\n{own}");
    }
    Ok(())
}

pub(super) fn reviews_tell_the_truth(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Way::Proxy)?;
    let jane = site.user(BEIJING, "jane")?;
    let neighbour = site.administrator(HANGZHOU, Way::Proxy)?;
    for cluster in [&admin, &neighbour] {
        cluster.ok_with(&["create", "-f", "-"], &namespace("reviewed"))?;
    }
    admin.ok(&["create", "rolebinding", "judged", "--clusterrole=view", "--user=judged", "-n", "reviewed"])?;
    let review = |kubectl: &Kubectl, user: &str, namespace: &str| {
        let attributes = json!({"verb": "list", "resource": "pods", "namespace": namespace});
        let spec = json!({"user": user, "groups": [user], "resourceAttributes": attributes});
        ask(kubectl, "authorization.k8s.io", "SubjectAccessReview", &spec).map(|mut answer| answer["status"].take())
    };
    let by = |binding: &str, role: &str, whom: &str| json!({"allowed": true, "reason": format!("RBAC: allowed by {binding} of ClusterRole \"{role}\" to {whom}")});
    for (kubectl, user, namespace, expected) in [
        (&admin, "judged", "reviewed", by("RoleBinding \"judged/reviewed\"", "view", "User \"judged\"")),
        (&admin, "judged", "default", json!({"allowed": false})),
        (&admin, "judged", "", json!({"allowed": false})),
        (&neighbour, "judged", "reviewed", json!({"allowed": false})),
        (&admin, "vc:ke-hangzhou:judged", "reviewed", json!({"allowed": false})),
    ] {
        let status = review(kubectl, user, namespace)?;
        ensure!(status == expected, "{user} in {namespace:?}: {status}");
    }
    let of_cluster = by("ClusterRoleBinding \"cluster-admin\"", "cluster-admin", "Group \"system:masters\"");
    for namespace in ["", "reviewed", "no-such", "atoll-root"] {
        let status = review(&admin, "system:masters", namespace)?;
        ensure!(status == of_cluster, "{namespace:?}: {status}");
    }
    // Whoever may not ask is not told.
    let refused = jane.run_with(
        &["create", "--validate=false", "-f", "-"],
        &manifest(
            "authorization.k8s.io",
            "SubjectAccessReview",
            &json!({"user": "judged", "resourceAttributes": {"verb": "get"}}),
        ),
    )?;
    ensure!(refused.stderr.contains("cannot create resource \"subjectaccessreviews\""), "{refused:?}");
    // What no role gives is not promised.
    for (args, why) in [
        (["create", "nodes"], "nodes belong to the operator of the host cluster"),
        (["get", "/metrics"], "shows the whole host cluster"),
    ] {
        let refused = admin.fails(&["auth", "can-i", args[0], args[1]])?;
        ensure!(refused.contains("no - ") && refused.contains(why), "{args:?}: {refused}");
    }
    Ok(())
}

pub(super) fn tokens_are_reviewed_at_home(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Way::Proxy)?;
    let neighbour = site.administrator(HANGZHOU, Way::Proxy)?;
    let review = |kubectl: &Kubectl| {
        let token = kubectl.ok(&["create", "token", "default", "-n", "kube-public"])?;
        let answer = ask(&admin, "authentication.k8s.io", "TokenReview", &json!({"token": token}))?;
        ensure!(answer["spec"]["token"] == token, "{answer}");
        Ok(answer["status"].clone())
    };
    let status = review(&admin)?;
    let user = &status["user"];
    ensure!(status["authenticated"] == true, "{status}");
    ensure!(user["username"] == "system:serviceaccount:kube-public:default", "{status}");
    let groups = json!(["system:serviceaccounts", "system:serviceaccounts:kube-public", "system:authenticated"]);
    ensure!(user["groups"] == groups && user["uid"].is_string() && user["extra"].is_object(), "{status}");
    for stranger in [&neighbour, &site.host().kubectl()] {
        let status = review(stranger)?;
        ensure!(status == json!({"user": {}, "error": "invalid bearer token"}), "{status}");
    }
    Ok(())
}

fn manifest(group: &str, kind: &str, spec: &Value) -> String {
    // kubectl looks for the namespace of what is made in one; elsewhere the API server takes no notice of it.
    let metadata = if kind.starts_with("Local") { json!({"namespace": "default"}) } else { json!({}) };
    json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata, "spec": spec}).to_string()
}

fn ask(kubectl: &Kubectl, group: &str, kind: &str, spec: &Value) -> anyhow::Result<Value> {
    let args = ["create", "-f", "-", "-o", "json", "--show-managed-fields"];
    Ok(serde_json::from_str(&kubectl.ok_with(&args, &manifest(group, kind, spec))?)?)
}
