//! When the mirrors of a namespace that is being deleted can be released.
//!
//! ```text
//! DELETE namespace -> (5 s) the namespace controller deletes all content; mirrors get a deletionTimestamp and stay
//!   -> content with finalizers stays too: clients can still see and repair it, because mirrors are still in force
//!      (RBAC does not look at deletionTimestamp)
//!   -> status says that RoleBindings are all that is left, and all of those are mirrors -> we release them
//!   -> (5 s) the namespace controller finds nothing and removes its own finalizer
//! ```
//! The numbers and texts are those of pkg/controller/namespace (`namespaceDeletionGracePeriod`,
//! `deletion/status_condition_utils.go`), the same since 1.16.

use serde_json::Value;

/// The text before the list in the message of `SomeResourcesRemain`.
const REMAINING: &str = "Some resources are remaining: ";
/// The entry for RoleBindings in that list, without their number.
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io has ";

/// Whether only RoleBindings keep the Namespace, by its status. If in doubt, `false`: users can repair a namespace that
/// does not end as long as the mirrors give them their rights.
pub(super) fn only_bindings_remain(namespace: &Value) -> bool {
    let is_ending = !namespace["metadata"]["deletionTimestamp"].is_null();
    // Users who have to remove other finalizers need the rights from the mirrors.
    let has_finalizers = !is_empty(&namespace["metadata"]["finalizers"]);
    let others = namespace["spec"]["finalizers"].as_array().into_iter().flatten();
    let awaits_others = others.into_iter().any(|finalizer| finalizer != "kubernetes");
    is_ending && !has_finalizers && !awaits_others && is_content_gone(&namespace["status"]["conditions"])
}

fn is_content_gone(conditions: &Value) -> bool {
    let condition = |kind: &str| {
        let mut conditions = conditions.as_array().into_iter().flatten();
        conditions.find(|condition| condition["type"] == kind)
    };
    // Resources that could not be discovered or deleted are not counted below.
    let failures = [
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
    ];
    if failures.into_iter().any(|kind| condition(kind).is_some_and(|condition| condition["status"] != "False")) {
        return false;
    }
    condition("NamespaceContentRemaining").is_some_and(|remaining| match remaining["status"].as_str() {
        Some("False") => true,
        Some("True") => remaining["message"].as_str().is_some_and(names_only_bindings),
        _ => false,
    })
}

fn names_only_bindings(message: &str) -> bool {
    message.strip_prefix(REMAINING).is_some_and(|list| list.split(", ").all(|entry| entry.starts_with(BINDINGS)))
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ending(remaining: &str) -> Value {
        json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Terminating", "conditions": [
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "All resources successfully discovered"},
                {"type": "NamespaceDeletionContentFailure", "status": "False"},
                {"type": "NamespaceContentRemaining", "status": "True", "message": remaining},
            ]},
        })
    }

    const OURS: &str = "Some resources are remaining: rolebindings.rbac.authorization.k8s.io has 2 resource instances";

    #[test]
    fn mirrors_are_released_last() {
        assert!(only_bindings_remain(&ending(OURS)));
        for more in ["configmaps. has 1 resource instances, ", "pods. has 1 resource instances, "] {
            let message = OURS.replace("rolebindings", &format!("{more}rolebindings"));
            assert!(!only_bindings_remain(&ending(&message)), "{message}");
        }
        assert!(!only_bindings_remain(&ending("Etwas bleibt")));
        assert!(!only_bindings_remain(&ending("")));
    }

    #[test]
    fn mirrors_are_kept_while_they_may_be_needed() {
        let changes: [fn(&mut Value); 6] = [
            |namespace| namespace["metadata"] = json!({}),
            |namespace| namespace["metadata"]["finalizers"] = json!(["example.com/wait"]),
            |namespace| namespace["spec"]["finalizers"] = json!(["kubernetes", "example.com/wait"]),
            |namespace| namespace["status"]["conditions"][0]["status"] = json!("True"),
            |namespace| namespace["status"]["conditions"][1]["status"] = json!("True"),
            |namespace| namespace["status"]["conditions"] = json!([]),
        ];
        for change in changes {
            let mut namespace = ending(OURS);
            change(&mut namespace);
            assert!(!only_bindings_remain(&namespace), "{namespace}");
        }
    }

    #[test]
    fn an_empty_namespace_can_be_released() {
        let mut namespace = ending("All content successfully removed");
        namespace["status"]["conditions"][2]["status"] = json!("False");
        assert!(only_bindings_remain(&namespace));
    }
}
