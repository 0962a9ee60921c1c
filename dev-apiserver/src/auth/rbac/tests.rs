use super::*;
use crate::store::Store;
use serde_json::json;

const GROUP: &str = "rbac.authorization.k8s.io";

fn attributes<'a>(verb: &'a str, resource: &'a str, namespace: Option<&'a str>) -> RequestAttributes<'a> {
    RequestAttributes::Resource { verb, group: "", resource, subresource: None, namespace, name: None }
}

fn store() -> Store {
    let store = Store::new();
    store.write(|state| {
        state.put(
            kinds::of(GROUP, "clusterroles"),
            json!({"metadata": {"name": "reader"}, "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}]}),
        );
        state.put(
            kinds::of(GROUP, "rolebindings"),
            json!({"metadata": {"name": "b", "namespace": "a"}, "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
                "roleRef": {"kind": "ClusterRole", "name": "reader"}}),
        );
    });
    store
}

fn user(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

#[test]
fn a_binding_applies_only_in_its_namespace() {
    store().read(|state| {
        assert!(allows(state, &user("u"), &attributes("get", "pods", Some("a"))));
        assert!(allows(state, &user("u"), &attributes("get", "pods", Some("a")).below("log")));
        assert!(!allows(state, &user("u"), &attributes("get", "pods", Some("a")).below("exec")));
        assert!(!allows(state, &user("u"), &attributes("get", "pods", Some("b"))));
        assert!(!allows(state, &user("u"), &attributes("get", "pods", None)));
        assert!(!allows(state, &user("u"), &attributes("delete", "pods", Some("a"))));
        assert!(!allows(state, &user("other"), &attributes("get", "pods", Some("a"))));
    });
}

#[test]
fn a_service_account_without_a_namespace_has_that_of_the_binding() {
    store().read(|state| {
        assert!(allows(state, &user("system:serviceaccount:a:s"), &attributes("get", "pods", Some("a"))));
        assert!(!allows(state, &user("system:serviceaccount:b:s"), &attributes("get", "pods", Some("a"))));
    });
}

#[test]
fn users_cannot_grant_rights_that_they_do_not_have() {
    store().read(|state| {
        let roles = kinds::of(GROUP, "roles");
        let role = |verb: &str| {
            json!({"metadata": {"name": "r", "namespace": "a"}, "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]})
        };
        assert!(check_grant(state, &user("u"), roles, &role("get")).is_ok());
        let refused = check_grant(state, &user("u"), roles, &role("delete")).unwrap_err();
        assert!(refused.message.contains("not currently held"), "{refused}");
        assert!(check_grant(state, &user("u"), roles, &role("*")).is_err());
        let binding = json!({"metadata": {"name": "x", "namespace": "a"}, "roleRef": {"kind": "ClusterRole", "name": "reader"}});
        assert!(check_grant(state, &user("u"), kinds::of(GROUP, "rolebindings"), &binding).is_ok());
        assert!(check_grant(state, &user("v"), kinds::of(GROUP, "rolebindings"), &binding).is_err());
    });
}
