//! The limits for what a virtual cluster stores.

use std::collections::BTreeMap;
use std::iter;

use rewrite::ClusterName;
use rewrite::name::CLUSTER_LABEL;
use serde_json::{Value, json};

use super::vocabulary::{everywhere, in_members};
use crate::admission_policies::policy::{literal, rule, validation_saying, variable};
use crate::namespaces::Full;
use crate::provisioner::MIRROR_LABEL;

/// Groups whose objects are not stored.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// The limits for bytes, which apply to all resources.
const BYTES: [&str; 2] = [Full::STORAGE, Full::WRITTEN];

/// Refuses creations in virtual clusters that have reached a limit, also by controllers: like a ResourceQuota, but for a
/// whole virtual cluster, and without a write for each creation. Other virtual clusters are not selected, so their
/// requests cost only a comparison of a label.
///
/// If the limit is one for bytes, the policy also refuses updates: an object can grow, and each version takes space. The
/// policy does not know how large an object is. Host-wide identities only write statuses. Without updates, finalizers could
/// not be removed, so an update of an object that is being deleted is permitted if it removes one. No API server accepts new
/// finalizers for such an object.
///
/// Copies of ClusterRoleBindings have limits of their own. Only the agent can write their label.
pub(super) fn kept(full: &BTreeMap<ClusterName, Full>) -> Value {
    let are_bytes_full = full.values().any(|full| full.limits().any(|(name, _)| BYTES.contains(&name)));
    let mut rules = vec![rule("*", &["*"], &["CREATE"])];
    if are_bytes_full {
        rules.push(rule("*", &["*/*"], &["UPDATE"]));
    }
    let mut constraints = in_members(&rules);
    // The host would refuse an empty list. No namespace has this label with an empty value.
    let clusters = if full.is_empty() { vec![""] } else { full.keys().map(ClusterName::as_str).collect() };
    constraints["namespaceSelector"] =
        json!({"matchExpressions": [{"key": CLUSTER_LABEL, "operator": "In", "values": clusters}]});
    constraints["excludeResourceRules"] = REVIEWS.iter().map(|group| rule(group, &["*/*"], &["*"])).collect();
    let limits = format!("{}[namespaceObject.metadata.labels[{}]]", map_of(full), literal(CLUSTER_LABEL));
    // The host serves Events in two groups.
    let name = "request.resource.group in ['', 'events.k8s.io'] ? request.resource.resource \
        : request.resource.resource + '.' + request.resource.group";
    let is_mirror = format!(
        "request.resource.resource == 'rolebindings' && object.metadata.?labels[?{}].hasValue()",
        literal(MIRROR_LABEL)
    );
    let finalizers = |object: &str| format!("{object}.metadata.?finalizers.orValue([]).size()");
    let removes_finalizer = format!(
        "oldObject.metadata.?deletionTimestamp.hasValue() && {} < {}",
        finalizers("object"),
        finalizers("oldObject")
    );
    let objects = validation_saying(
        "request.operation != 'CREATE' || !(variables.name in variables.limits) || variables.mirror",
        "'exceeded quota: atoll, requested: count/' + variables.name + '=1, limited: count/' + variables.name \
         + '=' + variables.limits[variables.name]",
        "exceeded quota: atoll",
    );
    let bytes = BYTES.map(|name| {
        let key = literal(name);
        validation_saying(
            &format!(
                "!({key} in variables.limits) || variables.mirror || request.operation == 'UPDATE' \
                 && (variables.removesFinalizer || variables.everywhere)"
            ),
            &format!("'exceeded quota: atoll, limited: {name}=' + variables.limits[{key}]"),
            "exceeded quota: atoll",
        )
    });
    let validations: Vec<_> = iter::once(objects).chain(bytes).collect();
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        "variables": [
            variable("limits", &limits), variable("name", name), variable("mirror", &is_mirror),
            variable("removesFinalizer", &removes_finalizer), everywhere(),
        ],
        "validations": validations,
    })
}

/// The limits of each virtual cluster, as a map in CEL.
fn map_of(full: &BTreeMap<ClusterName, Full>) -> String {
    let entry = |(name, limit): (&str, u64)| format!("{}: '{limit}'", literal(name));
    let map = |full: &Full| full.limits().map(entry).collect::<Vec<_>>().join(", ");
    let maps = full.iter().map(|(cluster, full)| format!("{}: {{{}}}", literal(cluster.as_str()), map(full)));
    let maps = maps.collect::<Vec<_>>().join(", ");
    // An empty map has no type.
    if maps.is_empty() { "{'': {'': ''}}".to_owned() } else { format!("{{{maps}}}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_clusters_are_selected() {
        let select =
            |spec: &Value| spec["matchConstraints"]["namespaceSelector"]["matchExpressions"][0]["values"].clone();
        let rules = |spec: &Value| spec["matchConstraints"]["resourceRules"].as_array().unwrap().len();
        let none = kept(&BTreeMap::new());
        assert_eq!((select(&none), rules(&none)), (json!([""]), 1));

        let cluster = |name: &str| ClusterName::new(name).unwrap();
        let secrets: Full = [("secrets".into(), 5)].into_iter().collect();
        let one = kept(&BTreeMap::from([(cluster("a"), secrets.clone())]));
        assert_eq!((select(&one), rules(&one)), (json!(["a"]), 1));
        let storage: Full = [(Full::STORAGE.into(), 7), ("things.example.com".into(), 1)].into_iter().collect();
        let two = kept(&BTreeMap::from([(cluster("a"), secrets), (cluster("b"), storage)]));
        assert_eq!((select(&two), rules(&two)), (json!(["a", "b"]), 2));
        let written: Full = [(Full::WRITTEN.into(), 9)].into_iter().collect();
        assert_eq!(rules(&kept(&BTreeMap::from([(cluster("a"), written)]))), 2);
        let limits = two["variables"][0]["expression"].as_str().unwrap();
        let map = r#"{"a": {"secrets": '5'}, "b": {"storage": '7', "things.example.com": '1'}}["#;
        assert!(limits.starts_with(map), "{limits}");
    }
}
