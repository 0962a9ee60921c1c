use std::sync::Arc;

use rewrite::Index;

use rewrite::request::OriginalAttributes;
use serde_json::json;

use super::*;

fn mapping() -> Mapping {
    let mut index = Index::new();
    for (host, cluster) in [("edge-ke", "ke"), ("edge-hz", "hz")] {
        index.insert(host.parse().unwrap(), cluster.parse().unwrap(), "edge".parse().unwrap()).unwrap();
    }
    index.insert_host("kube-system".parse().unwrap());
    Mapping::new("ke".parse().unwrap(), Arc::new(index))
}

fn answered(ruling: Ruling, status: &Value) -> Value {
    let answer = ReviewAnswer {
        ruling,
        root: "atoll-root-ke".parse().unwrap(),
        about: OriginalAttributes::default(),
        host_tokens: None,
    };
    let body = json!({"kind": "K", "apiVersion": "v1", "metadata": {}, "spec": {"a": 1}, "status": status});
    let mut answered: Value =
        serde_json::from_slice(&apply(&answer, &mapping(), body.to_string().as_bytes()).unwrap()).unwrap();
    let status = answered["status"].take();
    let mut rest = body;
    rest["status"] = Value::Null;
    assert_eq!(answered, rest);
    status
}

#[test]
fn cluster_wide_bindings_are_called_so() {
    let reason = |binding: &str| {
        let text = format!(r#"RBAC: allowed by {binding} of ClusterRole "a" to Group "vc:ke:b""#);
        answered(Ruling::Host, &json!({"allowed": true, "reason": text}))["reason"].clone()
    };
    let allowed_by =
        |binding: &str| json!(format!(r#"RBAC: allowed by {binding} of ClusterRole "a" to Group "vc:ke:b""#));
    for (host, shown) in [
        (r#"RoleBinding "atoll:crb:cluster-admin/edge-ke""#, r#"ClusterRoleBinding "cluster-admin""#),
        (r#"RoleBinding "a/b/atoll-root-ke""#, r#"ClusterRoleBinding "a/b""#),
        (r#"RoleBinding "jane/edge-ke""#, r#"RoleBinding "jane/edge-ke""#),
        (r#"ClusterRoleBinding "system:basic-user""#, r#"ClusterRoleBinding "system:basic-user""#),
    ] {
        assert_eq!(reason(host), allowed_by(shown), "{host}");
    }
}

#[test]
fn the_agent_knows_paths_and_what_no_role_gives() {
    let (yes, no) = (json!({"allowed": true, "reason": "r"}), json!({"allowed": false, "reason": "r"}));
    assert_eq!(answered(Ruling::Host, &yes), yes);
    assert_eq!(answered(Ruling::Agent(false), &yes), json!({"allowed": false}));
    assert_eq!(answered(Ruling::Agent(true), &no), json!({"allowed": true}));
    assert_eq!(answered(Ruling::Withheld("w"), &yes), json!({"allowed": false, "denied": true, "reason": "w"}));
    assert_eq!(answered(Ruling::Withheld("w"), &no), no);
    assert_eq!(answered(Ruling::Denied("w"), &no), json!({"allowed": false, "denied": true, "reason": "w"}));
}

#[test]
fn a_token_is_good_in_its_own_cluster_only() {
    let status = |namespace: &str| {
        json!({"authenticated": true, "audiences": ["x"], "user": {
            "username": format!("system:serviceaccount:{namespace}:default"), "uid": "u",
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
            "extra": {"k": ["v"]}
        }})
    };
    assert_eq!(answered(Ruling::Token, &status("edge-ke")), status("edge"));
    for foreign in ["edge-hz", "kube-system", "unheard-ke"] {
        let shown = answered(Ruling::Token, &status(foreign));
        assert_eq!(shown, json!({"user": {}, "error": "invalid bearer token"}), "{foreign}");
    }
    let unknown = json!({"user": {}, "error": "[invalid bearer token]"});
    assert_eq!(answered(Ruling::Token, &unknown), unknown);
}
