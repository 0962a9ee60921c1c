//! Role-based access control with the roles and bindings in the store (`plugin/pkg/auth/authorizer/rbac`).

mod attributes;
mod escalation;
mod rule;

use std::sync::Arc;

use serde_json::Value;

use super::{MASTERS, User};
use crate::kinds;
use crate::object;
use crate::store::State;
pub(crate) use attributes::RequestAttributes;
pub(crate) use escalation::check_grant;
pub(crate) use rule::PolicyRule;

/// Whether RBAC allows a request.
pub(crate) fn allows(state: &State, user: &User, attributes: &RequestAttributes<'_>) -> bool {
    reason(state, user, attributes).is_some()
}

/// The reason why RBAC allows a request, as SubjectAccessReviews show it. `None` if it does not.
pub(crate) fn reason(state: &State, user: &User, attributes: &RequestAttributes<'_>) -> Option<String> {
    if user.is_in(MASTERS) {
        return Some(String::new());
    }
    grants(state, user, attributes.namespace())
        .find_map(|grant| grant.rules.iter().any(|rule| rule.allows(attributes)).then(|| grant.why()))
}

/// All rules that apply to a user in a namespace, or, without one, in the cluster.
pub(crate) fn rules(state: &State, user: &User, namespace: Option<&str>) -> Vec<PolicyRule> {
    grants(state, user, namespace).flat_map(|grant| grant.rules).collect()
}

/// A binding whose subjects include the user, with the rules of its role.
struct Grant {
    binding: Arc<Value>,
    subject: Value,
    rules: Vec<PolicyRule>,
}

fn grants<'s>(state: &'s State, user: &'s User, namespace: Option<&'s str>) -> impl Iterator<Item = Grant> + 's {
    let wide = state.list(kinds::of("rbac.authorization.k8s.io", "clusterrolebindings"), None);
    let inside =
        namespace.map(|namespace| state.list(kinds::of("rbac.authorization.k8s.io", "rolebindings"), Some(namespace)));
    wide.chain(inside.into_iter().flatten()).filter_map(move |binding| {
        let subject = object::items(&binding["subjects"]).iter().find(|subject| is_subject(subject, user, binding))?;
        let rules = role_rules(state, &binding["roleRef"], object::namespace(binding))?;
        Some(Grant { binding: Arc::clone(binding), subject: subject.clone(), rules })
    })
}

/// The rules of the role that a binding in this namespace (empty: a ClusterRoleBinding) refers to.
pub(crate) fn role_rules(state: &State, role_ref: &Value, namespace: &str) -> Option<Vec<PolicyRule>> {
    let name = role_ref["name"].as_str()?;
    let role = match role_ref["kind"].as_str()? {
        "ClusterRole" => state.get(kinds::of("rbac.authorization.k8s.io", "clusterroles"), "", name),
        "Role" => state.get(kinds::of("rbac.authorization.k8s.io", "roles"), namespace, name),
        _ => None,
    }?;
    Some(PolicyRule::all(&role["rules"]))
}

fn is_subject(subject: &Value, user: &User, binding: &Value) -> bool {
    let Some(name) = subject["name"].as_str() else { return false };
    match subject["kind"].as_str() {
        Some("User") => user.name == name,
        Some("Group") => user.is_in(name),
        Some("ServiceAccount") => {
            let namespace = subject["namespace"].as_str().filter(|namespace| !namespace.is_empty());
            let namespace = namespace.unwrap_or_else(|| object::namespace(binding));
            User::parse_service_account(&user.name) == Some((namespace, name))
        }
        _ => false,
    }
}

// === impl Grant ===

impl Grant {
    /// `RBAC: allowed by RoleBinding "a/b" of ClusterRole "c" to User "d"`
    fn why(&self) -> String {
        let (binding, namespace) = (&self.binding, object::namespace(&self.binding));
        let (kind, at) = if namespace.is_empty() {
            ("ClusterRoleBinding", object::name(binding).to_owned())
        } else {
            ("RoleBinding", format!("{}/{namespace}", object::name(binding)))
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let role = &binding["roleRef"];
        let mut subject = text(&self.subject["name"]);
        if let Some(namespace) = self.subject["namespace"].as_str() {
            subject = format!("{subject}/{namespace}");
        }
        format!(
            "RBAC: allowed by {kind} {at:?} of {} {:?} to {} {subject:?}",
            text(&role["kind"]),
            text(&role["name"]),
            text(&self.subject["kind"]),
        )
    }
}

#[cfg(test)]
mod tests;
