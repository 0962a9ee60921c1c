//! Privilege escalation prevention: users can write and bind roles only with rights that they have themselves
//! (`pkg/registry/rbac`).

use kube_wire::Status;
use serde_json::Value;

use super::{PolicyRule, RequestAttributes, allows, role_rules, rules};
use crate::auth::{MASTERS, User};
use crate::kinds::Kind;
use crate::object;
use crate::store::State;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a role or a binding before it is stored.
pub(crate) fn check_grant(state: &State, user: &User, kind: &Kind, object: &Value) -> Result<(), Status> {
    if kind.group != GROUP || user.is_in(MASTERS) {
        return Ok(());
    }
    let namespace = Some(object::namespace(object)).filter(|namespace| !namespace.is_empty());
    let (verb, resource, name, granted) = match kind.resource {
        "roles" | "clusterroles" => {
            ("escalate", kind.resource, object::name(object), PolicyRule::all(&object["rules"]))
        }
        _ => {
            let role = &object["roleRef"];
            let resource = if role["kind"] == "ClusterRole" { "clusterroles" } else { "roles" };
            let name = role["name"].as_str().unwrap_or_default();
            let Some(granted) = role_rules(state, role, object::namespace(object)) else {
                // As in kube-apiserver, a user without the right to bind gets 404.
                let resource = kube_wire::gvr::GroupResource { group: GROUP, resource };
                let attributes = bind(GROUP, resource.resource, namespace, name);
                return if allows(state, user, &attributes) { Ok(()) } else { Err(Status::not_found(resource, name)) };
            };
            ("bind", resource, name, granted)
        }
    };
    let attributes =
        RequestAttributes::Resource { verb, group: GROUP, resource, subresource: None, namespace, name: Some(name) };
    if allows(state, user, &attributes) {
        return Ok(());
    }
    let own = rules(state, user, namespace);
    let missing: Vec<_> = granted.iter().flat_map(single).filter(|rule| !is_covered(&own, rule)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = missing.iter().map(shown).collect();
    let sentence = format!(
        "user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        user.groups,
        shown.join("\n")
    );
    Err(Status::forbidden_because(kind.group_resource(), object::name(object), &sentence))
}

fn bind<'a>(group: &'a str, resource: &'a str, namespace: Option<&'a str>, name: &'a str) -> RequestAttributes<'a> {
    RequestAttributes::Resource { verb: "bind", group, resource, subresource: None, namespace, name: Some(name) }
}

/// Splits a rule into rules with one verb, one group, one resource and one name each (`BreakdownRule`).
fn single(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut singles = Vec::new();
    for verb in &rule.verbs {
        for url in &rule.non_resource_urls {
            singles.push(PolicyRule {
                verbs: vec![verb.clone()],
                non_resource_urls: vec![url.clone()],
                ..PolicyRule::default()
            });
        }
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let names: Vec<Vec<String>> = match rule.resource_names.as_slice() {
                    [] => vec![Vec::new()],
                    names => names.iter().map(|name| vec![name.clone()]).collect(),
                };
                singles.extend(names.into_iter().map(|resource_names| PolicyRule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    resource_names,
                    ..PolicyRule::default()
                }));
            }
        }
    }
    singles
}

/// Whether one of the user's rules covers a rule of [`single`]. Only `*` covers `*`.
fn is_covered(own: &[PolicyRule], rule: &PolicyRule) -> bool {
    let first = |texts: &[String]| texts.first().cloned().unwrap_or_default();
    let verb = first(&rule.verbs);
    if let Some(url) = rule.non_resource_urls.first() {
        let attributes = RequestAttributes::Path { verb: &verb, path: url };
        return own.iter().any(|own| own.allows(&attributes));
    }
    let (group, resource) = (first(&rule.api_groups), first(&rule.resources));
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (resource.as_str(), None),
    };
    let name = rule.resource_names.first().map(String::as_str);
    let attributes =
        RequestAttributes::Resource { verb: &verb, group: &group, resource, subresource, namespace: None, name };
    own.iter().any(|own| own.allows(&attributes))
}

/// The rule in the form of `CompactString`.
fn shown(rule: &PolicyRule) -> String {
    let mut parts = Vec::new();
    for (name, texts) in [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("ResourceNames", &rule.resource_names),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("Verbs", &rule.verbs),
    ] {
        if !texts.is_empty() {
            parts.push(format!("{name}:{texts:?}"));
        }
    }
    format!("{{{}}}", parts.join(", "))
}
