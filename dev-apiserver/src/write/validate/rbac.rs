//! Roles and bindings (`pkg/apis/rbac/validation`).

use kube_wire::status::{CauseType, FieldError};
use serde_json::Value;

use crate::kinds::Kind;
use crate::object;

/// Checks a RoleBinding or ClusterRoleBinding.
pub(super) fn binding(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let role = &object["roleRef"];
    let known: &[&str] = if kind.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if role["name"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    let role_kind = role["kind"].as_str().unwrap_or_default();
    if !known.contains(&role_kind) {
        errors.push(not_supported("roleRef.kind", role_kind, known));
    }
    for (index, subject) in object::items(&object["subjects"]).iter().enumerate() {
        let at = format!("subjects[{index}]");
        if subject["name"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        match subject["kind"].as_str() {
            Some("User" | "Group") => {}
            Some("ServiceAccount") => {
                // In a RoleBinding, the default is the namespace of the binding.
                if !kind.namespaced && subject["namespace"].as_str().is_none_or(str::is_empty) {
                    errors.push(FieldError::required(format!("{at}.namespace"), ""));
                }
            }
            other => {
                let known = ["ServiceAccount", "User", "Group"];
                errors.push(not_supported(format!("{at}.kind"), other.unwrap_or_default(), &known));
            }
        }
    }
}

/// Checks a Role or ClusterRole.
pub(super) fn role(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    for (index, rule) in object::items(&object["rules"]).iter().enumerate() {
        let at = format!("rules[{index}]");
        if object::items(&rule["verbs"]).is_empty() {
            errors.push(FieldError::required(format!("{at}.verbs"), "verbs must contain at least one value"));
        }
        let paths = object::items(&rule["nonResourceURLs"]);
        if !paths.is_empty() {
            if kind.namespaced {
                errors.push(FieldError::invalid(
                    format!("{at}.nonResourceURLs"),
                    rule["nonResourceURLs"].to_string(),
                    "namespaced rules cannot apply to non-resource URLs",
                ));
            }
            continue;
        }
        if object::items(&rule["apiGroups"]).is_empty() {
            errors.push(FieldError::required(
                format!("{at}.apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if object::items(&rule["resources"]).is_empty() {
            errors.push(FieldError::required(
                format!("{at}.resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
}

/// `NotSupported` in apimachinery's `util/validation/field`.
fn not_supported(field: impl Into<String>, value: &str, known: &[&str]) -> FieldError {
    let quoted: Vec<_> = known.iter().map(|known| format!("{known:?}")).collect();
    FieldError {
        cause: CauseType::NotSupported,
        field: field.into(),
        value: Some(value.to_owned()),
        detail: format!("supported values: {}", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use serde_json::json;

    fn messages(resource: &'static str, object: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        binding(kinds::of("rbac.authorization.k8s.io", resource), object, &mut errors);
        errors.iter().map(|error| format!("{} {}", error.field, error.detail)).collect()
    }

    #[test]
    fn bindings_name_a_role_and_their_subjects() {
        let account = json!({"kind": "ServiceAccount", "name": "robot"});
        let object =
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [account, {"kind": "Team", "name": "t"}]});
        let team = r#"subjects[1].kind supported values: "ServiceAccount", "User", "Group""#;
        assert_eq!(messages("rolebindings", &object), [team]);
        let role = r#"roleRef.kind supported values: "ClusterRole""#;
        assert_eq!(messages("clusterrolebindings", &object), [role, "subjects[0].namespace ", team]);
    }
}
